"""Equilibria of discrete systems: states that a step under a constant input does not change."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics.consistent_states import typical_sizes
from nh_control.mechanics.driven import single_drives
from nh_control.mechanics.potential_shape import PotentialShape, potential_shape

log = logging.getLogger(__name__)
MAX_ITERATIONS = 50
MAX_HALVINGS = 12
TARGET, ACCEPT = 1e-13, 1e-10
"""The search stops when the motion per step, in local coordinates divided by their scales, is at
most TARGET. The result is an equilibrium if its motion per step is at most ACCEPT.
"""

PROBE = 0.1
"""Change of a coordinate, divided by its scale, that is used to test whether the motion depends on
this coordinate.
"""

FAR = 0.3
"""Change of a coordinate, divided by its scale, above which a warning is logged."""

LARGEST_SMOOTHING, CONTINUATION = 1.0, 1.8
"""Initial smoothing (J) in a search for equilibria with contacts, and the maximum ratio of
successive smoothings.
"""


class NoEquilibrium(ValueError):
    """No equilibrium was found. The attributes are the last state x (nx), the input u (nu) at that
    state, and the motion (ndx) of a step from that state.
    """

    def __init__(self, message: str, x: np.ndarray, u: np.ndarray, motion: np.ndarray):
        super().__init__(message)
        self.x, self.u, self.motion = x, u, motion


class Equilibrium(tuple[np.ndarray, np.ndarray]):
    """State x (nx) and input u (nu) of an equilibrium, `x, u = equilibrium(...)`. The search
    started from the state `guess` (nx).
    """

    dsys: DiscreteSystem
    guess: np.ndarray

    def __new__(
        cls, dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, guess: np.ndarray
    ) -> Equilibrium:
        new = super().__new__(cls, (x, u))
        new.dsys, new.guess = dsys, guess
        return new

    @property
    def x(self) -> np.ndarray:
        """State (nx)."""
        return self[0]

    @property
    def u(self) -> np.ndarray:
        """Input (nu)."""
        return self[1]

    @property
    def moved(self) -> np.ndarray:
        """Change of the configuration from the guess, in local coordinates (nv)."""
        before, after = (self.dsys.configuration(x) for x in (self.guess, self.x))
        return self.dsys.system.space.local(before, after)

    @cached_property
    def potential(self) -> PotentialShape:
        """The shape of the potential energy minus the work of the input: a minimum, a maximum or a
        saddle, with the corresponding directions, and with the directions in which the second
        derivatives do not decide. Raises ValueError for a system with contacts.
        """
        system = self.dsys.system
        return potential_shape(system, self.dsys.configuration(self.x), self.u[: system.nu])

    @property
    def kind(self) -> str:
        """`minimum`, `maximum`, `saddle` or `flat` (see `potential`)."""
        return self.potential.kind


def equilibrium(
    dsys: DiscreteSystem,
    x_guess: ArrayLike,
    u_guess: ArrayLike,
    fixed: Sequence[str] = (),
    *,
    scale: Mapping[str, float] | None = None,
) -> Equilibrium:
    """State x (nx) and input u (nu) with `local(x, f(x, u)) = 0` near a guess. The method is
    Gauss-Newton with exact derivatives. Each change is halved until the motion decreases.

    A change (dx, du) is the least-norm solution of `[A - I, B] (dx, du) = -local(x, x1)` in local
    coordinates divided by their scales. `scale` contains the typical sizes of coordinates, momenta
    and inputs by name, by default 1 in SI units. A motion of 1e-10 of the scale counts as zero, so
    a system with a size of 1 um or a mass of 1 mg needs scales. Coordinates and inputs named in
    `fixed` keep their values from the guess. Input limits are ignored.

    Bodies rest on the barriers of their contacts, with gaps of `smoothing / force`. If the search
    from the guess fails, it is repeated with the smoothing LARGEST_SMOOTHING, which then decreases
    in steps. If a robot has contacts, each coordinate with its own actuator keeps its value from
    the guess, so the robot keeps its posture. If there is no such equilibrium, these coordinates
    change as well. If a system with contacts moves by more than FAR, a warning is logged (see
    `moved` of the result).

    The result may be a maximum or a saddle of the potential energy (see its `kind` and
    `potential`); `minimize_potential_energy` finds a minimum. Raises NoEquilibrium, StepFailed if
    no step from the guess is possible, and ValueError for a name that is neither a coordinate nor
    an input, or for a scale that is not positive.
    """
    names = (*dsys.state_space.tangent_names, *dsys.inputs)
    unknown = [name for name in fixed if name not in names]
    if unknown:
        raise ValueError(f"{dsys}: cannot fix {unknown}, choose from {list(names)}")
    sizes = typical_sizes(str(dsys), names, scale)
    x0, u0 = np.array(x_guess, dtype=float), np.array(u_guess, dtype=float)
    if not dsys.system.has_contacts:
        try:
            x, u = _search(dsys, x0, u0, _free(names, fixed), sizes)
        except NoEquilibrium as none:
            raise _with_advice(none, fixed) from None
        return Equilibrium(dsys, x, u, x0)
    # first with fixed actuated coordinates, then without
    driven = [names[row] for row in single_drives(dsys.system.numeric, dsys.system.nu)]
    for constant in dict.fromkeys((tuple(dict.fromkeys([*fixed, *driven])), tuple(fixed))):
        try:
            x, u = _standing(dsys, x0, u0, _free(names, constant), sizes)
        except NoEquilibrium as none:
            last = none
            continue
        result = Equilibrium(dsys, x, u, x0)
        _warn_of_motion(result, sizes)
        return result
    raise _with_advice(last, fixed)


def _free(names: Sequence[str], fixed: Sequence[str]) -> list[int]:
    return [i for i, name in enumerate(names) if name not in fixed]


def _standing(
    dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, free: Sequence[int], sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The equilibrium of a system with contacts, found directly from the guess or by continuation
    in the smoothing. Raises NoEquilibrium.
    """
    free = _without_symmetries(dsys, x, u, free, sizes)
    try:
        return _search(dsys, x, u, free, sizes)
    except NoEquilibrium as none:
        last = none
    # continuation: every equilibrium is the guess for the next smaller smoothing
    for smoothing in _smoothings(dsys.system.smoothing):
        try:
            x, u = _search(dsys.with_smoothing(smoothing), x, u, free, sizes)
        except NoEquilibrium as none:
            last = none
            continue
        if smoothing == dsys.system.smoothing:
            return x, u
    raise last


def _warn_of_motion(result: Equilibrium, sizes: np.ndarray) -> None:
    """Log a warning if the configuration is far from the guess."""
    change, names = result.moved, result.dsys.system.space.tangent_names
    order = np.argsort(-np.abs(change) / sizes[: len(change)])
    far = [i for i in order if abs(change[i]) > FAR * sizes[i]]
    if far:
        worst = ", ".join(f"{names[i]} by {change[i]:.2g}" for i in far[:3])
        log.warning(
            "%s: the equilibrium is far from the guess: it moved %s%s; use a guess that is closer "
            "to an equilibrium, or name coordinates in `fixed`",
            result.dsys,
            worst,
            f" and {len(far) - 3} others" if len(far) > 3 else "",
        )


def _smoothings(smoothing: float) -> Iterator[float]:
    """Values from LARGEST_SMOOTHING down to `smoothing`, with ratios of at most CONTINUATION."""
    # geometric sequence with count + 1 values
    count = max(0, math.ceil(math.log(LARGEST_SMOOTHING / smoothing) / math.log(CONTINUATION)))
    yield from (smoothing * CONTINUATION**i for i in range(count, -1, -1))


def _with_advice(none: NoEquilibrium, fixed: Sequence[str]) -> NoEquilibrium:
    fewer = f"fix fewer names than {list(fixed)}, or " if fixed else ""
    advised = f"{none}; {fewer}start from a closer guess"
    return NoEquilibrium(advised, none.x, none.u, none.motion)


def _search(
    dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, free: Sequence[int], sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The equilibrium near (x, u). Only the entries `free` may change. Raises NoEquilibrium."""
    motion = _motion(dsys, x, u, sizes)
    for _ in range(MAX_ITERATIONS):
        # Jacobian [A - I, B] of the motion local(x, f(x, u)) with respect to the scaled (dx, du)
        lin = dsys.linearize(x, u)
        jacobian = np.hstack([lin.A - np.eye(dsys.ndx), lin.B])
        # scaled: S_x^{-1} [A - I, B] S, and only the free columns
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
    worst, unscaled = int(np.argmax(np.abs(motion))), motion * sizes[: dsys.ndx]
    name = dsys.state_space.tangent_names[worst]
    raise NoEquilibrium(
        f"{dsys}: found no equilibrium near the guess: a step still moves {name} by "
        f"{unscaled[worst]:.1e}",
        x,
        u,
        unscaled,
    )


def _without_symmetries(
    dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, free: Sequence[int], sizes: np.ndarray
) -> list[int]:
    """The entries `free` without the coordinates that do not affect the motion, such as the
    position on flat ground. The derivatives with respect to such coordinates are rounding errors,
    which stiff contacts magnify. The test uses a large smoothing, which lets contacts act at a
    distance.
    """
    dsys = dsys.with_smoothing(LARGEST_SMOOTHING)
    motion = _motion(dsys, x, u, sizes)

    def matters(i: int) -> bool:
        if i >= dsys.system.space.nv:
            return True
        x1, u1 = _changed(dsys, x, u, PROBE * np.eye(len(sizes))[i], sizes)
        try:
            return bool(np.abs(_motion(dsys, x1, u1, sizes) - motion).max() > ACCEPT * PROBE)
        except StepFailed:
            return True

    return [i for i in free if matters(i)]


def _changed(
    dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, change: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """State and input after a change, which is given relative to their scales."""
    part = change * sizes
    return dsys.retract(x, part[: dsys.ndx]), u + part[dsys.ndx :]


def _motion(dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Motion (ndx) of one step in local coordinates divided by their scales."""
    return dsys.local(x, dsys.step(x, u)) / sizes[: dsys.ndx]


def _shorten(
    dsys: DiscreteSystem,
    x: np.ndarray,
    u: np.ndarray,
    change: np.ndarray,
    sizes: np.ndarray,
    size: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """State, input and motion after a change, halved until the motion is smaller than `size`; None
    if no halved change achieves this. Changes and motions are divided by their scales.
    """
    for halvings in range(MAX_HALVINGS + 1):
        x1, u1 = _changed(dsys, x, u, 0.5**halvings * change, sizes)
        try:
            motion = _motion(dsys, x1, u1, sizes)
        except StepFailed:  # a shorter change may stay inside the domain of the model
            continue
        if np.linalg.norm(motion) < size:
            return x1, u1, motion
    return None
