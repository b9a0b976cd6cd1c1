"""Holonomic constraints and prescribed coordinates in the midpoint integrator: against the same
motion in other coordinates.
"""

from collections.abc import Callable
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from differences import jacobian

from nh_control.discrete.plant_steps import advance, convert
from nh_control.discrete.results import StepFailed
from nh_control.geometry.spaces import Rn
from nh_control.integrators import INTEGRATORS, midpoint
from nh_control.mechanics.system import System
from nh_control.numerics import compiled

LENGTH, G, H = 0.7, 9.8, 0.01


def rod() -> System:
    """A unit mass in the plane at a distance LENGTH from the origin, pushed along x."""
    return System(
        name="rod",
        space=Rn("x", "z"),
        lagrangian=lambda q, v: ca.sumsqr(v) / 2 - G * q[1],
        inputs=("push",),
        force=lambda q, v, u: ca.vertcat(u, 0),
        holonomic_constraint=lambda q: ca.sumsqr(q) - LENGTH**2,
    )


def crane() -> System:
    """A pendulum whose pivot is moved at will along x."""
    return System(
        name="crane",
        space=Rn("theta", "pivot"),
        lagrangian=lambda q, v: (
            (LENGTH**2 * v[0] ** 2 + v[1] ** 2) / 2
            + LENGTH * ca.cos(q[0]) * v[0] * v[1]
            + G * LENGTH * ca.cos(q[0])
        ),
        prescribed=("pivot",),
    )


@pytest.fixture(scope="module")
def constrained():
    return midpoint(rod(), H)


def hanging(theta, omega):
    return np.array(
        [
            LENGTH * np.sin(theta),
            -LENGTH * np.cos(theta),
            LENGTH * omega * np.cos(theta),
            LENGTH * omega * np.sin(theta),
        ]
    )


def test_a_prescribed_pivot_is_an_input_and_its_velocity_a_state():
    dsys = midpoint(crane(), H)
    assert dsys.inputs == ("pivot",) and dsys.state_names == (
        "theta",
        "pivot",
        "p_theta",
        "v_pivot",
    )
    x = dsys.state([0.2, 0.0], [0.0, 0.0])
    for k in range(100):
        x = dsys.step(x, [0.01 * (k + 1)])
    assert x[1] == pytest.approx(1.0, abs=1e-12) and x[3] == pytest.approx(1.0, rel=1e-9)
    np.testing.assert_allclose(dsys.velocity(x)[1], 1.0, rtol=1e-9)
    lin = dsys.linearize(x, [1.0])
    differences = jacobian(lambda w: dsys.step(x + w[:4], [1.0 + w[4]]), 5, 1e-3)
    np.testing.assert_allclose(np.hstack([lin.A, lin.B]), differences, rtol=1e-9, atol=1e-9)


def test_a_prescribed_coordinate_moves_evenly_through_the_steps_between_two_inputs():
    dsys = midpoint(crane(), H)
    x = dsys.state([0.2, 0.4], [0.0, 0.0])
    before, end = advance(dsys, x, np.array([1.6]), 3)
    once = dsys.step(dsys.step(x, [0.8]), [1.2])
    np.testing.assert_allclose(before, once, atol=1e-13)
    np.testing.assert_allclose(end, dsys.step(once, [1.6]), atol=1e-13)


def test_multipliers_carry_the_weight_and_the_centrifugal_force(constrained):
    """A rod at rest hangs by its weight, and a pendulum's rod pulls with m g cos(theta) + m l
    omega^2; h = |q|^2 - l^2 has the slope 2 q.
    """
    rest = constrained.step([0.0, -LENGTH, 0.0, 0.0], [0.0])
    np.testing.assert_allclose(
        constrained.multipliers(rest, [0.0]), [G * H / (2 * LENGTH)], rtol=1e-12
    )
    errors = []
    for h in (0.01, 0.005, 0.0025):
        dsys = constrained.with_step(h)
        before, now, after = dsys.simulate(
            hanging(0.9, 1.5), np.zeros((round(0.3 / h) + 1, 1))
        ).states[-3:]
        cosine, speed = -now[1] / LENGTH, np.linalg.norm(after[:2] - before[:2]) / (2 * h)
        errors.append(
            2 * LENGTH * dsys.multipliers(now, [0.0])[0] / h - (G * cosine + speed**2 / LENGTH)
        )
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2.0, atol=0.1)


def test_multipliers_have_exact_derivatives(constrained):
    x, u = hanging(0.9, 0.5), np.array([0.3])
    lin, lam, adjoint = (
        constrained.linearize(x, u),
        np.array([0.3, -0.7, 1.1, 0.2]),
        np.array([0.8]),
    )
    assert (
        np.array_equal(lin.multipliers, constrained.multipliers(x, u))
        and lin.multipliers_x.shape == (1, 4)
        and lin.multipliers_u.shape == (1, 1)
    )

    def at(w):
        return constrained.retract(x, w[:4]), u + w[4:]

    def slope(w):
        moved = constrained.linearize(*at(w))
        return adjoint @ np.hstack([moved.multipliers_x, moved.multipliers_u])

    differences = jacobian(lambda w: constrained.multipliers(*at(w)), 5, 1e-2)
    np.testing.assert_allclose(
        np.hstack([lin.multipliers_x, lin.multipliers_u]), differences, rtol=1e-9, atol=1e-11
    )
    alone = constrained.hessian(x, u, lam, adjoint) - constrained.hessian(x, u, lam)
    np.testing.assert_allclose(alone, jacobian(slope, 5, 1e-2), rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match="multiplier adjoint must have shape"):
        constrained.hessian(x, u, lam, [1.0, 2.0])


def doubled(distance: Callable[[ca.SX], ca.SX | float]) -> System:
    """A unit mass in the plane and another of 4 kg, with two constraints that become one where the
    distance vanishes.
    """
    return System(
        name="doubled",
        space=Rn("x", "y", "z"),
        lagrangian=lambda q, v: (v[0] ** 2 + v[1] ** 2 + 4 * v[2] ** 2) / 2,
        holonomic_constraint=lambda q: ca.vertcat(q[0], q[0] + distance(q) * q[1]),
    )


def test_condition_numbers_tell_mass_matrix_and_constraints_apart():
    """M = diag(1, 1, 4), of unit masses as told; between constraints of unit length is an angle of
    the cosine `1 / sqrt(1 + d^2)`.
    """
    for d in (1.0, 1e-3):
        found = midpoint(doubled(lambda q, d=d: d), H).conditioning(np.zeros(6))
        assert found.mass == pytest.approx(1.0, rel=1e-9)
        cosine = 1 / np.sqrt(1 + d**2)
        assert found.constraint == pytest.approx((1 + cosine) / (1 - cosine), rel=1e-6)
    with pytest.raises(StepFailed) as caught:
        midpoint(doubled(lambda q: q[2]), H).step([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    assert (
        caught.value.conditioning.mass == pytest.approx(1.0)
        and caught.value.conditioning.constraint > 1e15
    )
    assert "Dh M^-1 Dh^T" in str(caught.value)


@pytest.mark.parametrize("hessian", (True, False))
def test_prepare_leaves_nothing_to_compile(monkeypatch, compiler, hessian):
    """But second derivatives, unless they are asked for."""
    dsys = midpoint(rod(), 0.017).prepare(hessian)
    unprepared = lambda _, name, *__, **___: pytest.fail(f"{name} was not prepared")
    monkeypatch.setattr(compiled.Native, "__init__", unprepared)
    x, u = hanging(0.3, 0.0), np.array([0.1])
    dsys.step(x, u), dsys.linearize(x, u), dsys.energy(x)
    if hessian:
        dsys.hessian(x, u, np.ones(4))
    else:
        with pytest.raises(pytest.fail.Exception, match="rod_hessian was not prepared"):
            dsys.hessian(x, u, np.ones(4))


def pushed_crane() -> System:
    """The crane with a torque on its load."""
    return replace(
        crane(),
        name="pushed",
        inputs=("torque", "brake"),
        force=lambda q, v, u: ca.vertcat(u[0] - 2 * u[1], 0),
    )


def test_forces_are_held_through_the_steps_between_two_inputs():
    dsys = midpoint(pushed_crane(), H)
    x = dsys.state([0.2, 0.4], [0.0, 0.0])
    assert dsys.idle(x).tolist() == [0.0, 0.0, 0.4]
    before, end = advance(dsys, x, np.array([0.7, 0.1, 1.0]), 2)
    once = dsys.step(x, [0.7, 0.1, 0.7])
    np.testing.assert_allclose(before, once, rtol=0, atol=1e-15)
    np.testing.assert_allclose(end, dsys.step(once, [0.7, 0.1, 1.0]), rtol=0, atol=1e-15)
    before, end = advance(dsys, x, np.array([0.7, 0.1, 1.0]), 1)
    assert before is x and np.array_equal(end, dsys.step(x, [0.7, 0.1, 1.0]))


def test_states_are_the_same_numbers_for_the_same_steps_alone():
    """Another step, method or system reads configuration and velocity, off the constraint, too."""
    dsys = midpoint(rod(), H)
    x = hanging(0.3, 0.5) * [1.1, 1.1, 1.0, 1.0]
    x = dsys.with_constraint_impulses(x, [0.4])
    assert convert(x, dsys, dsys) is x and convert(x, dsys, dsys.with_step(H)) is x
    bare = dsys.measured_state(x[:2], dsys.velocity(x))
    assert np.abs(bare - x).max() > 0.1
    for other in (dsys.with_step(2 * H), midpoint(rod(), H), midpoint(dsys.system, H, "left")):
        np.testing.assert_allclose(convert(x, dsys, other), bare, rtol=0, atol=1e-14)


@pytest.mark.parametrize("method", ["midpoint", "mean_value", "slgi_half"])
def test_a_force_without_inputs_gets_none_beside_a_prescribed_coordinate(method):
    swing = System(
        name="swing",
        space=Rn("angle", "hand"),
        lagrangian=lambda q, v: (v[0] ** 2 + v[0] * v[1] * ca.cos(q[0])) / 2 + ca.cos(q[0]),
        force=lambda q, v, u: ca.vertcat(u, -v[0], 0),
        prescribed=("hand",),
    )
    plain = replace(swing, force=lambda q, v, u: ca.vertcat(-v[0], 0))
    made = [INTEGRATORS[method](system, 0.1) for system in (swing, plain)]
    np.testing.assert_array_equal(*(d.step([0.3, 0.0, 0.5, 0.1], [0.2]) for d in made))
