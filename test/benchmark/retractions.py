"""Cost and accuracy of the retractions of rotations: a table.

    python test/benchmark/retractions.py [CASE ...]

The variational midpoint rule with "cay" and with "exp": the largest errors of the configuration
(local coordinates) and of the momenta (relative to the largest momentum) over a motion, against
RKMK5 with a step 50 times smaller, and the least processor time (us) of a step in `simulate`,
`step`, `linearize` and `hessian`. nh_control/geometry/rotations.py contains the table and the
conclusion.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np
from sizes import sized

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SE3
from nh_control.integrators import INTEGRATORS, midpoint
from nh_control.mechanics.system import System
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.systems import quadrotor_payload
from nh_control.systems.rigid_body import heavy_top, rigid_body
from nh_control.systems.spherical_pendulum import SphericalPendulumParameters, spherical_pendulum

FINER, REPEATS = sized((50, 80), (4, 1))


@dataclass(frozen=True)
class Case:
    """A motion of the system `make(retraction)` from q (nq) and v (nw) in steps of h s."""

    make: Callable[[str], System]
    q: np.ndarray
    v: np.ndarray
    h: float
    steps: int


def floating(retraction: str) -> System:
    """A body on SE(3) whose center of mass is not its origin, with a spring that restores its
    attitude.
    """

    def lagrangian(q: ca.SX, v: ca.SX) -> ca.SX:
        inertias = ca.DM([0.3, 0.5, 0.6, 1.7, 2.4, 2.4])
        up = quaternion.rotate(q[:4], ca.vertcat(0, 0, 1))[2]
        return ca.dot(inertias, v**2) / 2 + 2 * up - ca.sumsqr(q[4:]) / 4

    return System(name="floating", space=SE3(retraction=retraction), lagrangian=lagrangian)


def links(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return directions and their rates, (3 n) each."""
    q, rates = rng.normal(size=(2, n, 3))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    return q.ravel(), (rates - q * np.sum(q * rates, axis=1, keepdims=True)).ravel()


def cases() -> dict[str, Case]:
    """Return the motions by name."""
    still, tilted = np.array([1.0, 0, 0, 0]), np.array([np.cos(0.3), np.sin(0.3), 0, 0])
    rng = np.random.default_rng(1)
    two = SphericalPendulumParameters((1.0, 1.0), (1.0, 1.0))
    q, v = links(2, rng)
    hung = np.r_[np.zeros(3), still, tilted, q], np.r_[rng.normal(size=9), v]
    return {
        "rigid body": Case(
            lambda r: rigid_body(retraction=r), still, np.array([0.3, 2.0, 0.5]), 0.05, 100
        ),
        "heavy top, slow": Case(
            lambda r: heavy_top(retraction=r), tilted, np.array([0.5, 4.0, 0.3]), 0.005, 200
        ),
        "heavy top, fast": Case(
            lambda r: heavy_top(retraction=r), still, np.array([0, 150.0, -4.61538]), 0.001, 500
        ),
        "body on SE(3)": Case(
            floating,
            np.r_[tilted, 0.1, 0.2, 0.3],
            np.array([1.0, 0.4, -0.7, 0.5, -0.3, 0.2]),
            0.05,
            100,
        ),
        "pendulum, N = 2": Case(lambda r: spherical_pendulum(two, r), q, v, 0.01, 100),
        "payload": Case(lambda r: quadrotor_payload(retraction=r), *hung, 0.01, 100),
    }


def microseconds(run: Callable[[], object], steps: int) -> float:
    """Return the least processor time per step of runs of this number of steps."""
    least = np.inf
    for _ in range(REPEATS):
        wait_for_compiler()
        start = time.process_time()
        run()
        least = min(least, time.process_time() - start)
    return 1e6 * least / steps


def measure(case: Case, retraction: str) -> tuple[float, ...]:
    """Return errors of configuration and momenta, and the times of simulate, step, linearize and
    hessian.
    """
    dsys = midpoint(case.make(retraction), case.h)
    fine = INTEGRATORS["rkmk5"].make(case.make("exp"), case.h / FINER)
    start, u = dsys.state(case.q, case.v), np.zeros((case.steps, dsys.nu))
    states = dsys.simulate(start, u).states
    exact = fine.simulate(start, np.zeros((FINER * case.steps, dsys.nu))).states[::FINER]
    missed = np.abs([fine.local(a, b) for a, b in zip(exact, states)]).max(axis=0)
    nq, nv = dsys.system.space.nq, dsys.system.space.nv
    adjoint, some, force = np.ones(dsys.ndx), states[:30], u[0]
    return (
        missed[:nv].max(),
        missed[nv:].max() / np.abs(exact[:, nq:]).max(),
        microseconds(lambda: dsys.simulate(start, u), case.steps),
        microseconds(lambda: [dsys.step(x, force) for x in some], len(some)),
        microseconds(lambda: [dsys.linearize(x, force) for x in some], len(some)),
        microseconds(lambda: [dsys.hessian(x, force, adjoint) for x in some], len(some)),
    )


def main() -> None:
    """Measure and print."""
    known = cases()
    print(f"{'':26}{'q':>9}{'p':>9}{'simulate':>10}{'step':>7}{'linearize':>11}{'hessian':>9}")
    for name in sys.argv[1:] or sized([*known], ["rigid body"]):
        for retraction in ("cay", "exp"):
            q, p, *costs = measure(known[name], retraction)
            row = "{:10.2f}{:7.1f}{:11.1f}{:9.1f}".format(*costs)
            print(f"{name:20}{retraction:6}{q:9.1e}{p:9.1e}{row}", flush=True)


if __name__ == "__main__":
    main()
