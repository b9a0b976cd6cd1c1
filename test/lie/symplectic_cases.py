"""Systems beside those of lie_cases for methods on T*G, their motions by hand, and runs of a
registered method.
"""

from __future__ import annotations

from functools import cache

import casadi as ca
import lie_cases
import lie_motion
import numpy as np

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SE3
from nh_control.geometry.spaces import SE2
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics.system import System

MASS = np.array([[1.2, 0.1, -0.2], [0.1, 1.5, 0.3], [-0.2, 0.3, 2.0]])
SPRING = np.array([0.7, 1.5, 0.9])


def planar_body(spring=SPRING, name="planar_body") -> System:
    """A pose of the plane with a full inertia matrix, springs, and forces in the body frame."""
    return System(
        name=name,
        space=SE2(),
        lagrangian=lambda q, v: v.T @ ca.DM(MASS) @ v / 2 - ca.dot(ca.DM(spring), q**2) / 2,
        inputs=("torque", "forward", "side"),
        force=lambda q, v, u: u,
    )


def planar_motion(inputs=None) -> lie_motion.Motion:
    """`p' = ad*_v p - T^T dV + u,  v = M^{-1} p`, y = (q, p)."""

    def derivative(t, y):
        q, p = y[:3], y[3:]
        v, c, s = np.linalg.solve(MASS, p), np.cos(q[0]), np.sin(q[0])
        turn = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
        bent = [v[2] * p[1] - v[1] * p[2], v[0] * p[2], -v[0] * p[1]]
        push = inputs(t) if inputs else np.zeros(3)
        return np.concatenate([turn @ v, bent - turn.T @ (SPRING * q) + push])

    return lie_motion.Motion(derivative, lambda y: y)


def body_in_fluid() -> System:
    """Kirchhoff's equations on se(3)*: a left-invariant kinetic energy with added masses."""
    turning, coupling = ca.DM([1.0, 2.0, 2.5]), ca.DM([[0.1, 0.2, 0], [0, 0.1, 0.1], [0, 0, -0.1]])
    pushing = ca.DM([1.0, 1.6, 2.2])
    return System(
        name="body_in_fluid",
        space=SE3(),
        lagrangian=lambda q, v: (
            ca.dot(turning, v[:3] ** 2) / 2
            + ca.dot(pushing, v[3:] ** 2) / 2
            + v[:3].T @ coupling @ v[3:]
        ),
    )


ARM = np.array(lie_cases.MILD_TOP.chi) * lie_cases.MILD_TOP.l


def top_on_a_joint() -> System:
    """The mild top as a pose in space whose lower end a ball joint holds at the origin."""
    p = lie_cases.MILD_TOP
    about_center = ca.DM(lie_cases.inertia(p) - p.M * (ARM @ ARM - ARM**2))
    products = ca.DM(np.outer(ARM, ARM) - np.diag(ARM**2)) * p.M
    return System(
        name="top_on_a_joint",
        space=SE3(),
        lagrangian=lambda q, v: (
            ca.dot(about_center, v[:3] ** 2) / 2
            + v[:3].T @ products @ v[:3] / 2
            + p.M * (ca.sumsqr(v[3:]) / 2 - p.g * q[6])
        ),
        holonomic_constraint=lambda q: q[4:] - quaternion.rotate(q[:4], ca.DM(ARM)),
    )


def on_the_joint(attitude, omega) -> tuple[np.ndarray, np.ndarray]:
    """Pose and velocity of the top on its joint."""
    pose = np.concatenate([attitude, lie_motion.rotate(attitude, ARM)])
    return pose, np.concatenate([omega, np.cross(omega, ARM)])


SYSTEMS = {
    "planar_body": planar_body,
    "planar_body_free": lambda: planar_body(0 * SPRING, "planar_body_free"),
    "body_in_fluid": body_in_fluid,
    "top_on_a_joint": top_on_a_joint,
}


@cache
def system(name: str) -> System:
    return SYSTEMS[name]() if name in SYSTEMS else lie_cases.system(name)


@cache
def discrete(name: str, method: str, h: float):
    """A registered method on a system."""
    return INTEGRATORS[method].make(system(name), h)
