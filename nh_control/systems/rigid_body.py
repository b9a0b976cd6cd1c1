"""The free rigid body and the heavy top on SO(3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SO3
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Vector


def check_inertias(owner: str, principal: Vector) -> None:
    """Raises ValueError if the principal inertias (3) are impossible for a body."""
    largest = max(principal)
    # triangle inequality J3 <= J1 + J2
    if min(principal) <= 0 or 2 * largest > sum(principal):
        raise ValueError(
            f"{owner}: the largest inertia {largest:g} must not exceed the sum of the others, and "
            f"all must be positive, got principal inertias {[float(j) for j in principal]}"
        )


@dataclass(frozen=True)
class RigidBodyParameters(Parameters):
    """Principal inertias. Each is less than the sum of the other two."""

    Jx: float = parameter(1.0, "kg m^2", "inertia about x")
    Jy: float = parameter(2.0, "kg m^2", "inertia about y")
    Jz: float = parameter(2.5, "kg m^2", "inertia about z")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_inertias("RigidBodyParameters", (self.Jx, self.Jy, self.Jz))


@dataclass(frozen=True)
class HeavyTopParameters(Parameters):
    """A rigid body that rotates about a fixed point. The defaults are from [celledoni2021 4]."""

    M: float = parameter(15.0, "kg", "mass")
    l: float = parameter(2.0, "m", "distance of the center of mass from the fixed point")
    Jx: float = parameter(0.234375, "kg m^2", "inertia about x at the fixed point")
    Jy: float = parameter(0.46875, "kg m^2", "inertia about y at the fixed point")
    Jz: float = parameter(0.234375, "kg m^2", "inertia about z at the fixed point")
    g: float = parameter(9.81, "m/s^2", "gravity")
    chi: tuple[float, float, float] = parameter(
        (0.0, 1.0, 0.0), "", "the center's direction in the body", above=-math.inf
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.isclose(np.linalg.norm(self.chi), 1.0, rtol=0.0, atol=1e-5):
            raise ValueError(f"HeavyTopParameters.chi must be a unit vector, got {self.chi}")


def rigid_body(
    parameters: RigidBodyParameters = RigidBodyParameters(), retraction: str = "exp"
) -> System:
    """A rigid body that rotates about its center of mass. q is a unit quaternion (w, x, y, z), and
    `L = omega^T J omega / 2` with the body angular velocity omega. The inputs are body torques
    (N m).
    """
    return System(
        name="rigid_body",
        space=SO3(retraction=retraction),
        lagrangian=lambda q, v, params: _spin(v, params),
        inputs=("torque_x", "torque_y", "torque_z"),
        input_units=("N m",) * 3,
        force=lambda q, v, u, params: u,
        parameters=parameters,
    )


def heavy_top(
    parameters: HeavyTopParameters = HeavyTopParameters(), retraction: str = "exp"
) -> System:
    """A top that rotates about a fixed point, with z up and
    `L = omega^T J omega / 2 - M g l (R chi)_z` [celledoni2021 4]. There are no inputs.
    """
    return System(
        name="heavy_top",
        space=SO3(retraction=retraction),
        lagrangian=lambda q, v, params: (
            _spin(v, params)
            - params.M * params.g * params.l * quaternion.rotate(q, ca.vertcat(*params.chi))[2]
        ),
        parameters=parameters,
    )


def _spin(omega: ca.SX, params: RigidBodyParameters | HeavyTopParameters) -> ca.SX:
    """Rotational energy, `omega^T J omega / 2`."""
    return ca.dot(ca.vertcat(params.Jx, params.Jy, params.Jz), omega**2) / 2
