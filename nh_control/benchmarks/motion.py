"""Accurate motions used by several benchmarks."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

import nh_control as nh

METHOD = "nh.solve_ivp, order 8 of Dormand and Prince, rtol 1e-13"


def integrate(
    system: nh.System,
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    u: ArrayLike = (),
    steps: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the configuration (nq) and velocity (nw) after `duration` (s), starting from q (nq)
    and v (nw) under constant inputs u. The integration takes at least `steps` steps. Raises
    RuntimeError if a step fails.
    """
    dsys, span = _states(system), (0.0, duration)
    options: Any = {"method": "rkmk853", "rtol": 1e-13, "atol": 1e-13}
    run = nh.solve_ivp(system, span, dsys.state(q, v), u, max_step=duration / steps, **options)
    if not run.success:
        raise RuntimeError(f"{system.name}: {run.message}")
    return dsys.configuration(run.y[:, -1]), dsys.velocity(run.y[:, -1])


def _states(system: nh.System) -> nh.DiscreteSystem:
    """Return a discrete system that converts between (q, v) and states (q, rho)."""
    make = nh.nonholonomic_midpoint if system.n_velocity_constraints else nh.midpoint
    return make(system, 1e-3)


def acceleration_of_point(
    model: nh.Multibody, frame: str, q: np.ndarray, v: np.ndarray, rate: np.ndarray
) -> np.ndarray:
    """Return the acceleration (3) of a frame's origin in the world if v changes at the given rate
    (nw).
    """
    # The derivative at t = 0 of the point's velocity along q(t) = q + t v, v(t) = v + t rate.
    t = ca.SX.sym("t")
    later = model.space.retract(ca.SX(q), t * v)
    velocity = model.kinematics(later, ca.SX(v) + t * rate).velocity(frame)
    return np.asarray(ca.Function("a", [t], [ca.densify(ca.jacobian(velocity, t))])(0.0))[:, 0]
