"""Residuals of a motion in pieces, with exact derivatives by physical parameters and by a delay of
the inputs: the least-squares problem of an identification.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nh_control.control.input_history import Inputs, predict, split_into_steps
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics.parameters import declarations
from nh_control.numerics.expressions import Vector

MAX_ITERATIONS, SETTLED = 20, 1e-10
MAX_HALVINGS, GROWTH = 8, 1e-9
"""Number of halvings of a change of an initial state; relative growth of residuals that is
round-off.
"""
RANK = 1e-6
"""Ratio of parameter effects, or of singular values, below which a parameter is not identifiable.
"""
NO_EFFECT = 1e-9
"""Root mean square (m, rad) of the effect of doubling a parameter that counts as none."""
DELAY = "the inputs' delay"
SHIFT = 0.05
"""Part of a step by which inputs are shifted to see the effect of a delay."""


class NotIdentifiable(ValueError):
    """The measurements do not determine a parameter; the message says which, and the remedy."""


@dataclass(frozen=True)
class MotionSegment:
    """A piece of a motion: measured configurations q (n, nq), the n - 1 sequences of `inputs` that
    acted between them, and a guess of the first velocity (nw).
    """

    q: np.ndarray
    inputs: Sequence[Inputs]
    velocity: np.ndarray


def with_values(dsys: DiscreteSystem, names: Sequence[str], values: Vector) -> DiscreteSystem:
    """The system with other numbers for some parameters; `lengths[0]` names an entry
    of a tuple.
    """
    changes: dict[str, float | tuple[float, ...]] = {}
    for name, value in zip(names, values):
        field, _, index = name.partition("[")
        if index:
            entries = list(changes.get(field, getattr(dsys.system.parameters, field)))
            entries[int(index.rstrip("]"))] = float(value)
            changes[field] = tuple(entries)
        else:
            changes[field] = float(value)
    return dsys.with_parameters(**changes)


class ParameterFit:
    """Residuals, and their derivatives by the parameters, divided by their sizes at the start, and
    by the delay, divided by the step, if it is estimated. The initial states of the last call are
    the guess of the next.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        names: tuple[str, ...],
        pieces: Sequence[MotionSegment] | Callable[[float], Sequence[MotionSegment]],
    ):
        known = dsys.system.parameter_names
        if not names or (unknown := [name for name in names if name not in known]):
            what = f"no parameters {unknown}" if names else "nothing to identify"
            raise ValueError(f"{dsys}: {what}, choose of {', '.join(known)}")
        self.names, self._dsys, self._pieces = names, dsys, pieces
        self.is_delayed = callable(pieces)
        values = dsys.system.parameter_values[[known.index(name) for name in names]]
        more = [dsys.h] * self.is_delayed
        self.scale = np.concatenate([np.where(values == 0, 1.0, np.abs(values)), more])
        self.start = np.concatenate([values, np.zeros(len(more))]) / self.scale
        first = self._at_delay(0.0)
        self._starts = [dsys.measured_state(piece.q[0], piece.velocity) for piece in first]
        self._rows = [len(piece.q) for piece in first]
        self._last: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self.n_states = 0

    def _at_delay(self, delay_s: float) -> Sequence[MotionSegment]:
        return self._pieces(delay_s) if callable(self._pieces) else self._pieces

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds that the parameters declare, divided by the parameters' sizes."""
        by_name = {d.name: d for d in declarations(self._dsys.system.parameters)}
        declared = [by_name[name.partition("[")[0]] for name in self.names]
        lower = [max(d.above, d.at_least) for d in declared] + [-np.inf] * self.is_delayed
        return np.array(lower) / self.scale, np.full(len(lower), np.inf)

    def residuals(self, relative: np.ndarray) -> np.ndarray:
        """Residuals, infinite if the model cannot follow."""
        try:
            return self.linearized(relative)[0]
        except StepFailed:
            return np.full(sum(self._rows) * self._nv, np.inf)

    def jacobian(self, relative: np.ndarray) -> np.ndarray:
        """Derivatives of the residuals with the initial states eliminated."""
        return self.linearized(relative)[1]

    @property
    def _nv(self) -> int:
        return self._dsys.system.space.nv

    def correlation(self, relative: np.ndarray) -> float:
        """Correlation of a residual with the next one of its piece, at least 0."""
        rows = self.linearized(relative)[0].reshape(-1, self._nv)
        pieces = np.split(rows, np.cumsum(self._rows)[:-1])
        together = sum(float(np.sum(piece[1:] * piece[:-1])) for piece in pieces)
        return max(0.0, together / max(float(np.sum(rows**2)), 1e-300))

    def linearized(self, relative: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals and Jacobian; raises StepFailed."""
        if self._last is None or not np.array_equal(self._last[0], relative):
            values = relative * self.scale
            dsys, delay_s = with_values(self._dsys, self.names, values), values[-1]
            shift_s = SHIFT * dsys.h
            delays = [delay_s + d for d in (0.0, -shift_s, shift_s)] if self.is_delayed else [0.0]
            rows, slopes, starts, self.n_states = [], [], [], 0
            for start, *variants in zip(self._starts, *map(self._at_delay, delays)):
                x, r, J, rank = _settled(dsys, variants, start, self.names)
                self.n_states += rank
                starts.append(x)
                rows.append(r)
                slopes.append(J * self.scale)
            self._starts = starts
            self._last = relative.copy(), np.concatenate(rows), np.vstack(slopes)
        return self._last[1], self._last[2]

    def require_determined(self, J: np.ndarray) -> None:
        """Raise NotIdentifiable for parameters without effect, or with an effect only in
        combination.
        """
        sizes = np.linalg.norm(J, axis=0)
        least = max(RANK * sizes.max(), NO_EFFECT * np.sqrt(len(J)))
        names = (*self.names, DELAY) if self.is_delayed else self.names
        without = [name for name, size in zip(names, sizes) if size <= least]
        if without:
            raise NotIdentifiable(
                f"{self._dsys}: {', '.join(without)} had no effect on this motion; leave out, or "
                "record a motion on which it has an effect"
            )
        _, values, directions = np.linalg.svd(J / sizes, full_matrices=False)
        if values[-1] <= RANK:
            together = [n for n, part in zip(names, np.abs(directions[-1])) if part > 0.1]
            raise NotIdentifiable(
                f"{self._dsys}: this motion determines only a combination of "
                f"{', '.join(together)}; leave one of them out"
            )


def _settled(
    dsys: DiscreteSystem,
    variants: Sequence[MotionSegment],
    x: np.ndarray,
    names: tuple[str, ...],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """By Gauss-Newton, the initial state of a piece with the least residuals. Returns the state,
    the residuals, their derivatives by the parameters with the state eliminated, and the rank of
    the derivatives by the state.

    Two further variants of the piece have inputs that act by SHIFT earlier and later; then the
    last derivative is by the delay over the step.
    """
    piece, *shifted = variants
    r, J_x, J_p = _shot(dsys, piece, x, names)
    for _ in range(MAX_ITERATIONS):
        change, _, rank, _ = np.linalg.lstsq(J_x, -r, rcond=None)
        if np.abs(change).max() <= SETTLED * (1 + np.abs(x).max()):
            break
        x, (r, J_x, J_p) = _closer(dsys, piece, x, change, names, np.linalg.norm(r))
    if shifted:
        sooner, later = (_residuals(dsys, variant, x) for variant in shifted)
        J_p = np.column_stack([J_p, (later - sooner) / (2 * SHIFT * dsys.h)])
    return x, r, J_p - J_x @ np.linalg.lstsq(J_x, J_p, rcond=None)[0], int(rank)


def _closer(
    dsys: DiscreteSystem,
    piece: MotionSegment,
    x: np.ndarray,
    change: np.ndarray,
    names: tuple[str, ...],
    before: np.floating,
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The initial state after a change, and `_shot` from it. The change is halved until the model
    can follow and the residuals do not grow.
    """
    for halvings in range(MAX_HALVINGS + 1):
        moved = dsys.retract(x, change / 2**halvings)
        try:
            shot = _shot(dsys, piece, moved, names)
        except StepFailed:
            if halvings == MAX_HALVINGS:
                raise
            continue
        if np.linalg.norm(shot[0]) <= (1 + GROWTH) * before:
            break
    return moved, shot


def _residuals(dsys: DiscreteSystem, piece: MotionSegment, x: np.ndarray) -> np.ndarray:
    """Residuals (n nv) from an initial state x (nx)."""
    rows = []
    for q, inputs in zip(piece.q, [(), *piece.inputs]):
        x = predict(dsys, x, inputs)
        rows.append(_residual(dsys, x, q))
    return np.concatenate(rows)


def _residual(dsys: DiscreteSystem, x: np.ndarray, q: np.ndarray) -> np.ndarray:
    return dsys.local(x, np.concatenate([q, x[len(q) :]]))[: dsys.system.space.nv]


def _shot(
    dsys: DiscreteSystem, piece: MotionSegment, x: np.ndarray, names: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Residuals (n nv) from an initial state x (nx), and their derivatives by it (n nv, ndx) and
    by the parameters (n nv, k).
    """
    nv = dsys.system.space.nv
    X, S = np.eye(dsys.ndx), np.zeros((dsys.ndx, len(names)))
    rows, by_x, by_p = [], [], []
    for q, inputs in zip(piece.q, [(), *piece.inputs]):
        for u, duration_s in inputs:
            for step in split_into_steps(dsys, duration_s):
                # sensitivities by the initial state and by the parameters
                lin = step.linearize(x, u, names)
                x, X, S = lin.x1, lin.A @ X, lin.A @ S + lin.P
        rows.append(_residual(dsys, x, q))
        by_x.append(-X[:nv])
        by_p.append(-S[:nv])
    return np.concatenate(rows), np.vstack(by_x), np.vstack(by_p)
