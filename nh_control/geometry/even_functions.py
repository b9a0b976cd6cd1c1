"""Even functions of an angle a as expressions in `square` = a^2: the coefficients in exp, log and
dexp for rotations. Their closed forms are 0/0 at a = 0. With a Taylor series in a^2 near 0, the
functions and all their derivatives are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial

import casadi as ca

SERIES_BELOW = 0.25**2
"""Maximum a^2 for the Taylor series, so that the first omitted term is below 1e-15."""

SLOPE_SERIES_BELOW, SLOPE_TERMS = 1.0, 13
"""Maximum a^2 for the series of derivatives, whose closed forms lose more digits to cancellation,
and the number of terms in these series.
"""


def _switch(
    square: ca.SX,
    closed: Callable[[ca.SX], ca.SX],
    coefficients: Sequence[float],
    below: float = SERIES_BELOW,
) -> ca.SX:
    """The series with the given coefficients of a^0, a^2, ... if a^2 < `below`, else
    `closed(a)`.
    """
    small = square < below
    series = ca.SX(0)
    for c in reversed(coefficients):  # Horner's scheme
        series = c + square * series
    # the unused branch is evaluated at a = 1, so that no derivative is NaN
    return ca.if_else(small, series, closed(ca.sqrt(ca.if_else(small, 1, square))))


def sinc(square: ca.SX) -> ca.SX:
    """`sin(a) / a`."""
    return _switch(
        square, lambda a: ca.sin(a) / a, (1, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800)
    )


def versine(square: ca.SX) -> ca.SX:
    """`(1 - cos(a)) / a^2`, computed without cancellation as `2 sin(a/2)^2 / a^2`."""
    series = (1 / 2, -1 / 24, 1 / 720, -1 / 40320, 1 / 3628800, -1 / 479001600)
    return _switch(square, lambda a: 2 * ca.sin(a / 2) ** 2 / a**2, series)


def sine_defect(square: ca.SX) -> ca.SX:
    """`(a - sin(a)) / a^3`."""
    return _switch(
        square,
        lambda a: (a - ca.sin(a)) / a**3,
        (1 / 6, -1 / 120, 1 / 5040, -1 / 362880, 1 / 39916800, -1 / 6227020800),
    )


def cosine(square: ca.SX) -> ca.SX:
    """`cos(a)`, smooth in a^2."""
    return 1 - square * versine(square)


def tangent_coefficient(square: ca.SX) -> ca.SX:
    """`(1 - (a/2) cot(a/2)) / a^2`, the coefficient of ad^2 in dexp^{-1} for rotations. The series
    has the coefficients `|B_2k| / (2k)!`.
    """
    series = (
        1 / 12,
        1 / 720,
        1 / 30240,
        1 / 1209600,
        1 / 47900160,
        691 / 1307674368000,
        1 / 74724249600,
    )
    return _switch(
        square, lambda a: (1 - a / 2 * ca.cos(a / 2) / ca.sin(a / 2)) / a**2, series, below=0.5**2
    )


def arctan_over(square: ca.SX, w: ca.SX) -> ca.SX:
    """`atan2(a, w) / a` for w = sqrt(1 - a^2) >= 0: half the rotation angle of the quaternion (w,
    v), divided by a = |v|.
    """
    series = (1, 1 / 6, 3 / 40, 5 / 112, 35 / 1152, 63 / 2816, 231 / 13312)
    return _switch(square, lambda a: ca.atan2(a, w) / a, series, below=0.07**2)


def versine_slope(square: ca.SX) -> ca.SX:
    """`g'(a) / a` for g = `versine`, `(a sin(a) - 2 (1 - cos(a))) / a^4`."""
    return _slope(
        square,
        lambda a: (a * ca.sin(a) - 4 * ca.sin(a / 2) ** 2) / a**4,
        lambda k: (-1) ** k / factorial(2 * k + 2),
    )


def sine_defect_slope(square: ca.SX) -> ca.SX:
    """`g'(a) / a` for g = `sine_defect`, `(a (1 - cos(a)) - 3 (a - sin(a))) / a^5`."""
    return _slope(
        square,
        lambda a: (2 * a * ca.sin(a / 2) ** 2 - 3 * (a - ca.sin(a))) / a**5,
        lambda k: (-1) ** k / factorial(2 * k + 3),
    )


def tangent_slope(square: ca.SX) -> ca.SX:
    """`g'(a) / a` for g = `tangent_coefficient`,
    `((a/2) cot(a/2) + (a/2)^2 / sin(a/2)^2 - 2) / a^4`.
    """
    from scipy.special import bernoulli  # slow to import

    return _slope(
        square,
        lambda a: (
            (a / 2 * ca.cos(a / 2) / ca.sin(a / 2) + (a / 2 / ca.sin(a / 2)) ** 2 - 2) / a**4
        ),
        lambda k: float(abs(bernoulli(2 * k + 2)[-1])) / factorial(2 * k + 2),
    )


def _slope(
    square: ca.SX, closed: Callable[[ca.SX], ca.SX], coefficient: Callable[[int], float]
) -> ca.SX:
    """`g'(a) / a` for the even function `g = sum_k coefficient(k) a^2k`, as the closed form or the
    series `sum_k 2 k coefficient(k) a^(2k - 2)`.
    """
    series = [2 * k * coefficient(k) for k in range(1, SLOPE_TERMS + 1)]
    return _switch(square, closed, series, SLOPE_SERIES_BELOW)
