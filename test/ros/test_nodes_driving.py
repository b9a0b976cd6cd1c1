"""Wheels and skates as nodes: what they publish is what the run in one process has."""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.runs.experiment import Experiment
from nh_control.scenarios import PlanarPerturbation

STEPS = 100
NAMES = ("differential_drive", "car", "wet_car", "chaplygin_sleigh", "rolling_disk")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_lockstep_equals_the_simulation(nodes, probe, name):
    from probe import by_step

    scenario = scenarios.get(name)
    h, error = scenario.step_s, PlanarPerturbation(position=0.1, heading=0.1, momentum=0.1)
    nodes.start("tracker", {"scenario": name})
    start = {"perturb.position": 0.1, "perturb.heading": 0.1, "perturb.momentum": 0.1}
    lockstep = {"lockstep": True, "speed_factor": 0.0, "wait_for": "[probe]"}
    nodes.start("plant", {"scenario": name, **lockstep, **start, "duration_s": STEPS * h})
    topics = [probe.odometry, *([probe.joint_states] if scenario.joints else [])]
    probe.wait(lambda: all(STEPS in by_step(topic, h) for topic in topics), "last state")
    run = Experiment.make(scenario, perturbation=error, duration_s=STEPS * h).run()
    model, odometry = scenario.model(), by_step(probe.odometry, h)
    joints = by_step(probe.joint_states, h)
    assert all(sorted(by_step(topic, h)) == list(range(STEPS + 1)) for topic in topics)
    for k, x in enumerate(run.trajectory.states):
        q, v = model.configuration(x), model.velocity(x)
        pose, twist = odometry[k].pose.pose, odometry[k].twist.twist
        assert (odometry[k].header.frame_id, odometry[k].child_frame_id) == ("odom", "base_link")
        turn = [pose.orientation.z, pose.orientation.w]
        found = [pose.position.x, pose.position.y, *turn]
        found += [twist.angular.z, twist.linear.x, twist.linear.y]
        theta = q[-3]
        wanted = [*q[-2:], np.sin(theta / 2), np.cos(theta / 2), *v[-3:]]
        assert np.abs(np.subtract(found, wanted)).max() <= 1e-9 * (1 + np.abs(v).max())
        if scenario.joints:
            assert list(joints[k].name) == [joint.name for joint in scenario.joints]
            n = len(scenario.joints)
            received = [*joints[k].position, *joints[k].velocity]
            assert np.abs(np.subtract(received, [*q[:n], *v[:n]])).max() <= 1e-9 * (
                1 + np.abs(v).max()
            )
