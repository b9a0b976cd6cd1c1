"""An arm as a node whose joints another process moves by positions."""

from pathlib import Path

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.scenarios.urdf import DEFAULT

SENDER = Path(__file__).with_name("position_sender.py")


@pytest.mark.slow
def test_another_process_moves_the_joints_by_positions(nodes, probe):
    from probe import by_step

    bandwidth = 10.0
    plant = {"scenario": "urdf", "urdf": str(DEFAULT), "command_interface": "position"}
    more = {"servo.bandwidth": bandwidth, "on_finish": "continue", "wait_for": "[probe]"}
    more["fallback"] = "hold"  # where the sender is late
    nodes.start("plant", {**plant, **more})
    sender = nodes.start("position_sender", script=SENDER)
    probe.wait(lambda: "done" in sender.log, "end of the steps")
    probe.wait_value("commands_rejected", "0")

    def arrived():
        return np.allclose(probe.joint_states[-1].position, [-0.02, 0.05], rtol=0, atol=1e-4)

    probe.wait(arrived, "states of the second pose")
    h = scenarios.get("urdf").step_s
    states = by_step(probe.joint_states, h)
    steps = sorted(states)
    assert list(states[0].name) == ["shoulder", "elbow"]
    positions = np.array([states[k].position for k in steps])
    moved = np.flatnonzero(np.abs(positions - positions[0]).max(axis=1) > 1e-9)[0] - 1
    t = h * (np.array(steps) - steps[moved])[:, None]
    first = np.array([0.06, -0.04])
    wanted = first + (positions[0] - first) * (1 + bandwidth * t) * np.exp(-bandwidth * t)
    part = slice(moved, moved + round(0.6 / h))
    assert np.abs(positions[part] - wanted[part]).max() < 0.02 * np.abs(positions[0] - first).max()
