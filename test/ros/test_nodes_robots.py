"""Robots side by side in one domain, each in its namespace: none disturbs another."""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import PlanarPerturbation

SCENARIO = scenarios.get("snakeboard")
H = SCENARIO.step_s
STEPS = 200


def start(nodes, name, perturbation, **given):
    """Tracker and plant of a robot of this name."""
    place = ("-r", f"__ns:=/{name}")
    tracker = nodes.start("tracker", None, *place)
    return tracker, nodes.start("plant", {"perturb.position": perturbation, **given}, *place)


def expected(perturbation, steps=STEPS):
    """Rows of a lone robot's x, y and joint positions over the same run."""
    model = SCENARIO.model()
    tracker = SCENARIO.tracker(model, SCENARIO.reference(model))
    first = SCENARIO.perturb(
        model, tracker.reference.states[0], PlanarPerturbation(position=perturbation)
    )
    states = closed_loop(model, tracker, first, steps).trajectory.states
    rows = [model.configuration(x) for x in states]
    return np.array([[x, y, psi, phi, -phi] for psi, phi, theta, x, y in rows])


class Robot:
    """What is heard of a robot."""

    def __init__(self, probe, name):
        from nav_msgs.msg import Odometry
        from rosgraph_msgs.msg import Clock
        from sensor_msgs.msg import JointState

        self.name, self.topics = name, {}
        # a plant waits for the states' subscriber: the clock's first
        kinds = {"clock": Clock, "odom": Odometry, "joint_states": JointState}
        for topic, kind in kinds.items():
            self.topics[topic] = probe.listen(kind, f"/{name}/{topic}")

    def rows(self, steps=STEPS):
        """As `expected`."""
        from probe import by_step

        bodies, joints = (by_step(self.topics[topic], H) for topic in ("odom", "joint_states"))
        assert sorted(bodies) == sorted(joints) == list(range(steps + 1))
        places = [bodies[k].pose.pose.position for k in range(steps + 1)]
        return np.array([[p.x, p.y, *joints[k].position] for k, p in enumerate(places)])

    def complete(self, steps=STEPS):
        """Whether the last messages are there."""
        from probe import time_ns

        last = round(steps * H * 1e9)
        received = [self.topics[topic] for topic in ("clock", "odom", "joint_states")]
        return all(messages and time_ns(messages[-1]) == last for messages in received)

    def times(self):
        """Its clock's times in ns."""
        from probe import time_ns

        return [time_ns(message) for message in self.topics["clock"]]


@pytest.mark.slow
def test_two_robots_in_namespaces_do_not_disturb_each_other(nodes, probe):
    perturbations = {"robot1": 0.1, "robot2": 0.2}
    robots = [Robot(probe, name) for name in perturbations]
    given = {"lockstep": True, "speed_factor": 2.0, "duration_s": STEPS * H, "wait_for": "[probe]"}
    for name, perturbation in perturbations.items():
        start(nodes, name, perturbation, **given)
    for robot in robots:
        plant = f"{robot.name}/plant"
        probe.wait(lambda: probe.values(plant).get("mode") == "finished", "end of the run")
    for robot, perturbation in zip(robots, perturbations.values()):
        probe.wait(robot.complete, "last state and time")
        assert np.abs(robot.rows() - expected(perturbation)).max() < 1e-9
        assert sorted(robot.times()) == robot.times()
        assert set(robot.times()) == {k * 10**7 for k in range(STEPS + 1)}  # exactly
        (frames,) = {(m.header.frame_id, m.child_frame_id) for m in robot.topics["odom"]}
        assert frames == (f"{robot.name}/odom", f"{robot.name}/base_link")
    assert not probe.clock  # nobody has the time of all
