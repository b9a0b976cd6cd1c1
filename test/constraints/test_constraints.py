"""Configurations, velocities and equilibria under holonomic constraints: optimality conditions,
exactness, and errors that name the residuals.
"""

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkages import G, lamp, rod, sling
from refusals import refusal

from nh_control.geometry.spaces import Rn
from nh_control.integrators import midpoint
from nh_control.mechanics.consistent_states import (
    NotConsistent,
    consistent_velocity,
    minimize_potential_energy,
    require_consistent,
    satisfy_constraints,
)
from nh_control.mechanics.system import System

ROD = rod()


@given(st.floats(0.05, 20.0), st.floats(-np.pi, np.pi))
def test_the_closest_configuration_of_a_rod_lies_on_its_ray(radius, angle):
    q = radius * np.array([np.cos(angle), np.sin(angle)])
    np.testing.assert_allclose(satisfy_constraints(ROD, q), 0.7 / radius * q, rtol=0, atol=1e-10)


def test_coordinates_change_in_proportion_to_their_squared_scales():
    """The least of `x^2 / s_x^2 + y^2 / s_y^2` on `x + y = 1`."""
    system = System(
        "sum", Rn("x", "y"), lambda q, v: ca.sumsqr(v) / 2,
        holonomic_constraint=lambda q: q[0] + q[1] - 1,
    )  # fmt: skip
    for scale, wanted in ((None, [0.5, 0.5]), ({"x": 3.0}, [0.9, 0.1]), ({"y": 3.0}, [0.1, 0.9])):
        found = satisfy_constraints(system, [0.0, 0.0], scale=scale)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)


def test_named_and_prescribed_coordinates_keep_their_values_unless_freed():
    q = np.array([0.3, -0.2, 0.1, 0.5, 0.2])

    def string(q):
        return np.linalg.norm(q[:2] - q[2:4])

    kept = satisfy_constraints(sling(), q)
    assert (kept[2:] == q[2:]).all() and string(kept) == pytest.approx(0.7, abs=1e-12)
    named = satisfy_constraints(sling(), q, ["x", "z", "hand_x"])
    assert (named[:3] == q[:3]).all() and np.abs(named[3:] - q[3:]).min() > 0
    assert string(named) == pytest.approx(0.5 + named[4], abs=1e-12)
    freed = satisfy_constraints(sling(), q, [])
    assert np.abs(freed - q)[:4].min() > 0
    assert np.linalg.norm(freed - q) < 0.9 * np.linalg.norm(kept - q)


def test_the_closest_pose_of_a_body_on_a_hinge():
    """The residual displacement in local coordinates is orthogonal to the constraint manifold."""
    system = lamp()
    q = system.space.retract(system.space.origin, np.array([0.4, -0.3, 0.2, 0.1, 0.2, -0.1]))
    closest = satisfy_constraints(system, q)
    h, slope = constraint(system, closest)
    assert np.abs(h).max() <= 1e-12
    for direction in tangents(slope):
        others = [
            satisfy_constraints(system, system.space.retract(closest, t * direction))
            for t in (-1e-3, 1e-3)
        ]
        assert min(
            np.linalg.norm(system.space.local(q, other)) for other in others
        ) > np.linalg.norm(system.space.local(q, closest))


def test_a_body_on_a_hinge_comes_to_rest_hanging():
    """From upside down, where it is in equilibrium as well."""
    system = lamp()
    upside_down = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.3])
    for q in (
        upside_down,
        system.space.retract(system.space.origin, np.array([0.8, -0.6, 0.4, 0.1, 0.2, -0.1])),
    ):
        rest = minimize_potential_energy(system, q)
        np.testing.assert_allclose(rest[4:], [0, 0, -0.3], atol=1e-9)
        dsys = midpoint(system, 0.01)
        moved = dsys.local(dsys.state(rest, np.zeros(6)), dsys.step(dsys.state(rest, np.zeros(6))))
        assert np.abs(moved[:6]).max() <= 1e-10


def test_the_least_potential_energy_with_a_coordinate_kept():
    system = System(
        "springs",
        Rn("a", "b"),
        lambda q, v: ca.sumsqr(v) / 2 - (q[0] ** 2 + (q[1] - q[0]) ** 2 + 2 * ca.cos(q[1])),
    )
    a, b = minimize_potential_energy(system, [0.5, -0.3], ["a"])
    assert a == 0.5 and b - a == pytest.approx(np.sin(b), abs=1e-10)
    a, b = minimize_potential_energy(system, [0.5, -0.3])
    assert (
        a == pytest.approx(b - a, abs=1e-9)
        and b - a == pytest.approx(np.sin(b), abs=1e-9)
        and abs(b) > 1
    )


def test_velocities_keep_the_constraints_and_the_prescribed_velocities():
    q, v = (
        satisfy_constraints(sling(), [0.3, -0.2, 0.1, 0.5, 0.2]),
        np.array([0.3, -1.0, 0.7, -0.2, 0.4]),
    )
    kept = consistent_velocity(sling(), q, v)
    assert (kept[2:] == v[2:]).all()
    string = q[:2] - q[2:4]
    assert string @ (kept[:2] - kept[2:4]) - 0.7 * kept[4] == pytest.approx(0, abs=1e-14)
    change = kept[:2] - v[:2]
    assert change[0] * string[1] - change[1] * string[0] == pytest.approx(0, abs=1e-14)
    np.testing.assert_allclose(consistent_velocity(sling(), q, kept), kept, rtol=0, atol=1e-14)
    dsys = midpoint(sling(), 0.01)
    np.testing.assert_allclose(dsys.velocity(dsys.state(q, v)), kept, rtol=0, atol=1e-14)


FALLING = System("falling", Rn("x", "z"), lambda q, v: ca.sumsqr(v) / 2 - G * q[1])


def test_what_cannot_be_satisfied_is_said_with_residuals(snapshot):
    calls = (
        lambda: satisfy_constraints(ROD, [0.9, 0.2], ["x"]),
        lambda: minimize_potential_energy(FALLING, [0.0, 0.0]),
        lambda: consistent_velocity(ROD, [1.0, 0.0], [0.0, 1.0]),
    )
    told = [refusal(call, NotConsistent) for call in calls]
    wrong = ([0.9, 0.2], ["y0"]), ([0.9],)
    assert told + [refusal(lambda: satisfy_constraints(ROD, *one)) for one in wrong] == snapshot


def constraint(system, q):
    q_ = ca.SX.sym("q", system.space.nq)
    h, slope = (
        np.asarray(value)
        for value in ca.Function(
            "h", [q_], [system.holonomic_constraint(q_), system.mechanics.holonomic_jacobian(q_)]
        )(q)
    )
    return h[:, 0], slope


def tangents(slope):
    return np.linalg.svd(slope)[2][len(slope) :]


@pytest.mark.parametrize("apart, fits", [(2.3e-6, True), (1.7e-6, False)])
def test_constraints_count_as_dependent_from_a_condition_of_1e12(apart, fits):
    """That of [[1, 1], [1, 1 + d^2]] is 4 / d^2."""
    system = System(
        "nearly",
        Rn("x", "y", "z"),
        lambda q, v: ca.sumsqr(v) / 2,
        holonomic_constraint=lambda q: ca.vertcat(q[0], q[0] + apart * q[1]),
    )
    if fits:
        found = consistent_velocity(system, np.zeros(3), [1.0, 2.0, 3.0])
        np.testing.assert_allclose(found, [0.0, 0.0, 3.0], atol=1e-3)
        return
    with pytest.raises(NotConsistent, match="dependent at q, .* condition number"):
        consistent_velocity(system, np.zeros(3), [1.0, 2.0, 3.0])


# What counts as kept -----------------------------------------------------------------------------


@pytest.mark.parametrize("at", [1.0, 1e-7, 100.0])
def test_a_constraint_is_kept_to_1e_8_of_the_sizes_of_its_terms(at):
    """`x - at`, of two terms of this size, and the logarithm of a ratio, which is never 0."""
    me = System(
        "me",
        Rn("x", "y", "z"),
        lambda q, v: ca.sumsqr(v) / 2,
        holonomic_constraint=lambda q: ca.vertcat(q[0] - at, ca.log(q[1] / at)),
        nominal=[at, at, 0.0],
    )
    for off in (1.9e-8, -1.9e-8):
        require_consistent(me, np.array([at * (1 + off), at, 0.0]))
        require_consistent(me, np.array([at, at * (1 + off), 0.0]))
    for off in (2.1e-8, -2.1e-8):
        q = np.array([at * (1 + off), at, 0.0])
        with pytest.raises(NotConsistent, match="me: q does not satisfy") as error:
            require_consistent(me, q)
        assert error.value.residual[0] == pytest.approx(at * off) and error.value.q is q
    with pytest.raises(NotConsistent):
        require_consistent(me, np.array([at, -at, 0.0]))  # h is no number


def test_what_round_off_left_of_a_coordinate_counts_beside_the_others():
    """In `z = 0`, the only term is what is left; a plain `|h| <= 1e-8` was in m."""
    for length in (1.0, 1e-9, 1e9):
        table = System(
            "table",
            Rn("x", "y", "z"),
            lambda q, v: ca.sumsqr(v) / 2,
            holonomic_constraint=lambda q: q[2],
        )
        require_consistent(table, length * np.array([0.3, 0.4, 1e-12]))
        for q in ([0.3, 0.4, 1e-9], [0.0, 0.0, 1e-12]):
            with pytest.raises(NotConsistent):
                require_consistent(table, length * np.array(q))


def test_angles_and_rotations_that_are_nearly_zero_count_beside_a_radian():
    """`sin(1e-17)` has no other terms; nor has a lever that is hardly turned."""
    slider = System(
        "slider",
        Rn("angle", "x"),
        lambda q, v: ca.sumsqr(v) / 2,
        holonomic_constraint=lambda q: 0.3 * ca.sin(q[0]),
    )
    hung = lamp()
    for small in (1e-17, 0.9e-8):
        require_consistent(slider, np.array([small, 0.0]))
        q = np.array([1.0, small / 2, 0.0, 0.0, 0.0, 0.0, -0.3])
        require_consistent(hung, q)
    with pytest.raises(NotConsistent):
        require_consistent(slider, np.array([1e-7, 0.0]))
