"""Equilibria of discrete systems: a state and an input under which a step does not move."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem

MAX_ITERATIONS = 50
MAX_HALVINGS = 12
TARGET, ACCEPT = 1e-13, 1e-10
"""The search ends at a motion per step of TARGET, in local coordinates; a result is an equilibrium
if its motion is not larger than ACCEPT.
"""


class NoEquilibrium(ValueError):
    """No equilibrium was found; carries the last state x (nx), input u (nu) and the motion of one
    step there (ndx).
    """

    def __init__(self, message: str, x: np.ndarray, u: np.ndarray, motion: np.ndarray):
        super().__init__(message)
        self.x, self.u, self.motion = x, u, motion


def equilibrium(
    dsys: DiscreteSystem, x_guess: ArrayLike, u_guess: ArrayLike, fixed: Sequence[str] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """State x (nx) and input u (nu) with `local(x, f(x, u)) = 0` near a guess, by Gauss-Newton
    with exact derivatives; a change is halved until the motion decreases.

    Each change (dx, du) is the least-norm solution of `[A - I, B] (dx, du) = -local(x, x1)` in
    local coordinates. Coordinates and inputs named in `fixed` keep their guess. Input limits are
    not considered. Raises NoEquilibrium, StepFailed if no step is possible from the guess, and
    ValueError for a name that is no coordinate and no input.
    """
    names = (*dsys.state_space.tangent_names, *dsys.inputs)
    unknown = [name for name in fixed if name not in names]
    if unknown:
        raise ValueError(f"{dsys}: cannot fix {unknown}, choose of {list(names)}")
    free = [i for i, name in enumerate(names) if name not in fixed]
    x, u = np.array(x_guess, dtype=float), np.array(u_guess, dtype=float)
    motion = dsys.local(x, dsys.step(x, u))
    for _ in range(MAX_ITERATIONS):
        # Jacobian of the motion local(x, f(x, u)) by (dx, du): [A - I, B]
        lin = dsys.linearize(x, u)
        jacobian = np.hstack([lin.A - np.eye(dsys.ndx), lin.B])[:, free]
        change = np.zeros(len(names))
        change[free] = np.linalg.lstsq(jacobian, -motion, rcond=1e-9)[0]
        better = _shorten(dsys, x, u, change, float(np.linalg.norm(motion)))
        if better is None:
            break
        x, u, motion = better
        if np.linalg.norm(motion) <= TARGET:
            break
    if np.linalg.norm(motion) <= ACCEPT:
        return x, u
    worst = int(np.argmax(np.abs(motion)))
    raise NoEquilibrium(
        f"{dsys}: no equilibrium found near the guess: a step still moves {names[worst]} by "
        f"{motion[worst]:.1e}; "
        f"fix less{f' than {list(fixed)}' if fixed else ''}, or start closer",
        x,
        u,
        motion,
    )


def _shorten(
    dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, change: np.ndarray, size: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """State, input and motion after the longest of the halved changes that makes the motion
    smaller than `size`, None if none does.
    """
    for halvings in range(MAX_HALVINGS + 1):
        part = 0.5**halvings * change
        x1, u1 = dsys.retract(x, part[: dsys.ndx]), u + part[dsys.ndx :]
        try:
            motion = dsys.local(x1, dsys.step(x1, u1))
        except StepFailed:  # too far: a shorter change may stay where the model holds
            continue
        if np.linalg.norm(motion) < size:
            return x1, u1, motion
    return None
