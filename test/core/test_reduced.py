"""The reduced equations are the equations of motion, in fewer numbers: on constraints of all
kinds, on rotations and spheres; compiled, called directly, by any thread.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

sys.path.insert(0, str(Path(__file__).parents[1] / "constraints"))
import gc

import combined  # noqa: E402
import linkages  # noqa: E402

from nh_control.integrators import nonholonomic_midpoint  # noqa: E402
from nh_control.mechanics.continuous import ContinuousSystem  # noqa: E402
from nh_control.mechanics.reduced import ReducedEquations  # noqa: E402
from nh_control.systems import chaplygin_sleigh, pendulum, snakeboard  # noqa: E402
from nh_control.systems.quadrotor_payload import quadrotor_payload  # noqa: E402

SYSTEMS = {
    "pendulum": (pendulum, 2),
    "sleigh": (chaplygin_sleigh, 5),
    "snakeboard": (snakeboard, 8),
    "rod": (linkages.rod, 4),
    "turntable": (lambda: combined.ball_on_turntable().system, 11),
    "payload": (quadrotor_payload, 32),
}


def phase(system, rng):
    """A configuration and a velocity that keep the constraints."""
    q = system.space.retract(system.space.origin, 0.3 * rng.normal(size=system.space.nv))
    if system.name == "rod":
        q = 0.7 * np.array([np.cos(0.3), np.sin(0.3)])
    dsys = nonholonomic_midpoint(system, 0.1)
    return q, dsys.velocity(dsys.state(q, rng.normal(size=system.space.nw)))


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_rates_are_those_of_the_full_equations(name):
    make, size = SYSTEMS[name]
    system, rng = make(), np.random.default_rng(0)
    q, v = phase(system, rng)
    u = rng.normal(size=system.nu)
    reduced = ReducedEquations(system)
    w, rates = reduced.start(q, v), reduced.rates(u)
    assert w.shape == (size,)
    for got, want in zip(reduced.phase(w), (q, v)):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-14)
    e = 1e-4
    (q1, v1), (q0, v0) = (reduced.phase(w + s * e * rates(0.0, w)) for s in (1, -1))
    acceleration = ContinuousSystem(system).acceleration(q, v, u)
    size = max(1.0, np.abs(acceleration).max())
    np.testing.assert_allclose((v1 - v0) / (2 * e), acceleration, rtol=0, atol=1e-6 * size)
    moved = (system.space.local(q, q1) - system.space.local(q, q0)) / (2 * e)
    frame = np.asarray(ca.DM(system.space.frame(ca.SX(q))))
    np.testing.assert_allclose(moved, frame.T @ v, rtol=0, atol=1e-6)


def test_threads_have_functions_of_their_own():
    reduced = ReducedEquations(pendulum())

    def end(torque):
        rates = reduced.rates([torque])
        return solve_ivp(rates, (0, 1), reduced.start([0.3], [0.0]), rtol=1e-9).y[:, -1]

    alone = [end(torque) for torque in (0.0, 1.0, 2.0, 3.0)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(end, (0.0, 1.0, 2.0, 3.0)))
    assert np.array_equal(alone, together)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"\(3,\), got \(1,\).*'hand_x_ddot', 'hand_z_ddot'"):
        ReducedEquations(linkages.sling()).rates([0.0])
    with pytest.raises(ValueError, match=r"u must have shape \(1,\), got \(2,\)"):
        ReducedEquations(pendulum()).rates([0.0, 1.0])


def test_an_input_is_held_while_a_solver_runs():
    """Its array outlives the call that made the function: a pendulum under a torque."""
    reduced = ReducedEquations(pendulum())
    rates = reduced.rates([2.0])
    gc.collect()
    clutter = [np.full(k, np.nan) for k in range(1, 50)]
    first, again = rates(0.0, np.array([0.3, 0.0])), rates(0.0, np.array([0.3, 0.0]))
    assert np.array_equal(first, again) and len(clutter) == 49
    free = reduced.rates([0.0])(0.0, np.array([0.3, 0.0]))
    assert first[1] - free[1] == pytest.approx(
        ContinuousSystem(pendulum()).acceleration([0.3], [0.0], [2.0])[0]
        - ContinuousSystem(pendulum()).acceleration([0.3], [0.0], [0.0])[0],
        abs=1e-13,
    )
