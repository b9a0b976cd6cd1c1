"""What the nodes say about themselves: diagnostics of every part, and the controller's state as
messages that plot.
"""

import numpy as np
import pytest

from nh_control import scenarios

SCENARIO = scenarios.get("snakeboard")
H = SCENARIO.step_s
STEPS = 100


@pytest.mark.slow
def test_the_controller_tells_reference_error_and_gains_that_make_its_commands(nodes, probe):
    from probe import by_step
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Float64MultiArray

    reference = probe.listen(JointState, "controller_state/reference")
    error = probe.listen(JointState, "controller_state/error")
    gains = probe.listen(Float64MultiArray, "controller_state/gains")
    nodes.start("tracker")
    probe.wait_publishers(
        "joint_commands", *(f"controller_state/{n}" for n in ("reference", "error", "gains"))
    )
    run = {"lockstep": True, "speed_factor": 0.0, "duration_s": STEPS * H}
    nodes.start("display")
    nodes.start("plant", {**run, "perturb.heading": 0.1, "wait_for": "[probe, display]"})
    for messages in (reference, error, probe.commands):
        probe.wait(lambda m=messages: STEPS - 1 in by_step(m, H), "last message")
    probe.wait(lambda: len(gains) >= STEPS, "gains")
    model = SCENARIO.model()
    tracker = SCENARIO.tracker(model, SCENARIO.reference(model))
    wanted, missed, commands = (by_step(m, H) for m in (reference, error, probe.commands))
    assert tuple(error[0].name) == model.state_space.tangent_names
    assert tuple(reference[0].name) == model.state_names
    for k in range(STEPS):
        np.testing.assert_allclose(wanted[k].position, tracker.target(k), atol=1e-14)
        u = tracker.reference.inputs[k] - tracker.gains.K[k] @ np.array(missed[k].position)
        np.testing.assert_allclose(commands[k].effort, np.clip(u, *tracker.limits.T), atol=1e-9)
    tables = [np.array(m.data).reshape([d.size for d in m.layout.dim]) for m in gains]
    assert all(np.abs(tracker.gains.K - table).max(axis=(1, 2)).min() < 1e-12 for table in tables)
    assert gains[0].layout.dim[0].label == "rotor_torque,steer_torque"

    probe.wait_mode("finished")
    probe.wait(lambda: {"plant", "tracker", "display"} <= probe.diagnostics.keys(), "all parts")
    words = ("mode", "fallback")
    values = {key: float(v) for key, v in probe.values().items() if key not in words}
    assert 1 <= values["newton_iterations"] < 10 and values["command_age_steps"] >= 0
    assert values["real_time_factor"] == pytest.approx(values["rate_hz"] * H, rel=1e-4)
    assert (
        0
        <= values["jitter_p50_us"]
        <= values["jitter_p90_us"]
        <= values["jitter_p99_us"]
        <= values["jitter_max_us"]
    )
    before = model.energy(
        SCENARIO.perturb(model, tracker.reference.states[0], SCENARIO.no_perturbation)
    )
    assert abs(values["energy_J"] - values["energy_change_J"] - before) < 1.0
    # its last report may be of before the first state
    probe.wait(lambda: probe.message("display") == "drawing", "drawing display")
    assert int(probe.values("display")["frames"]) > 0


@pytest.mark.slow
def test_wrong_messages_are_counted_and_do_not_flood_the_log(nodes, probe):
    from builtin_interfaces.msg import Time

    plant = nodes.start("plant")  # which waits for a tracker
    display = nodes.start("display")
    probe.next_state()

    def rejected():
        for _ in range(10):
            probe.command(Time(), [float("nan"), 0.0])
        return float(probe.values().get("rejected: not finite", 0)) > 100

    probe.wait(rejected, "rejections")
    assert len(plant.log.splitlines()) < 20 and len(display.log.splitlines()) < 20
