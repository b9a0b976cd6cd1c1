"""The systems on rotations and directions that the tests run over, built once a process, and
states to try them at.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import casadi as ca
import lie_motion
import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry import quaternion
from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import SE2, Product
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics.system import System
from nh_control.systems.quadrotor_payload import QuadrotorPayloadParameters, quadrotor_payload
from nh_control.systems.rigid_body import (
    HeavyTopParameters,
    RigidBodyParameters,
    heavy_top,
    rigid_body,
)
from nh_control.systems.spherical_pendulum import SphericalPendulumParameters, spherical_pendulum

BODY = RigidBodyParameters()
FAST_TOP = HeavyTopParameters()
MILD_TOP = HeavyTopParameters(M=1.0, l=0.5, Jx=0.3, Jy=0.25, Jz=0.4, chi=(0.6, 0.8, 0.0))
PAYLOAD = QuadrotorPayloadParameters()


def chain(n: int) -> SphericalPendulumParameters:
    """The paper's chain of n links of 1 m and 1 kg."""
    return SphericalPendulumParameters(masses=(1.0,) * n, lengths=(1.0,) * n)


def floating_body(retraction: str) -> System:
    """The body as a pose under gravity, with a wrench in its frame: a system on SE(3)."""
    j, mass, g = ca.DM(inertia(BODY)), 1.5, 9.81
    return System(
        name=f"floating_body_{retraction}",
        space=SE3(retraction=retraction),
        lagrangian=lambda q, v: (
            ca.dot(j, v[:3] ** 2) / 2 + mass * (ca.sumsqr(v[3:]) / 2 - g * q[6])
        ),
        inputs=("torque_x", "torque_y", "torque_z", "force_x", "force_y", "force_z"),
        force=lambda q, v, u: u,
    )


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


ARM = np.array(MILD_TOP.chi) * MILD_TOP.l


def top_on_a_joint() -> System:
    """The mild top as a pose in space whose lower end a ball joint holds at the origin."""
    p = MILD_TOP
    about_center = ca.DM(inertia(p) - p.M * (ARM @ ARM - ARM**2))
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
    "rigid_body": lambda: rigid_body(BODY),
    "heavy_top": lambda: heavy_top(MILD_TOP),
    "fast_top": lambda: heavy_top(FAST_TOP),
    **{f"pendulum_{n}": lambda n=n: spherical_pendulum(chain(n)) for n in (1, 2)},
    "payload": lambda: quadrotor_payload(PAYLOAD),
    # Far from everything: the free payload falls 5000 km in 1000 s otherwise, and with it goes all
    # precision.
    "payload_afloat": lambda: replace(
        quadrotor_payload(replace(PAYLOAD, g=1e-30)), name="payload_afloat"
    ),
    # The same with the other retraction, and a system on SE(3).
    "rigid_body_exp": lambda: replace(
        rigid_body(BODY), name="rigid_body_exp", space=SO3(retraction="exp")
    ),
    "pendulum_2_exp": lambda: replace(
        spherical_pendulum(chain(2)),
        name="pendulum_2_exp",
        space=Product(S2("link1_", "exp"), S2("link2_", "exp")),
    ),
    **{f"floating_body_{r}": lambda r=r: floating_body(r) for r in ("exp", "cay")},
    "planar_body": planar_body,
    "planar_body_free": lambda: planar_body(0 * SPRING, "planar_body_free"),
    "body_in_fluid": body_in_fluid,
    "top_on_a_joint": top_on_a_joint,
}


@cache
def system(name: str) -> System:
    """The system of a name."""
    return SYSTEMS[name]()


def discrete(name: str, h: float, method: str = "midpoint") -> DiscreteSystem:
    """A registered method on a system, made once for all steps."""
    return _made(name, method).with_step(h)


@cache
def _made(name: str, method: str) -> DiscreteSystem:
    return INTEGRATORS[method].make(system(name), 0.1)


def inertia(parameters) -> np.ndarray:
    """Principal inertias (3)."""
    return np.array([parameters.Jx, parameters.Jy, parameters.Jz])


def motion(name: str, inputs=None) -> lie_motion.Motion:
    """The hand-written equations of a system; `inputs(t)` drives those that have any."""
    if name == "planar_body":
        return planar_motion(inputs)
    if name.startswith("floating_body"):
        return lie_motion.floating_body(inertia(BODY), 1.5, 9.81, inputs)
    if name.startswith("rigid_body"):
        return lie_motion.rigid_body(inertia(BODY), inputs or (lambda t: np.zeros(3)))
    if name in ("heavy_top", "fast_top"):
        p = MILD_TOP if name == "heavy_top" else FAST_TOP
        return lie_motion.heavy_top(p.M, p.l, inertia(p), p.g, p.chi)
    p = chain(int(name.split("_")[1]))
    return lie_motion.spherical_pendulum(p.masses, p.lengths, p.g)


def parts(space):
    """Every simple factor of a configuration space with the slices of its nq, nv and nw
    numbers.
    """
    i = j = k = 0
    for f in getattr(space, "factors", (space,)):
        yield f, slice(i, i + f.nq), slice(j, j + f.nv), slice(k, k + f.nw)
        i, j, k = i + f.nq, j + f.nv, k + f.nw


def random_configuration(space, rng) -> np.ndarray:
    """A seeded configuration."""
    q = rng.normal(size=space.nq)
    for f, at, _, _ in parts(space):
        n = {S2: 3, SO3: 4, SE3: 4}.get(type(f), 0)
        q[at][:n] /= np.linalg.norm(q[at][:n]) if n else 1.0
    return q


def random_point(dsys: DiscreteSystem, rng) -> tuple[np.ndarray, np.ndarray]:
    """A seeded state and input, with velocities and inputs of order one."""
    q = random_configuration(dsys.system.space, rng)
    v = rng.normal(size=dsys.system.space.nw)
    for f, at, _, stored in parts(dsys.system.space):
        if isinstance(f, S2):
            v[stored] -= (v[stored] @ q[at]) * q[at]
    return dsys.measured_state(q, v), rng.normal(size=dsys.nu)
