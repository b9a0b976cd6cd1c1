"""A satellite with reaction wheels, on SO(3) x R^n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.rotations import SO3
from nh_control.geometry.spaces import Product, Rn
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System
from nh_control.systems.rigid_body import check_inertias


@dataclass(frozen=True)
class SatelliteParameters(Parameters):
    """A small satellite with wheels in a pyramid. The axles of the wheels are spaced evenly around
    z at the angle `elevation` above the xy plane. With the default, arcsin(1/sqrt(3)), the wheels
    are equally strong in all directions. With three wheels, the axles would be at right angles to
    each other.
    """

    Jx: float = parameter(
        2.0, "kg m^2", "inertia about x of the body with its wheels, without the wheels' spin"
    )
    Jy: float = parameter(
        1.6, "kg m^2", "inertia about y of the body with its wheels, without the wheels' spin"
    )
    Jz: float = parameter(
        1.2, "kg m^2", "inertia about z of the body with its wheels, without the wheels' spin"
    )
    wheel_inertias: Sequence[float] = parameter(
        (0.002,) * 4, "kg m^2", "inertias of the wheels about their axles, one each"
    )
    elevation: float = parameter(0.6155, "rad", "angle of the axles above the xy plane")
    torque_limit: float = parameter(0.1, "N m", "largest torque of a wheel's motor")
    speed_limit: float = parameter(500.0, "rad/s", "largest rate of a wheel in the body")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_inertias("SatelliteParameters", (self.Jx, self.Jy, self.Jz))
        if self.n < 3 or not self.elevation < np.pi / 2:
            raise ValueError(
                f"SatelliteParameters: three wheels or more with an elevation below pi/2 turn a "
                f"satellite about all axes, got {self.n} with {self.elevation:g} rad"
            )

    @property
    def n(self) -> int:
        """Number of wheels."""
        return len(self.wheel_inertias)


def axles(params: SatelliteParameters) -> ca.SX | ca.DM:
    """Unit vectors along the wheels' axles as columns (3, n), in the body frame."""
    azimuths = np.pi / 4 + 2 * np.pi * np.arange(params.n) / params.n
    # a_i = (cos e cos phi_i, cos e sin phi_i, sin e)
    flat, high = ca.cos(params.elevation), ca.sin(params.elevation)
    return ca.horzcat(*(ca.vertcat(flat * np.cos(a), flat * np.sin(a), high) for a in azimuths))


def satellite(
    parameters: SatelliteParameters = SatelliteParameters(), retraction: str = "exp"
) -> System:
    """A body with the attitude R and n wheels at the angles theta about the axles a_i
    (columns of A), `L = Omega^T J Omega / 2 + sum_i j_i (a_i . Omega + theta_i')^2 / 2`.

    q = (attitude, wheel angles) and v = (Omega, wheel rates in the body). The inputs are the motor
    torques (N m). Each torque acts on its wheel, and its reaction acts on the body. The momentum
    of a wheel is `h_i = j_i (a_i . Omega + theta_i')` with `h' = u`. The body's momentum
    coordinate is the total momentum `J Omega + A h`, and `R (J Omega + A h)` is conserved for all
    motor torques.
    """
    n = parameters.n

    def lagrangian(q: ca.SX, v: ca.SX, params: SatelliteParameters) -> ca.SX:
        omega, rates = v[:3], v[3:]
        body = ca.dot(ca.vertcat(params.Jx, params.Jy, params.Jz), omega**2) / 2
        # a_i . Omega + theta_i'
        spin = axles(params).T @ omega + rates
        return body + ca.dot(ca.vertcat(*params.wheel_inertias), spin**2) / 2

    return System(
        name=f"satellite_{n}",
        space=Product(SO3(retraction=retraction), Rn(*(f"wheel{i + 1}" for i in range(n)))),
        lagrangian=lagrangian,
        inputs=tuple(f"wheel{i + 1}_torque" for i in range(n)),
        input_units=("N m",) * n,
        force=lambda q, v, u, params: ca.vertcat(ca.SX.zeros(3), u),
        parameters=parameters,
        input_limits=lambda params: params.torque_limit * np.tile([-1.0, 1.0], (n, 1)),
    )
