"""Goals and trajectories for the payload while it flies: bad ones are refused with the reason and
the flight goes on, good ones are followed.
"""

import math

import numpy as np
import pytest

from nh_control import scenarios

H = scenarios.get("quadrotor_payload").step_s
HOVER = {"scenario": "quadrotor_payload", "reference": "hover"}


class Flight:
    """A tracker and a plant in hover, in lock-step at four times real time, and a node that
    sends goals.
    """

    def __init__(self, nodes, probe):
        from geometry_msgs.msg import PoseStamped
        from nav_msgs.msg import Path
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from trajectory_msgs.msg import MultiDOFJointTrajectory

        self.probe = probe
        self.goals = probe.node.create_publisher(PoseStamped, "goal", 10)
        self.trajectories = probe.node.create_publisher(MultiDOFJointTrajectory, "trajectory", 10)
        self.tracker = nodes.start("tracker", HOVER)
        self.plant = nodes.start(
            "plant",
            {
                **HOVER,
                "lockstep": True,
                "speed_factor": 4.0,
                "on_finish": "continue",
                "wait_for": "[probe]",
            },
        )
        self.paths = probe.listen(
            Path, "reference", QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        )
        probe.wait_bodies(150, H)
        for publisher in (self.goals, self.trajectories):
            probe.wait(publisher.get_subscription_count, "tracker's subscriptions")

    def goal(self, position, frame="odom", stamp_s=0.0):
        """Publish a goal."""
        from test_goals import goal

        self.goals.publish(goal(position, frame, stamp_s))

    def trajectory(self, **given):
        """Publish a trajectory."""
        from test_goals import trajectory

        self.trajectories.publish(trajectory(**given))

    def wait_log(self, text):
        """Wait until the tracker has logged a text, and return the rest of its line."""
        self.probe.wait(lambda: text in self.tracker.log, f"{text!r} in the tracker's log")
        return self.tracker.log.split(text)[-1].splitlines()[0]

    @property
    def position(self):
        """The payload's last position."""
        t = self.probe.bodies[-1].transforms[0].translation
        return np.array([t.x, t.y, t.z])

    def wait_there(self, position):
        """Wait until the payload rests at a position."""
        twist = lambda: self.probe.bodies[-1].twist[0].linear  # noqa: E731
        there = lambda: (
            np.abs(self.position - position).max() < 2e-3
            and abs(twist().x) + abs(twist().y) + abs(twist().z) < 2e-3
        )  # noqa: E731
        self.probe.wait(there, f"rest at {position}, last position {self.position}")


@pytest.fixture
def flight(nodes, probe):
    return Flight(nodes, probe)


BAD_GOALS = {
    "goal refused: position [0.0, nan, 1.0] is not finite": {"position": (0.0, math.nan, 1.0)},
    "goal refused: in the frame 'map'; expected 'odom'": {
        "position": (0.0, 0.0, 1.0),
        "frame": "map",
    },
    "goal (1e+06, 0, 1) refused: no way to the goal": {"position": (1e6, 0.0, 1.0)},
    "s in the past: send it with the present simulation time": {
        "position": (0.0, 0.0, 1.0),
        "stamp_s": 0.01,
    },
}
BAD_TRAJECTORIES = {
    "trajectory refused: point 0 has a translation that is not finite": {
        "positions": ((0.0, math.nan, 1.0), (0.0, 0.0, 1.0))
    },
    "trajectory refused: in the frame 'base_link'; expected 'odom'": {"frame": "base_link"},
    "in the past: give the simulation time at which it is to start": {"stamp_s": 0.02},
    "trajectory refused: times_from_start must increase from 0 or later": {"times": (2.0, 1.0)},
    "trajectory of 2 points refused:": {
        "times": (0.2, 0.4),
        "positions": ((9.0, 0.0, 1.0), (0.0, 9.0, 1.0)),
    },  # infeasible accelerations
}


@pytest.mark.slow
def test_bad_goals_are_refused_with_the_reason_and_the_flight_goes_on(flight):
    probe = flight.probe
    for text, given in BAD_GOALS.items():
        flight.goal(**given)
        probe.wait(lambda text=text: text in probe.message("tracker"), text)
    for text, given in BAD_TRAJECTORIES.items():
        flight.trajectory(**given)
        probe.wait(lambda text=text: text in probe.message("tracker"), text)
    reason = probe.message("tracker")
    assert "allowed are" in reason or "direction" in reason  # what the last one would have needed
    bad = len(BAD_GOALS) + len(BAD_TRAJECTORIES)
    probe.wait_value("goals_refused", str(bad), "tracker")
    assert probe.values("tracker")["goals_accepted"] == "0"
    assert probe.diagnostics["tracker"].level == b"\1" and "refused" in probe.message("tracker")
    step = int(probe.values("tracker")["step"])
    probe.wait_bodies(step + 200, H)
    assert np.abs(flight.position - [0.0, 0.0, 1.0]).max() < 1e-6
    assert probe.values()["mode"] == "running" and probe.values()["commands_rejected"] == "0"
    assert len(flight.paths) == 1


@pytest.mark.slow
def test_limits_that_cannot_hold_the_weight_are_refused_and_the_flight_goes_on(flight):
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter

    probe = flight.probe
    client = probe.node.create_client(SetParameters, "/plant/set_parameters")
    change = Parameter("plant.parameters.thrust_limit", value=5.0).to_parameter_msg()
    (result,) = probe.ask(client, SetParameters.Request(parameters=[change])).results
    assert not result.successful and "read-only" in result.reason
    probe.wait_bodies(probe.bodies[-1].header.stamp.sec * 100 + 300, H)
    assert np.abs(flight.position - [0.0, 0.0, 1.0]).max() < 1e-6


@pytest.mark.slow
def test_goals_and_trajectories_are_followed_also_from_motion(flight):
    probe = flight.probe
    flight.goal((1.0, 0.5, 1.5))
    flight.wait_log("goal (1, 0.5, 1.5) accepted: from t =")
    probe.wait(lambda: len(flight.paths) == 2, "path of the goal")
    last = flight.paths[-1].poses[-1].pose.position
    assert (last.x, last.y, last.z) == pytest.approx((1.0, 0.5, 1.5), abs=1e-3)
    flight.wait_there((1.0, 0.5, 1.5))
    flight.goal((0.0, 0.0, 0.0))  # in the plane
    told = flight.wait_log("goal (0, 0, 1.5) accepted: from t = ").split()
    path = probe.wait(
        lambda: len(flight.paths) == 3 and flight.paths[2], "path of the second goal"
    )
    stamps = [pose.header.stamp.sec + 1e-9 * pose.header.stamp.nanosec for pose in path.poses]
    assert (stamps[0], stamps[-1]) == pytest.approx((float(told[0]), float(told[-2])), abs=1e-3)
    probe.wait(lambda: flight.position[0] < 0.8, "motion")
    flight.goal((-0.5, 0.5, 1.0))
    flight.wait_log("goal (-0.5, 0.5, 1) accepted")
    flight.wait_there((-0.5, 0.5, 1.0))
    flight.trajectory(times=(3.0, 6.0), positions=((0.5, 0.0, 1.0), (1.0, 1.0, 1.2)))
    flight.wait_log("trajectory of 2 points accepted")
    flight.wait_there((1.0, 1.0, 1.2))
    probe.wait_value("goals_accepted", "4", "tracker")
    assert probe.values("tracker")["goals_refused"] == "0"
    assert probe.values()["commands_rejected"] == probe.values()["fallback_steps"] == "0"
    assert float(probe.values("tracker")["error of payload position (m)"]) < 1e-3


@pytest.mark.slow
def test_a_plant_that_starts_again_is_followed_from_its_start(flight):
    probe = flight.probe
    flight.goal((0.5, 0.0, 1.0))
    flight.wait_there((0.5, 0.0, 1.0))
    assert probe.call("reset").success
    probe.wait(lambda: abs(flight.position[0]) < 1e-3, "start")
    probe.wait(lambda: len(flight.paths) == 3, "path of the first reference")
    last = flight.paths[-1].poses[-1].pose.position
    assert (last.x, last.y, last.z) == pytest.approx((0.0, 0.0, 1.0))
    known = len(probe.bodies)
    probe.wait(lambda: len(probe.bodies) > known + 300, "flight")
    assert np.abs(flight.position - [0.0, 0.0, 1.0]).max() < 1e-6
