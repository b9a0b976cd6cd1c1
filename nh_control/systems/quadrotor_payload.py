"""Quadrotors that carry a point payload on rigid massless links, on R^3 x SO(3)^n x (S^2)^n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control import quaternion
from nh_control.rotations import S2, SO3
from nh_control.spaces import Product, Rn
from nh_control.system import System
from nh_control.systems.parameters import require_positive


@dataclass(frozen=True)
class QuadrotorPayloadParameters:
    """Payload mass (kg), quadrotor mass (kg), principal inertias (kg m^2), link lengths (m, one per quadrotor), gravity (m/s^2), limits of thrust (N) and of
    each torque (N m); defaults of [celledoni2021 5.3]."""

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
        require_positive(self, "payload_mass", "quadrotor_mass", "Jx", "Jy", "Jz", "g", "thrust_limit", "torque_limit")
        lengths = tuple(float(l) for l in self.lengths)
        if not lengths or not all(np.isfinite(l) and l > 0 for l in lengths):
            raise ValueError(f"QuadrotorPayloadParameters.lengths must be positive and finite, got {lengths}")
        object.__setattr__(self, "lengths", lengths)
        weight = (self.payload_mass + len(lengths) * self.quadrotor_mass) * self.g
        if weight >= len(lengths) * self.thrust_limit:
            raise ValueError(
                f"QuadrotorPayloadParameters: {len(lengths)} thrusts of at most {self.thrust_limit:g} N cannot hold the weight of {weight:.4g} N"
            )

    @property
    def n(self) -> int:
        """Number of quadrotors."""
        return len(self.lengths)


def quadrotor_payload(parameters: QuadrotorPayloadParameters = QuadrotorPayloadParameters()) -> System:
    """Payload at y (z up), quadrotor i at `x_i = y + l_i q_i` with attitude R_i, thrust T_i along its body z and body torque M_i [celledoni2021 (36), (37)].

    `L = m_y |y'|^2 / 2 - m_y g y_z + sum_i m_i |y' + l_i q_i'|^2 / 2 - m_i g (y + l_i q_i)_z + Omega_i^T J Omega_i / 2`. q_i points from the payload to quadrotor i: the paper's q_i points the
    other way and its e3 down (converted to REP-103). q = (y, R_1, ..., R_n, q_1, ..., q_n); inputs (T_i, M_i) per quadrotor. The links push and pull.
    """
    p = parameters
    inertia = ca.DM([p.Jx, p.Jy, p.Jz])
    space = Product(
        Rn("payload_x", "payload_y", "payload_z"),
        *(SO3(f"quad{i + 1}_") for i in range(p.n)),
        *(S2(f"link{i + 1}_") for i in range(p.n)),
    )

    def attitude(q, i):
        return q[3 + 4 * i : 7 + 4 * i]

    def link(q, i):
        return q[3 + 4 * p.n + 3 * i : 6 + 4 * p.n + 3 * i]

    def lagrangian(q, v):
        total = p.payload_mass * (ca.sumsqr(v[:3]) / 2 - p.g * q[2])
        for i, l in enumerate(p.lengths):
            omega, link_velocity = v[3 + 3 * i : 6 + 3 * i], v[3 + 3 * p.n + 3 * i : 6 + 3 * p.n + 3 * i]
            total += p.quadrotor_mass * (ca.sumsqr(v[:3] + l * link_velocity) / 2 - p.g * (q[2] + l * link(q, i)[2]))
            total += ca.dot(inertia, omega**2) / 2
        return total

    def force(q, v, u):
        thrusts = [quaternion.rotate(attitude(q, i), ca.vertcat(0, 0, u[4 * i])) for i in range(p.n)]
        return ca.vertcat(sum(thrusts), *(u[4 * i + 1 : 4 * i + 4] for i in range(p.n)), *(l * t for l, t in zip(p.lengths, thrusts)))

    limits = np.tile([[0.0, p.thrust_limit], *[[-p.torque_limit, p.torque_limit]] * 3], (p.n, 1))
    return System(
        name=f"quadrotor_payload_{p.n}",
        space=space,
        lagrangian=lagrangian,
        inputs=tuple(f"quad{i + 1}_{name}" for i in range(p.n) for name in ("thrust", "torque_x", "torque_y", "torque_z")),
        input_units=("N", "N m", "N m", "N m") * p.n,
        force=force,
        parameters=parameters,
        input_limits=limits,
    )
