"""Quadrotors that carry a point payload on rigid massless links, on R^3 x SO(3)^n x (S^2)^n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import S2, SO3
from nh_control.geometry.spaces import Product, Rn
from nh_control.mechanics.system import System
from nh_control.systems.parameters import require_positive


@dataclass(frozen=True)
class QuadrotorPayloadParameters:
    """Payload mass (kg), quadrotor mass (kg), principal inertias (kg m^2), link lengths (m, one
    per quadrotor), gravity (m/s^2), limits of thrust (N) and of each torque (N m); defaults of
    [celledoni2021 5.3]."""

    payload_mass: float = 0.4
    quadrotor_mass: float = 0.755
    Jx: float = 0.0820
    Jy: float = 0.0845
    Jz: float = 0.1377
    lengths: Sequence[float] = (0.6, 0.8)
    g: float = 9.81
    thrust_limit: float = 30.0
    torque_limit: float = 5.0

    def __post_init__(self):
        require_positive(
            self,
            "payload_mass",
            "quadrotor_mass",
            "Jx",
            "Jy",
            "Jz",
            "g",
            "thrust_limit",
            "torque_limit",
        )
        lengths = tuple(float(l) for l in self.lengths)
        if not lengths or not all(np.isfinite(l) and l > 0 for l in lengths):
            raise ValueError(
                f"QuadrotorPayloadParameters.lengths must be positive and finite, got {lengths}"
            )
        object.__setattr__(self, "lengths", lengths)
        weight = (self.payload_mass + len(lengths) * self.quadrotor_mass) * self.g
        if weight >= len(lengths) * self.thrust_limit:
            raise ValueError(
                f"QuadrotorPayloadParameters: {len(lengths)} thrusts of at most "
                f"{self.thrust_limit:g} N cannot hold the weight of {weight:.4g} N"
            )

    @property
    def n(self) -> int:
        """Number of quadrotors."""
        return len(self.lengths)


@dataclass(frozen=True)
class Formation:
    """How the quadrotors stand around the payload in hover: links `angle` (rad) from the vertical,
    quadrotor 1 in the horizontal direction `azimuth` (rad from x), the others spread evenly
    around."""

    angle: float = np.pi / 6
    azimuth: float = np.pi / 2

    def __post_init__(self):
        if not (0 <= self.angle < np.pi / 2 and np.isfinite(self.azimuth)):
            raise ValueError(
                f"Formation: angle must lie in [0, pi/2) and azimuth be finite, got {self.angle} "
                f"and {self.azimuth}"
            )

    def horizontal(self, n: int) -> np.ndarray:
        """Horizontal unit vectors towards the quadrotors, (n, 3); zero for a single quadrotor,
        which can only hover above the payload.
        """
        if n == 1:
            return np.zeros((1, 3))
        azimuths = self.azimuth + 2 * np.pi * np.arange(n) / n
        return np.stack([np.cos(azimuths), np.sin(azimuths), np.zeros(n)], axis=1)

    def links(self, n: int) -> np.ndarray:
        """Link directions in hover, (n, 3)."""
        links = np.sin(self.angle) * self.horizontal(n) + [0.0, 0.0, np.cos(self.angle)]
        return links / np.linalg.norm(links, axis=1, keepdims=True)


def split_configuration(q, n: int):
    """Payload position y (3), unit quaternions of the quadrotors and link directions (n each) of a
    configuration, expression or array.
    """
    links = 3 + 4 * n
    return (
        q[:3],
        [q[3 + 4 * i : 7 + 4 * i] for i in range(n)],
        [q[links + 3 * i : links + 3 * i + 3] for i in range(n)],
    )


def split_velocity(v, n: int):
    """Payload velocity (3), body angular velocities and link velocities (n each) of a velocity,
    expression or array.
    """
    links = 3 + 3 * n
    return (
        v[:3],
        [v[3 + 3 * i : 6 + 3 * i] for i in range(n)],
        [v[links + 3 * i : links + 3 * i + 3] for i in range(n)],
    )


def quadrotor_payload(
    parameters: QuadrotorPayloadParameters = QuadrotorPayloadParameters(), wind: bool = False
) -> System:
    """Payload at y (z up), quadrotor i at `x_i = y + l_i q_i` with attitude R_i, thrust T_i along
    its body z and body torque M_i [celledoni2021 (36), (37)].

    `L = m_y |y'|^2 / 2 - m_y g y_z + sum_i m_i |y' + l_i q_i'|^2 / 2 - m_i g (y + l_i q_i)_z +
    Omega_i^T J Omega_i / 2`. q_i points from the payload to quadrotor i: the paper's q_i points
    the other way and its e3 down (converted to REP-103). q = (y, R_1, ..., R_n, q_1, ..., q_n);
    inputs (T_i, M_i) per quadrotor. The links push and pull. With `wind` the inputs end with
    external forces (N, world frame) on the payload and on every quadrotor, 3 (n + 1) without
    limits.
    """
    p = parameters
    inertia = ca.DM([p.Jx, p.Jy, p.Jz])
    space = Product(
        Rn("payload_x", "payload_y", "payload_z"),
        *(SO3(f"quad{i + 1}_") for i in range(p.n)),
        *(S2(f"link{i + 1}_") for i in range(p.n)),
    )

    def lagrangian(q, v):
        (y, _, links), (y_dot, omegas, link_rates) = (
            split_configuration(q, p.n),
            split_velocity(v, p.n),
        )
        total = p.payload_mass * (ca.sumsqr(y_dot) / 2 - p.g * y[2])
        for l, link, omega, rate in zip(p.lengths, links, omegas, link_rates):
            total += p.quadrotor_mass * (
                ca.sumsqr(y_dot + l * rate) / 2 - p.g * (y[2] + l * link[2])
            )
            total += ca.dot(inertia, omega**2) / 2
        return total

    def force(q, v, u):
        attitudes = split_configuration(q, p.n)[1]
        forces = [
            quaternion.rotate(R, ca.vertcat(0, 0, u[4 * i])) for i, R in enumerate(attitudes)
        ]
        on_payload = 0
        if wind:
            w = u[4 * p.n :]
            on_payload = w[:3]
            forces = [f + w[3 * i + 3 : 3 * i + 6] for i, f in enumerate(forces)]
        return ca.vertcat(
            on_payload + sum(forces),
            *(u[4 * i + 1 : 4 * i + 4] for i in range(p.n)),
            *(l * f for l, f in zip(p.lengths, forces)),
        )

    quads = [f"quad{i + 1}" for i in range(p.n)]
    pushed = ("payload", *quads) if wind else ()
    limits = np.tile([[0.0, p.thrust_limit], *[[-p.torque_limit, p.torque_limit]] * 3], (p.n, 1))
    return System(
        name=f"quadrotor_payload_{p.n}" + ("_wind" if wind else ""),
        space=space,
        lagrangian=lagrangian,
        inputs=tuple(
            f"{quad}_{name}"
            for quad in quads
            for name in ("thrust", "torque_x", "torque_y", "torque_z")
        )
        + tuple(f"{body}_force_{c}" for body in pushed for c in "xyz"),
        input_units=("N", "N m", "N m", "N m") * p.n + ("N",) * 3 * len(pushed),
        force=force,
        parameters=parameters,
        input_limits=np.vstack([limits, np.tile([-np.inf, np.inf], (3 * len(pushed), 1))]),
    )
