"""Damped simplified Newton iteration with a tolerance relative to the residual's own terms;
`native/newton.c` is its compiled twin.

A row of r(x, u, z) counts as zero when `|r_i| <= TARGET * s_i`, with `s_i = sum_w |dr_i/dw| |w|`
over w = (x, u, z): the change of r_i under a relative perturbation of its arguments, so TARGET is
a few units of round-off whatever the physical scale. Unknowns below SMALL max |z| count as that
much, because a row whose own unknowns are all zero, like the rotations of a body that falls, still
carries the others' round-off. Where a slope by x or u is infinite it says nothing of r's size, and
those by z do alone; an infinite one by z is no number.

The factors of a Jacobian are used again as long as a step with them shrinks the residual at least
by REFRESH; a step that fails with old factors is tried with new ones. Steps are halved until the
largest row decreases relative to its size before, or to the larger of its sizes before and after:
along the Newton direction a row may shrink more slowly than its size. A row that a new Jacobian no
longer shrinks below ACCEPT * s_i has met the round-off of its own evaluation and is accepted too.

Where this does not lead to the end, a step is tried once more with a further test: that the next
correction with the same factors would be smaller than the one before (Deuflhard's natural test).
It does not mind rows whose sizes say nothing of how far they are from zero, as those of an angle
after many turns.

The last residual is corrected for once more, with the factors at hand and without looking at what
is left: rows accepted at TARGET have residuals of one sign, step after step, which would add up to
a drift of the momenta that the integrators conserve (measured: 130 times as much over 1e5 steps of
a heavy top). For the same reason the iteration ends where the rate of the last step foretells a
hundredth of TARGET after that correction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dgesv, dgetrf, dgetrs

TARGET = 16 * float(np.finfo(float).eps)
ACCEPT = 1e-10
SMALL = 1e-3
REFRESH = 0.15
MAX_ITERATIONS = 25
MAX_HALVINGS = 12
MAX_RATIO = 3.0
"""How far substeps of a composition extrapolate, as a multiple of the time between two before."""

STATUS = ("CONVERGED", "NOT_FINITE", "SINGULAR", "STALLED", "EXHAUSTED", "OUTSIDE")
CONVERGED, NOT_FINITE, SINGULAR, STALLED, EXHAUSTED, OUTSIDE = range(6)
REASONS = {
    NOT_FINITE: "a value is not finite",
    SINGULAR: "the Jacobian is singular",
    STALLED: "no step along the Newton direction decreases the residual",
    EXHAUSTED: "too many iterations",
    OUTSIDE: "the step leaves the domain where the model holds",
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
) -> NewtonResult:
    """Solve r(z) = 0 in place from z (nz), where r and its Jacobian r_z are given; `residual(z)`
    returns r (nz) and `jacobian(z)` r_z (nz, nz), which is kept in `r_z`; `scale` is the part of s
    that is fixed; `patient` has the natural test."""

    def unknowns(z: np.ndarray) -> np.ndarray:
        return np.maximum(np.abs(z), SMALL * np.max(np.abs(z), initial=0.0))

    def sizes(z: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            size = np.maximum(scale + np.abs(r_z) @ unknowns(z), 1e-300)
        return np.where(np.isfinite(size), size, np.nan)

    def relative(r: np.ndarray, size: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            return float(np.max(np.abs(r) / size, initial=0.0))

    size = sizes(z)
    factors, pivots, singular = _factors(r_z)
    error, rate, fresh, exact = relative(r, size), 1.0, True, False
    status, iteration = EXHAUSTED, 0
    for iteration in range(MAX_ITERATIONS + 1):
        if not np.isfinite(error):
            status = NOT_FINITE
            break
        settled, foretold = exact and rate > 0.25, error * rate <= 0.01 * TARGET
        converged = error <= TARGET or (error <= ACCEPT and (settled or foretold))
        if not converged and iteration == MAX_ITERATIONS:
            break
        if not converged and not fresh and rate > REFRESH:
            r_z[...] = jacobian(z)
            size = sizes(z)
            factors, pivots, singular = _factors(r_z)
            error, fresh = relative(r, size), True
        if singular and not converged:
            status = SINGULAR
            break
        dz = np.zeros(len(z)) if singular or not len(z) else dgetrs(factors, pivots, -r)[0]
        if converged:
            z += dz
            status = CONVERGED
            break
        renewed = False
        for halvings in range(MAX_HALVINGS + 1 if fresh else 1):
            t = 0.5**halvings
            trial = z + t * dz
            r, enough = residual(trial), (1 - 1e-4 * t) * error
            following = relative(r, size)
            accepted = following < enough or following <= ACCEPT
            renewed = renewed or (not accepted and fresh)
            if renewed:
                r_z[...] = jacobian(trial)
                larger = sizes(trial)
                following = relative(r, larger)
                accepted = relative(r, np.maximum(size, larger)) < enough or following <= ACCEPT
                if patient and not accepted and np.isfinite(following):
                    after = dgetrs(factors, pivots, r)[0]
                    weights = unknowns(np.maximum(np.abs(z), np.abs(trial)))
                    accepted = relative(after, weights) < (1 - t / 4) * relative(dz, weights)
            if accepted:
                break
        else:
            if fresh:
                status, error = (STALLED if np.isfinite(following) else NOT_FINITE), following
                break
            r, rate = residual(z), np.inf
            continue
        z[:], exact, fresh = trial, fresh, renewed
        if renewed:
            factors, pivots, singular = _factors(r_z)
        size = sizes(z)
        following = relative(r, size)
        rate, error = following / error, following
    return NewtonResult(status, iteration, error, float(np.max(np.abs(r), initial=0.0)))


def _factors(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    if not len(a):
        return a, a, 0
    if not np.isfinite(a).all():
        return a, a, 1
    return dgetrf(a)


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
