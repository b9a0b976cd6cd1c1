"""Who hears a publisher: what the graph of nodes knows, against what is matched."""

import time
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from rclpy.qos import DurabilityPolicy  # noqa: E402

from nh_control.ros.runtime.listeners import listeners, wait_delivered  # noqa: E402


def heard_by(matched, volatile=(), latched=()):
    """Listeners of a publisher that is matched with so many subscriptions, of those that are
    known.
    """
    kinds = [(name, DurabilityPolicy.VOLATILE) for name in volatile] + [
        (name, DurabilityPolicy.TRANSIENT_LOCAL) for name in latched
    ]
    known = [
        SimpleNamespace(node_name=name, qos_profile=SimpleNamespace(durability=kind))
        for name, kind in kinds
    ]
    node = SimpleNamespace(get_subscriptions_info_by_topic={"/odom": known}.get)
    return listeners(
        node, SimpleNamespace(topic_name="/odom", get_subscription_count=lambda: matched)
    )


def test_all_known_nodes_hear_a_publisher_that_is_matched_with_them():
    assert heard_by(2, volatile=("recorder", "display")) == {"recorder", "display"}
    assert heard_by(0) == set()


def test_nobody_is_said_to_hear_while_one_is_not_matched():
    assert heard_by(1, volatile=("recorder", "display")) is None


def test_who_wants_latched_messages_is_not_waited_for():
    assert heard_by(1, volatile=("recorder",), latched=("viewer",)) == {"recorder"}


def test_publishers_whose_subscriber_is_gone_are_waited_for_together():
    waited = []

    def wait(timeout):
        waited.append(timeout.nanoseconds * 1e-9)
        time.sleep(waited[-1])
        return False

    gone = SimpleNamespace(wait_for_all_acked=wait)
    wait_delivered([gone, gone, gone], 0.05)
    assert len(waited) == 3 and sum(waited) < 0.051
