"""Constants and statuses for the damped simplified Newton iteration in `native/newton.h`, which
solves a step. The tolerance is relative to the terms of the residual.

A row of r(x, u, z) counts as zero if `|r_i| <= TOLERANCE * s_i` with `s_i = sum_w |dr_i/dw| |w|`
over w = (x, u, z). s_i is the change of r_i under a relative perturbation of its arguments, so
TOLERANCE amounts to a few units of round-off, whatever the units of measurement. If a derivative
with respect to x or u is infinite, only derivatives with respect to z count. If a derivative with
respect to z is infinite, the size is NaN. Two kinds of rows have more round-off. A row with
derivatives that cancel, such as the rotation rows of a falling body, has the round-off of its
terms. A row with unknowns that are zero has the round-off of the terms that elimination adds to
it. A patient attempt counts such a row as zero if a new Jacobian does not reduce the row and if
the row is not larger than TOLERANCE times the sizes of all these `terms`.

The factors of a Jacobian are reused until new factors would save more time than they cost. For
generated functions, new factors cost as much as three Newton steps with old factors, each of which
reduces the error by the last rate. A Newton step that fails with old factors is repeated with new
ones. The sizes s_i follow the unknowns until the error is below CLOSE. Newton steps are halved
until the largest row decreases relative to its previous size, or to the larger of its previous and
its new size, because a row may decrease more slowly than its size along the Newton direction. A
row below ACCEPT * s_i is also accepted if a Newton step with a new Jacobian leaves it above a
quarter of the smallest error so far, because it has then reached the round-off of its evaluation.
A comparison with the error before that step is not sufficient, since round-off may alternately
increase the error with old factors and reduce it with new ones indefinitely. MAX_ITERATIONS limits
the iterations until ACCEPT is reached; only a few more follow.

If this iteration does not converge, a patient attempt follows with an additional test. A trial is
accepted if the next correction with the same factors is smaller than the previous one (Deuflhard's
natural test). This test is for rows with sizes that do not measure the distance from zero, such as
rows for an angle after many turns.

After the iteration, one more correction follows, with the same factors and without evaluating the
residual. Without this correction, rows accepted at TOLERANCE would have residuals of the same sign
in every time step. These would add up to a drift in the momenta that the integrators conserve (130
times as large over 1e5 steps of a heavy top). For the same reason, the iteration stops as soon as
the last rate predicts an error of a hundredth of TOLERANCE after that correction.
"""

from __future__ import annotations

import numpy as np

from nh_control.numerics.independent_columns import independent_columns

TOLERANCE = 16 * float(np.finfo(float).eps)
ACCEPT = 1e-10
LEAST = 1e-300
"""Size of a row below which numbers lose digits, whatever the unit."""
REFRESH = 0.15
"""Maximum fraction of a row that should remain after a full Newton step. If more remains, a
patient attempt checks whether the row consists of round-off.
"""
CLOSE = 1e-3
"""Error below which a correction does not change the sizes of the rows."""
MAX_ITERATIONS = 25
MAX_HALVINGS = 12
MAX_RATIO = 3.0
"""Maximum extrapolation between substeps of a composition, as a multiple of the time between the
two previous substeps.
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
STARTS = "FROM_ZERO", "FROM_GUESS", "FROM_CLOSE", "FROM_LAST_STEPS"
FROM_ZERO, FROM_GUESS, FROM_CLOSE, FROM_LAST_STEPS = range(4)
"""Initial guesses for a step: zero, a given guess, a close guess that includes impulses, or an
extrapolation from the last steps, for which the sizes of the residual's rows are computed anew.
"""
REASONS = {
    NOT_FINITE: "a value is not finite",
    SINGULAR: "the Jacobian is singular",
    STALLED: "no step along the Newton direction decreases the residual",
    EXHAUSTED: "too many iterations",
    OUTSIDE: "the step leaves the domain in which the model is valid",
    HALF_TURN: "the step rotates a body or a direction by half a turn or more, which is ambiguous",
    NO_IMPULSES: "no contact impulses were found that keep gaps open, with friction inside its "
    "cone",
}


def independent_rows(a: np.ndarray, redundant: int) -> list[int]:
    """The first n - redundant rows of a (n, n) that QR factorization with pivoting selects."""
    return sorted(independent_columns(a.T, len(a) - redundant))


def solve(a: np.ndarray, b: np.ndarray, redundant: int = 0) -> np.ndarray:
    """The minimum-norm solution y of a y = b, for a small dense matrix a (n, n) of rank n -
    redundant. Raises numpy.linalg.LinAlgError if a is singular and `redundant` is 0.
    """
    from scipy.linalg.lapack import dgesv  # slow to import

    if redundant:
        # pseudoinverse of the given rank: V_k S_k^{-1} U_k^T b
        u, values, v = np.linalg.svd(a)
        k = len(a) - redundant
        return v[:k].T @ ((u[:, :k].T @ b).T / values[:k]).T
    # LU with partial pivoting
    _, _, y, failed = dgesv(a, b)
    if failed:
        raise np.linalg.LinAlgError(
            f"singular ({len(a)}, {len(a)}) matrix, condition number {np.linalg.cond(a):.1e}"
        )
    return y
