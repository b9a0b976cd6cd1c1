"""How a step is solved: the damped simplified Newton iteration of `native/newton.h`, with a
tolerance relative to the residual's own terms.

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
along the Newton direction a row may shrink more slowly than its size. A row below ACCEPT * s_i
that a step with a new Jacobian leaves above a quarter of the least error so far has reached the
round-off of its own evaluation and is accepted as well. Comparing it with the error before that
step alone would not do: round-off may raise it with old factors and shrink it with new ones, in
turn, without end. MAX_ITERATIONS limits the way to ACCEPT; below it, few steps are left.

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

import numpy as np
from scipy.linalg import qr
from scipy.linalg.lapack import dgesv

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


def independent_rows(a: np.ndarray, redundant: int) -> list[int]:
    """The n - redundant rows of a (n, n) that QR factorization with pivoting takes first."""
    _, _, pivots = qr(a.T, pivoting=True)
    return sorted(int(i) for i in pivots[: len(a) - redundant])


def solve(a: np.ndarray, b: np.ndarray, redundant: int = 0) -> np.ndarray:
    """Solution of a y = b for a small dense a (n, n) of rank n - redundant; of several solutions
    that with the least norm. Raises numpy.linalg.LinAlgError where a regular one is singular.
    """
    if redundant:
        u, values, v = np.linalg.svd(a)
        k = len(a) - redundant
        return v[:k].T @ ((u[:, :k].T @ b).T / values[:k]).T
    _, _, y, failed = dgesv(a, b)
    if failed:
        raise np.linalg.LinAlgError(
            f"singular ({len(a)}, {len(a)}) matrix, condition number {np.linalg.cond(a):.1e}"
        )
    return y
