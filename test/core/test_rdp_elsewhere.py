"""Reduced d'Alembert-Pontryagin away from the middle of a step, with a Lagrangian that depends on
the shape.
"""

import casadi as ca
import numpy as np
import pytest

from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.integrators import rdp
from nh_control.mechanics.symmetry import Symmetry
from nh_control.mechanics.system import System

H = 0.1


def sleigh_with_a_slider() -> System:
    """q = (s, theta, x, y): the slider's place changes the moment of inertia, its own mass and a
    potential; nothing slips to the side. s is driven, and so is the turning.
    """

    def lagrangian(q, v):
        s, (s_dot, omega, forward, side) = q[0], ca.vertsplit(v)
        spin = (1 + s**2) * omega**2 / 2 + (2 + ca.sin(s)) * s_dot**2 / 2
        return spin + 0.3 * s * s_dot * omega + (forward**2 + side**2) / 2 - s**4 / 4

    return System(
        name="sleigh_with_a_slider",
        space=Product(Rn("s"), SE2()),
        lagrangian=lagrangian,
        inputs=("push", "turn"),
        force=lambda q, v, u: ca.vertcat(u[0] - 0.2 * q[0], u[1], 0, 0),
        velocity_constraint=lambda q: ca.horzcat(0, 0, 0, 1),
        distribution=lambda q: ca.DM.eye(4)[:, :3],
        symmetry=Symmetry(1, lambda r: ca.SX(3, 1), lambda r: ca.DM.eye(3)[:, :2]),
    )


@pytest.fixture(scope="module")
def motion():
    """A state, (q, rho) with the masses of its shape, and inputs."""
    return np.array([0.6, 0.4, 1.0, -2.0, 0.9, -0.7, 1.3]), np.array([0.5, -0.4])


def by_rdp(alpha, h=H):
    return rdp(sleigh_with_a_slider(), h, "exp", alpha=alpha)


def test_the_way_back_is_that_of_the_other_side(motion):
    """`rdp(1 - alpha)` undoes `rdp(alpha)` when the velocity is reversed: what the one evaluates
    before the middle of a step the other evaluates behind it.
    """
    x, u = motion
    flip = np.r_[np.ones(4), -np.ones(3)]
    for alpha in (0.3, 0.0):
        there, back = by_rdp(alpha).step(x, u), by_rdp(1 - alpha)
        np.testing.assert_allclose(flip * back.step(flip * there, u), x, atol=1e-12)


def test_away_from_the_middle_the_error_is_of_first_order_and_changes_its_side(motion):
    """Both sides differ from the middle by as much, in the limit, in opposite directions."""
    x, u = motion
    gaps = {}
    for h in (H / 8, H / 16):
        steps = np.tile(u, (round(0.2 / h), 1))
        end = {alpha: by_rdp(alpha, h).simulate(x, steps).states[-1] for alpha in (0.3, 0.5, 0.7)}
        gaps[h] = end[0.3] - end[0.5], end[0.7] - end[0.5]
    before, behind = gaps[H / 16]
    assert np.abs(before).max() > 1e-4
    np.testing.assert_allclose(before, -behind, atol=0.05 * np.abs(before).max())
    ratio = np.linalg.norm(gaps[H / 8][0]) / np.linalg.norm(before)
    assert ratio == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize(
    ("retraction", "tangent", "drift"),
    [
        ("exp", "exact", 0.0),
        ("cay", "exact", 0.0),
        ("sccsk", "exact", 0.0),
        ("cay", "truncated", 0.0),
        ("exp", "truncated", 2.5e-2),
        ("sccsk", "truncated", 2.5e-2),
    ],
)
def test_momenta_of_free_translations_are_kept_but_with_a_truncated_tangent(
    retraction, tangent, drift
):
    """Of a body whose rotation follows its shape: the translations are horizontal symmetries."""
    step = rdp(body_that_turns_with_its_shape(), 0.1, retraction, tangent=tangent)
    states = step.simulate(
        step.state([0.0, 0.3, 0.0, 0.0], [2.0, -1.0, 0.7, 0.4]), steps=200
    ).states
    c, s = np.cos(states[:, 1]), np.sin(states[:, 1])
    forward, side = states[:, 5:].T
    momentum = np.stack([c * forward - s * side, s * forward + c * side], axis=1)
    assert np.abs(momentum - momentum[0]).max() == pytest.approx(drift, rel=0.1, abs=1e-12)


def body_that_turns_with_its_shape():
    """A planar body with an inner mass, `omega = -r_dot / 2`."""
    return System(
        name="turning",
        space=Product(Rn("r"), SE2()),
        lagrangian=lambda q, v: (
            (v[0] ** 2 + v[1] ** 2 + 2 * (v[2] ** 2 + v[3] ** 2) + 0.4 * v[0] * v[2]) / 2
        ),
        velocity_constraint=lambda q: ca.horzcat(0.5, 1, 0, 0),
        distribution=lambda q: ca.vertcat(
            ca.horzcat(1, 0, 0), ca.horzcat(-0.5, 0, 0), ca.horzcat(0, 1, 0), ca.horzcat(0, 0, 1)
        ),
        symmetry=Symmetry(
            1,
            connection=lambda r: ca.vertcat(0.5, 0, 0),
            basis=lambda r: ca.vertcat(ca.horzcat(0, 0), ca.horzcat(1, 0), ca.horzcat(0, 1)),
        ),
    )
