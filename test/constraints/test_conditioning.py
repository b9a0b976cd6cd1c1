"""Singularities of the linearization: the examples of [johnson2014 VII], redundant constraints,
singular configurations.
"""

import logging

import casadi as ca
import numpy as np
import pytest
from linkages import G, bead, rod, spherical

from nh_control.discrete.conditioning import ILL_CONDITIONED, SingularStep, require_regular
from nh_control.discrete.method import StepSymbols
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import midpoint

R = 0.8


def at(theta, phi=0.0):
    return np.array([theta - np.pi / 2, phi, 0.0, 0.0])


def on_circle(angle):
    return np.array([0.7 * np.cos(angle), 0.7 * np.sin(angle), 0.0, 0.0])


def condition(dsys, x, x1):
    """Condition numbers for two configurations, whether a step joins them or not."""
    space, z = dsys.system.space, ca.SX.sym("z", dsys.method.nz)
    q, rho, u, h = ca.SX(x[: space.nq]), ca.SX(x[space.nq :]), ca.SX(0, 1), ca.SX(dsys.h)
    gradients = dsys.system.mechanics.gradients
    r = dsys.method.residual(StepSymbols(q, rho, u, z, h, gradients))
    mean = np.zeros(dsys.method.nz)
    mean[: dsys.system.nrho] = space.local(x[: space.nq], x1[: space.nq]) / dsys.h
    return Conditioning.of(
        np.asarray(ca.Function("r_z", [z], [ca.densify(ca.jacobian(r, z))])(mean)),
        dsys.method.multipliers,
        dsys.nominal_masses,
    )


@pytest.mark.parametrize("turns", [-1, 0, 1])
def test_a_spherical_pendulum_is_singular_when_two_nodes_are_symmetric_about_the_vertical(turns):
    """[johnson2014 (34)]: at theta0 + theta1 = 2 n pi, and only as close as it comes: condition
    numbers grow like 1 / sin^2 of the middle.
    """
    dsys = midpoint(spherical(), 0.01)
    assert condition(dsys, at(-0.2 + 2 * np.pi * turns), at(0.2)).mass > 1e15
    for offset in (1e-1, 1e-2, 1e-3):
        found = condition(dsys, at(-0.2 + 2 * np.pi * turns), at(0.2 + 2 * offset)).mass
        assert found * np.sin(turns * np.pi + offset) ** 2 == pytest.approx(1, rel=1e-3)
    assert condition(dsys, at(0.9), at(1.3)).mass < 2


def test_a_spherical_pendulum_sampled_too_coarsely_is_singular_elsewhere_too():
    """The bracket of (34) vanishes at `cos((theta0 + theta1) / 2) = -4 r / (g h^2)`, which needs h
    >= sqrt(4 r / g).
    """
    limit = np.sqrt(4 * R / G)
    h = 1.2 * limit
    middle = np.arccos(-4 * R / (G * h**2))
    assert condition(midpoint(spherical(), h), at(middle - 0.1), at(middle + 0.1)).mass > 1e15
    below = midpoint(spherical(), 0.9 * limit)
    assert (
        max(
            condition(below, at(middle - 0.1), at(middle + 0.1)).mass
            for middle in np.linspace(0.3, np.pi - 0.3, 50)
        )
        < 100
    )


def test_a_constrained_pendulum_is_singular_when_a_step_turns_it_by_a_right_angle():
    """[johnson2014 VII-B]: `Dh M^{-1} Dh^T = -(4 h / m) (x1 x0 + y1 y0)`, with M regular."""
    dsys = midpoint(rod(g=0.0), 0.1)
    for angle in (0.1, 1.0, 1.5):
        found = condition(dsys, on_circle(0.4), on_circle(0.4 + angle))
        assert found.mass == pytest.approx(1) and found.constraint == pytest.approx(
            1 / np.cos(angle)
        )
    assert condition(dsys, on_circle(0.4), on_circle(0.4 + np.pi / 2)).constraint > 1e15


def test_the_scale_of_a_constraint_does_not_matter():
    heavy = condition(midpoint(rod(mass=1e6), 0.1), on_circle(0.0), on_circle(0.3))
    np.testing.assert_allclose([heavy.mass, heavy.constraint], [1, 1 / np.cos(0.3)], rtol=1e-12)


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
    """A plane that comes to touch a sphere: condition numbers grow like the inverse square of its
    tilt.
    """
    x = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    systems = {tilt: midpoint(bead(tilt), 0.01) for tilt in (0.1, 1e-5, 1e-7, 0.0)}
    with caplog.at_level(logging.WARNING):
        assert 1e2 < require_regular(systems[0.1], still(systems[0.1], x)).constraint < 1e3
        assert not caplog.records
        assert require_regular(systems[1e-5], still(systems[1e-5], x)).constraint > ILL_CONDITIONED
    assert (
        "at step 0 (t = 0 s): Dh M^-1 Dh^T is ill-conditioned, condition number" in caplog.text
        and "drop redundant ones" in caplog.text
    )
    with pytest.raises(SingularStep, match="Dh M.-1 Dh.T is singular") as failure:
        require_regular(systems[1e-7], still(systems[1e-7], x))
    assert failure.value.step == 0 and failure.value.conditioning.constraint > 1e12
    with pytest.raises(StepFailed, match="singular"):
        require_regular(systems[0.0], still(systems[0.0], x))


def test_the_worst_step_of_a_trajectory_is_told_with_its_number_and_a_failing_one(
    monkeypatch, caplog
):
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

    def fails(*_):
        if next(failing) < 3:
            return Conditioning(1.0, 1.0, 1.0)
        raise StepFailed("bead", 0.01, "no solution", 1.0, 1.0, 5, Conditioning(1.0, 1.0, 1.0))

    failing = iter(range(5))
    monkeypatch.setattr(type(dsys), "conditioning", fails)
    with pytest.raises(StepFailed, match="at step 3 .t = 0.03 s.: no solution") as failure:
        require_regular(dsys, Trajectory(0.01, states, inputs))
    assert (failure.value.step, failure.value.time) == (3, pytest.approx(0.03))


def test_a_step_across_the_vertical_is_refused_with_its_number():
    """In coordinates that do not know the vertical: the momentum is the one with which a step ends
    opposite to its start.
    """
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


def test_where_both_matrices_are_singular_the_mass_matrix_is_named(monkeypatch):
    """The other one is made with it."""
    dsys = midpoint(bead(0.1), 0.01)
    monkeypatch.setattr(type(dsys), "conditioning", lambda *_: Conditioning(1e20, 2e12, 1e20))
    with pytest.raises(SingularStep, match=": M is singular, condition number 2.0e.12"):
        require_regular(dsys, still(dsys, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]))


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


def test_the_least_condition_number_is_that_of_the_best_scales():
    """In the maximum norm; of positive diagonal scales none gives less [bauer1963]."""
    rng = np.random.default_rng(3)
    a = rng.normal(size=(4, 4))
    least = Conditioning.of(a, range(0)).jacobian
    scaled = []
    for _ in range(200):
        left, right = 10.0 ** rng.uniform(-2, 2, (2, 4))
        other = left[:, None] * a * right
        scaled.append(np.linalg.cond(other, np.inf))
        assert Conditioning.of(other, range(0)).jacobian == pytest.approx(least, rel=1e-9)
    assert min(scaled) >= least
    # reached by the eigenvectors of |a^-1| |a| and of |a| |a^-1|
    inverse, size = np.abs(np.linalg.inv(a)), np.abs(a)
    x, y = (
        np.abs(v[:, np.argmax(np.abs(w))])
        for w, v in map(np.linalg.eig, (inverse @ size, size @ inverse))
    )
    assert np.linalg.cond(a * x / y[:, None], np.inf) == pytest.approx(least)
