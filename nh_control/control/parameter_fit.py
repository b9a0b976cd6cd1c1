"""The least-squares problem of an identification: the residuals of the pieces of a motion, and
their exact derivatives with respect to physical parameters and a delay of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nh_control.control.input_history import NANOSECONDS, Inputs, split_into_steps
from nh_control.control.measured_values import MeasuredValues
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics.parameters import declarations
from nh_control.numerics.expressions import Vector

MAX_ITERATIONS, SETTLED = 20, 1e-10
MAX_HALVINGS, GROWTH = 8, 1e-9
"""Maximum number of halvings of the change of an initial state; relative growth of residuals that
still counts as round-off.
"""
RANK = 1e-6
"""Ratio of parameter effects, or of singular values, below which a parameter is not identifiable.
"""
STATE_RANK = 1e-4
"""The same ratio for an initial state, which the measurements may determine only partly. For
example, the angle of a pole determines the speed of its cart only through the error of the
integrator, which has a relative size of 1e-5.
"""
NO_EFFECT = 1e-9
"""A parameter has no effect if doubling it changes the measured values by less than this root mean
square, in m and rad, or as a fraction of their spread.
"""
IN_COMBINATION = 0.1
"""Minimum fraction of a parameter in a combination for the message to name the parameter."""
DELAY = "the inputs' delay"
SHIFT = 0.05
"""Fraction of a step by which inputs are shifted to determine the effect of a delay."""


class NotIdentifiable(ValueError):
    """The measurements do not determine a parameter. The message names the parameter and the
    remedy.
    """


@dataclass(frozen=True)
class MotionSegment:
    """A piece of a motion: measured values (n, ny) at times (n), with NaN for missing values, and
    the n - 1 sequences of `inputs` that acted between these times.
    """

    times_ns: np.ndarray
    values: np.ndarray
    inputs: Sequence[Inputs]

    @property
    def times_s(self) -> np.ndarray:
        """Times (n) since the first one."""
        return (self.times_ns - self.times_ns[0]) / NANOSECONDS


@dataclass(frozen=True)
class Undetermined:
    """A parameter, or the delay, that the measurements do not determine. It has no effect, or has
    an effect only in combination with the parameters in `together`. Relative changes along
    `direction` do not change the motion to first order.
    """

    name: str
    together: tuple[str, ...] = ()
    direction: tuple[float, ...] = ()


def with_values(dsys: DiscreteSystem, names: Sequence[str], values: Vector) -> DiscreteSystem:
    """The system with different values of some parameters. A name such as `lengths[0]` refers to
    an entry of a tuple.
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
    """Residuals and their derivatives with respect to scaled parameters. The parameters are
    divided by their initial values. If the delay is estimated, it is divided by the step.

    The initial states with the smallest residuals are the guess for the next call. `state` (nx) is
    the first guess of the quantities that are not measured. The residuals of a measured quantity
    are divided by its entry in `noise` (m), which is initially the spread of its values or 1.
    Missing values have no residuals.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        names: tuple[str, ...],
        pieces: Sequence[MotionSegment] | Callable[[float], Sequence[MotionSegment]],
        measured: Sequence[str] | None = None,
        state: np.ndarray | None = None,
    ):
        known = dsys.system.parameter_names
        if not names or (unknown := [name for name in names if name not in known]):
            what = f"no parameters {unknown}" if names else "nothing to identify"
            raise ValueError(f"{dsys}: {what}, choose from {', '.join(known)}")
        self.names, self._dsys, self._pieces = names, dsys, pieces
        self.is_delayed = callable(pieces)
        values = dsys.system.parameter_values[[known.index(name) for name in names]]
        more = [dsys.h] * self.is_delayed
        self.scale = np.concatenate([np.where(values == 0, 1.0, np.abs(values)), more])
        self.start = np.concatenate([values, np.zeros(len(more))]) / self.scale
        self.measured = MeasuredValues(dsys, measured or dsys.system.space.names)
        self._guess, self._starts, self._least = state, list[np.ndarray](), np.inf
        self._last: tuple[np.ndarray, list[_FittedPiece]] | None = None
        self.set_noise(self._spread())

    def set_noise(self, noise: np.ndarray) -> None:
        """Set the standard deviations (m) of the measured quantities."""
        self.noise, self._last, self._least = noise, None, np.inf

    def at_delay(self, delay_s: float) -> Sequence[MotionSegment]:
        """The pieces with inputs that act `delay_s` after they were sent."""
        return self._pieces(delay_s) if callable(self._pieces) else self._pieces

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The declared bounds of the parameters, divided by their scales."""
        by_name = {d.name: d for d in declarations(self._dsys.system.parameters)}
        declared = [by_name[name.partition("[")[0]] for name in self.names]
        lower = [max(d.above, d.at_least) for d in declared] + [-np.inf] * self.is_delayed
        return np.array(lower) / self.scale, np.full(len(lower), np.inf)

    def residuals(self, relative: np.ndarray) -> np.ndarray:
        """The residuals, which are infinite if a step of the model fails."""
        try:
            return self.linearized(relative)[0]
        except StepFailed:
            return np.full(self._count, np.inf)

    def jacobian(self, relative: np.ndarray) -> np.ndarray:
        """The derivatives of the residuals, with the initial states eliminated."""
        return self.linearized(relative)[1]

    def linearized(self, relative: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The residuals and their Jacobian. Raises StepFailed."""
        pieces = self._fitted_pieces(relative)
        return (
            np.concatenate([piece.residuals for piece in pieces]),
            np.vstack([piece.by_parameters for piece in pieces]) * self.scale,
        )

    def errors(self, relative: np.ndarray) -> list[np.ndarray]:
        """The errors (n, m) of every piece in the units of the quantities, with NaN for missing
        values.
        """
        pieces = self._fitted_pieces(relative)
        return [piece.table(piece.residuals) * self.noise for piece in pieces]

    def n_states(self, relative: np.ndarray) -> int:
        """The number of values that are estimated for the initial states."""
        return sum(piece.rank for piece in self._fitted_pieces(relative))

    def estimated_noise(self, relative: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The standard deviations (m) of the measured quantities, estimated from their residuals,
        and the degrees of freedom (m). These are the number of residuals minus the number of
        fitted values, which are initial states and parameters.
        """
        pieces = self._fitted_pieces(relative)
        squares, free = np.zeros(len(self.measured)), np.zeros(len(self.measured))
        # each residual has 1 - (leverage of the initial state) - (leverage of the parameters)
        # degrees of freedom; with J = Q R, the leverages of the parameters are the squared lengths
        # of the rows of Q
        by_parameters = np.vstack([piece.by_parameters for piece in pieces])
        leverage = np.sum(np.linalg.qr(by_parameters * self.scale)[0] ** 2, axis=1)
        start = 0
        for piece in pieces:
            rows = slice(start, start := start + len(piece.residuals))
            squares += np.nansum(piece.table(piece.residuals**2), axis=0)
            free += np.nansum(piece.table(1 - piece.leverage - leverage[rows]), axis=0)
        return np.sqrt(squares / np.maximum(free, 1e-9)) * self.noise, free

    def correlation(self, relative: np.ndarray) -> float:
        """The correlation of successive residuals of a quantity in a piece, at least 0."""
        products, squares = 0.0, 0.0
        for piece in self._fitted_pieces(relative):
            for column in piece.table(piece.residuals).T:
                values = column[~np.isnan(column)]
                products += float(values[1:] @ values[:-1])
                squares += float(values @ values)
        return max(0.0, products / max(squares, 1e-300))

    def undetermined(self, J: np.ndarray) -> Undetermined | None:
        """A parameter that, according to the Jacobian J, has no effect, or has an effect only in
        combination with others. None if there is no such parameter.
        """
        sizes = np.linalg.norm(J, axis=0)
        least = max(RANK * sizes.max(), NO_EFFECT * np.sqrt(len(J)))
        names = (*self.names, DELAY) if self.is_delayed else self.names
        for name, size in zip(names, sizes):
            if size <= least:
                return Undetermined(name)
        # a combination that has no effect: a direction d with J d = 0 up to RANK
        _, values, directions = np.linalg.svd(J / sizes, full_matrices=False)
        if values[-1] > RANK:
            return None
        direction = directions[-1]
        parts = [i for i, part in enumerate(direction) if abs(part) > IN_COMBINATION]
        largest = max(parts, key=lambda i: abs(direction[i]))
        relative = direction / sizes
        return Undetermined(
            names[largest],
            tuple(names[i] for i in parts),
            tuple(float(relative[i]) for i in parts),
        )

    @cached_property
    def _count(self) -> int:
        """The number of residuals."""
        pieces = self.at_delay(0.0)
        return sum(int(self.measured.present(y).sum()) for piece in pieces for y in piece.values)

    def _spread(self) -> np.ndarray:
        """The spread (m) of the measured values. It is 1 if the values do not change. It is also 1
        if only coordinates are measured, because their initial noise is assumed to be equal in m
        and rad.
        """
        dsys = self._dsys
        origin, rest = self._first_state(dsys), np.zeros(dsys.nu)
        errors = self.measured.errors
        pieces = self.at_delay(0.0)
        rows = [errors(dsys, origin, rest, y) for piece in pieces for y in piece.values]
        unmeasured = [*np.array(self.measured.error_names)[np.isnan(rows).all(axis=0)]]
        if unmeasured:
            raise ValueError(f"{dsys}: the data contain no value of {', '.join(unmeasured)}")
        spread = np.nanstd(rows, axis=0)
        comparable = set(self.measured.names) <= set(dsys.system.space.names)
        return np.where(comparable | (spread <= NO_EFFECT), 1.0, spread)

    def _fitted_pieces(self, relative: np.ndarray) -> list[_FittedPiece]:
        """The pieces, each from its best initial state. Raises StepFailed."""
        if self._last is not None and np.array_equal(self._last[0], relative):
            return self._last[1]
        values = relative * self.scale
        dsys, delay_s = with_values(self._dsys, self.names, values), values[-1]
        shift_s = SHIFT * dsys.h
        delays = [delay_s + d for d in (0.0, -shift_s, shift_s)] if self.is_delayed else [0.0]
        fitted = list[_FittedPiece]()
        for i, (piece, *shifted) in enumerate(zip(*map(self.at_delay, delays))):
            shooting = Shooting(dsys, self.measured, piece, self.names, self.noise)
            if i < len(self._starts):
                x = self._starts[i]
            else:
                x = fitted[-1].end if fitted else self._first_state(dsys)
                x = self.measured.guess(dsys, piece.times_s, piece.values, x)
            fitted.append(shooting.fit(x, shifted))
        squares = sum(float(piece.residuals @ piece.residuals) for piece in fitted)
        if squares < self._least:
            self._least, self._starts = squares, [piece.x for piece in fitted]
        self._last = relative.copy(), fitted
        return fitted

    def _first_state(self, dsys: DiscreteSystem) -> np.ndarray:
        if self._guess is not None:
            return self._guess
        system = dsys.system
        return dsys.measured_state(system.nominal_configuration, np.zeros(system.space.nw))


@dataclass(frozen=True)
class _FittedPiece:
    """A piece that starts from the state x (nx) with the smallest residuals and ends at `end`
    (nx).

    `by_parameters` (r, k) are the derivatives of the `residuals` (r) after elimination of the
    initial state. `leverage` (r) are the fractions of the residuals that the initial state fits;
    they depend on `rank` directions of this state. `present` (n, m) is the mask of measured
    values.
    """

    x: np.ndarray
    end: np.ndarray
    residuals: np.ndarray
    by_parameters: np.ndarray
    leverage: np.ndarray
    rank: int
    present: np.ndarray

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Numbers (r), one for each residual, as a table (n, m) with NaN for missing values."""
        out = np.full(self.present.shape, np.nan)
        out[self.present] = rows
        return out


@dataclass(frozen=True)
class _Shot:
    """The residuals (r) of a piece that starts from an initial state and ends at `end` (nx), and
    their derivatives with respect to the initial state (r, ndx) and the parameters (r, k).
    """

    residuals: np.ndarray
    by_state: np.ndarray
    by_parameters: np.ndarray
    end: np.ndarray
    present: np.ndarray


class Shooting:
    """A piece of a motion as a function of its initial state and of the parameters `names`. The
    residuals are divided by the `noise` (m) of the measured quantities.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        measured: MeasuredValues,
        piece: MotionSegment,
        names: Sequence[str],
        noise: np.ndarray,
    ):
        self._dsys, self._measured, self._piece = dsys, measured, piece
        self._names, self._noise = tuple(names), noise
        steppers = dict[float, list[DiscreteSystem]]()  # by duration; each system is built once
        self._inputs: list[list[tuple[np.ndarray, DiscreteSystem]]] = []
        for inputs in piece.inputs:
            steps = []
            for u, duration_s in inputs:
                if duration_s not in steppers:
                    steppers[duration_s] = list(split_into_steps(dsys, duration_s))
                steps += [(u, step) for step in steppers[duration_s]]
            self._inputs.append(steps)

    def fit(self, x: np.ndarray, shifted: Sequence[MotionSegment]) -> _FittedPiece:
        """Find the initial state that minimizes the residuals, by Gauss-Newton from x (nx).

        `shifted` may contain the same piece with inputs that act earlier and later by SHIFT. The
        last column of the derivatives with respect to the parameters is then the derivative with
        respect to the delay, divided by the step. Raises StepFailed.
        """
        shot = self.shot(x)
        U, directions = _range(shot.by_state)
        for _ in range(MAX_ITERATIONS):
            # Gauss-Newton: dx = -J_x^+ r
            change = -directions @ (U.T @ shot.residuals)
            if np.abs(change).max() <= SETTLED * (1 + np.abs(x).max()):
                break
            x, shot = self._closer(x, change, np.linalg.norm(shot.residuals))
            U, directions = _range(shot.by_state)
        by_theta = shot.by_parameters
        if shifted:
            earlier, later = (
                Shooting(self._dsys, self._measured, piece, (), self._noise).shot(x).residuals
                for piece in shifted
            )
            by_theta = np.column_stack([by_theta, (later - earlier) / (2 * SHIFT * self._dsys.h)])
        leverage = np.sum(U**2, axis=1)
        # variable projection: J = J_theta - J_x J_x^+ J_theta with J_x J_x^+ = U U^T
        by_theta = by_theta - U @ (U.T @ by_theta)
        return _FittedPiece(
            x, shot.end, shot.residuals, by_theta, leverage, U.shape[1], shot.present
        )

    def shot(self, x: np.ndarray) -> _Shot:
        """The residuals from an initial state x (nx) with their derivatives. Raises StepFailed."""
        dsys, measured, piece = self._dsys, self._measured, self._piece
        X, S = np.eye(dsys.ndx), np.zeros((dsys.ndx, len(self._names)))
        u, errors, by_x, by_theta = np.zeros(dsys.nu), [], [], []
        inputs = self._inputs
        for k, y in enumerate(piece.values):
            for u, step in inputs[k - 1] if k else ():
                # sensitivities to the initial state and the parameters: X <- A X, S <- A S + P
                lin = step.linearize(x, u, self._names)
                x, X, S = lin.x1, lin.A @ X, lin.A @ S + lin.P
            if k < len(inputs) and inputs[k]:
                u, _ = inputs[k][0]  # outputs depend on the inputs that begin to act at this time
            errors.append(measured.errors(dsys, x, u, y))
            slopes = measured.slopes(dsys, x, u, X, S, self._names)
            by_x.append(slopes[0] / self._noise[:, None])
            by_theta.append(slopes[1] / self._noise[:, None])
        table = np.array(errors) / self._noise
        present = ~np.isnan(table)
        rows = present.ravel()
        return _Shot(table[present], np.vstack(by_x)[rows], np.vstack(by_theta)[rows], x, present)

    def _closer(
        self, x: np.ndarray, change: np.ndarray, before: np.floating
    ) -> tuple[np.ndarray, _Shot]:
        """The initial state after a change, and the shot from this state. The change is halved
        until no step fails and the residuals do not grow.
        """
        for halvings in range(MAX_HALVINGS + 1):
            candidate = self._dsys.retract(x, change / 2**halvings)
            try:
                shot = self.shot(candidate)
            except StepFailed:
                if halvings == MAX_HALVINGS:
                    raise
                continue
            if np.linalg.norm(shot.residuals) <= (1 + GROWTH) * before:
                break
        return candidate, shot


def _range(by_state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An orthonormal basis U (r, rank) of the changes of the residuals that the initial state
    causes, and the smallest changes (ndx, rank) of the state that cause them, in natural units.
    """
    sizes = np.linalg.norm(by_state, axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    U, values, directions = np.linalg.svd(by_state / sizes, full_matrices=False)
    rank = int(np.sum(values > STATE_RANK * values[0])) if len(values) else 0
    return U[:, :rank], (directions[:rank] / values[:rank, None]).T / sizes[:, None]
