"""Checks whether a system's constraints are independent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import casadi as ca
import numpy as np

from nh_control.mechanics.elimination import dependent_rows
from nh_control.mechanics.lagrangian_system import LagrangianSystem
from nh_control.mechanics.mechanics import Mechanics

CLOSE = 1e-6
"""Relative size below which a derivative counts as zero at a configuration that satisfies the
constraints. Where the rank is lost, iterations only get as close as the square root of the
round-off.
"""
ROUND_OFF = 1e-14
"""Size below which a derivative counts as zero, relative to the derivatives in other rows."""
ASIDE, APART = 0.03, 1e-3
"""Length of a motion along the constraints, and maximum distance that remains if only a single
configuration satisfies them, relative to the sizes of the coordinates.
"""
SPREADS = (0.3, 1.0, 0.03) * 3
"""Sizes of random changes to the nominal configuration. Iterations start at the changed
configurations.
"""
ITERATIONS = 100
"""Maximum number of Gauss-Newton iterations. Far from a solution, and where constraints lose rank,
an iteration only halves the distance.
"""


def require_independent_velocity_constraints(system: LagrangianSystem) -> None:
    """Raise ValueError unless the velocity constraints are independent at the nominal
    configuration. A nominal configuration outside the domain is not checked.
    """
    nominal, q = system.nominal_configuration, system.symbols[0]
    inside = (system.value(system.domain_at(q), nominal) > 0).all()
    if not system.n_velocity_constraints or not inside:
        return
    a = system.value(system.constraint_matrix(q) @ system.space.frame(q), nominal)
    if not np.isfinite(a).all():
        raise ValueError(
            f"{system.name}: velocity_constraint is not finite at q = {nominal.tolist()}: "
            f"{a.tolist()}; set `nominal` to a configuration where it is finite"
        )
    if dependent := dependent_rows(a):
        raise ValueError(
            f"{system.name}: rows {dependent} (counted from 0) of velocity_constraint are zero or "
            f"depend on previous rows at q = {nominal.tolist()}: {a.tolist()}; drop dependent "
            "rows, write them such that they remain independent there, or set `nominal` to a "
            "configuration where they are independent"
        )


def redundant_rows(system: LagrangianSystem, mechanics: Mechanics) -> tuple[int, ...]:
    """The rows of the holonomic constraints that depend on previous rows at all random
    configurations that satisfy the constraints. The set of dependent rows may vary. The result
    belongs to the configuration with the fewest dependent rows; if there are several, it belongs
    to the one closest to the origin. Isolated solutions of the constraints are ignored.

    Raises ValueError if a dependent row is violated at a neighbor that satisfies the independent
    rows. In this case, either the derivative of the dependent row vanishes where the row is
    satisfied, or the row follows from velocity constraints. Also raises ValueError for velocity
    constraints that are dependent at all these configurations.
    """
    if not system.n_holonomic_constraints:
        return ()
    candidates: list[tuple[list[int], np.ndarray]] = []
    slopes = _Slopes(system, mechanics)
    slopes.require_independent_rolling()
    for start in slopes.configurations():
        if not slopes.dependent(start):
            return ()
        if (q := slopes.neighbor(start)) is None:
            continue
        if not (dependent := slopes.dependent(q)):
            return ()
        candidates.append((dependent, q))
    if not candidates:
        return ()
    # fewest dependent rows, then closest to the origin
    rows, q = min(candidates, key=lambda each: (len(each[0]), np.abs(each[1]).max()))
    if wrong := slopes.violated(q, rows):
        others = " or on velocity_constraint" if system.n_velocity_constraints else ""
        raise ValueError(
            f"{system.name}: {system.named_rows(wrong)} are zero or depend on previous "
            f"rows{others} at random configurations that satisfy the constraints, such as q = "
            f"{q.tolist()}, but do not follow from them elsewhere; drop dependent rows, and write "
            "rows whose derivatives do not vanish where they are satisfied"
        )
    return tuple(rows)


def without_round_off(slopes: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
    """Derivatives (rows, n) of constraints at a configuration that satisfies them, with small
    entries replaced by zero. Entries are compared with the largest entry of the same row, either
    here or in `others` (rows, n) at a different configuration.
    """
    # compare with the largest entry of the row
    both = np.abs(slopes if others is None else np.hstack([slopes, others]))
    largest = both.max(axis=1, keepdims=True, initial=0.0)
    least = np.maximum(CLOSE * largest, ROUND_OFF * largest.max(initial=0.0))
    return np.where(np.abs(slopes) <= least, 0.0, slopes)


class _Slopes:
    """A system's constraints and their derivatives with respect to its free coordinates."""

    def __init__(self, system: LagrangianSystem, mechanics: Mechanics):
        self._system, self._rng = system, np.random.default_rng(0)
        self._n = system.n_velocity_constraints
        q, p = system.symbols[0], system.parameter_symbols
        rolling = system.constraint_matrix(q) @ system.space.frame(q)
        values = system.holonomic(q), mechanics.holonomic_jacobian(q), rolling, system.domain_at(q)
        self._values = ca.Function("constraints", [q, p], [ca.densify(value) for value in values])
        self._moving = system.space.nv - len(system.prescribed) - len(system.first_order)

    def configurations(self) -> Iterator[np.ndarray]:
        """Random configurations that satisfy the holonomic constraints in the system's domain."""
        space, nominal = self._system.space, self._system.nominal_configuration
        # random initial guesses near and far, because constraints may have several branches
        for spread in SPREADS:
            start = space.retract(nominal, spread * self._rng.normal(size=space.nv))
            if (q := self._satisfied(start)) is not None:
                yield q

    def require_independent_rolling(self) -> None:
        """Raise ValueError if velocity constraints are dependent at all configurations that
        satisfy the holonomic constraints, for example those for two wheels on one axle.
        """
        if not self._n:
            return
        rows, q = [], None
        for q in self.configurations():
            here, there = (self._at(at)[2] * self._sizes(q) for at in (q, self._elsewhere(q)))
            rolling = without_round_off(here, there)[:, : self._moving]
            if not (rows := dependent_rows(rolling, CLOSE)):
                return
        if rows and q is not None:
            raise ValueError(
                f"{self._system.name}: {self._system.named_velocity_rows(rows)} follow from "
                "others at all configurations that satisfy the holonomic constraints, such as q = "
                f"{np.round(q, 3).tolist()}; drop them (one of two wheels on an axle needs "
                "slips='sideways')"
            )

    def dependent(self, q: np.ndarray) -> list[int]:
        """The dependent rows at q, which satisfies the constraints. Derivatives are scaled by the
        sizes of the coordinates. A derivative counts as zero if it is small compared with others
        of the same row, either at q or at another configuration, which is as far from q as the
        origin is.
        """
        # dependent rows of [A frame; Dh], without those of A
        sizes = self._sizes(q)
        _, here, rolling, _ = self._at(q)
        here, there = here * sizes, self._at(self._elsewhere(q))[1] * sizes
        stacked = np.vstack([rolling * sizes, without_round_off(here, there)])[:, : self._moving]
        return [k - self._n for k in dependent_rows(stacked, CLOSE) if k >= self._n]

    def neighbor(self, q: np.ndarray) -> np.ndarray | None:
        """A configuration near q that also satisfies the constraints, or None."""
        # an isolated solution pulls the neighbor back to q
        near, sizes = self._aside(q, self._all), self._sizes(q)
        if near is None or np.abs(self._system.space.local(q, near)).max() <= APART * sizes.max():
            return None
        return near

    def violated(self, q: np.ndarray, dependent: Sequence[int]) -> list[int]:
        """The dependent rows that are violated near q, where the other rows are satisfied."""
        near = self._aside(q, [row for row in self._all if row not in dependent])
        if near is None:
            return []
        h, least = self._residual(near)
        return [row for row in dependent if not abs(h[row]) <= least[row]]

    def _aside(self, q: np.ndarray, rows: Sequence[int]) -> np.ndarray | None:
        """A configuration a short distance from q that satisfies these rows, or None."""
        space, sizes = self._system.space, self._sizes(q)
        slope = without_round_off(self._at(q)[1] * sizes)[[*rows]]
        # a random tangent vector: d - Dh^+ Dh d
        aside = self._rng.normal(size=space.nv)
        aside -= np.linalg.lstsq(slope, slope @ aside, rcond=CLOSE)[0]
        return self._satisfied(space.retract(q, ASIDE * sizes * aside), rows)

    @property
    def _all(self) -> range:
        return range(self._system.n_holonomic_constraints)

    def _satisfied(self, q: np.ndarray, rows: Sequence[int] | None = None) -> np.ndarray | None:
        """The result of Gauss-Newton iterations from q for these rows, by default for all rows.
        None if the result violates them or lies outside the domain.
        """
        at = [*(self._all if rows is None else rows)]
        for _ in range(ITERATIONS):
            h, slope, _, _ = self._at(q)
            h, slope = h[at], slope[at]
            if not (np.isfinite(h).all() and np.isfinite(slope).all()):
                return None
            # least-norm solution of Dh dq = -h with rows of unit length
            slope = without_round_off(slope)
            length = np.linalg.norm(slope, axis=1, keepdims=True)
            length[length == 0] = 1.0
            change = -np.linalg.lstsq(slope / length, h[:, 0] / length[:, 0], rcond=1e-10)[0]
            size, largest = np.abs(change).max(initial=0.0), self._sizes(q).max()
            # no coordinate changes by more than the size of the largest one
            q = self._system.space.retract(q, change * min(1.0, largest / (size or largest)))
            if size <= 1e-15 * largest:
                break
        h, least = self._residual(q)
        inside = (self._at(q)[3] > 0).all() and np.isfinite(least).all()
        return q if (np.abs(h[at]) <= least[at]).all() and inside else None

    def _residual(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The values of all rows, and their tolerances, which are CLOSE times the change in the
        values to another configuration.
        """
        (h, slope, _, _), sizes = self._at(q), self._sizes(q)
        there = self._at(self._elsewhere(q))[1]
        size = sum(np.abs(each) @ sizes for each in (slope, there))
        return h[:, 0], CLOSE * size + ROUND_OFF * size.max()

    def _elsewhere(self, q: np.ndarray) -> np.ndarray:
        change = self._sizes(q) * self._rng.uniform(0.5, 1.0, self._system.space.nv)
        return self._system.space.retract(q, change * self._rng.choice([-1, 1], len(change)))

    def _sizes(self, q: np.ndarray) -> np.ndarray:
        """The sizes (nv) of the coordinates: their distances from the origin, or the largest
        distance for a coordinate at the origin.
        """
        sizes = np.abs(self._system.space.local(self._system.space.origin, q))
        largest = sizes.max() or 1.0
        return np.where(sizes > ROUND_OFF * largest, sizes, largest)

    def _at(self, q: np.ndarray) -> list[np.ndarray]:
        return [np.asarray(value) for value in self._values(q, self._system.parameter_values)]
