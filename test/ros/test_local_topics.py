"""Topics between the nodes of one process: who gets what, as messages or bytes."""

from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from rclpy.serialization import deserialize_message, serialize_message  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from nh_control.ros.runtime.local_topics import LocalTopics  # noqa: E402

MESSAGE = JointState(name=["a"], position=[1.0])


class Publisher:
    """A publisher of the middleware with so many subscribers."""

    topic_name, msg_type = "/joint_states", JointState

    def __init__(self, subscribers=0):
        self.sent, self.subscribers, self.acked = [], subscribers, "acked"

    def publish(self, message):
        """Keep it."""
        self.sent.append(message)

    def get_subscription_count(self):
        """Of others."""
        return self.subscribers


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("sent", [MESSAGE, serialize_message(MESSAGE)], ids=["message", "bytes"])
def test_messages_and_bytes_become_what_was_asked_for(raw, sent):
    topics, got = LocalTopics(["/joint_states"]), []
    topics.subscribe("tracker", "/joint_states", raw, got.append)
    topics.publisher(Publisher()).publish(sent)
    (one,) = got
    assert isinstance(one, bytes) == raw
    assert (deserialize_message(one, JointState) if raw else one) == MESSAGE


def test_others_get_messages_only_if_they_listen():
    topics, got = LocalTopics(["/joint_states"]), []
    for subscribers, sent in ((0, []), (2, [MESSAGE])):
        outside = Publisher(subscribers)
        publisher = topics.publisher(outside)
        publisher.publish(MESSAGE)
        assert outside.sent == sent and publisher.acked == "acked"
        assert publisher.get_subscription_count() == subscribers
    topics.subscribe("tracker", "/joint_states", False, got.append)
    topics.subscribe("tracker", "/joint_states", False, got.append)  # instead of the first
    assert publisher.get_subscription_count() == 3
    publisher.publish(MESSAGE)
    assert got == [MESSAGE]
    topics.forget("tracker")
    publisher.publish(MESSAGE)
    assert got == [MESSAGE] and not topics.subscribers("/joint_states")


def test_an_inbox_takes_local_topics_in_its_thread_and_tells_what_raises():
    from bench import alone

    from nh_control.ros.runtime.inbox import Inbox

    told, got = [], []
    with alone() as context:
        import rclpy

        node = rclpy.create_node("tracker", context=context)
        topics = LocalTopics(["/joint_states"])
        errors = SimpleNamespace(raised=lambda topic, error: told.append((topic, str(error))))
        inbox = Inbox(node, errors, topics)
        inbox.subscribe(JointState, "joint_states", got.append, 10)
        inbox.subscribe(JointState, "other", got.append, 10)
        assert [one.topic_name for one in node.subscriptions if "other" in one.topic_name]
        assert not [one for one in node.subscriptions if one.topic_name == "/joint_states"]
        publisher = topics.publisher(Publisher())
        publisher.publish(MESSAGE)
        assert got == []  # until the inbox serves
        assert inbox.serve(0.0) and got == [MESSAGE]
        inbox.subscribe(JointState, "joint_states", lambda _: 1 / 0, 10)
        publisher.publish(MESSAGE)
        inbox.serve(0.0)
        assert told == [("/joint_states", "division by zero")]
