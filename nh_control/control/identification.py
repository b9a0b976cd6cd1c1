"""Identification of physical parameters from measured configurations: least squares by multiple
shooting over short segments of a motion, with exact derivatives by the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from nh_control.control.input_history import NANOSECONDS, Inputs
from nh_control.control.parameter_fit import MotionSegment, NotIdentifiable, ParameterFit
from nh_control.discrete.system import DiscreteSystem

SEGMENT_S = 0.5
"""Length (s) of the pieces of a motion."""
UNCERTAIN = 0.5
"""Ratio of standard deviation and value above which a parameter is not determined."""
EXACT: dict[str, Any] = {"xtol": 1e-12, "ftol": 1e-14, "gtol": 1e-14, "max_nfev": 100}
ROUGH: dict[str, Any] = {"xtol": 1e-6, "ftol": 1e-8, "gtol": 1e-12, "max_nfev": 20}
"""Stopping criteria. They are rougher with an unknown delay, because a step that is divided at
another time differs slightly.
"""


@dataclass(frozen=True)
class Identification:
    """Values (k) of the parameters `names` with their `covariance` (k, k), found from the values
    `start` (k). The root mean square of the residuals (m, rad) is `rms_before` at the start and
    `rms` at the result; there are `count` residuals. `correlation` is the correlation of
    successive residuals, which enlarges the covariance. `delay` is the delay of the inputs with
    its standard deviation, in s, None if it was given.
    """

    names: tuple[str, ...]
    start: np.ndarray
    values: np.ndarray
    covariance: np.ndarray
    rms_before: float
    rms: float
    count: int
    correlation: float
    delay: tuple[float, float] | None

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations (k) of the values."""
        return np.sqrt(np.diag(self.covariance))


def segments(
    dsys: DiscreteSystem,
    times_ns: np.ndarray,
    q: np.ndarray,
    inputs: Sequence[Inputs],
    length_s: float = SEGMENT_S,
) -> list[MotionSegment]:
    """Pieces of about `length_s` of configurations q (n, nq) measured at times (n), with the
    inputs (n - 1) between them. Raises ValueError if no piece has three configurations.
    """
    if len(q) < 3:
        raise ValueError(f"{len(q)} measurements are too few")
    ends = (times_ns - times_ns[0]) // round(length_s * NANOSECONDS)
    pieces = []
    for rows in np.split(np.arange(len(q)), np.flatnonzero(np.diff(ends)) + 1):
        if len(rows) < 3:
            continue
        first, last = rows[0], rows[-1]
        elapsed_s = (times_ns[first + 1] - times_ns[first]) / NANOSECONDS
        velocity = dsys.system.space.velocity(q[first], q[first + 1]) / elapsed_s
        pieces.append(MotionSegment(q[rows], inputs[first:last], velocity))
    if not pieces:
        raise ValueError(f"no piece of {length_s:g} s has three measurements; use longer ones")
    return pieces


def identify(
    dsys: DiscreteSystem,
    names: Sequence[str],
    pieces: Sequence[MotionSegment] | Callable[[float], Sequence[MotionSegment]],
) -> Identification:
    """Parameters p and initial states x_s of all pieces that minimize the sum of
    `|local(q_j(x_s, p), y_j)|^2` over their measured configurations y_j, with equal noise in all
    components.

    The initial states are eliminated, `J = J_p - J_x J_x^+ J_p` (variable projection, Golub and
    Pereyra 1973), with the exact sensitivities `X <- A X, S <- A S + P` of the steps; the
    derivatives of `local` are those of a difference, up to terms of the size of the residuals. The
    covariance is `s^2 (J^T J)^{-1} (1 + r) / (1 - r)`, with the mean square s^2 of the residuals
    and the correlation r >= 0 of a residual with the next one, as for a first-order autoregressive
    process. It does not include the bias of a wrong model.

    If the delay of the inputs is not known, `pieces` is a function of the delay in s, and the
    delay is estimated as well: otherwise a delay of 1 ms would change the estimated masses. Raises
    NotIdentifiable, ValueError for an unknown parameter or too few measurements, and StepFailed if
    the model cannot follow with its present parameters.
    """
    fit = ParameterFit(dsys, tuple(names), pieces)
    before, jacobian = fit.linearized(fit.start)
    fit.require_determined(jacobian)
    tolerances = ROUGH if fit.is_delayed else EXACT
    optimum = least_squares(
        fit.residuals, fit.start, fit.jacobian, bounds=fit.bounds(), **tolerances
    ).x
    residuals, jacobian = fit.linearized(optimum)
    fit.require_determined(jacobian)
    free = len(residuals) - len(optimum) - fit.n_states
    if free <= 0:
        raise ValueError(f"{len(residuals)} measured numbers are too few for {list(names)}")
    r = fit.correlation(optimum)
    size = (residuals @ residuals) / free * (1 + r) / (1 - r)
    covariance = np.linalg.inv(jacobian.T @ jacobian) * size * np.outer(fit.scale, fit.scale)
    values, k = fit.scale * optimum, len(names)
    outcome = Identification(
        fit.names,
        (fit.scale * fit.start)[:k],
        values[:k],
        covariance[:k, :k],
        _rms(before),
        _rms(residuals),
        len(residuals),
        r,
        (float(values[-1]), float(np.sqrt(covariance[-1, -1]))) if fit.is_delayed else None,
    )
    _require_certain(outcome)
    return outcome


def _require_certain(outcome: Identification) -> None:
    uncertain = outcome.deviations > UNCERTAIN * np.abs(outcome.values)
    if uncertain.any():
        hidden = [
            f"{name} = {value:.3g} +- {deviation:.2g}"
            for name, value, deviation, is_wide in zip(
                outcome.names, outcome.values, outcome.deviations, uncertain
            )
            if is_wide
        ]
        raise NotIdentifiable(
            f"noise hides {', '.join(hidden)}; leave out, or record a longer or livelier motion"
        )


def _rms(residuals: np.ndarray) -> float:
    return float(np.sqrt(np.mean(residuals**2)))
