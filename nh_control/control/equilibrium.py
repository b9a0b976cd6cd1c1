"""Equilibria of discrete systems: a state and an input under which a step does not move."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics.consistent_states import typical_sizes
from nh_control.mechanics.potential_shape import PotentialShape, potential_shape

MAX_ITERATIONS = 50
MAX_HALVINGS = 12
TARGET, ACCEPT = 1e-13, 1e-10
"""The search ends at a motion per step of TARGET, in local coordinates over their scales; a result
is an equilibrium if its motion is not larger than ACCEPT.
"""

LARGEST_SMOOTHING, CONTINUATION = 1.0, 1.8
"""First smoothing (J) in a search of equilibria with contacts, and the largest factor to the next
one.
"""


class NoEquilibrium(ValueError):
    """No equilibrium was found; carries the last state x (nx), input u (nu) and the motion of one
    step there (ndx).
    """

    def __init__(self, message: str, x: np.ndarray, u: np.ndarray, motion: np.ndarray):
        super().__init__(message)
        self.x, self.u, self.motion = x, u, motion


class Equilibrium(tuple[np.ndarray, np.ndarray]):
    """State x (nx) and input u (nu) of an equilibrium, `x, u = equilibrium(...)`."""

    dsys: DiscreteSystem

    def __new__(cls, dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray) -> Equilibrium:
        new = super().__new__(cls, (x, u))
        new.dsys = dsys
        return new

    @property
    def x(self) -> np.ndarray:
        """State (nx)."""
        return self[0]

    @property
    def u(self) -> np.ndarray:
        """Input (nu)."""
        return self[1]

    @cached_property
    def potential(self) -> PotentialShape:
        """Whether it is a minimum, a maximum or a saddle of the potential energy less the work of
        the input, in which directions, and where second derivatives do not decide; raises
        ValueError for a system with contacts.
        """
        system = self.dsys.system
        return potential_shape(system, self.dsys.configuration(self.x), self.u[: system.nu])

    @property
    def kind(self) -> str:
        """`minimum`, `maximum`, `saddle` or `flat`, see `potential`."""
        return self.potential.kind


def equilibrium(
    dsys: DiscreteSystem,
    x_guess: ArrayLike,
    u_guess: ArrayLike,
    fixed: Sequence[str] = (),
    *,
    scale: Mapping[str, float] | None = None,
) -> Equilibrium:
    """State x (nx) and input u (nu) with `local(x, f(x, u)) = 0` near a guess, by Gauss-Newton
    with exact derivatives; a change is halved until the motion decreases.

    Each change (dx, du) is the least-norm solution of `[A - I, B] (dx, du) = -local(x, x1)` in
    local coordinates over their scales. `scale` has typical sizes of coordinates, momenta and
    inputs by name, 1 in SI units by default. A motion of 1e-10 of the scale counts as none, so a
    system of 1 um or 1 mg needs scales. Coordinates and inputs named in `fixed` keep their guess.
    Limits of inputs are ignored. Bodies stand on the barrier of their contacts, at gaps of
    `smoothing / force`; if the search fails from the guess, it starts with LARGEST_SMOOTHING and
    decreases the smoothing in steps.

    The result may be a maximum or a saddle of the potential energy, as `kind` and `potential` of
    the result say: `minimize_potential_energy` finds rest. Raises NoEquilibrium, StepFailed if no
    step is possible from the guess, and ValueError for a name that is no coordinate and no input,
    or for a scale of 0 or less.
    """
    names = (*dsys.state_space.tangent_names, *dsys.inputs)
    unknown = [name for name in fixed if name not in names]
    if unknown:
        raise ValueError(f"{dsys}: cannot fix {unknown}, choose of {list(names)}")
    sizes = typical_sizes(str(dsys), names, scale)
    free = [i for i, name in enumerate(names) if name not in fixed]
    x, u = np.array(x_guess, dtype=float), np.array(u_guess, dtype=float)
    try:
        return Equilibrium(dsys, *_found(dsys, x, u, free, sizes))
    except NoEquilibrium as none:
        if not dsys.system.has_contacts:
            raise _with_advice(none, fixed) from None
    for smoothing in _smoothings(dsys.system.smoothing):
        try:
            x, u = _found(dsys.with_smoothing(smoothing), x, u, free, sizes)
        except NoEquilibrium as none:
            last = none
            continue
        if smoothing == dsys.system.smoothing:
            return Equilibrium(dsys, x, u)
    raise _with_advice(last, fixed)


def _smoothings(smoothing: float) -> Iterator[float]:
    """From LARGEST_SMOOTHING down to a smoothing, by factors of CONTINUATION at most."""
    count = max(0, math.ceil(math.log(LARGEST_SMOOTHING / smoothing) / math.log(CONTINUATION)))
    yield from (smoothing * CONTINUATION**i for i in range(count, -1, -1))


def _with_advice(none: NoEquilibrium, fixed: Sequence[str]) -> NoEquilibrium:
    less = f" than {list(fixed)}" if fixed else ""
    advised = f"{none}; fix less{less}, or start closer"
    return NoEquilibrium(advised, none.x, none.u, none.motion)


def _found(
    dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, free: Sequence[int], sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The equilibrium near (x, u) by changes of the entries `free`; raises NoEquilibrium."""
    motion = _motion(dsys, x, u, sizes)
    for _ in range(MAX_ITERATIONS):
        # Jacobian of the motion local(x, f(x, u)) by (dx, du), [A - I, B], over their scales
        lin = dsys.linearize(x, u)
        jacobian = np.hstack([lin.A - np.eye(dsys.ndx), lin.B])
        jacobian = (jacobian * sizes / sizes[: dsys.ndx, None])[:, free]
        change = np.zeros(len(sizes))
        change[free] = np.linalg.lstsq(jacobian, -motion, rcond=1e-9)[0]
        better = _shorten(dsys, x, u, change, sizes, float(np.linalg.norm(motion)))
        if better is None:
            break
        x, u, motion = better
        if np.linalg.norm(motion) <= TARGET:
            break
    if np.linalg.norm(motion) <= ACCEPT:
        return x, u
    worst, moved = int(np.argmax(np.abs(motion))), motion * sizes[: dsys.ndx]
    name = dsys.state_space.tangent_names[worst]
    raise NoEquilibrium(
        f"{dsys}: no equilibrium found near the guess: a step still moves {name} by "
        f"{moved[worst]:.1e}",
        x,
        u,
        moved,
    )


def _motion(dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Motion (ndx) of one step in local coordinates over their scales."""
    return dsys.local(x, dsys.step(x, u)) / sizes[: dsys.ndx]


def _shorten(
    dsys: DiscreteSystem,
    x: np.ndarray,
    u: np.ndarray,
    change: np.ndarray,
    sizes: np.ndarray,
    size: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """State, input and motion after the longest of the halved changes that makes the motion
    smaller than `size`, None if none does; changes and motions over their scales.
    """
    for halvings in range(MAX_HALVINGS + 1):
        part = 0.5**halvings * change * sizes
        x1, u1 = dsys.retract(x, part[: dsys.ndx]), u + part[dsys.ndx :]
        try:
            motion = _motion(dsys, x1, u1, sizes)
        except StepFailed:  # too far: a shorter change may stay where the model holds
            continue
        if np.linalg.norm(motion) < size:
            return x1, u1, motion
    return None
