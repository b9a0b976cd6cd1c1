"""Singularities of the linearization: the examples of [johnson2014 VII], redundant constraints,
singular configurations.
"""

import logging

import numpy as np
import pytest
from linkages import bead, spherical

from nh_control.discrete.conditioning import ILL_CONDITIONED, SingularStep, require_regular
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import midpoint

R = 0.8


def at(theta, phi=0.0):
    return np.array([theta - np.pi / 2, phi, 0.0, 0.0])


def still(dsys, x):
    return Trajectory(dsys.h, [x, x], np.zeros((1, 0)))


def test_dependent_constraints_fail_with_step_and_condition_number():
    """A plane that touches a sphere, at the only configuration where both hold."""
    dsys, x = midpoint(bead(0.0), 0.01), np.array([0.0, 0.0, 1.0, 0.1, 0.0, 0.0])
    for run in (lambda: dsys.simulate(x, 1), lambda: require_regular(dsys, still(dsys, x))):
        with pytest.raises(
            StepFailed, match=r"bead by midpoint.* at step 0 .*condition number .*Dh M\^-1 Dh\^T"
        ) as failure:
            run()
        assert (
            failure.value.step == 0
            and failure.value.conditioning.constraint > 1e12
            and failure.value.conditioning.mass == pytest.approx(1)
        )


def test_a_singular_configuration_is_warned_of_before_it_is_refused(caplog):
    """A plane that comes to touch a sphere: the condition grows like 1 / tilt^2."""
    x = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    systems = {tilt: midpoint(bead(tilt), 0.01) for tilt in (0.1, 1e-5, 1e-7, 0.0)}
    with caplog.at_level(logging.WARNING):
        assert 1e2 < require_regular(systems[0.1], still(systems[0.1], x)).constraint < 1e3
        assert not caplog.records
        assert require_regular(systems[1e-5], still(systems[1e-5], x)).constraint > ILL_CONDITIONED
    assert (
        "at step 0 (t = 0 s): Dh M^-1 Dh^T is ill-conditioned, condition number" in caplog.text
        and "drop redundant constraints" in caplog.text
    )
    with pytest.raises(SingularStep, match="Dh M.-1 Dh.T is singular") as failure:
        require_regular(systems[1e-7], still(systems[1e-7], x))
    assert failure.value.step == 0 and failure.value.conditioning.constraint > 1e12
    with pytest.raises(StepFailed, match="singular"):
        require_regular(systems[0.0], still(systems[0.0], x))


def test_the_worst_step_of_a_trajectory_is_told_with_its_number(monkeypatch, caplog):
    dsys = midpoint(bead(0.1), 0.01)
    numbers = [1.0, 1e9, 5e9, 2e9, 1.0]
    conditions = iter([Conditioning(1.0, 1.0, number) for number in numbers])
    monkeypatch.setattr(type(dsys), "conditioning", lambda *_: next(conditions))
    states, inputs = np.zeros((6, dsys.nx)), np.zeros((5, dsys.nu))
    with caplog.at_level(logging.WARNING):
        worst = require_regular(dsys, Trajectory(0.01, states, inputs))
    assert worst.constraint == 5e9
    (record,) = caplog.records
    assert "at step 2 (t = 0.02 s): Dh M^-1 Dh^T is ill-conditioned" in record.getMessage()


def test_a_step_across_the_vertical_is_refused_with_its_number():
    """In angles: the momentum is that with which a step ends opposite to its start."""
    h, c, m = 0.01, 0.05, 1.3
    dsys = midpoint(spherical(m, R), h)
    crossing = np.concatenate([at(-c)[:2], [m * R**2 * 2 * c / h, 0.0]])
    with pytest.raises((SingularStep, StepFailed), match="at step 1 "):
        require_regular(dsys, Trajectory(h, [at(0.5), crossing, at(c)], np.zeros((2, 0))))


@pytest.mark.parametrize(
    "matrix, place, remedy", [("M", 1, "other coord"), ("Dh", 2, "redundant")]
)
@pytest.mark.parametrize(
    "number, told",
    [(0.9e8, ""), (1.1e8, "ill"), (0.9e12, "ill"), (1.1e12, "singular"), (np.inf, "singular")],
)
def test_from_1e8_a_matrix_is_warned_of_and_from_1e12_refused(
    matrix, place, remedy, number, told, monkeypatch, caplog
):
    dsys, numbers = midpoint(bead(0.1), 0.01), [1.0, 1.0, 1.0]
    numbers[place] = number
    monkeypatch.setattr(type(dsys), "conditioning", lambda *_: Conditioning(*numbers))
    run = still(dsys, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    if told == "singular":
        with pytest.raises(SingularStep, match=f"{matrix}.* is singular.*{remedy}"):
            require_regular(dsys, run)
        return
    with caplog.at_level(logging.WARNING):
        assert require_regular(dsys, run) == Conditioning(*numbers)
    assert all(matrix in r.getMessage() and remedy in r.getMessage() for r in caplog.records)
    assert len(caplog.records) == bool(told)


def test_condition_numbers_by_hand():
    """Of M = diag(2, 8) with one constraint, of M = 1 with two, and of none."""
    one = np.array([[2.0, 0.0, 3.0], [0.0, 8.0, 1.0], [1.0, 2.0, 0.0]])
    found, lengths = Conditioning.of(one, range(2, 3)), np.sqrt(1.0 * (9 / 2 + 1 / 8))
    assert found.mass == 1.0
    assert Conditioning.of(one, range(2, 3), np.ones(2)).mass == pytest.approx(4.0)
    assert Conditioning.of(one, range(2, 3), np.array([2.0, 8.0])).mass == pytest.approx(1.0)
    assert found.constraint == pytest.approx(lengths / (3 / 2 + 2 / 8))
    rows = np.array([[1.0, 1.0], [0.0, 4.0]])
    two = np.block([[np.eye(2), 3 * rows.T], [rows, np.zeros((2, 2))]])
    cosine = np.sqrt(0.5)  # between the rows, whatever their lengths
    expected = (1 + cosine) / (1 - cosine)
    assert Conditioning.of(two, range(2, 4)).constraint == pytest.approx(expected)
    assert Conditioning.of(np.diag([1.0, 3.0]), range(0)) == Conditioning(1.0, 1.0, 1.0)
    assert Conditioning.of(np.zeros((0, 0)), range(0)) == Conditioning(1.0, 1.0, 1.0)
    lost = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert Conditioning.of(lost, range(1, 2)) == Conditioning(1.0, np.inf, np.inf)
    assert Conditioning.of(np.full((2, 2), np.nan), range(0)).jacobian == np.inf
    bare = np.array([[1.0, 0.0], [0.0, 0.0]])  # a constraint that no velocity changes
    assert Conditioning.of(bare, range(1, 2)) == Conditioning(np.inf, 1.0, np.inf)
