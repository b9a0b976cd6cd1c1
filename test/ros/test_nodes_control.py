"""What services and parameters change while nodes run: steps, resets, saved states, references,
weights, faults, disturbances.
"""

import json

import numpy as np
import pytest
from node_processes import LOCKSTEP
from test_nodes_life import recording, rows

from nh_control import scenarios
from nh_control.runs.simulation import closed_loop

SCENARIO = scenarios.get("snakeboard")
H = SCENARIO.step_s


@pytest.mark.slow
def test_time_is_paused_stepped_saved_loaded_and_reset_for_all_nodes(nodes, probe, tmp_path):
    from probe import time_ns
    from visualization_msgs.msg import MarkerArray

    file, bag, steps = tmp_path / "state.json", tmp_path / "bag", 400
    markers = probe.listen(MarkerArray, "markers")
    given = {"state_file": str(file), "step_count": 40, "speed_factor": 1.0}
    given |= {"perturb.position": 0.1, "duration_s": steps * H}
    started = [
        nodes.start("display", {"rate_hz": 200.0}),
        nodes.start("recorder", {"output": str(bag), "use_sim_time": True}),
        nodes.start("tracker"),
        nodes.start("plant", {**LOCKSTEP, **given, "wait_for": "[probe, display, recorder]"}),
    ]

    def stepped(first):
        """Rows of 40 steps, once the command for the first is there."""
        at = first + 40
        answer = probe.wait(lambda: (a := probe.call("step")).success and a, "steps")
        assert answer.message == f"paused at step {at}"
        probe.wait_step(at, H)
        return rows(probe, first, at)

    probe.wait_step(20, H)
    probe.wait(lambda: markers, "picture")
    refused = probe.call("step")
    assert not refused.success and "pause it first" in refused.message
    assert probe.call("pause", True).success
    probe.wait_mode("paused")
    at = int(probe.values()["step"])
    assert probe.call("save_state").success
    first = stepped(at)

    probe.clear()
    assert probe.call("load_state").message == f"paused at step {at}"  # time jumps back
    np.testing.assert_array_equal(stepped(at), first)

    content = json.loads(file.read_text())
    content.pop("state")
    content["configuration"]["x"] += 0.25
    file.write_text(json.dumps(content))
    probe.clear()
    assert probe.call("load_state").success
    other = stepped(at)
    assert abs(other[0, 6] - first[0, 6] - 0.25) < 1e-12
    assert np.abs(other[-1, :3] - first[-1, :3]).max() > 1e-3  # the tracker saw it
    file.write_text("{}")
    refused = probe.call("load_state")
    assert not refused.success and "state.json: expected 'configuration'" in refused.message

    probe.reset()
    shown = lambda: markers and time_ns(markers[-1].markers[0])  # noqa: E731
    probe.wait(lambda: shown() == 0, "picture of the start")
    assert not probe.set("plant", speed_factor=4.0)
    assert probe.call("pause", False).success
    probe.wait_mode("finished")
    probe.wait_step(steps, H)
    probe.wait(lambda: shown() == 4 * 10**9, "picture of the end")
    whole = rows(probe, 0, steps)
    assert probe.call("reset_state").success  # not of time
    probe.wait_step(2 * steps + 1, H)
    np.testing.assert_array_equal(rows(probe, steps + 1, 2 * steps + 1), whole)
    assert [node.end() for node in started] == [0, 0, 0, 0]
    counts, times = recording(bag)
    assert counts["/joint_states"] > 2 * steps and max(times) > 1.9e9 * steps * H


@pytest.mark.slow
def test_parameters_change_between_two_steps_or_are_refused_with_a_reason(nodes, probe):
    from probe import by_step
    from sensor_msgs.msg import JointState

    steps = 60
    truth = probe.listen(JointState, "ground_truth/joint_states")
    nodes.start("tracker")
    probe.wait_publishers("joint_commands")
    nodes.start("plant", {**LOCKSTEP, "duration_s": steps * H})
    probe.wait_mode("finished")
    probe.wait_command(steps - 1, H)

    def run():
        """Another one, with what has changed: measured and true states and commands by step."""
        truth.clear()
        probe.reset()
        probe.wait_step(steps, H)
        probe.wait_command(steps - 1, H)
        heard = (probe.joint_states, truth, probe.commands)
        probe.wait(lambda: steps in by_step(truth, H), "last true state")
        return [by_step(messages, H) for messages in heard]

    refused = {
        "read-only": ("plant", {"integrator": "heun"}),
        "choose one of: noise, bias": ("plant", {"fault": ["storm=1"]}),
        "choose one of: psi": ("plant", {"disturb": ["rho:constant:1"]}),
        "Min: -1": ("plant", {"perturb__seed": -3}),
        "finite number >= 0": (
            "plant",
            {"fallback": "hold", "fault": ["noise=-1"]},
        ),
        "choose one of: parking, forward": ("tracker", {"reference": "flying"}),
        "out of range Min: 1e-12": ("tracker", {"weights__theta": -1.0}),
    }
    for text, (node, given) in refused.items():
        reason = probe.set(node, **given)
        assert text in reason, reason
    probe.wait_value("fallback", "zero")

    assert not probe.set("plant", fallback="hold", fault=["psi:bias=0.02"], perturb__position=0.3)
    seen, true, _ = run()
    odd = [seen[k].position[0] - true[k].position[0] for k in range(steps + 1)]
    np.testing.assert_allclose(odd, 0.02, atol=1e-12)
    assert by_step(probe.odometry, H)[0].pose.pose.position.y == pytest.approx(0.3, abs=1e-12)
    probe.wait_value("fallback", "hold")

    model = SCENARIO.model()
    parking = SCENARIO.tracker(model, SCENARIO.reference(model))
    forward = parking.with_weights({}, {0: 2.0}).with_reference(
        SCENARIO.reference(model, "forward")
    )
    assert not probe.set("plant", disturb=["psi:constant:3.0"], fault=[""], perturb__position=0.0)
    assert not probe.set("tracker", reference="forward", weights__rotor_torque=2.0)
    _, pushed, _ = run()
    assert not probe.set("plant", disturb=[""])
    _, alone, commands = run()
    expected = closed_loop(model, forward, parking.reference.states[0], steps).trajectory.inputs
    got = np.array([commands[k].effort for k in range(steps)])
    np.testing.assert_allclose(got, expected, atol=1e-9)
    assert pushed[steps].position[0] > alone[steps].position[0] + 1e-3

    assert not probe.set("plant", reference="slalom")  # which starts in motion
    probe.reset()
    assert by_step(probe.odometry, H)[0].twist.twist.linear.x == pytest.approx(2.0, abs=1e-9)
