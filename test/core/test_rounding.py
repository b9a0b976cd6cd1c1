"""Sizes of round-off by running error analysis [higham2002 3.3], against the sums by hand."""

import casadi as ca
import numpy as np
import pytest

from nh_control.numerics.rounding import rounding_sizes

X, Y = 0.7, -1.3
SIN, COS = abs(np.sin(X)), abs(np.cos(X))
SIZES = {
    "difference": (lambda x, y: x - y, 0.7 + 1.3),
    "constant": (lambda x, y: x + 3, 0.7 + 3),
    "product": (lambda x, y: x * y, 2 * 0.7 * 1.3),
    "quotient": (lambda x, y: x / y, 2 * 0.7 / 1.3),
    "function": (lambda x, y: ca.sin(x), COS * 0.7 + SIN),
    "function of a difference": (
        lambda x, y: ca.sin(x - y),
        abs(np.cos(X - Y)) * 2.0 + abs(np.sin(X - Y)),
    ),
    "square": (lambda x, y: x**2, 2 * 0.7**2 + 0.7**2),
}


def found(f, *options):
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    sizes = rounding_sizes(ca.Function("f", [x, y], [f(x, y)]), [x, y], *options)
    return float(ca.Function("s", [x, y], [sizes])(X, Y))


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_the_sums_of_all_operations(name):
    f, size = SIZES[name]
    assert found(f) == pytest.approx(size, rel=1e-14)


def test_sizes_of_arguments_may_be_given_and_angles_have_a_least_one():
    f, given = lambda x, y: ca.sin(x) + y**2, [ca.SX(0.1), ca.SX(0.2)]
    own = SIN + 1.3**2
    assert found(f, given) == pytest.approx(0.1 * COS + 0.2 * 2 * 1.3 + own, rel=1e-14)
    turned = found(f, given, 0.01)
    assert turned == pytest.approx((0.1 + 0.01) * COS + 0.2 * 2 * 1.3 + own, rel=1e-14)
