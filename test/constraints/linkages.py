"""Small systems with holonomic constraints, some of which become singular [johnson2014 VII]."""

import casadi as ca

from nh_control.geometry.rotations import SO3
from nh_control.geometry.spaces import Product, Rn
from nh_control.mechanics.system import System

G = 9.8


def rod(length=0.7, g=G, mass=1.0) -> System:
    """A mass in the plane at a distance from the origin [johnson2014 VII-B]."""
    return System(
        name="rod",
        space=Rn("x", "y"),
        lagrangian=lambda q, v: mass * (ca.sumsqr(v) / 2 - g * q[1]),
        holonomic_constraint=lambda q: ca.sumsqr(q) - length**2,
    )


def spherical(m=1.3, r=0.8, g=G) -> System:
    """A spherical pendulum: elevation = theta - pi/2 from below, and phi [johnson2014 VII-A]."""
    return System(
        name="spherical",
        space=Rn("elevation", "phi"),
        lagrangian=lambda q, v: (
            m * r**2 / 2 * (v[0] ** 2 + ca.cos(q[0]) ** 2 * v[1] ** 2) - m * g * r * ca.sin(q[0])
        ),
    )


def bead(tilt) -> System:
    """A unit mass on the unit sphere and a plane through its pole, tangent at tilt 0."""
    return System(
        name="bead",
        space=Rn("x", "y", "z"),
        lagrangian=lambda q, v: ca.sumsqr(v) / 2,
        holonomic_constraint=lambda q: ca.vertcat(
            ca.sumsqr(q) - 1, q[0] * ca.sin(tilt) + (q[2] - 1) * ca.cos(tilt)
        ),
    )


def sling(length=0.5) -> System:
    """A unit mass on a string from a hand; hand and length are prescribed."""
    return System(
        name="sling",
        space=Rn("x", "z", "hand_x", "hand_z", "length"),
        lagrangian=lambda q, v: ca.sumsqr(v[:2]) / 2 - G * q[1],
        holonomic_constraint=lambda q: ca.sumsqr(q[:2] - q[2:4]) - (length + q[4]) ** 2,
        prescribed=("hand_x", "hand_z", "length"),
    )


def lamp(arm=0.3) -> System:
    """A free body of unit mass, held at the origin by a point `arm` above its center."""
    return System(
        name="lamp",
        space=Product(SO3("r"), Rn("x", "y", "z")),
        lagrangian=lambda q, v: (
            (0.02 * v[0] ** 2 + 0.03 * v[1] ** 2 + 0.01 * v[2] ** 2 + ca.sumsqr(v[3:])) / 2
            - G * q[6]
        ),
        holonomic_constraint=lambda q: q[4:] + _rotated(q[:4], arm),
    )


def _rotated(w, arm):
    return arm * ca.vertcat(
        2 * (w[1] * w[3] + w[0] * w[2]),
        2 * (w[2] * w[3] - w[0] * w[1]),
        w[0] ** 2 - w[1] ** 2 - w[2] ** 2 + w[3] ** 2,
    )
