"""Runs of plant and tracker in processes of their own: topics, lock-step, real time, other plants,
encoders only.
"""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.discrete.plant_steps import convert
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import PlanarPerturbation, PlantOptions
from nh_control.scenarios.joints import TurningPerturbation

LOCKSTEP = {"lockstep": True, "speed_factor": 0.0, "wait_for": "[probe]"}
PERTURBED = {"perturb.position": 0.1, "perturb.heading": 0.1, "perturb.momentum": 0.1}
SCENARIO = scenarios.get("snakeboard")
H = SCENARIO.step_s


def expected(steps: int, model: str = "", **options) -> np.ndarray:
    """The same run in this process, of a tracker's model and with the plant's options, as
    `probe.states` gives it.
    """
    model = SCENARIO.model(model)
    tracker = SCENARIO.tracker(model, SCENARIO.reference(model))
    options = PlantOptions(**options)
    plant = SCENARIO.plant(model, options)
    start = SCENARIO.perturb(model, tracker.reference.states[0], PlanarPerturbation(0.1, 0.1, 0.1))
    run = closed_loop(plant, tracker, convert(start, model, plant), steps, options.substeps)
    rows = []
    for x in run.trajectory.states:
        (psi, phi, theta, px, py), v = model.configuration(x), model.velocity(x)
        rows.append(
            [
                psi,
                phi,
                -phi,
                v[0],
                v[1],
                -v[1],
                px,
                py,
                np.sin(theta / 2),
                np.cos(theta / 2),
                *v[2:],
            ]
        )
    return np.array(rows)


def run(nodes, probe, steps: int, plant: dict, tracker: dict | None = None) -> np.ndarray:
    """A run over DDS, as `probe.states` gives it."""
    from probe import states

    nodes.start("tracker", tracker)
    nodes.start("plant", {**LOCKSTEP, **PERTURBED, "duration_s": steps * H, **plant})
    probe.wait_step(steps, H)
    return states(probe, H)


def test_lockstep_runs_are_identical_and_equal_the_simulation(nodes, probe):
    from probe import states

    first = run(nodes, probe, 100, {})
    probe.reset()
    probe.wait_step(100, H)
    assert np.array_equal(first, states(probe, H))
    assert np.abs(first - expected(100)).max() < 1e-9


@pytest.mark.slow
def test_lockstep_is_identical_in_other_processes_with_another_plant(nodes, probe):
    from probe import states

    other = {"plant.integrator": "rdp_exp", "plant.substeps": 4, "plant.parameters.m": 1.1}
    tracker, plant = (
        nodes.start("tracker"),
        nodes.start("plant", {**LOCKSTEP, **PERTURBED, **other, "duration_s": 1.0}),
    )
    probe.wait_step(100, H)
    first = states(probe, H)
    assert (plant.end(), tracker.end()) == (0, 0)
    probe.clear()
    second = run(nodes, probe, 100, other)
    assert np.array_equal(first, second)
    assert (
        np.abs(
            first - expected(100, integrator="rdp_exp", substeps=4, parameters={"m": 1.1})
        ).max()
        < 1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["gni_implicit", "rdp_cay", "spark_2", "gonzalez"])
def test_trackers_on_other_models_steer_the_same_plant(nodes, probe, integrator):
    """Over DDS the run is that of one process, and the error has shrunk."""
    plant = {"plant.integrator": "midpoint"}
    there = run(nodes, probe, 300, {**plant, "integrator": integrator}, {"integrator": integrator})
    here = expected(300, integrator, integrator="midpoint")
    assert np.abs(there - here).max() < 1e-9


@pytest.mark.slow
def test_topics_are_complete_and_valid(nodes, probe):
    from nav_msgs.msg import Path
    from probe import time_ns
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from visualization_msgs.msg import MarkerArray

    markers = probe.listen(MarkerArray, "markers")
    nodes.start("display")
    nodes.start("tracker")
    probe.wait_publishers("markers", "joint_commands")
    paced = {**LOCKSTEP, "speed_factor": 2.0}
    nodes.start("plant", {**paced, "wait_for": "[probe, display]", "duration_s": 2.0})
    probe.wait_mode("finished")
    paths = probe.listen(
        Path, "reference", QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    )
    probe.wait(lambda: paths, "path")
    probe.wait_step(200, H)
    probe.wait_clock(200, H)
    command = probe.wait_command(199, H)
    probe.wait(
        lambda: markers and {m.ns for m in markers[-1].markers} == {"plant", "reference", "trail"},
        "all markers",
    )
    told = {"error_norm", "error: psi", "steps_saturated"}
    probe.wait(lambda: told <= probe.values("tracker").keys(), "tracker's diagnostics")

    stamps = sorted({time_ns(m) for m in probe.joint_states})
    assert stamps == [10_000_000 * k for k in range(201)]
    assert (
        sorted({time_ns(m) for m in probe.odometry})
        == sorted({time_ns(m) for m in probe.clock})
        == stamps
    )
    times = [time_ns(m) for m in probe.clock]
    assert times == sorted(times)
    state = probe.joint_states[-1]
    assert list(state.name) == ["rotor_joint", "rear_truck_joint", "front_truck_joint"]
    assert state.position[1] == -state.position[2] and state.velocity[1] == -state.velocity[2]
    body = probe.odometry[-1]
    assert (body.header.frame_id, body.child_frame_id) == ("odom", "base_link")
    assert np.hypot(body.pose.pose.orientation.z, body.pose.pose.orientation.w) == pytest.approx(1)
    assert list(command.name) == ["rotor_torque", "steer_torque"] and len(command.effort) == 2
    assert {time_ns(m) for m in probe.commands} <= set(stamps)
    # every third of 1481 states, and the last one: a path has about 500 poses
    assert len(paths[0].poses) == len({*range(0, 1481, 3), 1480})
    assert all(
        np.isfinite([m.pose.position.x, m.pose.position.y, m.pose.orientation.w]).all()
        for m in markers[-1].markers
    )
    values = probe.values()
    assert {
        "step",
        "rate_hz",
        "missed_steps",
        "jitter_mean_us",
        "commands_rejected",
        "energy_J",
        "constraint_residual",
    } <= values.keys()
    assert (
        values["step"] == "200"
        and values["commands_rejected"] == "0"
        and float(values["constraint_residual"]) < 1e-12
    )


@pytest.mark.slow  # on its own: the default run keeps all processors busy
def test_real_time_keeps_its_rate(nodes, probe):
    cart = {"scenario": "cart_pole"}  # has no singularity into which late answers might steer it
    nodes.start("tracker", cart)
    given = {"wait_for": "[probe]", "on_finish": "continue", "perturb.angle": 0.1}
    nodes.start("plant", {**cart, **given})
    probe.require_rate(100, relative=0.03, seconds=3.0)


@pytest.mark.slow
def test_without_velocities_the_tracker_reconstructs_the_momentum(nodes, probe):
    from probe import by_step

    nodes.start("tracker")
    probe.wait_publishers("joint_commands")
    nodes.start("plant", {**LOCKSTEP, **PERTURBED, "duration_s": 3.0, "publish_velocities": False})
    probe.wait_step(300, H)
    assert all(len(m.velocity) == 0 for m in probe.joint_states)
    reference = expected(300)
    bodies = by_step(probe.odometry, H)
    position = np.array(
        [[bodies[k].pose.pose.position.x, bodies[k].pose.pose.position.y] for k in range(301)]
    )
    assert (
        np.abs(position - reference[:, 6:8]).max() < 0.02
    )  # the first momentum is not known, the others are
    assert np.abs(position - reference[:, 6:8])[-1].max() < 0.005
    probe.wait(lambda: probe.values("tracker").get("step") == "300", "tracker's report")
    assert probe.values("tracker")["momenta_approximated"] == "0"
    assert len(probe.wait_command(300, H).effort) == 2


@pytest.mark.slow
def test_integral_action_runs_and_repeats_over_dds(nodes, probe):
    heavy = {"plant.parameters.m": 1.1}
    with_integral = run(nodes, probe, 200, heavy, {"integral": True})
    assert np.isfinite(with_integral).all()
    assert np.abs(with_integral - expected(200, parameters={"m": 1.1})).max() > 1e-6


@pytest.mark.slow
def test_a_scenario_of_ones_own_with_a_joint_alone_runs_in_the_same_nodes(nodes, probe):
    from pathlib import Path

    from pendulum_nodes import PENDULUM
    from probe import by_step
    from visualization_msgs.msg import MarkerArray

    script = Path(__file__).parent / "pendulum_nodes.py"
    markers = probe.listen(MarkerArray, "markers")
    started = [
        nodes.start(name, {"scenario": "pendulum"}, script=script)
        for name in ("tracker", "display")
    ]
    probe.wait_publishers("markers", "joint_commands")
    plant = nodes.start(
        "plant",
        {
            **LOCKSTEP,
            "wait_for": "[probe, display]",
            "scenario": "pendulum",
            "perturb.angle": 0.2,
        },
        script=script,
    )
    probe.wait(lambda: 200 in by_step(probe.joint_states, H), "last state")
    model = PENDULUM.model()
    tracker = PENDULUM.tracker(model, PENDULUM.reference(model))
    start = PENDULUM.perturb(model, tracker.reference.states[0], TurningPerturbation(angle=0.2))
    run = closed_loop(model, tracker, start, 200)
    states = by_step(probe.joint_states, H)
    received = np.array([[*states[k].position, *states[k].velocity] for k in range(201)])
    assert (
        np.abs(received - [[x[0], model.velocity(x)[0]] for x in run.trajectory.states]).max()
        < 1e-9
    )
    probe.wait(lambda: markers, "markers")
    assert markers[-1].markers and not probe.odometry and not probe.bodies  # a stick, by default
    assert [node.end() for node in (plant, *started)] == [0, 0, 0]
