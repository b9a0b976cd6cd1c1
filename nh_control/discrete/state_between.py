"""Finds the state whose step leads from one given configuration to another."""

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
    """The state at q1 after the step from q0 that ends closest to the configuration q1.
    Gauss-Newton iterations on rho0 with the step's exact derivatives `linearize(x)` find it (see
    `DiscreteSystem.state_from_configurations`).
    """
    space, n = states.system.space, states.system.space.nv
    q1 = np.asarray(q1, dtype=float)
    x0 = states.measured_state(q0, space.velocity(np.asarray(q0), q1) / states.h)
    at_rest = np.append(space.origin, np.zeros(states.nx - len(q1)))
    for _ in range(iterations):
        lin = linearize(x0)
        target = np.concatenate([q1, lin.x1[len(q1) :]])
        A = lin.A[:n, n:]
        # columns of unit length make the result independent of the units of the momenta
        lengths = np.linalg.norm(A, axis=0)
        lengths[lengths == 0] = 1.0
        targets = states.local(lin.x1, target)[:n], states.local(at_rest, target)[:n]
        scaled = np.linalg.lstsq(A / lengths, np.column_stack(targets), rcond=None)[0]
        change, from_origin = scaled.T / lengths
        x0 = states.retract(x0, np.concatenate([np.zeros(n), change]))
        # relative to the momenta and to those that move the origin to q1, since a body may be at
        # rest
        size = np.abs(x0[len(q1) :]).max(initial=0.0) + np.abs(from_origin).max(initial=0.0)
        if np.abs(change).max(initial=0.0) <= 1e-12 * size:
            return np.concatenate([q1, linearize(x0).x1[len(q1) :]])
    raise ValueError(
        f"{states}: found no momentum that leads from the configuration "
        f"{np.asarray(q0).tolist()} to {q1.tolist()} in one step"
    )
