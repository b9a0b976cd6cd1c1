"""The worked pendulum of [johnson2014 II-A, IV-A, V], to every digit it prints.

m = l = 1, g = 9.8, step 0.1, q = 0.2, p = 0.5, u = 0.8, all of the discrete force on the left: F-
= u dt. The paper rounds most numbers and truncates a few (q1 by p and by u: 0.0976 of 0.09767): a
number agrees when it rounds or truncates to what is printed.
"""

from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest
from cases import discrete

X, U = np.array([0.2, 0.5]), np.array([0.8])


@pytest.fixture(scope="module")
def dsys():
    return discrete("pendulum", "midpoint-left", 0.1)


def agrees(value, printed: str) -> bool:
    """Whether value rounds or truncates to the printed decimal at its last digit."""
    target = Decimal(printed)
    unit = Decimal(1).scaleb(target.as_tuple().exponent)
    return any(
        Decimal(float(value)).quantize(unit, rounding) == target
        for rounding in (ROUND_HALF_EVEN, ROUND_DOWN)
    )


def assert_prints(values, printed):
    values = np.asarray(values)
    texts = np.array(printed)
    assert values.shape == texts.shape
    wrong = [
        (value, text) for value, text in zip(values.flat, texts.flat) if not agrees(value, text)
    ]
    assert not wrong


def test_next_state(dsys):
    assert_prints(dsys.step(X, U), ["0.2471", "0.3627"])


def test_first_derivatives(dsys):
    lin = dsys.linearize(X, U)
    assert_prints(lin.A, [["0.9533", "0.0976"], ["-0.9333", "0.9533"]])
    assert_prints(lin.B, [["0.00976"], ["0.09533"]])


def test_second_derivatives_of_the_configuration(dsys):
    printed = [
        ["1.01e-2", "5.06e-4", "5.06e-5"],
        ["5.06e-4", "2.53e-5", "2.53e-6"],
        ["5.06e-5", "2.53e-6", "2.53e-7"],
    ]
    assert_prints(dsys.hessian(X, U, [1, 0]), printed)


def test_second_derivatives_of_the_momentum(dsys):
    printed = [
        ["2.02e-1", "1.01e-2", "1.01e-3"],
        ["1.01e-2", "5.06e-4", "5.06e-5"],
        ["1.01e-3", "5.06e-5", "5.06e-6"],
    ]
    assert_prints(dsys.hessian(X, U, [0, 1]), printed)


@pytest.mark.parametrize(
    "value, printed, expected",
    [(0.09767, "0.0976", True), (0.09767, "0.0977", True), (0.09767, "0.0975", False)],
)
def test_the_comparison_itself(value, printed, expected):
    assert agrees(value, printed) is expected
