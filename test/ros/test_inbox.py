"""What an inbox waits for, takes and carries out, in which order: on a node that nobody else
discovers.
"""

import threading
import time
from concurrent.futures import TimeoutError as CallTimeout

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from bench import alone  # noqa: E402
from rclpy.duration import Duration  # noqa: E402
from rclpy.qos import QoSProfile, ReliabilityPolicy  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402
from std_msgs.msg import Int32, String  # noqa: E402

from nh_control.ros.runtime import inbox as module  # noqa: E402
from nh_control.ros.runtime.inbox import Inbox  # noqa: E402


class Made:
    """An inbox, and what is published to it: `heard` are the messages, as they are handled."""

    def __init__(self, node):
        self.node, self.inbox, self.heard, self._publishers = node, Inbox(node), [], {}

    def subscribe(self, topic, callback=None, kind=Int32, **options):
        """Hear a topic, of 10 messages that wait at most."""
        self._publishers[topic] = self.node.create_publisher(kind, topic, 10)
        hear = lambda message: self.heard.append((topic, getattr(message, "data", message)))  # noqa: E731
        self.inbox.subscribe(kind, topic, callback or hear, 10, **options)

    def send(self, topic, *values):
        """Messages arrive: numbers, or serialized ones."""
        publisher = self._publishers[topic]
        while not publisher.get_subscription_count():
            time.sleep(1e-3)
        for value in values:
            publisher.publish(value if isinstance(value, bytes) else Int32(data=value))
        assert publisher.wait_for_all_acked(Duration(seconds=60))


@pytest.fixture
def made():
    """An inbox that nobody serves."""
    with alone() as context:
        node = rclpy.create_node("listener", context=context)
        yield Made(node)
        node.destroy_node()


@pytest.fixture
def served(made):
    """An inbox that a thread serves."""
    thread = threading.Thread(target=made.inbox.run)
    thread.start()
    yield made.inbox
    made.inbox.close()
    thread.join()


def test_it_waits_as_long_as_asked_or_until_a_request(made):
    begun = time.monotonic()
    made.inbox.serve(0.0)
    assert not made.inbox.serve(0.05) and time.monotonic() >= begun + 0.05
    made.inbox.post(lambda: made.heard.append("request"))
    made.inbox.serve(1e12)  # longer than any wait can be, but there is a request
    threading.Timer(0.05, made.inbox.post, [lambda: made.heard.append("later")]).start()
    made.inbox.serve(None)
    assert made.heard == ["request", "later"]


def test_one_message_of_every_topic_is_taken_at_a_time_in_the_order_of_subscriptions(made):
    made.subscribe("a")
    made.subscribe("b", raw=True)
    made.send("b", 1, 2)
    made.send("a", 3)
    raw = [("b", bytes(serialize_message(Int32(data=value)))) for value in (1, 2)]
    assert made.inbox.serve(1.0) and made.heard == [("a", 3), raw[0]]
    made.inbox.serve(1.0)
    assert made.heard == [("a", 3), *raw]


def test_what_is_not_awaited_wakes_nobody_and_is_handled_with_the_next(made):
    awaited = threading.Event()
    made.subscribe("quiet", awaited=awaited.is_set)
    made.subscribe("loud")
    made.send("quiet", 1)
    made.inbox.serve(0.1)
    assert made.heard == []
    made.send("loud", 2)
    made.inbox.serve(1.0)
    assert made.heard == [("quiet", 1), ("loud", 2)]
    awaited.set()
    made.send("quiet", 3)
    made.inbox.serve(1.0)
    assert made.heard[2:] == [("quiet", 3)]


def test_requests_are_carried_out_in_turn_and_what_they_ask_for_the_next_time(made):
    done = []

    def first():
        done.append(1)
        made.inbox.post(lambda: done.append(3))

    made.inbox.post(first)
    made.inbox.post(lambda: done.append(2))
    assert done == []
    made.inbox.serve(0.0)
    assert done == [1, 2]
    made.inbox.serve(0.0)
    assert done == [1, 2, 3]


def test_what_was_asked_before_it_was_opened_again_is_not_done(made):
    inbox, done = made.inbox, []
    inbox.post(lambda: done.append("before"))
    inbox.close()
    assert inbox.closed
    inbox.run()  # ends at once
    inbox.post(lambda: done.append("closed"))
    with pytest.raises(TimeoutError, match="the listener is not active"):
        inbox.call(lambda: None)
    inbox.open()
    inbox.post(lambda: done.append("after"))
    inbox.post(inbox.close)
    inbox.run()
    assert done == ["after"]


def test_a_call_returns_or_raises_what_the_request_does_in_the_thread_that_serves(served):
    def slow():
        time.sleep(0.05)
        return threading.current_thread()

    assert served.call(slow) is not threading.current_thread()
    for error in (ValueError("no"), KeyError("no")):

        def fail(error=error):
            raise error

        with pytest.raises(type(error)):
            served.call(fail)
    assert served.call(lambda: 3) == 3  # it goes on
    assert served.errors.counts["callback_errors"] == 0  # who asked was told


def test_who_is_not_answered_does_not_wait_for_ever(made, monkeypatch):
    assert 1.0 <= module.ANSWER_S <= 10.0
    monkeypatch.setattr(module, "ANSWER_S", 0.01)
    with pytest.raises((TimeoutError, CallTimeout)):
        made.inbox.call(lambda: None)


def test_publishers_that_are_not_heard_are_named_by_topic(made):
    for topic in ("a", "b"):
        made.inbox.subscribe(Int32, topic, print, 1)
    assert made.inbox.incompatible_publishers() == {}
    unreliable = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    made.node.create_publisher(Int32, "b", unreliable)
    while not (found := made.inbox.incompatible_publishers()):
        time.sleep(1e-3)
    ((topic, [text]),) = found.items()
    assert topic == "/b" and text.startswith("listener (") and "best effort" in text


def test_what_raises_or_cannot_be_read_is_told_and_the_rest_is_handled(made, monkeypatch):
    def mistaken(*_):
        raise ZeroDivisionError("a mistake")

    def unreadable(*_, **__):
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    made.subscribe("a", mistaken)
    made.subscribe("b")
    made.subscribe("text", kind=String)
    made.send("a", 1)
    made.send("b", 2)
    made.send("text", bytes(serialize_message(String(data="?"))))
    monkeypatch.setattr(String, "__init__", unreadable)
    made.inbox.post(mistaken)
    made.inbox.post(lambda: made.heard.append("request"))
    made.inbox.serve(1.0)
    assert made.heard == [("b", 2), "request"]
    counts = made.inbox.errors.counts
    assert (counts["callback_errors"], counts["callback error: /a"]) == (2, 1)
    assert counts["malformed: /text"] == 1
