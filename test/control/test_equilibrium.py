"""Equilibria by solving; those of quadrotors with a payload are in test_payload_equilibrium."""

import casadi as ca
import numpy as np
import pytest

import nh_control as nh
from nh_control.control import equilibrium
from nh_control.control.equilibrium import NoEquilibrium
from nh_control.discrete.results import StepFailed
from nh_control.integrators import nonholonomic_midpoint
from nh_control.mechanics.consistent_states import minimize_potential_energy
from nh_control.scenarios.urdf import DEFAULT
from nh_control.systems import pendulum, snakeboard


@pytest.fixture(scope="module")
def board():
    return nonholonomic_midpoint(snakeboard(), 0.01)


def test_a_change_is_shortened_if_no_step_is_possible_after_it(board):
    """The first one would take the wheels out of the domain in which the model holds."""
    x, u = equilibrium(board, [0, 0.3, 0, 0, 0, 0.5, 0.5, 0], [0, 0])
    np.testing.assert_allclose(board.local(x, board.step(x, u)), 0, atol=1e-9)
    np.testing.assert_allclose(board.velocity(x), 0, atol=1e-7)


def test_a_guess_without_a_possible_step_is_refused(board):
    with pytest.raises(StepFailed, match="domain"):
        equilibrium(board, [0, 2.0, 0, 0, 0, 0.5, 0.5, 0], [0, 0])


H, G = 0.01, 9.81


def pendulums(*inputs):
    """Two unit masses on rods, angles from hanging, with or without motors at the hinges."""
    return nh.System(
        "pendulums",
        nh.Rn("a", "b"),
        lambda q, v: (
            v[0] ** 2 + v[1] ** 2 / 2 + v[0] * v[1] * ca.cos(q[0] - q[1])
            + G * (2 * ca.cos(q[0]) + ca.cos(q[1]))
        ),
        inputs=inputs,
        force=(lambda q, v, u: ca.vertcat(u[0] - u[1], u[1])) if inputs else None,
    )  # fmt: skip


def bead(scale=1.0):
    """A unit mass on the circle `x^2 + z^2 = 1`, in units of 1 / scale m."""
    return nh.System(
        "bead",
        nh.Rn("x", "z"),
        lambda q, v: scale**2 * ca.sumsqr(v) / 2 - G * scale * q[1],
        holonomic_constraint=lambda q: scale**2 * ca.sumsqr(q) - 1,
    )


def top():
    """A body on a hinge at a distance from its center along its axis z."""
    space, inertia = nh.SO3("turn"), np.diag([2.0, 3.0, 4.0])
    return nh.System(
        "top", space, lambda q, w: w.T @ inertia @ w / 2 - G * (1 - 2 * q[1] ** 2 - 2 * q[2] ** 2)
    )


def sledge(bend):
    """On a surface `z = (bend_x x^2 + bend_y y^2) / 2`; it does not slip across its heading."""
    return nh.System(
        "sledge",
        nh.Rn("x", "y", "heading"),
        lambda q, v: ca.sumsqr(v) / 2 - G * (bend[0] * q[0] ** 2 + bend[1] * q[1] ** 2) / 2,
        velocity_constraint=lambda q: ca.horzcat(-ca.sin(q[2]), ca.cos(q[2]), 0),
    )


MOTORS = "low", "high"


@pytest.mark.parametrize(
    ("system", "q", "kind", "counts"),
    [
        (pendulums(), [0.1, 0.1], "minimum", (2, 0, 0)),
        (pendulums(), [3.0, 0.1], "saddle", (1, 1, 0)),
        (pendulums(), [0.1, 3.0], "saddle", (1, 1, 0)),
        (pendulums(), [3.1, 3.2], "maximum", (0, 2, 0)),
        (pendulums(*MOTORS), [1.0, -1.4], "minimum", (2, 0, 0)),  # held by torques
        (pendulums(*MOTORS), [1.0, 2.0], "saddle", (1, 1, 0)),
        (bead(), [0.0, -1.0], "minimum", (1, 0, 0)),
        (bead(), [0.0, 1.0], "maximum", (0, 1, 0)),
        (bead(0.01), [0.0, 100.0], "maximum", (0, 1, 0)),
        (top(), [1.0, 0.0, 0.0, 0.0], "maximum", (0, 2, 1)),
        (top(), [0.0, 1.0, 0.0, 0.0], "minimum", (2, 0, 1)),
        (sledge((1.0, -1.0)), [0.0, 0.0, 0.0], "minimum", (1, 0, 1)),
        (sledge((-1.0, 1.0)), [0.0, 0.0, 0.0], "maximum", (0, 1, 1)),
        (nh.systems.cart_pole(), [0.3, 3.1], "maximum", (0, 1, 1)),
        (nh.systems.cart_pole(), [0.3, 0.0], "minimum", (1, 0, 1)),
    ],
)
def test_an_equilibrium_says_what_it_is_of_the_potential_energy(system, q, kind, counts):
    """A mode grows for every direction of falling energy, a pair turns for a rising one."""
    dsys = (nh.nonholonomic_midpoint if system.n_velocity_constraints else nh.midpoint)(system, H)
    start, rest = dsys.state(q, np.zeros(system.space.nw)), np.zeros(dsys.nu)
    motors = dsys.inputs == MOTORS
    fixed = dsys.state_space.tangent_names if motors else dsys.inputs
    found = equilibrium(dsys, start, rest, fixed=fixed)
    x, u = found
    assert x is found.x and u is found.u and found.kind == kind
    assert not motors or np.abs(u).min() > 1
    shape = found.potential
    assert tuple(len(rows) for rows in (shape.rising, shape.falling, shape.flat)) == counts
    values = np.linalg.eigvals(dsys.linearize(x, u).A)
    assert (np.abs(values) > 1 + 1e-3).sum() == counts[1]
    assert (values.imag > 1e-3).sum() == counts[0]


def test_a_shape_names_the_coordinates_along_which_it_falls_and_is_flat():
    dsys = nh.midpoint(nh.systems.cart_pole(), H)
    upright = equilibrium(dsys, [0.0, np.pi, 0.0, 0.0], [0.0], fixed=dsys.inputs)
    text = "maximum; falls in 1 direction along theta; is flat in 1 direction along x"
    assert str(upright.potential) == text


@pytest.mark.parametrize(
    "q", [[3.0, 0.1], [np.pi, 0.0], [np.pi, np.pi], [0.0, np.pi], [3.2, -4.5]]
)
def test_the_least_potential_energy_is_found_from_maxima_and_saddles(q):
    rest = minimize_potential_energy(pendulums(), q)
    np.testing.assert_allclose(np.cos(rest), 1.0, atol=1e-12)


def test_a_search_that_ends_just_above_its_tolerance_starts_once_more():
    """The robot of the package: from here IPOPT's first search ended 1e-12 off."""
    robot = nh.load_urdf(DEFAULT).system
    rest = minimize_potential_energy(robot, [3.21517625, -4.54082131])
    np.testing.assert_allclose(np.cos(rest), 1.0, atol=1e-12)


def test_what_contacts_hold_is_no_question_of_the_potential():
    ball = nh.System(
        "ball",
        nh.Rn("z"),
        lambda q, v: v[0] ** 2 / 2 - G * q[0],
        contacts=(nh.UnilateralConstraint("ground", lambda q: q[0]),),
    )
    dsys = nh.midpoint(ball, H)
    lying = equilibrium(dsys, dsys.state([1e-3], [0.0]), [])
    with pytest.raises(ValueError, match=r"have no potential; look at the eigenvalues"):
        str(lying.kind)


def test_fixed_coordinates_keep_their_guess_in_an_equilibrium():
    """A pendulum's torque for an angle, its angle for a torque, and neither of both."""
    dsys = nh.midpoint(pendulum(), 0.05)
    weight = 9.8 * np.sin(0.3)
    x, u = equilibrium(dsys, [0.3, 0.0], [0.0], fixed=("theta",))
    np.testing.assert_allclose([*x, *u], [0.3, 0.0, weight], atol=1e-9)
    x, u = equilibrium(dsys, [0.2, 0.5], [weight], fixed=("torque",))
    np.testing.assert_allclose([*x, *u], [0.3, 0.0, weight], atol=1e-9)
    for angle in (-0.3, 0.3):  # what moves most moves backwards in one of them
        with pytest.raises(
            NoEquilibrium, match=r"fix fewer names than \['theta', 'torque'\]"
        ) as found:
            equilibrium(dsys, [angle, 0.0], [0.0], fixed=("theta", "torque"))
        nearest = found.value
        np.testing.assert_array_equal([nearest.x[0], *nearest.u], [angle, 0.0])
        np.testing.assert_array_equal(
            nearest.motion, dsys.local(nearest.x, dsys.step(nearest.x, nearest.u))
        )
        worst = int(np.argmax(np.abs(nearest.motion)))
        name = dsys.state_space.tangent_names[worst]
        assert f"still moves {name} by {nearest.motion[worst]:.1e}" in str(nearest)
    with pytest.raises(ValueError, match=r"cannot fix \['phi'\], choose from \['theta', 'p_theta"):
        equilibrium(dsys, [0.3, 0.0], [0.0], fixed=("theta", "phi"))
