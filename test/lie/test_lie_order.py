"""Order two in every component of configuration and momentum, against DOP853 at 1e-13 on equations
written by hand (lie_motion.py).
"""

from __future__ import annotations

import lie_cases
import numpy as np
import pytest

from nh_control.integrators import midpoint

pytestmark = pytest.mark.slow

TURNED = np.array([0.5, -0.4, 0.6, 0.3]) / np.linalg.norm([0.5, -0.4, 0.6, 0.3])
OBSERVED = 4
"""Times in the second half of the run at which errors are taken; their largest counts, so that an
error that happens to pass through zero does not.
"""


def torque(t):
    return np.array([np.sin(3 * t), 0.5 * np.cos(2 * t), -0.7 * np.sin(t + 1)])


def wrench(t):
    """Torque and force on the floating body."""
    return np.concatenate([torque(t), [8 + np.sin(t), 2 * np.cos(2 * t), 9.0]])


def links_in_space(n):
    """A start out of the plane, with the first link horizontal, so that links pass the seam of the
    frame.
    """
    rng = np.random.default_rng(11)
    q = rng.normal(size=(n, 3))
    q[0, 2] = 0.0
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    return np.concatenate([q.reshape(-1), np.cross(q, rng.normal(size=(n, 3))).reshape(-1)])


FAST_MOMENTA = lie_cases.inertia(lie_cases.FAST_TOP) * [0.0, 150.0, -4.61538]
MILD_MOMENTA = lie_cases.inertia(lie_cases.MILD_TOP) * [0.5, 8.0, -1.0]
STEPS = (64, 96, 128, 192, 256)

# system, start, duration in s, numbers of steps, inputs, components that the method keeps exactly
RUNS = {
    "forced rigid body": ("rigid_body", [*TURNED, 0.7, -1.1, 0.9], 2.0, STEPS, torque, ()),
    "free rigid body, exp": ("rigid_body_exp", [*TURNED, 0.7, -1.1, 0.9], 2.0, STEPS, None, ()),
    **{
        f"body on SE(3), {r}": (
            f"floating_body_{r}",
            [*TURNED, 0.7, -1.1, 0.9, *(0.3, -0.2, 1), *(1, -0.5, 0.4)],
            1.0,
            STEPS,
            wrench,
            (),
        )
        for r in ("exp", "cay")
    },
    "heavy top of the paper": (
        "fast_top",
        [1.0, 0, 0, 0, *FAST_MOMENTA],
        0.2,
        (1000, 1600, 2000, 3200, 4000),
        None,
        ("p_omega_y",),
    ),
    "heavy top": ("heavy_top", [*TURNED, *MILD_MOMENTA], 1.0, STEPS, None, ()),
    "1 link": ("pendulum_1", links_in_space(1), 1.0, STEPS, None, ()),
    "2 links": ("pendulum_2", links_in_space(2), 1.0, STEPS, None, ()),
    "2 links, exp": ("pendulum_2_exp", links_in_space(2), 1.0, STEPS, None, ()),
}


@pytest.mark.parametrize("run", RUNS)
def test_order_two(run):
    name, start, duration, steps, inputs, kept = RUNS[run]
    system = lie_cases.system(name)
    times = np.linspace(0, duration, 2 * OBSERVED + 1)
    reference = lie_cases.motion(name, inputs).solve(start, times)
    errors = []
    for n in steps:
        assert n % (2 * OBSERVED) == 0
        dsys = midpoint(system, duration / n)
        u = (
            np.zeros((n, dsys.nu))
            if inputs is None
            else np.array([inputs((k + 0.5) * dsys.h) for k in range(n)])
        )
        nodes = dsys.simulate(reference[0], u).states[:: n // (2 * OBSERVED)]
        errors.append(np.abs(nodes - reference)[OBSERVED:].max(0))
    errors = np.array(errors)
    exact = np.isin(system.mechanics.state_space.names, kept)
    scale = np.abs(reference).max()
    assert errors[:, exact].max(initial=0.0) <= 1e-12 * scale
    # Above the reference's own error, and small enough to be in the limit h -> 0.
    assert errors[-1, ~exact].min() > 1e-10 and errors[0, ~exact].max() < 0.1 * scale
    slopes = -np.polyfit(np.log(steps), np.log(errors[:, ~exact]), 1)[0]
    assert np.abs(slopes - 2.0).max() <= 0.1, dict(
        zip(np.array(system.mechanics.state_space.names)[~exact], slopes.round(3))
    )
