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
from nh_control.geometry.rotations import S2, SE3, SO3
from nh_control.geometry.spaces import Product
from nh_control.integrators import midpoint
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
LINKS = (1, 2, 4, 8)


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


SYSTEMS = {
    "rigid_body": lambda: rigid_body(BODY),
    "heavy_top": lambda: heavy_top(MILD_TOP),
    "fast_top": lambda: heavy_top(FAST_TOP),
    **{f"pendulum_{n}": lambda n=n: spherical_pendulum(chain(n)) for n in LINKS},
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
}


@cache
def system(name: str) -> System:
    """The system of a name."""
    return SYSTEMS[name]()


@cache
def discrete(name: str, h: float) -> DiscreteSystem:
    """Its midpoint variational integrator at step h."""
    return midpoint(system(name), h)


def inertia(parameters) -> np.ndarray:
    """Principal inertias (3)."""
    return np.array([parameters.Jx, parameters.Jy, parameters.Jz])


def motion(name: str, inputs=None) -> lie_motion.Motion:
    """The hand-written equations of a system; `inputs(t)` drives those that have any."""
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


ANYHOW, HORIZONTAL, UPSIDE_DOWN, AT_REST = POSES = (
    "anyhow",
    "links horizontal",
    "bodies upside down",
    "at rest",
)


def random_configuration(space, rng, pose: str = ANYHOW) -> np.ndarray:
    """A seeded configuration; links with z exactly 0, or bodies turned by pi about a horizontal
    axis, on request.
    """
    q = rng.normal(size=space.nq)
    for f, at, _, _ in parts(space):
        if isinstance(f, S2) and pose == HORIZONTAL:
            q[at][2] = 0.0
        if isinstance(f, (SO3, SE3)) and pose == UPSIDE_DOWN:
            q[at][[0, 3]] = 0.0
        if isinstance(f, (S2, SO3)):
            q[at] /= np.linalg.norm(q[at])
        if isinstance(f, SE3):
            q[at][:4] /= np.linalg.norm(q[at][:4])
    return q


def random_point(dsys: DiscreteSystem, rng, pose: str = ANYHOW) -> tuple[np.ndarray, np.ndarray]:
    """A seeded state and input, with velocities and inputs of order one, or none where it is at
    rest.
    """
    q = random_configuration(dsys.system.space, rng, pose)
    v = rng.normal(size=dsys.system.space.nw) * (pose != AT_REST)
    for f, at, _, stored in parts(dsys.system.space):
        if isinstance(f, S2):
            v[stored] -= (v[stored] @ q[at]) * q[at]
    return dsys.measured_state(q, v), rng.normal(size=dsys.nu) * (pose != AT_REST)
