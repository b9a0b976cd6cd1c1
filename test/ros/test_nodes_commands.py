"""What reaches the plant and what it does without: bad commands, failing steps, fallback,
services, parameters that change.
"""

import pytest

from nh_control import scenarios

LOCKSTEP = {"lockstep": True, "speed_factor": 0.0}
H = scenarios.get("snakeboard").step_s
NS = 10**9


def stamp(time_s: float):
    """A stamp."""
    from builtin_interfaces.msg import Time

    seconds, nanoseconds = divmod(round(time_s * NS), NS)
    return Time(sec=seconds, nanosec=nanoseconds)


@pytest.mark.slow
def test_bad_commands_never_reach_the_plant(nodes, probe):
    plant = nodes.start("plant", LOCKSTEP)
    probe.next_state()
    for k in range(3):
        probe.command(stamp(k * H), (0.1, 0.0))
        probe.wait_step(k + 1, H)
    now = stamp(3 * H)
    bad = {
        "not finite": (now, (float("nan"), 0.0)),
        "wrong length": (now, (0.1, 0.2, 0.3)),
        "wrong names": (now, (0.1, 0.2), ("rotor_torque", "brake")),
        "stamp of no state": (stamp(3.5 * H), (0.1, 0.2)),
        "answers a future state": (stamp(4 * H), (0.1, 0.2)),
        "older than an accepted command": (stamp(1 * H), (0.1, 0.2)),
        "second, different answer to a state": (stamp(2 * H), (9.0, 0.0)),
    }
    for command in bad.values():
        probe.command(*command)
    probe.wait_value("commands_rejected", str(len(bad)))
    values = probe.values()
    assert {
        key.removeprefix("rejected: "): n
        for key, n in values.items()
        if key.startswith("rejected: ")
    } == dict.fromkeys(bad, "1")
    assert values["step"] == "3" and values["commands_accepted"] == "3"
    assert probe.diagnostics["plant"].level == b"\1"
    probe.command(now, (0.2, 0.1), names=("steer_torque", "rotor_torque"))
    probe.wait_step(4, H)
    assert plant.process.poll() is None


@pytest.mark.slow
def test_late_commands_are_rejected_and_the_fallback_applies(nodes, probe):
    nodes.start(
        "plant",
        {
            "wait_for_tracker": False,
            "fallback": "zero",
            "command_timeout_steps": 2,
            "on_finish": "continue",
            "wait_for": "[probe]",
        },
    )
    probe.wait(lambda: int(probe.values().get("step", 0)) > 20, "steps")
    probe.command(stamp(H), (1.0, 1.0))
    probe.wait_value("rejected: late", "1")
    assert int(probe.values()["fallback_steps"]) > 20
    assert probe.values()["commands_accepted"] == "0"


@pytest.mark.slow
@pytest.mark.usefixtures("udp")
def test_fallback_stop_pauses_and_a_new_answer_goes_on(nodes, probe):
    tracker = nodes.start("tracker")
    # 5 s, by which a tracker on a busy machine is not late
    stop = {"fallback": "stop", "command_timeout_steps": 50, "speed_factor": 0.1}
    nodes.start("plant", stop)
    probe.wait(lambda: int(probe.values().get("step", 0)) > 20, "steps")
    tracker.kill()
    probe.wait_mode("paused")
    assert "no command" in probe.diagnostics["plant"].message
    step = int(probe.values()["step"])
    nodes.start("tracker")
    assert probe.call("pause", False).success
    probe.wait(lambda: int(probe.values()["step"]) > step + 20, "steps")


@pytest.mark.slow
def test_pause_step_resume_reset(nodes, probe):
    from probe import time_ns

    h, cart = scenarios.get("cart_pole").step_s, {"scenario": "cart_pole"}
    nodes.start("tracker", cart)
    nodes.start("plant", {**cart, "on_finish": "continue"})
    probe.wait(lambda: len(probe.clock) > 20, "start")
    refused = probe.call("step")
    assert not refused.success and "pause it first" in refused.message
    assert probe.call("pause", True).success
    probe.wait_mode("paused")
    step = int(probe.values()["step"])
    probe.wait_clock(step, h)
    probe.spin(0.3)
    assert time_ns(probe.clock[-1]) == round(step * h * NS)
    assert probe.call("step").success
    probe.wait_clock(step + 1, h)
    assert probe.call("reset").success
    probe.wait_value("step", "0")
    assert probe.values()["mode"] == "paused"
    assert probe.call("pause", False).success
    probe.wait(lambda: int(probe.values()["step"]) > 20, "steps after the reset")


@pytest.mark.slow
def test_single_step_in_lockstep_needs_its_command(nodes, probe):
    nodes.start("plant", LOCKSTEP)
    first = probe.next_state()
    assert probe.call("pause", True).success
    refused = probe.call("step")
    assert not refused.success and "no command answers step 0" in refused.message
    probe.command(first.header.stamp, (0.0, 0.0))
    probe.wait_value("commands_accepted", "1")
    assert probe.call("step").message == "paused at step 1"


def steer_too_far(nodes, probe, **more):
    """A plant that was steered beyond a right angle, where the constraints are singular."""
    from probe import time_ns

    given = {"step_s": 0.25, "reference": "forward", "plant.parameters.steer_torque_limit": 1e6}
    plant = nodes.start("plant", {**LOCKSTEP, **given, **more})
    state = probe.next_state()
    for _ in range(20):
        if "failed" in plant.log:
            break
        probe.command(state.header.stamp, (0.0, 300.0))
        answered = time_ns(state)
        probe.wait(
            lambda answered=answered: (
                time_ns(probe.joint_states[-1]) > answered or "failed" in plant.log
            ),
            "next state or failure",
        )
        state = probe.joint_states[-1]
    return plant


@pytest.mark.slow
@pytest.mark.parametrize("on_finish", ["exit", "continue"])
def test_a_plant_that_is_not_to_stay_exits_when_a_step_fails(nodes, probe, on_finish):
    plant = steer_too_far(nodes, probe, on_finish=on_finish)
    assert plant.wait() == 3 and "failed at step" in plant.log and "Traceback" not in plant.log


@pytest.mark.slow
def test_failed_step_pauses_with_an_error_and_reset_recovers(nodes, probe):
    from probe import by_step

    plant = steer_too_far(nodes, probe)
    probe.wait_mode("failed")
    status = probe.diagnostics["plant"]
    assert (
        status.level == b"\2"
        and status.message.startswith("failed: step")
        and "failed, the plant stays at the last good state" in status.message
        and "leaves the domain where the model holds" in status.message
    )
    assert "ERROR" in plant.log and plant.process.poll() is None
    refused = probe.call("pause", False)
    assert not refused.success and "reset" in refused.message
    last = max(by_step(probe.joint_states, 0.25))
    assert probe.values()["step"] == str(last)
    assert probe.call("reset").success
    probe.wait_value("step", "0")
    probe.command(stamp(0.0), (0.0, 0.0))
    probe.wait(
        lambda: by_step(probe.joint_states[-1:], 0.25).keys() == {1}, "step after the reset"
    )
    probe.wait_mode("running")


@pytest.mark.slow
def test_speed_changes_at_run_time_and_nothing_else_does(nodes, probe):
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter

    # without a tracker, whose late answers might steer the board into its singularity
    given = {"wait_for": "[probe]", "on_finish": "continue", "fallback": "damp"}
    nodes.start("plant", {**given, "wait_for_tracker": False})
    client = probe.node.create_client(SetParameters, "/plant/set_parameters")

    def change(name, value):
        given = [Parameter(name, value=value).to_parameter_msg()]
        return probe.ask(client, SetParameters.Request(parameters=given)).results[0]

    assert change("speed_factor", 4.0).successful
    probe.wait_value("speed_factor", "4")
    probe.require_rate(400, relative=0.03, seconds=2.0)
    assert change("speed_factor", 2).successful  # an integer, as `ros2 param set` makes of 2
    probe.wait_value("speed_factor", "2")
    assert not change("speed_factor", -1.0).successful
    assert not change("speed_factor", "fast").successful
    assert not change("lockstep", True).successful
