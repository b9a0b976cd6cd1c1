"""The state whose step joins two configurations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.results import Linearization
from nh_control.discrete.state_map import StateMap


def state_between(
    states: StateMap,
    linearize: Callable[[np.ndarray], Linearization],
    q0: ArrayLike,
    q1: ArrayLike,
    iterations: int,
) -> np.ndarray:
    """State at q1 whose step from q0 came closest to the configuration q1, by Gauss-Newton on
    rho0 with the exact derivatives `linearize(x)` of the step; see
    `DiscreteSystem.state_from_configurations`.
    """
    space, n = states.system.space, states.system.space.nv
    q1 = np.asarray(q1, dtype=float)
    x0 = states.measured_state(q0, space.velocity(np.asarray(q0), q1) / states.h)
    at_rest = np.append(space.origin, np.zeros(states.nx - len(q1)))
    for _ in range(iterations):
        lin = linearize(x0)
        target = np.concatenate([q1, lin.x1[len(q1) :]])
        A = lin.A[:n, n:]
        # columns of unit length: the momenta that count do not depend on their units
        lengths = np.linalg.norm(A, axis=0)
        lengths[lengths == 0] = 1.0
        wanted = states.local(lin.x1, target)[:n], states.local(at_rest, target)[:n]
        scaled = np.linalg.lstsq(A / lengths, np.column_stack(wanted), rcond=None)[0]
        change, from_origin = scaled.T / lengths
        x0 = states.retract(x0, np.concatenate([np.zeros(n), change]))
        # sizes of the momenta, and of those that move the origin to q1: a body may be at rest
        size = np.abs(x0[len(q1) :]).max(initial=0.0) + np.abs(from_origin).max(initial=0.0)
        if np.abs(change).max(initial=0.0) <= 1e-12 * size:
            return np.concatenate([q1, linearize(x0).x1[len(q1) :]])
    raise ValueError(
        f"{states}: no momentum found that joins the configurations {np.asarray(q0).tolist()} "
        f"and {q1.tolist()} in one step"
    )
