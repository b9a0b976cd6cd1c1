"""The worked numbers of [johnson2014 II-A, IV-A, V], the singularities of VII, and the times."""

import numpy as np
import pytest

from nh_control.numerics.progress import Progress
from nh_control.papers import PAPERS
from nh_control.papers import johnson2014_worked as worked


def outcome(number):
    return PAPERS["johnson2014"].experiment(number).compute(Progress())


def test_every_printed_number_of_the_worked_step_comes_out():
    result = outcome("worked")
    assert [s.where for s in result.statements] == [
        "II-A", *["IV-A"] * 5, "V", "V", "IV-A",
    ]  # fmt: skip
    assert all(s.holds for s in result.statements)
    for text in ("0.2471", "0.3627"):
        assert text in result.statements[0].paper and text in result.statements[0].ours
    errors, size = result.numbers["errors"], np.log(np.logspace(-2, 0, 9))
    for order, name in ((2, "first order"), (3, "second order")):
        slope = np.diff(np.log(errors[name]))[:3] / np.diff(size)[:3]
        np.testing.assert_allclose(slope, order, atol=0.1)


def test_the_printed_slot_derivatives_and_the_controllability_matrix_are_those_of_the_step():
    """By hand: D1D1 Ld = 1/dt - g dt/4 cos((theta0 + theta1)/2), M = D2D1 Ld, [B, A B]."""
    numbers = outcome("worked").numbers
    curvature = 9.8 * 0.1 / 4 * np.cos((0.2 + numbers["q1, p1"][0]) / 2)
    slots = numbers["D1D1 Ld, D2D1 Ld, D1D2 Ld, D2D2 Ld"]
    same, mixed = 10 - curvature, -10 - curvature
    np.testing.assert_allclose(slots, [same, mixed, mixed, same], rtol=1e-14)
    np.testing.assert_allclose(numbers["M^-1"], [1 / mixed], rtol=1e-14)
    printed = [[0.00976, 0.0186], [0.09533, 0.0818]]
    reached = np.array(numbers["controllability matrix [B, A B]"])
    np.testing.assert_allclose(reached, printed, atol=6e-5)
    assert reached[0, 0] == pytest.approx(-0.1 / mixed, rel=1e-12)  # rounds to 0.00977
    assert np.linalg.det(reached) < -9e-4 and numbers["rank of [B, A B]"] == 2


@pytest.mark.parametrize(
    "value, printed, expected",
    [
        (0.09767, "0.0976", True),  # cut
        (0.09767, "0.0977", True),  # rounded
        (0.09767, "0.0975", False),
        (0.09767, "0.0978", False),
        (-0.09767, "0.0977", False),
        (2.531e-6, "2.53e-6", True),
        (2.541e-6, "2.53e-6", False),
    ],
)
def test_digits_are_compared_as_printed(value, printed, expected):
    assert worked.prints(np.array([value]), (printed,)) is expected


def test_a_step_that_is_a_little_off_does_not_print_the_paper_s_numbers(monkeypatch):
    monkeypatch.setattr(worked, "U", np.array([0.81]))
    assert not any(s.holds for s in outcome("worked").statements[:1])


def test_the_singularities_agree_with_the_corrected_formulas():
    result = outcome("singularities")
    assert [s.where for s in result.statements] == ["VII-A (34)", "VII-A", "VII-A", "VII-B"]
    assert all(s.holds for s in result.statements)
    assert list(result.numbers["further_singularity"].values()) == [False, False, True]


def test_a_formula_for_the_determinant_with_a_wrong_sign_does_not_hold(monkeypatch):
    right = worked.determinant
    monkeypatch.setattr(worked, "determinant", lambda q0, q1, h: right(q0, q1 + np.pi, h))
    assert [s.holds for s in outcome("singularities").statements] == [False, True, True, True]
