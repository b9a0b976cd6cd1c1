"""Damped simplified Newton iteration with a tolerance relative to the residual's own terms;
`native/newton.h` is its compiled twin.

A row of r(x, u, z) counts as zero when `|r_i| <= TARGET * s_i`, with `s_i = sum_w |dr_i/dw| |w|`
over w = (x, u, z). s_i is the change of r_i under a relative perturbation of its arguments, so
TARGET is a few units of round-off in all units of measurement. If a derivative by x or u is
infinite, only those by z count; a size with an infinite derivative by z is NaN. Two kinds of rows
carry more round-off: a row whose derivatives cancel, like the rotations of a body that falls, has
the round-off of its terms, and a row whose own unknowns are zero has the round-off of the terms
that elimination adds up in it. A patient attempt counts such a row as zero if a new Jacobian does
not shrink it, and as long as it is not larger than TARGET times the sizes of all these `terms`.

The factors of a Jacobian are used again as long as a step with them shrinks the residual at least
by REFRESH; a step that fails with old factors is tried with new ones. Steps are halved until the
largest row decreases relative to its size before, or to the larger of its sizes before and after:
along the Newton direction a row may shrink more slowly than its size. A row that a new Jacobian no
longer shrinks below ACCEPT * s_i has reached the round-off of its own evaluation and is accepted
as well.

If this does not converge, a patient attempt follows, with a further test: a trial is accepted if
the next correction with the same factors is smaller than the one before (Deuflhard's natural
test). This test suits rows whose sizes do not tell their distance from zero, as those of an angle
after many turns.

After the iteration one more correction follows, with the factors at hand and without an evaluation
of the residual. Otherwise rows accepted at TARGET would have residuals of one sign, step after
step, which add up to a drift of the momenta that the integrators conserve (measured: 130 times as
much over 1e5 steps of a heavy top). For the same reason the iteration ends as soon as the rate of
the last step predicts a hundredth of TARGET after that correction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dgesv, dgetrf, dgetrs

LARGEST = float(np.finfo(float).max)
TARGET = 16 * float(np.finfo(float).eps)
ACCEPT = 1e-10
LEAST = 1e-300
"""Size of a row below which numbers lose digits, whatever their unit."""
REFRESH = 0.15
MAX_ITERATIONS = 25
MAX_HALVINGS = 12
MAX_RATIO = 3.0
"""Largest extrapolation of substeps of a composition, as a multiple of the time between the two
before.
"""

STATUS = (
    "CONVERGED",
    "NOT_FINITE",
    "SINGULAR",
    "STALLED",
    "EXHAUSTED",
    "OUTSIDE",
    "HALF_TURN",
    "NO_IMPULSES",
)
CONVERGED, NOT_FINITE, SINGULAR, STALLED, EXHAUSTED, OUTSIDE, HALF_TURN, NO_IMPULSES = range(8)
STARTS = "FROM_ZERO", "FROM_GUESS", "FROM_CLOSE"
FROM_ZERO, FROM_GUESS, FROM_CLOSE = range(3)
"""Where a step starts its search: at zero, at a guess, or at one that is close, with impulses."""
REASONS = {
    NOT_FINITE: "a value is not finite",
    SINGULAR: "the Jacobian is singular",
    STALLED: "no step along the Newton direction decreases the residual",
    EXHAUSTED: "too many iterations",
    OUTSIDE: "the step leaves the domain where the model holds",
    HALF_TURN: "the step ends with half a turn or more in a step, which no step can tell",
    NO_IMPULSES: "no impulses of the contacts were found that keep gaps open with friction in its "
    "cone",
}


@dataclass(frozen=True)
class NewtonResult:
    """Outcome of `newton`: status code, iterations, relative error max_i |r_i| / s_i, largest
    |r_i|.
    """

    status: int
    iterations: int
    error: float
    residual: float


def newton(
    residual: Callable[[np.ndarray], np.ndarray],
    jacobian: Callable[[np.ndarray], np.ndarray],
    scale: np.ndarray,
    r: np.ndarray,
    r_z: np.ndarray,
    z: np.ndarray,
    patient: bool = False,
    terms: Callable[[np.ndarray], np.ndarray] = np.zeros_like,
) -> NewtonResult:
    """Solve r(z) = 0 in place from z (nz), where r and its Jacobian r_z are given; `residual(z)`
    returns r (nz) and `jacobian(z)` r_z (nz, nz), which is kept in `r_z`; `scale` is the part of s
    that is fixed; `patient` has the natural test and drops round-off, by the sizes `terms(z)` of
    all terms.
    """
    equation = _Equation(residual, jacobian, terms, scale, r_z, np.zeros(len(z)), patient)
    size, factors = equation.sizes(z), _Factors(r_z)
    error, rate, fresh, exact, dz = _relative(r, size), 1.0, True, False, z
    status, iteration = EXHAUSTED, 0
    for iteration in range(MAX_ITERATIONS + 1):
        if not np.isfinite(error):
            status = NOT_FINITE
            break
        converged = _has_converged(error, rate, exact)
        if not converged and iteration == MAX_ITERATIONS:
            break
        if not converged and not fresh and rate > REFRESH:
            equation.renew(z)
            if patient:
                equation.drop_round_off(z, r, np.zeros(len(z), bool), factors.terms(dz))
            size, factors = equation.sizes(z), _Factors(r_z)
            error, fresh = _relative(r, size), True
        if converged:
            z += np.zeros(len(z)) if factors.singular else factors.solve(-r)
            status = CONVERGED
            break
        if factors.singular:
            status = SINGULAR
            break
        dz = factors.solve(-r)
        trial = equation.search(z, r, dz, error, size, factors, fresh)
        r, error = trial.r, trial.before
        if not trial.accepted and not fresh:  # the factors are too old
            r, rate = residual(z), np.inf
            continue
        if not trial.accepted:
            status, error = (STALLED if np.isfinite(trial.error) else NOT_FINITE), trial.error
            break
        z[:], exact, fresh = trial.z, fresh, trial.renewed
        if trial.renewed:
            factors = _Factors(r_z)
        size = equation.sizes(z)
        following = _relative(r, size)
        rate, error = following / max(error, LEAST), following
    return NewtonResult(status, iteration, error, float(np.max(np.abs(r), initial=0.0)))


def _has_converged(error: float, rate: float, exact: bool) -> bool:
    """Whether a relative error counts as zero after a step with `exact` or old factors that
    changed it by `rate`.
    """
    settled, foretold = exact and rate > 0.25, error * rate <= 0.01 * TARGET
    return error <= TARGET or (error <= ACCEPT and (settled or foretold))


@dataclass(frozen=True)
class _Trial:
    """Where the search along a direction ended: z and r there, the relative error there and
    `before`, of the rows that count, whether it is accepted, and whether r_z was renewed there.
    """

    z: np.ndarray
    r: np.ndarray
    error: float
    before: float
    accepted: bool
    renewed: bool


@dataclass(frozen=True)
class _Equation:
    """r(z) = 0, its Jacobian as last taken in `r_z`, the part `scale` of s that is fixed, and the
    sizes of rows that were `dropped`, 0 of others.
    """

    residual: Callable[[np.ndarray], np.ndarray]
    jacobian: Callable[[np.ndarray], np.ndarray]
    terms: Callable[[np.ndarray], np.ndarray]
    scale: np.ndarray
    r_z: np.ndarray
    dropped: np.ndarray
    patient: bool

    def renew(self, z: np.ndarray) -> None:
        """Take the Jacobian at z."""
        self.r_z[...] = self.jacobian(z)

    def sizes(self, z: np.ndarray) -> np.ndarray:
        """s at z; NaN for an infinite size, which does not tell the distance of r from zero."""
        with np.errstate(all="ignore"):
            size = self.scale + np.abs(self.r_z) @ np.abs(z)
            size = np.maximum(np.maximum(size, self.dropped), LEAST)
        return np.where(np.isfinite(size), size, np.nan)

    def drop_round_off(
        self, z: np.ndarray, r: np.ndarray, stuck: np.ndarray, eliminated: np.ndarray
    ) -> None:
        """Count rows of r at z as zero if they are round-off of all their terms, or of terms that
        were `eliminated`: rows that are `stuck`, and rows that counted as zero before.
        """
        with np.errstate(all="ignore"):
            terms = self.terms(z)
        terms = np.maximum(*(np.where(np.isfinite(s), s, 0.0) for s in (terms, eliminated)))
        drops = (stuck | (self.dropped > 0)) & (np.abs(r) <= TARGET * terms)
        self.dropped[:] = np.where(drops, terms, 0.0)

    def search(
        self,
        z: np.ndarray,
        start: np.ndarray,
        dz: np.ndarray,
        error: float,
        size: np.ndarray,
        factors: _Factors,
        fresh: bool,
    ) -> _Trial:
        """The longest accepted step among the halved steps from z along dz, or the shortest step;
        r is `start` there, with a relative `error` to rows of `size`. With factors that are not
        `fresh` only the whole step is tried.
        """
        renewed = False
        for halvings in range(MAX_HALVINGS + 1 if fresh else 1):
            t = 0.5**halvings
            trial = z + t * dz
            r, enough = self.residual(trial), (1 - 1e-4 * t) * error
            following = _relative(r, size)
            accepted = following < enough or following <= ACCEPT
            renewed = renewed or (not accepted and fresh)
            if renewed:
                self.renew(trial)
                if self.patient:
                    stuck = np.abs(r) > (1 - (1 - REFRESH) * t) * np.abs(start)
                    self.drop_round_off(trial, r, stuck, factors.terms(dz))
                    size = np.maximum(size, self.dropped)
                    error = _relative(start, size)
                    enough = (1 - 1e-4 * t) * error
                larger = self.sizes(trial)
                following = _relative(r, larger)
                accepted = _relative(r, np.maximum(size, larger)) < enough or following <= ACCEPT
                if self.patient and not accepted and np.isfinite(following):
                    accepted = _is_natural(factors.solve(r), dz, z, trial, t)
            if accepted:
                break
        return _Trial(trial, r, following, error, accepted, renewed)


def _is_natural(
    after: np.ndarray, dz: np.ndarray, z: np.ndarray, trial: np.ndarray, t: float
) -> bool:
    """Whether the correction `after` a step t dz from z to `trial` is smaller than dz."""
    weights = np.maximum(np.abs(z), np.abs(trial))
    weights[weights == 0] = np.inf  # what has not moved
    return _relative(after, weights) < (1 - t / 4) * _relative(dz, weights)


def _relative(r: np.ndarray, size: np.ndarray) -> float:
    """max_i |r_i| / size_i."""
    with np.errstate(all="ignore"):
        error = np.abs(r) / size
    error[np.isinf(error) & np.isfinite(r)] = LARGEST
    return float(np.max(error, initial=0.0))


class _Factors:
    """LU factors of a matrix a (n, n), which is `singular` if it has no inverse or an entry that
    is not finite.
    """

    def __init__(self, a: np.ndarray):
        self.singular = not np.isfinite(a).all()
        if len(a) and not self.singular:
            self._lu, self._pivots, failed = dgetrf(a)
            self.singular = bool(failed)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Solution of a y = b (n)."""
        return dgetrs(self._lu, self._pivots, b)[0] if len(b) else b

    def terms(self, y: np.ndarray) -> np.ndarray:
        """Sizes of the terms that the elimination added up in every row for a solution y (n),
        `|P^T| |L| |U| |y|`.
        """
        lower = np.abs(np.tril(self._lu, -1)) + np.eye(len(y))
        added = lower @ (np.abs(np.triu(self._lu)) @ np.abs(y))
        for k, p in reversed(list(enumerate(self._pivots))):
            added[[k, p]] = added[[p, k]]
        return added


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solution of a y = b for a small dense regular a (n, n); raises numpy.linalg.LinAlgError
    where a is singular.
    """
    _, _, y, failed = dgesv(a, b)
    if failed:
        raise np.linalg.LinAlgError(
            f"singular ({len(a)}, {len(a)}) matrix, condition number {np.linalg.cond(a):.1e}"
        )
    return y
