"""Who hears a publisher: what the graph of nodes knows, against what is matched."""

import time
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy  # noqa: E402

from nh_control.ros.runtime.local_topics import LocalTopics  # noqa: E402
from nh_control.ros.runtime.subscribers import (  # noqa: E402
    LateSubscribers,
    incompatible_publishers,
    matched_subscribers,
    mistyped_publishers,
    wait_delivered,
)


def listener(name, latched=False):
    """What the graph of nodes knows of a subscription."""
    kind = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
    return SimpleNamespace(node_name=name, qos_profile=SimpleNamespace(durability=kind))


RECORDER, DISPLAY, LATCHED = listener("recorder"), listener("display"), listener("rviz", True)


@pytest.mark.parametrize(
    ("known", "matched", "local", "heard"),
    [
        ([RECORDER, DISPLAY], 2, (), {"recorder", "display"}),
        ([], 0, (), set()),
        ([RECORDER, DISPLAY], 1, (), None),  # nobody is said to while one is not matched
        ([RECORDER, LATCHED], 1, (), {"recorder"}),  # latched messages are had later, too
        ([RECORDER], 0, ("tracker",), None),  # one in the process is not the match of another
        ([RECORDER], 1, ("tracker",), {"recorder", "tracker"}),
    ],
)
def test_nodes_hear_a_publisher_once_all_that_are_known_are_matched(known, matched, local, heard):
    node = SimpleNamespace(get_subscriptions_info_by_topic={"/odom": known}.get)
    publisher = SimpleNamespace(
        topic_name="/odom", msg_type=None, get_subscription_count=lambda: matched
    )
    topics = LocalTopics(["/odom"])
    for name in local:
        topics.subscribe(name, "/odom", False, print)
    shared = topics.publisher(publisher) if local else publisher
    assert matched_subscribers(node, shared) == heard


def test_publishers_whose_subscriber_is_gone_are_waited_for_together():
    waited = []

    def wait(timeout):
        waited.append(timeout.nanoseconds * 1e-9)
        time.sleep(waited[-1])
        return False

    gone = SimpleNamespace(wait_for_all_acked=wait)
    wait_delivered([gone, gone, gone], 0.05)
    assert len(waited) == 3 and sum(waited) < 0.051


def test_somebody_is_late_who_was_not_there_at_the_last_look():
    counts = [1, 0]
    publishers = [SimpleNamespace(get_subscription_count=lambda i=i: counts[i]) for i in range(2)]
    late = LateSubscribers(publishers)
    assert late.new() and not late.new() and list(late.count()) == [1, 0]
    counts[:] = [0, 1]  # one has gone, another one has come
    assert late.new()
    counts[:] = [0, 0]
    assert not late.new()


@pytest.mark.parametrize(
    ("offered", "wanted", "heard"),
    [
        ("RELIABLE", "RELIABLE", True),
        ("RELIABLE", "BEST_EFFORT", True),
        ("BEST_EFFORT", "BEST_EFFORT", True),
        ("BEST_EFFORT", "RELIABLE", False),
    ],
)
def test_publishers_that_cannot_be_heard_are_named_with_the_reason(offered, wanted, heard):
    quality = lambda kind: QoSProfile(depth=1, reliability=getattr(ReliabilityPolicy, kind))  # noqa: E731
    camera = SimpleNamespace(node_name="camera", qos_profile=quality(offered))
    node = SimpleNamespace(get_publishers_info_by_topic={"/odom": [camera]}.get)
    found = incompatible_publishers(node, "/odom", quality(wanted))
    assert len(found) == (0 if heard else 1)
    assert heard or found[0].startswith("camera (") and "reliab" in found[0]


def test_publishers_of_another_type_are_named_by_it():
    from geometry_msgs.msg import Twist

    kinds = ("joystick", "geometry_msgs/msg/TwistStamped"), ("pad", "geometry_msgs/msg/Twist")
    known = [SimpleNamespace(node_name=name, topic_type=kind) for name, kind in kinds]
    node = SimpleNamespace(get_publishers_info_by_topic={"/cmd_vel": known}.get)
    found = mistyped_publishers(node, "/cmd_vel", Twist)
    assert found == {"geometry_msgs/msg/TwistStamped": ["joystick"]}
