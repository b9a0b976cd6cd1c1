"""Plant and tracker in one process make the run that they make in two."""

import numpy as np
import pytest

from nh_control import scenarios

STEPS = 60


@pytest.mark.slow
def test_a_composed_run_is_bit_equal_and_heard_by_others(nodes, probe):
    from probe import by_step

    h = scenarios.get("snakeboard").step_s
    run = {"lockstep": True, "speed_factor": 0.0, "duration_s": STEPS * h}
    run |= {"wait_for": "[probe]", "heard_by": "[probe]"}  # states and commands
    found = []
    for names in (("composed",), ("tracker", "plant")):
        probe.clear()
        started = [nodes.start(name, {"perturb.heading": 0.1, **run}) for name in names]
        probe.wait(
            lambda: (
                STEPS in by_step(probe.joint_states, h) and STEPS in by_step(probe.odometry, h)
            ),
            "last state",
        )
        probe.wait(lambda: STEPS - 1 in by_step(probe.commands, h), "last command")
        states, commands = by_step(probe.joint_states, h), by_step(probe.commands, h)
        found.append(
            [[*states[k].position, *states[k].velocity, *commands[k].effort] for k in range(STEPS)]
        )
        assert [node.end() for node in started] == [0] * len(started)
        assert all("Traceback" not in node.log for node in started)
    np.testing.assert_array_equal(*map(np.array, found))
