"""Plant, tracker and display of the marionette in processes of their own: its state travels as
joint states, its strings are seen as markers.
"""

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.runs.simulation import closed_loop
from nh_control.scenarios import PlanarPerturbation

SCENARIO = scenarios.get("marionette")
H = SCENARIO.step_s
SWAY = {"scenario": "marionette", "reference": "sway"}
STEPS = 150


@pytest.mark.slow
def test_a_lockstep_run_is_the_simulation_and_its_strings_are_shown(nodes, probe):
    from probe import by_step
    from visualization_msgs.msg import MarkerArray

    markers = probe.listen(MarkerArray, "markers")
    nodes.start("display", SWAY)
    nodes.start("tracker", SWAY)
    probe.wait_publishers("markers", "joint_commands")
    run = {
        "lockstep": True,
        "speed_factor": 0.0,
        "wait_for": "[probe, display]",
        "duration_s": STEPS * H,
        "perturb.heading": 0.1,
        "perturb.position": 0.05,
    }
    nodes.start("plant", {**SWAY, **run})
    probe.wait_mode("finished")
    probe.wait(lambda: STEPS in by_step(probe.joint_states, H), "last state")
    strings = probe.wait(
        lambda: markers and [m for m in markers[-1].markers if m.ns == "cables"], "strings"
    )
    command = probe.wait_command(STEPS - 1, H)

    model = SCENARIO.model()
    tracker = SCENARIO.tracker(model, SCENARIO.reference(model, "sway"))
    start = SCENARIO.perturb(
        model, tracker.reference.states[0], PlanarPerturbation(heading=0.1, position=0.05)
    )
    expected = closed_loop(model, tracker, start, STEPS)
    received = by_step(probe.joint_states, H)
    assert list(received[0].name) == list(model.system.space.names) and sorted(received) == list(
        range(STEPS + 1)
    )
    positions = np.array([received[k].position for k in range(STEPS + 1)])
    np.testing.assert_allclose(
        positions, expected.trajectory.states[:, : model.system.space.nq], rtol=0, atol=1e-9
    )
    velocities = np.array([received[k].velocity for k in range(STEPS + 1)])
    np.testing.assert_allclose(
        velocities, [model.velocity(x) for x in expected.trajectory.states], rtol=0, atol=1e-9
    )
    assert list(command.name) == list(model.system.prescribed)
    np.testing.assert_allclose(command.effort, expected.trajectory.inputs[-1], rtol=0, atol=1e-9)
    assert len(strings) == 6 and all(max(p.z for p in string.points) == 2.0 for string in strings)


@pytest.mark.slow
def test_without_a_tracker_its_strings_stay(nodes, probe):
    """The fallback moves nothing that is moved at will, rather than to zero."""
    from probe import by_step

    nodes.start(
        "plant",
        {
            **SWAY,
            "wait_for_tracker": False,
            "wait_for": "[probe]",
            "speed_factor": 0.0,
            "duration_s": 1.0,
        },
    )
    probe.wait_mode("finished")
    received = probe.wait(
        lambda: by_step(probe.joint_states, H).get(100) and by_step(probe.joint_states, H),
        "last state",
    )
    strings = np.array([message.position[22:] for message in received.values()])
    assert not np.ptp(strings, axis=0).any() and probe.values()["fallback_steps"] == "100"
