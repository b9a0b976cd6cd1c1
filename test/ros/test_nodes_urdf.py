"""Nodes that run a robot from a URDF file: held by the tracker, falling on a floating base, and
files that are no robots.
"""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios.joints import JointPerturbation
from nh_control.scenarios.urdf import DEFAULT

LOCKSTEP = {"scenario": "urdf", "lockstep": True, "speed_factor": 0.0, "wait_for": "[probe]"}
H = scenarios.get("urdf").step_s


def of_steps(probe, messages: list, steps: int) -> list:
    """Messages of the steps 0 ... steps; a state may be published more than once."""
    from probe import by_step

    found = probe.wait(
        lambda: len(found := by_step(messages, H)) == steps + 1 and found, f"message {steps}"
    )
    return [found[k] for k in range(steps + 1)]


def joint_states(probe, steps: int) -> np.ndarray:
    return np.array(
        [
            [*message.position, *message.velocity]
            for message in of_steps(probe, probe.joint_states, steps)
        ]
    )


@pytest.mark.slow
def test_a_robot_is_held_as_in_the_simulation(nodes, probe):
    nodes.start("tracker", {"scenario": "urdf"})
    nodes.start("plant", {**LOCKSTEP, "perturb.angle": 0.2, "duration_s": 200 * H})
    states = joint_states(probe, 200)
    scenario = scenarios.get("urdf")
    model = scenario.model()
    tracker = scenario.tracker(model, scenario.reference(model))
    run = closed_loop(
        model,
        tracker,
        scenario.perturb(model, tracker.reference.states[0], JointPerturbation(angle=0.2)),
        200,
    )
    expected = np.array(
        [[*model.configuration(x), *model.velocity(x)] for x in run.trajectory.states]
    )
    assert probe.joint_states[0].name == ["shoulder", "elbow"]
    assert np.abs(states - expected).max() < 1e-9
    assert np.abs(states[-1, :2]).max() < 0.02


@pytest.mark.slow
def test_a_robot_on_a_floating_base_falls(nodes, probe, tmp_path):
    from nav_msgs.msg import Odometry
    from sensor_msgs.msg import MultiDOFJointState

    file = tmp_path / "robot.urdf"
    file.write_text(DEFAULT.read_text())
    odometry, poses = (
        probe.listen(Odometry, "base_link/odom"),
        probe.listen(MultiDOFJointState, "multi_dof_joint_states"),
    )
    steps = 100
    nodes.start(
        "plant",
        {
            **LOCKSTEP,
            "lockstep": False,
            "wait_for_tracker": False,
            "urdf": file,
            "base": "floating",
            "duration_s": steps * H,
        },
    )
    heights = [message.pose.pose.position.z for message in of_steps(probe, odometry, steps)]
    transforms = [message.transforms[0].translation.z for message in of_steps(probe, poses, steps)]
    assert transforms == heights
    np.testing.assert_allclose(
        heights, -9.81 * (H * np.arange(steps + 1)) ** 2 / 2, rtol=0, atol=1e-12
    )
    assert (odometry[0].header.frame_id, odometry[0].child_frame_id) == ("world", "base_link")
    np.testing.assert_allclose(joint_states(probe, steps), 0.0, atol=1e-9)


@pytest.mark.slow
def test_files_that_are_no_robots_end_the_node(nodes, tmp_path):
    file = tmp_path / "robot.urdf"
    file.write_text("<model/>")
    wrong = tmp_path / "wrong.urdf"
    wrong.write_text(DEFAULT.read_text().replace('iyy="', 'iyy="9'))
    refused = [
        ({"scenario": "urdf", "urdf": file}, "a URDF has the root element <robot>, got <model>"),
        ({"scenario": "urdf", "urdf": tmp_path / "none.urdf"}, "No such file"),
        ({"scenario": "urdf", "urdf": wrong}, "accept_any_inertia:=true"),
        ({"scenario": "snakeboard", "urdf": file}, "'snakeboard' takes no robot"),
    ]
    started = [nodes.start("plant", given) for given, _ in refused]
    for node, (_, words) in zip(started, refused):
        assert node.wait() == 2
        assert words in node.log
