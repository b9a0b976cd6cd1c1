"""Plant, tracker and display with quadrotors that carry a payload, in processes of their own:
lock-step, topics, wind, encoders only.
"""

import numpy as np
import pytest
from transforms3d.quaternions import quat2mat

from nh_control import scenarios
from nh_control.discrete.plant_steps import convert
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import Disturbance, Gust, PlantOptions
from nh_control.scenarios.disturbance import parse
from nh_control.scenarios.quadrotor_payload import PayloadPerturbation

SCENARIO = scenarios.get("quadrotor_payload")
H = SCENARIO.step_s
HOVER = {"scenario": "quadrotor_payload", "reference": "hover"}
LOCKSTEP = {**HOVER, "lockstep": True, "speed_factor": 0.0, "wait_for": "[probe]"}
PERTURBED = {"perturb.position": 0.2, "perturb.swing": 0.3, "perturb.tilt": 0.5, "perturb.seed": 3}
NOISE = "quad1:noise:0.3,0.3,0.3,0.1,0.1,0.1,correlation=0.2,seed=5"
WIND = {"disturb": f"['payload:gust:1,-2,0.5,start=0.5,duration=1', '{NOISE}']"}
OTHER = {
    "plant.substeps": 2,
    "plant.parameters.payload_mass": 0.5,
    "plant.parameters.lengths": "[0.65, 0.75]",
}
WARN = b"\1"


def expected(steps: int) -> np.ndarray:
    """The run of PERTURBED, WIND and OTHER in this process, as `probe.body_states` gives it."""
    model = SCENARIO.model()
    tracker = SCENARIO.tracker(model, SCENARIO.reference(model, "hover"))
    gust = Disturbance("payload", Gust((1.0, -2.0, 0.5), 0.5, 1.0))
    options = PlantOptions(
        substeps=2,
        parameters={"payload_mass": 0.5, "lengths": (0.65, 0.75)},
        disturbances=(gust, parse(NOISE)),
    )
    plant = SCENARIO.plant(model, options)
    start = SCENARIO.perturb(
        model,
        tracker.reference.states[0],
        PayloadPerturbation(position=0.2, swing=0.3, tilt=0.5, seed=3),
    )
    forces = SCENARIO.disturbance(model, options)
    wind = np.array([forces(k) for k in range(steps)])
    assert np.count_nonzero(wind[:, :3].any(axis=1)) == 100 and wind[:, 3:].all()
    run = closed_loop(
        plant, tracker, convert(start, model, plant), steps, options.substeps, disturbance=wind
    )
    rows = []
    for x in run.trajectory.states:  # those of the model, which has other lengths
        bodies = SCENARIO.to_bodies(
            plant.system.parameters, model.configuration(x), model.velocity(x)
        )
        rows.append(
            np.concatenate(
                [
                    part
                    for b in bodies
                    for part in (
                        b.position,
                        b.quaternion_wxyz,
                        quat2mat(b.quaternion_wxyz).T @ b.linear_velocity,
                        b.angular_velocity_body,
                    )
                ]
            )
        )
    return np.array(rows)


@pytest.mark.slow
def test_lockstep_runs_are_identical_and_equal_the_simulation(nodes, probe):
    from probe import body_states

    nodes.start("tracker", HOVER)
    nodes.start("plant", {**LOCKSTEP, **PERTURBED, **WIND, **OTHER, "duration_s": 2.0})
    probe.wait_bodies(200, H)
    first = body_states(probe, H)
    probe.reset()
    probe.wait_bodies(200, H)
    assert np.array_equal(first, body_states(probe, H))
    assert np.abs(first - expected(200)).max() < 1e-9


@pytest.mark.slow
def test_lockstep_is_identical_in_other_processes(nodes, probe):
    from probe import body_states

    runs = []
    for _ in range(2):
        probe.clear()
        tracker = nodes.start("tracker", {**HOVER, "reference": "parabola"})
        plant = nodes.start(
            "plant", {**LOCKSTEP, **PERTURBED, "reference": "parabola", "duration_s": 3.0}
        )
        probe.wait_bodies(300, H)
        runs.append(body_states(probe, H))
        assert (plant.end(), tracker.end()) == (0, 0)
    assert np.array_equal(*runs)


@pytest.mark.slow
def test_topics_are_complete_and_valid(nodes, probe):
    from nav_msgs.msg import Odometry, Path
    from probe import EVERYTHING, time_ns
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from sensor_msgs.msg import MultiDOFJointState
    from visualization_msgs.msg import MarkerArray

    markers = probe.listen(MarkerArray, "markers")
    odometry = {
        frame: probe.listen(Odometry, f"{frame}/odom", EVERYTHING)
        for frame in ("payload", "quad1", "quad2")
    }
    targets = probe.listen(MultiDOFJointState, "reference/multi_dof_joint_states")
    nodes.start("display", HOVER)
    nodes.start("tracker", HOVER)
    probe.wait_publishers("markers", "joint_commands")
    nodes.start(
        "plant",
        {
            **HOVER,
            "wait_for": "[probe, display]",
            "lockstep": True,
            "perturb.position": 0.2,
            "duration_s": 2.0,
        },
    )
    probe.wait_mode("finished")
    paths = probe.listen(
        Path, "reference", QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    )
    probe.wait(lambda: paths, "path")
    probe.wait_bodies(200, H)
    probe.wait_clock(200, H)
    for received in odometry.values():
        probe.wait(
            lambda received=received: received and time_ns(received[-1]) == 2 * 10**9, "odometry"
        )
    command = probe.wait_command(199, H)
    kinds = {"plant", "reference", "cables", "outline", "inputs", "trail"}
    probe.wait(lambda: markers and {m.ns for m in markers[-1].markers} == kinds, "all markers")
    probe.wait_value("step", "200", "tracker")
    probe.wait(lambda: targets, "reference's states")

    stamps = [10_000_000 * k for k in range(201)]
    assert (
        sorted({time_ns(m) for m in probe.bodies})
        == sorted({time_ns(m) for m in probe.clock})
        == stamps
    )
    assert not probe.joint_states and not probe.odometry
    state = probe.bodies[-1]
    assert (state.header.frame_id, list(state.joint_names)) == (
        "odom",
        ["payload", "quad1", "quad2"],
    )
    for i, (frame, received) in enumerate(odometry.items()):
        assert sorted({time_ns(m) for m in received}) == stamps
        assert (received[-1].header.frame_id, received[-1].child_frame_id) == ("odom", frame)
        assert (
            received[-1].pose.pose.orientation == state.transforms[i].rotation
            and received[-1].twist.twist == state.twist[i]
        )
    assert list(command.name) == list(SCENARIO.model().inputs) and len(command.effort) == 8
    assert {pose.pose.position.z for pose in paths[0].poses} == {1.0}
    assert targets[-1].transforms[0].translation.z == pytest.approx(1.0)
    shown = [m for m in markers[-1].markers if m.action == m.ADD]
    assert {(m.ns, m.type) for m in shown} >= {
        ("inputs", 0),
        ("cables", 4),
        ("plant", 3),
        ("plant", 2),
    }  # arrows, lines, propellers, payload
    values = probe.values()
    assert float(values["tension link1 (N)"]) > 1 and float(values["lowest tension link2 (N)"]) > 0
    assert values["commands_rejected"] == "0"
    tracker = probe.values("tracker")
    assert {
        "error of payload position (m)",
        "error of quad1 attitude (rad)",
        "error of quad2 attitude (rad)",
        "steps_saturated",
    } <= tracker.keys()
    assert float(tracker["error of payload position (m)"]) < 0.1


@pytest.mark.slow
def test_without_velocities_the_tracker_reconstructs_the_momentum(nodes, probe):
    from probe import by_step

    nodes.start("tracker", HOVER)
    probe.wait_publishers("joint_commands")
    nodes.start("plant", {**LOCKSTEP, **PERTURBED, "publish_velocities": False, "duration_s": 6.0})
    probe.wait_bodies(600, H)
    assert all(len(m.twist) == 0 for m in probe.bodies)
    bodies = by_step(probe.bodies, H)
    distance = [
        np.hypot(bodies[k].transforms[0].translation.x, bodies[k].transforms[0].translation.y)
        for k in (0, 600)
    ]
    assert distance[0] > 0.1 and distance[1] < 0.005
    probe.wait_value("step", "600", "tracker")
    assert probe.values("tracker")["momenta_approximated"] == "0"
    assert len(probe.wait_command(600, H).effort) == 8


@pytest.mark.slow
def test_a_slack_cable_is_a_warning(nodes, probe):
    nodes.start("plant", {**HOVER, "lockstep": True, "speed_factor": 0.0, "perturb.tilt": 3.0})
    first = probe.wait_bodies(0, H)
    probe.command(
        first.header.stamp, [10.0, 0.0, 0.0, 0.0] * 2, SCENARIO.model().inputs
    )  # upside down, the quadrotors push the payload
    probe.wait(lambda: "tension link1 (N)" in probe.values(), "report after the first step")
    assert "1 steps with a slack cable (link1, link2)" in probe.message()
    assert probe.diagnostics["plant"].level == WARN
    assert float(probe.values()["lowest tension link1 (N)"]) < -1


@pytest.mark.slow
def test_wind_is_no_command(nodes, probe):
    nodes.start("plant", {**HOVER, "lockstep": True, "speed_factor": 0.0, **WIND})
    first = probe.wait_bodies(0, H)
    model = SCENARIO.model()
    gust = Disturbance("payload", Gust((1.0, -2.0, 0.5)))
    windy = SCENARIO.plant(model, PlantOptions(disturbances=(gust,)))
    probe.command(first.header.stamp, [0.0] * windy.nu, windy.inputs)
    probe.wait_value("rejected: wrong names", "1")
    assert probe.values()["step"] == "0"
    probe.command(first.header.stamp, [100.0] + [0.0] * 7, model.inputs)
    probe.wait_bodies(1, H)
    probe.wait_value("commands_clipped", "1")


@pytest.mark.slow
@pytest.mark.usefixtures("udp")
def test_a_plant_with_its_own_copy_of_a_tracker_that_is_killed_keeps_the_payload_in_the_air(
    nodes, probe
):
    """Nobody starts the tracker again; it flies the rest of the line, and stays there."""
    flight = {"scenario": "quadrotor_payload", "reference": "line"}
    tracker = nodes.start("tracker", flight)
    plant = {"fallback": "tracker", "wait_for": "[probe]", "speed_factor": 0.5}
    nodes.start("plant", {**flight, **plant})
    probe.wait_bodies(100, H)
    tracker.kill()
    at = int(probe.call("pause", False).message.split()[-1])  # "running at step ..."
    probe.wait_mode("finished")
    end = probe.wait_bodies(int(probe.values()["step"]), H).transforms[0].translation
    model = SCENARIO.model()
    wanted = model.configuration(SCENARIO.reference(model, "line").states[-1])[:3]
    assert np.linalg.norm(np.array([end.x, end.y, end.z]) - wanted) < 0.05
    # all but those for which the last command is held
    assert int(probe.values()["fallback_steps"]) >= int(probe.values()["step"]) - at - 10 > 0
