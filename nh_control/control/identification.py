"""Identification of physical parameters from measured motions. The method is least squares with
multiple shooting over short segments of a motion, with exact derivatives with respect to the
parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from nh_control.control.input_history import NANOSECONDS, Inputs
from nh_control.control.parameter_fit import (
    DELAY,
    MotionSegment,
    NotIdentifiable,
    ParameterFit,
    Undetermined,
)
from nh_control.discrete.system import DiscreteSystem

SEGMENT_S = 0.5
"""Length (s) of the pieces of a motion."""
UNCERTAIN = 0.5
"""Ratio of standard deviation to value above which a parameter counts as undetermined."""
ALIKE = 0.98
"""Correlation of two parameters above which the data hardly distinguish them."""
EXACT: dict[str, Any] = {"xtol": 1e-10, "ftol": 1e-13, "gtol": 1e-14, "max_nfev": 100}
ROUGH: dict[str, Any] = {"xtol": 1e-6, "ftol": 1e-8, "gtol": 1e-12, "max_nfev": 20}
"""Stopping criteria. The rough criteria are used until the noise is known. They are also used if
the delay is unknown, because the result of a step changes slightly with the time at which the step
is divided.
"""
REWEIGHTINGS, SAME_NOISE, LEAST_NOISE, FEWEST = 4, 0.05, 1e-9, 50
"""Maximum number of fits with a new noise estimate; relative change of the noise below which no
more fits are made; minimum noise, as a fraction of the first estimate; and minimum number of
residuals of a quantity, minus the number of fitted values, from which the noise of the quantity is
estimated.
"""


@dataclass(frozen=True)
class Residuals:
    """Errors (n, m) of the measured quantities `names` at times (n, in s). An error is NaN if the
    quantity was not measured at that time. `pieces` (k) contains the first row of each piece of
    the motion.
    """

    names: tuple[str, ...]
    times: np.ndarray
    values: np.ndarray
    pieces: np.ndarray


@dataclass(frozen=True)
class Identification:
    """The identified values (k) of the parameters `names`, with their `covariance` (k, k). The
    search started from the values `start` (k).

    The root mean square of all residuals (in the units of the measured quantities) is `rms_before`
    at the initial values and `rms` at the identified values. `count` is the number of residuals,
    and `noise` contains their standard deviation for each measured quantity. `correlation` is the
    correlation of successive residuals, which enlarges the covariance. `delay` is the delay of the
    inputs and its standard deviation, in s, or None if the delay was known.

    The `undetermined` parameters keep their values, because the data contain no information about
    them. The `warnings` explain why, and which parameters the data hardly distinguish. The `notes`
    explain how the data were read.
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
    noise: Mapping[str, float]
    residuals: Residuals
    undetermined: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations (k) of the values."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def parameters(self) -> dict[str, float]:
        """The values by name."""
        return dict(zip(self.names, self.values.tolist()))

    def __str__(self) -> str:
        """The values with their standard deviations, and the warnings, one per line."""
        rows = [
            f"{name} = {value:.6g} +- {deviation:.2g}"
            for name, value, deviation in zip(self.names, self.values, self.deviations)
        ]
        return "\n".join([*rows, *(f"warning: {text}" for text in self.warnings)])


def segments(
    times_ns: np.ndarray,
    values: np.ndarray,
    inputs: Sequence[Inputs],
    length_s: float = SEGMENT_S,
) -> list[MotionSegment]:
    """Divide the values (n, ny) measured at times (n), and the n - 1 inputs between these times,
    into pieces of about `length_s`. Raises ValueError if no piece has three rows.
    """
    if len(values) < 3:
        raise ValueError(f"{len(values)} measurements are too few, expected at least 3")
    # for each row, the index of its piece
    ends = (times_ns - times_ns[0]) // round(length_s * NANOSECONDS)
    pieces = []
    for rows in np.split(np.arange(len(values)), np.flatnonzero(np.diff(ends)) + 1):
        if len(rows) >= 3:
            pieces.append(MotionSegment(times_ns[rows], values[rows], inputs[rows[0] : rows[-1]]))
    if not pieces:
        raise ValueError(
            f"no piece of {length_s:g} s contains three measurements; use longer pieces"
        )
    return pieces


def identify(
    dsys: DiscreteSystem,
    names: Sequence[str],
    pieces: Sequence[MotionSegment] | Callable[[float], Sequence[MotionSegment]],
    measured: Sequence[str] | None = None,
    state: np.ndarray | None = None,
) -> Identification:
    """Estimate the parameters theta and the initial states x_s of all pieces. The estimates
    minimize the sum of `|local(c_j(x_s, theta), y_j) / sigma|^2` over the measured values y_j.

    `measured` names the measured quantities, by default the coordinates. The noise sigma of each
    quantity is estimated from the residuals. `state` (nx) is the initial guess of the quantities
    that are not measured.

    The initial states are eliminated, `J = J_theta - J_x J_x^+ J_theta` (variable projection,
    Golub and Pereyra 1973), with the exact sensitivities `X <- A X, S <- A S + P` of the steps.
    The derivatives of `local` are approximated by those of a difference; the error has the size of
    the residuals. The covariance is `s^2 (J^T J)^{-1} (1 + r) / (1 - r)`. Here s^2 is the mean
    square of the residuals, and r >= 0 is the correlation of successive residuals, as for a
    first-order autoregressive process. The covariance does not include the bias that a wrong model
    causes.

    If the delay of the inputs is not known, `pieces` is a function of the delay in s, and the
    delay is estimated as well. Without this estimate, a delay of 1 ms would change the estimated
    masses.

    Parameters that have no effect, or have an effect only in combination with others, keep their
    values, and a warning names them. Raises NotIdentifiable if no parameter remains, ValueError
    for an unknown parameter or too few measurements, and StepFailed if a step fails with the
    current parameters.
    """
    remaining, undetermined, warnings = tuple(names), list[str](), list[str]()
    # remove the undetermined parameters one after the other
    while True:
        fit = ParameterFit(dsys, remaining, pieces, measured, state)
        before, jacobian = fit.linearized(fit.start)
        errors_before = _rms(fit.errors(fit.start))
        # test first at the initial values, then at the optimum, where other parameters may be
        # undetermined
        hidden = fit.undetermined(jacobian)
        if hidden is None:
            optimum = _optimum(fit)
            hidden = fit.undetermined(fit.linearized(optimum)[1])
        if hidden is None:
            break
        warnings.append(_of_undetermined(hidden, dsys))
        if hidden.name == DELAY and callable(pieces):
            pieces = pieces(0.0)
            continue
        undetermined.append(hidden.name)
        remaining = tuple(name for name in remaining if name != hidden.name)
        if not remaining:
            raise NotIdentifiable(f"{dsys}: " + "; ".join(warnings))
    residuals, jacobian = fit.linearized(optimum)
    # degrees of freedom of the residuals
    free = len(residuals) - len(optimum) - fit.n_states(optimum)
    if free <= 0:
        raise ValueError(f"{len(residuals)} measured numbers are too few for {list(remaining)}")
    # covariance s^2 (J^T J)^{-1} (1 + r) / (1 - r), in the units of the parameters
    r = fit.correlation(optimum)
    size = (residuals @ residuals) / free * (1 + r) / (1 - r)
    covariance = np.linalg.inv(jacobian.T @ jacobian) * size * np.outer(fit.scale, fit.scale)
    values, k = fit.scale * optimum, len(remaining)
    errors = fit.errors(optimum)
    outcome = Identification(
        fit.names,
        (fit.scale * fit.start)[:k],
        values[:k],
        covariance[:k, :k],
        errors_before,
        _rms(errors),
        len(residuals),
        r,
        (float(values[-1]), float(np.sqrt(covariance[-1, -1]))) if fit.is_delayed else None,
        dict(zip(fit.measured.error_names, fit.estimated_noise(optimum)[0].tolist())),
        _residuals(fit, errors),
        tuple(undetermined),
    )
    return replace(outcome, warnings=(*warnings, *_uncertain(outcome), *_alike(outcome)))


def _optimum(fit: ParameterFit) -> np.ndarray:
    """The scaled parameters that minimize the residuals relative to their estimated noise."""
    at, least = fit.start, LEAST_NOISE * fit.noise
    # iterative reweighting: fit, estimate the noise sigma of each quantity, and repeat the fit
    for _ in range(REWEIGHTINGS):
        at = _least_squares(fit, at, ROUGH)
        noise, free = fit.estimated_noise(at)
        ratio = np.maximum(noise, least) / fit.noise
        if free.min() < FEWEST or np.abs(ratio / ratio.mean() - 1).max() <= SAME_NOISE:
            break
        fit.set_noise(np.maximum(noise, least))
    return at if fit.is_delayed else _least_squares(fit, at, EXACT)


def _least_squares(fit: ParameterFit, at: np.ndarray, tolerances: dict[str, Any]) -> np.ndarray:
    return least_squares(fit.residuals, at, fit.jacobian, bounds=fit.bounds(), **tolerances).x


def _residuals(fit: ParameterFit, errors: Sequence[np.ndarray]) -> Residuals:
    pieces = fit.at_delay(0.0)
    times = np.concatenate([piece.times_ns for piece in pieces])
    starts = np.cumsum([0, *(len(piece.values) for piece in pieces)])[:-1]
    return Residuals(
        fit.measured.error_names,
        (times - times[0]) / NANOSECONDS,
        np.concatenate(errors),
        starts,
    )


# Warnings about undetermined parameters ----------------------------------------------------------


def _of_undetermined(hidden: Undetermined, dsys: DiscreteSystem) -> str:
    """The warning about a parameter that the data do not determine."""
    known = dict(zip(dsys.system.parameter_names, dsys.system.parameter_values))
    is_known = hidden.name in known
    value = f"keeps the value {known[hidden.name]:.6g}" if is_known else "is assumed to be zero"
    if not hidden.together:
        return (
            f"{hidden.name} has no effect on this motion and {value}; leave it out, or record a "
            "motion that depends on it"
        )
    *others, last = hidden.together
    which = ""
    if len(hidden.together) == 2 and DELAY not in hidden.together:
        which = f", near these values {_invariant_product(hidden.together, hidden.direction)}"
    return (
        f"the data do not determine {', '.join(others)} and {last} separately, but only a "
        f"combination of them{which}; {hidden.name} {value}, which determines the others. Measure "
        "or weigh one of them, or leave it out"
    )


def _invariant_product(names: Sequence[str], direction: Sequence[float]) -> str:
    """The product of powers of two parameters that is constant along a direction of relative
    changes: `a^1 b^e` with `d_a + e d_b = 0`.
    """
    power = -direction[0] / direction[1]
    return f"{names[0]} * {names[1]}^{power:.3g}"


def _uncertain(outcome: Identification) -> list[str]:
    return [
        f"noise hides {name} = {value:.3g} +- {deviation:.2g}; leave it out, or record a longer "
        "or more dynamic motion"
        for name, value, deviation in zip(outcome.names, outcome.values, outcome.deviations)
        if deviation > UNCERTAIN * abs(value)
    ]


def _alike(outcome: Identification) -> list[str]:
    """Warnings about pairs of parameters that the data hardly distinguish."""
    out, d = [], outcome.deviations
    sizes = np.where(outcome.values == 0, 1.0, outcome.values)
    relative = outcome.covariance / np.outer(sizes, sizes)
    for i, a in enumerate(outcome.names):
        for j, b in enumerate(outcome.names[:i]):
            correlation = outcome.covariance[i, j] / (d[i] * d[j])
            if abs(correlation) < ALIKE:
                continue
            # the exponent e of the least uncertain product b * a^e
            power = -relative[i, j] / relative[i, i]
            share = np.sqrt(max(0.0, relative[j, j] - relative[i, j] ** 2 / relative[i, i]))
            out.append(
                f"the data hardly distinguish {b} and {a} (correlation {correlation:.4f}): "
                f"{b} * {a}^{power:.3g} is known to {100 * share:.2g} %, {b} alone to "
                f"{100 * np.sqrt(relative[j, j]):.2g} % and {a} to "
                f"{100 * np.sqrt(relative[i, i]):.2g} %"
            )
    return out


def _rms(errors: Sequence[np.ndarray]) -> float:
    return float(np.sqrt(np.nanmean(np.concatenate(errors) ** 2)))
