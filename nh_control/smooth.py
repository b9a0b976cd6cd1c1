"""Functions of an angle that are 0/0 at zero, as expressions that stay exact (with all derivatives) there."""

from __future__ import annotations

import casadi as ca

SERIES_BELOW = 0.25
"""|a| below which the Taylor series is used; its first omitted term is below 1e-15 there."""


def _switch(a, closed, series):
    small = ca.fabs(a) < SERIES_BELOW
    return ca.if_else(small, series(a**2), closed(ca.if_else(small, 1, a)))


def _horner(coefficients):
    def series(a2):
        total = 0
        for c in reversed(coefficients):
            total = c + a2 * total
        return total

    return series


def sinc(a):
    """`sin(a) / a`."""
    return _switch(a, lambda b: ca.sin(b) / b, _horner((1, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800)))


def one_minus_cos_over(a):
    """`(1 - cos(a)) / a`."""
    series = _horner((1 / 2, -1 / 24, 1 / 720, -1 / 40320, 1 / 3628800, -1 / 479001600))
    return a * _switch(a, lambda b: 2 * ca.sin(b / 2) ** 2 / b**2, series)


def tangent_coefficient(a):
    """`(1 - (a/2) cot(a/2)) / a^2`, the coefficient of ad^2 in dexp^{-1} for rotations."""
    series = _horner((1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000, 1 / 74724249600))
    return _switch(a, lambda b: (1 - b / 2 / ca.tan(b / 2)) / b**2, series)
