"""A vehicle that another process drives by velocity commands, and sends to a pose."""

import math
from pathlib import Path

import numpy as np
import pytest

from nh_control import scenarios

SIDE = 0.5
DRIVER = Path(__file__).with_name("square_driver.py")
RUN = {"lockstep": True, "speed_factor": 1.0, "on_finish": "continue", "wait_for": "[probe]"}


def started(nodes, probe, name, **tracker):
    """The tracker and the plant of a vehicle that stands, and the targets of the tracker."""
    from nav_msgs.msg import Odometry

    targets = probe.listen(Odometry, "reference/odom")
    own = {"scenario": name, "reference": "standstill"}
    node = nodes.start("tracker", {**own, **tracker})
    nodes.start("plant", {**own, **RUN})
    probe.wait(lambda: len(probe.odometry) > 10, "states")
    return node, targets


def poses(messages, h):
    """(theta, x, y, forward, turn) by step."""
    from probe import by_step

    found = {}
    for k, m in by_step(messages, h).items():
        position, turn, twist = m.pose.pose.position, m.pose.pose.orientation, m.twist.twist
        heading = 2 * math.atan2(turn.z, turn.w)
        found[k] = np.array([heading, position.x, position.y, twist.linear.x, twist.angular.z])
    return found


@pytest.mark.slow
def test_a_teleoperator_drives_a_square(nodes, probe):
    from probe import time_ns

    h = scenarios.get("differential_drive").step_s
    _, targets = started(nodes, probe, "differential_drive")
    driver = nodes.start("square_driver", {"side": SIDE}, script=DRIVER)
    probe.wait(lambda: "the square is done" in driver.log, "end of the square")
    end = h * (int(probe.call("pause", False).message.split()[-1]) + 100)  # "running at step ..."
    probe.wait(lambda: time_ns(probe.odometry[-1]) >= end * 1e9, "rest")
    driven, wanted = poses(probe.odometry, h), poses(targets, h)
    # targets are published for people to look at: a plant that catches up has fewer of them
    common = sorted(driven.keys() & wanted.keys())
    assert len(common) > 100
    errors = np.abs([driven[k] - wanted[k] for k in common])
    way, steps = np.array([driven[k] for k in sorted(driven)]), np.diff(sorted(driven))
    print("largest errors", errors.max(0), "ends at", way[-1])
    assert errors[:, 1:].max() < 1e-6
    # acceleration limits of the scenario
    assert np.abs(np.diff(way[:, 3]) / steps).max() <= 1.0 * h + 1e-6
    assert np.abs(np.diff(way[:, 4]) / steps).max() <= 2.0 * h + 1e-6
    for corner in np.array([(1, 0), (1, 1), (0, 1)]) * SIDE:
        assert np.hypot(*(way[:, 1:3] - corner).T).min() < 0.02
    assert np.hypot(*way[-1, 1:3]) < 0.02
    assert np.abs(way[-1, 3:]).max() < 1e-6


@pytest.mark.slow
def test_a_publisher_of_the_other_type_is_named_with_the_remedy(nodes, probe):
    from geometry_msgs.msg import Twist

    own = {"scenario": "differential_drive", "reference": "standstill"}
    tracker = nodes.start("tracker", own)
    probe.node.create_publisher(Twist, "cmd_vel", 1)
    remedy = "this node takes geometry_msgs/msg/TwistStamped; set the tracker's cmd_vel.stamped:="
    text = f"/cmd_vel of probe is not heard: it is geometry_msgs/msg/Twist, {remedy}false"
    probe.wait(lambda: text in probe.message("tracker"), "warning")
    probe.wait(lambda: probe.diagnostics.pop("tracker", None), "next warning")
    assert tracker.log.count(text) == 1
