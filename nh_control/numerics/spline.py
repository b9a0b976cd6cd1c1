"""Piecewise polynomial functions of one variable, for numbers and for expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from scipy.interpolate import BPoly, BSpline, PPoly

JUMP = 1e-9
"""A curve counts as discontinuous if its value or slope jumps at a knot by more than this relative
amount.
"""


class Spline:
    """A piecewise polynomial `S(x)` through points (n) with two continuous derivatives.

    `slopes` and `curvatures` (n) are S' and S'' at the points, or NaN if they are free, which is
    the default. At an end point with neither, the curvature is 0. Therefore, S is the natural
    cubic spline if no slopes or curvatures are given, and the clamped spline if slopes are given
    at both ends. If cubic polynomials cannot satisfy all data, the pieces get terms of degree 4
    and 5 with the smallest sum of squares, in units of the piece lengths. `Spline.of` converts any
    curve from `scipy.interpolate`. Beyond each end point, S continues as the parabola with the
    value, slope and curvature at that point.

    `S(x)` takes numbers, arrays and CasADi expressions, which it maps elementwise. All derivatives
    are exact. The third and higher derivatives jump at the knots, where they equal those of the
    piece to the right. Raises ValueError for fewer than two points, for values that are not
    finite, and for x that does not increase.
    """

    knots: np.ndarray
    """The knots x (n)."""
    coefficients: np.ndarray
    """The polynomials (n + 1, degree + 1) in ascending powers of `x - center`: before the first
    knot, between knots, and after the last. The center of a piece is the knot before it; the
    center of the first piece is the first knot.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        slopes: ArrayLike | None = None,
        curvatures: ArrayLike | None = None,
    ):
        x = np.asarray(x, dtype=float)
        if x.ndim != 1 or len(x) < 2 or not (np.diff(x) > 0).all() or not np.isfinite(x).all():
            raise ValueError(
                f"Spline: x must be two or more finite numbers that increase, got {x.tolist()}"
            )
        free = np.full(len(x), np.nan)
        columns = (free if v is None else v for v in (slopes, curvatures))
        data = [np.asarray(value, dtype=float) for value in (y, *columns)]
        if any(value.shape != x.shape for value in data):
            raise ValueError(
                f"Spline: y, slopes and curvatures must have one number for each of the {len(x)} "
                f"points, got shapes {[value.shape for value in data]}"
            )
        if not np.isfinite(data[0]).all() or any(np.isinf(value).any() for value in data):
            raise ValueError(
                "Spline: y must be finite; slopes and curvatures must be finite or NaN (free)"
            )
        from scipy.interpolate import BPoly  # slow to import

        derivatives = _nearly_cubic(x, np.stack(data, axis=1))
        self.knots, self.coefficients = _pieces(BPoly.from_derivatives(x, derivatives))

    @classmethod
    def of(cls, curve: PPoly | BPoly | BSpline) -> Spline:
        """The spline that equals a SciPy curve, such as `CubicSpline(x, y)` or
        `make_interp_spline`, between its end points and continues as a parabola beyond them.

        Raises ValueError for a curve with several components, and for a curve with a value or
        slope that jumps at a knot, because there are no derivatives there.
        """
        spline = cls.__new__(cls)
        spline.knots, spline.coefficients = _pieces(curve)
        return spline

    def __call__(self, x: Any) -> Any:
        """S at x: an expression for an expression, else an array with the shape of x."""
        if isinstance(x, (ca.SX, ca.MX, ca.DM)):
            pieces = [*zip(self.centers, *self.coefficients.T)]
            center, *coefficients = _select(x, self.knots, pieces)
        else:
            x = np.asarray(x, dtype=float)
            piece = np.searchsorted(self.knots, x, side="right")
            center, coefficients = self.centers[piece], [c[piece] for c in self.coefficients.T]
        value: Any = 0.0
        for c in reversed(coefficients):  # Horner's scheme
            value = c + (x - center) * value
        return value

    def __repr__(self) -> str:
        degree = self.coefficients.shape[1] - 1
        ends = f"from {self.knots[0]:g} to {self.knots[-1]:g}"
        return f"Spline({len(self.knots)} knots {ends}, degree {degree})"

    def derivative(self, order: int = 1) -> Spline:
        """The derivative of the given order, as a spline."""
        coefficients = self.coefficients
        for _ in range(order):
            degrees = np.arange(1, coefficients.shape[1])
            coefficients = coefficients[:, 1:] * degrees
        return self._like(coefficients)

    def antiderivative(self) -> Spline:
        """The integral from the first knot, as a spline."""
        degrees = np.arange(1, self.coefficients.shape[1] + 1)
        integral = np.hstack([np.zeros((len(self.knots) + 1, 1)), self.coefficients / degrees])
        # constants of integration: sums of the integrals over all previous pieces
        powers = np.diff(self.knots)[:, None] ** np.arange(integral.shape[1])
        integral[2:, 0] = np.cumsum(np.sum(integral[1:-1] * powers, axis=1))
        return self._like(integral)

    @property
    def centers(self) -> np.ndarray:
        """The centers (n + 1) of the polynomials."""
        return np.concatenate([self.knots[:1], self.knots])

    def _like(self, coefficients: np.ndarray) -> Spline:
        spline = Spline.__new__(Spline)
        spline.knots, spline.coefficients = self.knots, coefficients
        return spline


def _nearly_cubic(x: np.ndarray, data: np.ndarray) -> np.ndarray:
    """The data (n, 3) with the value, slope and curvature at every point. NaN is replaced by
    numbers that minimize the coefficients of degree 4 and 5 in units of the piece lengths.
    """
    from scipy.interpolate import BPoly, PPoly

    data, n = data.copy(), len(x)
    for end in (0, -1):
        # natural end point: S'' = 0
        if np.isnan(data[end, 1:]).all():
            data[end, 2] = 0.0
    # coefficients (2, 6) of u^5 and u^4 on 0 <= u <= 1 for unit data at both ends
    unit = BPoly.from_derivatives([0, 1], np.eye(6).reshape(2, 3, 6))
    high = PPoly.from_bernstein_basis(unit).c[:2, 0]
    rows = np.zeros((n - 1, 2, 3 * n))
    for i, h in enumerate(np.diff(x)):
        rows[i, :, 3 * i : 3 * i + 6] = high * np.tile([1.0, h, h**2], 2)
    # least squares for the free data: min |M_free d_free + M_known d_known|^2
    matrix, values = rows.reshape(-1, 3 * n), data.ravel()
    free = np.isnan(values)
    size = np.abs(matrix[:, free]).max(axis=0, initial=0.0)
    known = matrix[:, ~free] @ values[~free]
    values[free] = np.linalg.lstsq(matrix[:, free] / size, -known, rcond=None)[0] / size
    return values.reshape(n, 3)


def _pieces(curve: PPoly | BPoly | BSpline) -> tuple[np.ndarray, np.ndarray]:
    """The knots and coefficients of the `Spline` that equals a curve."""
    from scipy.interpolate import BPoly, BSpline, PPoly

    if isinstance(curve, BSpline):
        ends = curve.t[curve.k], curve.t[-curve.k - 1]
        curve = PPoly.from_spline(curve)
    else:
        curve = PPoly.from_bernstein_basis(curve) if isinstance(curve, BPoly) else curve
        ends = curve.x[0], curve.x[-1]
    if curve.c.ndim != 2 or not np.isfinite(curve.c).all():
        raise ValueError(
            f"Spline: a curve must have one finite number at every x, got coefficients of shape "
            f"{curve.c.shape}; make a spline of every component"
        )
    # B-splines have empty intervals and outer intervals
    starts, stops = curve.x[:-1], curve.x[1:]
    inside = (starts < stops) & (starts >= ends[0]) & (stops <= ends[1])
    starts, stops, pieces = starts[inside], stops[inside], curve.c[::-1, inside].T
    pieces = np.pad(pieces, ((0, 0), (0, max(0, 3 - pieces.shape[1]))))
    lengths = stops - starts
    # value, slope and curvature at the end of every piece must equal those of the next piece
    after, derivatives = [], pieces
    for order in range(3):
        at_stops = np.sum(
            derivatives * lengths[:, None] ** np.arange(derivatives.shape[1]), axis=1
        )
        jump = np.abs(at_stops[:-1] - derivatives[1:, 0])
        size = np.abs([derivatives[:, 0], at_stops]).max()
        if order < 2 and (jump > JUMP * size).any():
            what = ("value", "slope")[order]
            raise ValueError(
                f"Spline: the {what} of the curve jumps at x = {starts[1:][np.argmax(jump)]:g}; "
                "use a smoother curve, such as CubicSpline"
            )
        after.append(at_stops[-1])
        derivatives = derivatives[:, 1:] * np.arange(1, derivatives.shape[1])
    parabolas = np.zeros((2, pieces.shape[1]))
    parabolas[:, :3] = pieces[0, :3], (after[0], after[1], after[2] / 2)
    knots = np.append(starts, stops[-1])
    return knots, np.vstack([parabolas[:1], pieces, parabolas[1:]])


def _select(x: Any, knots: np.ndarray, pieces: Sequence[Sequence[float]]) -> Sequence[Any]:
    """The numbers for the piece that contains x, found by bisection. The first piece is below the
    first knot.
    """
    if len(pieces) == 1:
        return pieces[0]
    # a balanced tree of comparisons
    k = len(knots) // 2
    below = _select(x, knots[:k], pieces[: k + 1])
    above = _select(x, knots[k + 1 :], pieces[k + 1 :])
    return [ca.if_else(x < float(knots[k]), b, a) for b, a in zip(below, above)]
