"""Damped Newton iteration with a tolerance relative to the residual's own terms; `native/newton.c` is its compiled twin.

A row of r(x, u, z) counts as zero when `|r_i| <= TARGET * s_i`, with `s_i = sum_w |dr_i/dw| |w|` over w = (x, u, z): the change of r_i under
a relative perturbation of its arguments, so TARGET is a few units of round-off whatever the physical scale. Unknowns below SMALL max |z| count as that
much, because a row whose own unknowns are all zero, like the rotations of a body that falls, still carries the others' round-off. A row that stops shrinking below
ACCEPT * s_i has met the round-off of its own evaluation and is accepted too. Steps are halved until the largest row decreases relative to the larger
of its sizes before and after: along the Newton direction a row may shrink more slowly than its size.
The last residual is corrected for once more, with the factors at hand and without looking at what is left: rows accepted at TARGET have residuals of one sign, step after step, which
would add up to a drift of the momenta that the integrators conserve (measured: 130 times as much over 1e5 steps of a heavy top).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dgesv, dgetrs

TARGET = 16 * float(np.finfo(float).eps)
ACCEPT = 1e-10
SMALL = 1e-3
MAX_ITERATIONS = 25
MAX_HALVINGS = 12

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
    """Outcome of `newton`: status code, iterations, relative error max_i |r_i| / s_i, largest |r_i|."""

    status: int
    iterations: int
    error: float
    residual: float


def newton(residual: Callable, scale: np.ndarray, z: np.ndarray) -> NewtonResult:
    """Solve r(z) = 0 in place from z (nz); `residual(z)` returns r (nz) and dr/dz (nz, nz), `scale` is the part of s that is fixed."""

    def evaluate(z):
        r, jacobian = residual(z)
        unknowns = np.maximum(np.abs(z), SMALL * np.max(np.abs(z)))
        return r, jacobian, np.maximum(scale + np.abs(jacobian) @ unknowns, 1e-300)

    def relative(r, size):
        with np.errstate(all="ignore"):
            return float(np.max(np.abs(r) / size))

    r, jacobian, size = evaluate(z)
    error = relative(r, size)
    previous, status, iteration, factors, pivots = np.inf, EXHAUSTED, 0, None, None
    for iteration in range(MAX_ITERATIONS + 1):
        if not np.isfinite(error):
            status = NOT_FINITE
            break
        converged = error <= TARGET or (error <= ACCEPT and error > 0.25 * previous)
        if iteration == MAX_ITERATIONS and not converged:
            break
        if converged and iteration:
            dz, failed = dgetrs(factors, pivots, -r)
        else:
            factors, pivots, dz, failed = dgesv(jacobian, -r)
        if converged:
            if not failed:
                z += dz
            status = CONVERGED
            break
        if failed:
            status = SINGULAR
            break
        previous, start, start_size = error, z.copy(), size
        for halvings in range(MAX_HALVINGS + 1):
            t = 0.5**halvings
            z[:] = start + t * dz
            r, jacobian, size = evaluate(z)
            error = relative(r, size)
            if relative(r, np.maximum(start_size, size)) < (1 - 1e-4 * t) * previous or error <= ACCEPT:
                break
        else:
            z[:] = start
            status = STALLED if np.isfinite(error) else NOT_FINITE
            break
    return NewtonResult(status, iteration, error, float(np.max(np.abs(r), initial=0.0)))


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solution of a y = b for a small dense regular a (n, n); raises numpy.linalg.LinAlgError where a is singular."""
    _, _, y, failed = dgesv(a, b)
    if failed:
        raise np.linalg.LinAlgError(f"singular ({len(a)}, {len(a)}) matrix, condition number {np.linalg.cond(a):.1e}")
    return y
