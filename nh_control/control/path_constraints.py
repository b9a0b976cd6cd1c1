"""Common constraints on robot motions: keep-out spheres, tilt limits, taut cables."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.constraints import Constraint
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SE3, SO3
from nh_control.geometry.spaces import Product
from nh_control.multibody.model import MultibodySystem
from nh_control.systems.quadrotor_payload import (
    QuadrotorPayloadParameters,
    split_configuration,
    split_velocity,
)


def keep_out(
    model: DiscreteSystem,
    point: str | Callable[[ca.SX], ca.SX],
    center: ArrayLike,
    radius: float,
    weight: float = np.inf,
    name: str = "keep_out",
) -> Constraint:
    """A point stays outside a ball: `(|y(q) - c|^2 / r^2 - 1) r / 2 >= 0`. Near the surface, this
    value is the distance to the surface in m.

    `point` is an expression y (d) of the configuration q (nq), or the name of a frame in a
    `Multibody`. The `center` c (d) and the `radius` r are in m. If there are several balls, their
    constraints need different names. Raises ValueError for a radius that is not positive, for a
    center of a different dimension, and for the name of a frame if the system is not a
    `Multibody`.
    """
    c = np.array(center, dtype=float)
    if not (np.isfinite(radius) and radius > 0 and c.ndim == 1 and np.isfinite(c).all()):
        raise ValueError(
            f"{model}: keep_out needs a finite center (d) and a radius > 0, got {c.tolist()} and "
            f"{radius}"
        )
    position = _position(model, point) if isinstance(point, str) else point

    def distance(x: ca.SX, u: ca.SX, w: ca.SX) -> ca.SX:
        y = ca.SX(position(x[: model.system.space.nq]))
        if y.shape != (len(c), 1):
            raise ValueError(
                f"{model}: the point of {name!r} has shape {y.shape}, its center {c.shape}"
            )
        return (ca.sumsqr(y - c) / radius**2 - 1) * radius / 2

    return Constraint(name, distance, lower=0.0, weight=weight)


def _position(model: DiscreteSystem, frame: str) -> Callable[[ca.SX], ca.SX]:
    """The position of a frame in a model's tree as a function of the configuration."""
    system = model.system
    tree = system.model if isinstance(system, MultibodySystem) else None
    if tree is None:
        raise ValueError(
            f"{model}: only a Multibody has frames such as {frame!r}; pass the point as an "
            f"expression of the configuration"
        )
    tree.tree.checked_frame(frame)
    rest = ca.SX.zeros(system.space.nw)
    return lambda q: tree.kinematics(q, rest).position(frame)


def tilt_limit(
    model: DiscreteSystem, angle: float, weight: float = np.inf, name: str = "tilt"
) -> Constraint:
    """The z axis of every rotation and every pose in the configuration is within `angle` (rad) of
    the vertical: `R_zz >= cos(angle)`.

    Raises ValueError for a system without rotations, and for an angle that is not in (0, pi).
    """
    offset, space = 0, model.system.space
    places = []
    for factor in space.factors if isinstance(space, Product) else (space,):
        if isinstance(factor, (SO3, SE3)):
            places.append(offset)
        offset += factor.nq
    if not places:
        raise ValueError(f"{model}: tilt_limit needs a rotation or a pose in {space}")
    if not 0 < angle < np.pi:
        raise ValueError(f"{model}: tilt_limit needs an angle in (0, pi), got {angle} rad")

    def upright(x: ca.SX, u: ca.SX, w: ca.SX) -> ca.SX:
        # R_zz = 1 - 2 (b^2 + c^2) of the unit quaternion (a, b, c, d)
        return ca.vertcat(*(1 - 2 * (x[i + 1] ** 2 + x[i + 2] ** 2) for i in places))

    return Constraint(name, upright, lower=np.cos(angle), weight=weight)


def tension_limit(
    model: DiscreteSystem, least: float, weight: float = np.inf, name: str = "tension"
) -> Constraint:
    """The tension in every link of a `quadrotor_payload` is at least `least` (N). Newton's law
    along the links yields `tension_i = q_i . f_i + m_i l_i |q_i'|^2 - m_i q_i . a`, where a is the
    payload's acceleration minus gravity. The force estimated by a tracker acts on the payload.

    Raises ValueError for any other system.
    """
    parameters, s = model.system.parameters, model.system
    if not isinstance(parameters, QuadrotorPayloadParameters):
        raise ValueError(f"{model}: tension_limit requires the system quadrotor_payload")
    nq, n = s.space.nq, parameters.n

    def tension(x: ca.SX, u: ca.SX, w: ca.SX) -> ca.SX:
        mass, momentum, basis, prescribed = s.numeric.mechanics.inertia(x[:nq], x[nq:])
        v = basis @ ca.solve(ca.densify(mass), ca.densify(momentum)) + prescribed
        _, attitudes, links = split_configuration(x[:nq], n)
        rates = split_velocity(v, n)[2]
        m = parameters.quadrotor_mass
        thrusts = [
            quaternion.rotate(R, ca.vertcat(0, 0, u[4 * i])) for i, R in enumerate(attitudes)
        ]
        # along the links: thrust and centripetal force, q_i . f_i + m_i l_i |q_i'|^2
        along = [
            ca.dot(q, f) + m * l * ca.sumsqr(rate)
            for q, f, l, rate in zip(links, thrusts, parameters.lengths, rates)
        ]
        # (m_y + sum m q q^T) a = sum q along + force on the payload
        inertia = parameters.payload_mass * ca.SX.eye(3) + sum(m * q @ q.T for q in links)
        a = ca.solve(inertia, sum(q * f for q, f in zip(links, along)) + w[:3])
        return ca.vertcat(*(f - m * ca.dot(q, a) for q, f in zip(links, along)))

    links = [f"link{i + 1}" for i in range(n)]
    return Constraint(name, tension, lower=least, weight=weight, disturbed=True, rows=links)
