"""Quadrotors that carry a point payload on rigid massless links, on R^3 x SO(3)^n x (S^2)^n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import casadi as ca
import numpy as np

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import S2, SO3
from nh_control.geometry.spaces import Product, Rn
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System

T = TypeVar("T", ca.SX, np.ndarray)


@dataclass(frozen=True)
class QuadrotorPayloadParameters(Parameters):
    """Quadrotors with a payload. The defaults are from [celledoni2021 5.3]."""

    payload_mass: float = parameter(0.4, "kg", "mass of the payload")
    quadrotor_mass: float = parameter(0.755, "kg", "mass of each quadrotor")
    Jx: float = parameter(0.0820, "kg m^2", "a quadrotor's inertia about its x")
    Jy: float = parameter(0.0845, "kg m^2", "a quadrotor's inertia about its y")
    Jz: float = parameter(0.1377, "kg m^2", "a quadrotor's inertia about its z")
    lengths: Sequence[float] = parameter((0.6, 0.8), "m", "lengths of the links, one each")
    g: float = parameter(9.81, "m/s^2", "gravity")
    thrust_limit: float = parameter(30.0, "N", "largest thrust of a quadrotor")
    torque_limit: float = parameter(5.0, "N m", "largest torque about each of its axes")

    def __post_init__(self) -> None:
        super().__post_init__()
        weight = (self.payload_mass + self.n * self.quadrotor_mass) * self.g
        if weight >= self.n * self.thrust_limit:
            raise ValueError(
                f"QuadrotorPayloadParameters: {self.n} thrusts of at most "
                f"{self.thrust_limit:g} N cannot hold the weight of {weight:.4g} N"
            )

    @property
    def n(self) -> int:
        """Number of quadrotors."""
        return len(self.lengths)


@dataclass(frozen=True)
class Formation:
    """The formation of the quadrotors around the payload in hover. The links are at the `angle`
    (rad) from the vertical. Quadrotor 1 is in the horizontal direction `azimuth` (rad from x), and
    the others are spaced evenly.
    """

    angle: float = np.pi / 6
    azimuth: float = np.pi / 2

    def __post_init__(self) -> None:
        if not (0 <= self.angle < np.pi / 2 and np.isfinite(self.azimuth)):
            raise ValueError(
                f"Formation: angle must lie in [0, pi/2) and azimuth be finite, got {self.angle} "
                f"and {self.azimuth}"
            )

    def horizontal(self, n: int) -> np.ndarray:
        """Horizontal unit vectors toward the quadrotors, (n, 3). They are zero for a single
        quadrotor, which can only hover above the payload.
        """
        if n == 1:
            return np.zeros((1, 3))
        azimuths = self.azimuth + 2 * np.pi * np.arange(n) / n
        return np.stack([np.cos(azimuths), np.sin(azimuths), np.zeros(n)], axis=1)

    def links(self, n: int) -> np.ndarray:
        """Link directions in hover, (n, 3)."""
        links = np.sin(self.angle) * self.horizontal(n) + [0.0, 0.0, np.cos(self.angle)]
        return links / np.linalg.norm(links, axis=1, keepdims=True)


def split_configuration(q: T, n: int) -> tuple[T, list[T], list[T]]:
    """The payload position y (3), the unit quaternions of the quadrotors, and the link directions
    (n each) in a configuration, which is an expression or an array.
    """
    links = 3 + 4 * n
    return (
        q[:3],
        [q[3 + 4 * i : 7 + 4 * i] for i in range(n)],
        [q[links + 3 * i : links + 3 * i + 3] for i in range(n)],
    )


def split_velocity(v: T, n: int) -> tuple[T, list[T], list[T]]:
    """The payload velocity (3), the body angular velocities, and the link velocities (n each) in a
    velocity, which is an expression or an array.
    """
    links = 3 + 3 * n
    return (
        v[:3],
        [v[3 + 3 * i : 6 + 3 * i] for i in range(n)],
        [v[links + 3 * i : links + 3 * i + 3] for i in range(n)],
    )


def payload_space(n: int, attitudes: str = "exp", links: str = "cay") -> Product:
    """The space of a payload, n quadrotors and their links, with the given retractions."""
    return Product(
        Rn("payload_x", "payload_y", "payload_z"),
        *(SO3(f"quad{i + 1}_", attitudes) for i in range(n)),
        *(S2(f"link{i + 1}_", links) for i in range(n)),
    )


def quadrotor_payload(
    parameters: QuadrotorPayloadParameters = QuadrotorPayloadParameters(),
    wind: bool = False,
    retraction: str = "exp",
) -> System:
    """A payload at y (z up), and quadrotors at `x_i = y + l_i q_i` with the attitude R_i, the
    thrust T_i along the body's z axis and the body torque M_i [celledoni2021 (36), (37)].

    `L = m_y |y'|^2 / 2 - m_y g y_z + sum_i m_i |y' + l_i q_i'|^2 / 2 - m_i g (y + l_i q_i)_z +
    Omega_i^T J Omega_i / 2`. q_i points from the payload to quadrotor i. In the paper, q_i has the
    opposite direction and e3 points down (converted to REP-103). q = (y, R_1, ..., R_n, q_1, ...,
    q_n), and the inputs are (T_i, M_i) per quadrotor. The links can push and pull. With `wind`,
    the inputs end with 3 (n + 1) external forces (N, world frame) on the payload and on every
    quadrotor, without limits. `retraction` is the retraction for the attitudes.
    """
    n, (inputs, units) = parameters.n, _inputs(parameters.n, wind)

    def lagrangian(q: ca.SX, v: ca.SX, params: QuadrotorPayloadParameters) -> ca.SX:
        y, _, links = split_configuration(q, params.n)
        y_dot, omegas, link_rates = split_velocity(v, params.n)
        total = params.payload_mass * (ca.sumsqr(y_dot) / 2 - params.g * y[2])
        for l, link, omega, rate in zip(params.lengths, links, omegas, link_rates):
            # quadrotor i at x_i = y + l_i q_i has the velocity y' + l_i q_i'
            total += params.quadrotor_mass * (
                ca.sumsqr(y_dot + l * rate) / 2 - params.g * (y[2] + l * link[2])
            )
            total += ca.dot(ca.vertcat(params.Jx, params.Jy, params.Jz), omega**2) / 2
        return total

    def force(q: ca.SX, v: ca.SX, u: ca.SX, params: QuadrotorPayloadParameters) -> ca.SX:
        attitudes = split_configuration(q, params.n)[1]
        forces = [
            quaternion.rotate(R, ca.vertcat(0, 0, u[4 * i])) for i, R in enumerate(attitudes)
        ]
        on_payload = ca.SX(0)
        if wind:
            w = u[4 * params.n :]
            # external forces follow the quadrotors' inputs
            on_payload = w[:3]
            forces = [f + w[3 * i + 3 : 3 * i + 6] for i, f in enumerate(forces)]
        # a force f_i at x_i = y + l_i q_i does the virtual work f_i . dy + l_i f_i . dq_i
        return ca.vertcat(
            on_payload + sum(forces),
            *(u[4 * i + 1 : 4 * i + 4] for i in range(params.n)),
            *(l * f for l, f in zip(params.lengths, forces)),
        )

    def limits(params: QuadrotorPayloadParameters) -> np.ndarray:
        # rotors cannot push down
        of_quad = [[0.0, params.thrust_limit], *[[-params.torque_limit, params.torque_limit]] * 3]
        return np.vstack([np.tile(of_quad, (n, 1)), *[[-np.inf, np.inf]] * (len(inputs) - 4 * n)])

    return System(
        name=f"quadrotor_payload_{n}" + ("_wind" if wind else ""),
        space=payload_space(n, retraction),
        lagrangian=lagrangian,
        inputs=inputs,
        input_units=units,
        force=force,
        parameters=parameters,
        input_limits=limits,
    )


def _inputs(n: int, wind: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and units of the inputs of n quadrotors and, if there is `wind`, of the external
    forces.
    """
    quads = [f"quad{i + 1}" for i in range(n)]
    of_quad = {"thrust": "N", "torque_x": "N m", "torque_y": "N m", "torque_z": "N m"}
    units = {f"{quad}_{name}": unit for quad in quads for name, unit in of_quad.items()}
    if wind:
        units |= {f"{body}_force_{c}": "N" for body in ("payload", *quads) for c in "xyz"}
    return tuple(units), tuple(units.values())
