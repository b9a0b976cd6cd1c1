"""What may change while nodes run changes between two steps, or is refused with a reason."""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import PlanarPerturbation

LOCKSTEP = {"lockstep": True, "speed_factor": 0.0, "wait_for": "[probe]"}
SCENARIO = scenarios.get("snakeboard")
H = SCENARIO.step_s


def set_(probe, node, **values):
    """Set parameters of a node at once; returns "" or the reason why not."""
    from rclpy.parameter import Parameter
    from rclpy.parameter_client import AsyncParameterClient

    client = AsyncParameterClient(probe.node, node)
    probe.wait(client.services_are_ready, f"parameters of {node}")
    probe.meet(f"/{node}")
    given = [Parameter(name.replace("__", "."), value=value) for name, value in values.items()]
    future = client.set_parameters_atomically(given)
    probe.wait(future.done, "answer")
    result = future.result().result
    return "" if result.successful else result.reason


@pytest.mark.slow
def test_a_plant_changes_between_steps_and_refuses_with_a_reason(nodes, probe):
    from probe import by_step
    from sensor_msgs.msg import JointState

    truth = probe.listen(JointState, "ground_truth/joint_states")
    nodes.start("tracker")
    probe.wait_publishers("joint_commands")
    nodes.start("plant", {**LOCKSTEP, "duration_s": 0.6, "on_finish": "stay"})
    probe.wait_mode("finished")
    probe.wait_step(60, H)
    probe.wait(lambda: 60 in by_step(truth, H), "true state 60")

    refused = {
        "fixed": set_(probe, "plant", integrator="heun"),
        "kind": set_(probe, "plant", fault=["storm=1"]),
        "target": set_(probe, "plant", fault=["psi:lost"]),
        "push": set_(probe, "plant", disturb=["rho:constant:1"]),
        "word": set_(probe, "plant", fallback="pray"),
        "number": set_(probe, "plant", perturb__seed=-3),
        "both": set_(probe, "plant", fallback="hold", fault=["noise=-1"]),
    }
    for name, text in {
        "fixed": "read-only",
        "kind": "choose one of: noise, bias",
        "target": "choose one of: commands, rotor_torque",
        "push": "choose one of: psi",
        "word": "one of hold, zero, damp, tracker, stop",
        "number": "Min: -1",
        "both": "size must be a finite number >= 0",
    }.items():
        assert text in refused[name], refused[name]
    probe.wait_value("fallback", "zero")

    truth.clear()
    assert not set_(
        probe, "plant", fallback="hold", fault=["psi:bias=0.02"], perturb__position=0.3
    )
    probe.reset()
    probe.wait(lambda: 60 in by_step(truth, H), "true state 60")
    probe.wait_step(60, H)
    seen, true = (by_step(messages, H) for messages in (probe.joint_states, truth))
    odd = [seen[k].position[0] - true[k].position[0] for k in range(61)]
    np.testing.assert_allclose(odd, 0.02, atol=1e-12)
    assert by_step(probe.odometry, H)[0].pose.pose.position.y == pytest.approx(0.3, abs=1e-12)
    probe.wait_value("fallback", "hold")

    # other targets are another plant: a push on the rotor; then none again
    ends = {}
    for pushes in (["psi:constant:3.0"], ["psi:constant:-3.0"], [""]):
        assert not set_(probe, "plant", disturb=pushes, fault=[""], perturb__position=0.0)
        truth.clear()
        assert probe.call("reset").success
        probe.wait(lambda: 60 in by_step(truth, H), "true state 60")
        ends[pushes[0]] = by_step(truth, H)[60].position[0]
    model = SCENARIO.model()
    reference = SCENARIO.reference(model)
    undisturbed = closed_loop(model, SCENARIO.tracker(model, reference), reference.states[0], 60)
    assert ends[""] == pytest.approx(undisturbed.trajectory.states[-1, 0], abs=1e-9)
    assert ends["psi:constant:-3.0"] < ends[""] - 1e-3 < ends["psi:constant:3.0"] - 2e-3


@pytest.mark.slow
def test_weights_change_the_gains_from_the_next_step_on(nodes, probe):
    nodes.start("tracker")
    probe.wait_publishers("joint_commands")
    nodes.start("plant", {**LOCKSTEP, "duration_s": 0.3, "perturb.heading": 0.1})
    probe.wait_mode("finished")

    def first_command():
        """Of another run, by whose time all have found one another."""
        probe.reset()
        command = probe.wait_command(0, H).effort[0]
        probe.wait_step(30, H)
        return command

    commands = [first_command()]
    assert "out of range Min: 1e-12" in set_(probe, "tracker", weights__theta=-1.0)
    assert not set_(probe, "tracker", weights__rotor_torque=2.0)
    commands.append(first_command())
    model = SCENARIO.model()
    tracker = SCENARIO.tracker(model, SCENARIO.reference(model))
    x0 = SCENARIO.perturb(model, tracker.reference.states[0], PlanarPerturbation(heading=0.1))
    for there, here in zip(commands, (tracker, tracker.with_weights({}, {0: 2.0}))):
        assert there == pytest.approx(here.command(0, x0).u[0], abs=1e-9)
    assert abs(commands[1] - commands[0]) > 0.1


def short_run(nodes, probe):
    """Plant and tracker, whose run of 30 steps is over."""
    nodes.start("tracker")
    probe.wait_publishers("joint_commands")
    nodes.start("plant", {**LOCKSTEP, "on_finish": "stay", "duration_s": 0.3})
    probe.wait_mode("finished")


@pytest.mark.slow
def test_another_reference_begins_at_the_next_step_and_with_the_next_run(nodes, probe):
    from probe import by_step

    short_run(nodes, probe)
    probe.wait_command(29, H)

    assert "choose one of: parking, forward" in set_(probe, "tracker", reference="flying")
    assert not set_(probe, "tracker", reference="forward", weights__rotor_torque=2.0)
    probe.reset()
    probe.wait_command(29, H)
    model = SCENARIO.model()
    parking = SCENARIO.tracker(model, SCENARIO.reference(model))
    forward = parking.with_weights({}, {0: 2.0}).with_reference(
        SCENARIO.reference(model, "forward")
    )
    expected = closed_loop(model, forward, parking.reference.states[0], 30).trajectory
    commands = by_step(probe.commands, H)
    got = np.array([commands[k].effort for k in range(30)])
    np.testing.assert_allclose(got, expected.inputs, atol=1e-9)

    assert not set_(probe, "plant", perturb__position=200.0)
    probe.reset()
    probe.wait_command(0, H)  # for a state far away
    reason = set_(probe, "tracker", reference="turning")
    assert "reference 'turning' cannot be followed from here" in reason


@pytest.mark.slow
def test_another_reference_of_both_is_a_run_from_its_start(nodes, probe):
    from probe import by_step

    short_run(nodes, probe)
    assert "choose one of: parking, forward" in set_(probe, "plant", reference="flying")
    assert "read-only" in set_(probe, "plant", step_s=0.02)
    assert not set_(probe, "plant", reference="slalom")
    assert not set_(probe, "tracker", reference="forward")
    probe.reset()
    assert by_step(probe.odometry, H)[0].twist.twist.linear.x == pytest.approx(2.0, abs=1e-9)
    probe.wait_step(30, H)
