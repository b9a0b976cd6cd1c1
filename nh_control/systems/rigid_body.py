"""The free rigid body and the heavy top on SO(3)."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry import quaternion
from nh_control.geometry.rotations import SO3
from nh_control.mechanics.system import System
from nh_control.systems.parameters import require_positive


@dataclass(frozen=True)
class RigidBodyParameters:
    """Principal inertias `Jx, Jy, Jz` (kg m^2), each below the sum of the others."""

    Jx: float = 1.0
    Jy: float = 2.0
    Jz: float = 2.5

    def __post_init__(self):
        require_positive(self)
        largest = max(self.Jx, self.Jy, self.Jz)
        if 2 * largest > self.Jx + self.Jy + self.Jz:
            raise ValueError(
                f"RigidBodyParameters: the largest inertia {largest:g} must not exceed the sum "
                f"of the others"
            )


@dataclass(frozen=True)
class HeavyTopParameters:
    """Mass `M` (kg), distance `l` (m) of the center of mass from the fixed point, principal
    inertias (kg m^2) about the fixed point, gravity `g` (m/s^2), the center's direction `chi` in
    the body; defaults of [celledoni2021 4]."""

    M: float = 15.0
    l: float = 2.0
    Jx: float = 0.234375
    Jy: float = 0.46875
    Jz: float = 0.234375
    g: float = 9.81
    chi: tuple[float, float, float] = (0.0, 1.0, 0.0)

    def __post_init__(self):
        require_positive(self, "M", "l", "Jx", "Jy", "Jz", "g")
        if not np.isclose(np.linalg.norm(self.chi), 1.0, atol=1e-12):
            raise ValueError(f"HeavyTopParameters.chi must be a unit vector, got {self.chi}")


def rigid_body(parameters: RigidBodyParameters = RigidBodyParameters()) -> System:
    """Rigid body about its center of mass with q a unit quaternion (w, x, y, z),
    `L = omega^T J omega / 2`, body angular velocity omega; inputs are body torques (N m).
    """
    inertia = ca.DM([parameters.Jx, parameters.Jy, parameters.Jz])
    return System(
        name="rigid_body",
        space=SO3(),
        lagrangian=lambda q, v: ca.dot(inertia, v**2) / 2,
        inputs=("torque_x", "torque_y", "torque_z"),
        input_units=("N m",) * 3,
        force=lambda q, v, u: u,
        parameters=parameters,
    )


def heavy_top(parameters: HeavyTopParameters = HeavyTopParameters()) -> System:
    """Top about a fixed point, z up: `L = omega^T J omega / 2 - M g l (R chi)_z` [celledoni2021
    4]; no inputs.
    """
    p = parameters
    inertia, chi = ca.DM([p.Jx, p.Jy, p.Jz]), ca.DM(p.chi)
    return System(
        name="heavy_top",
        space=SO3(),
        lagrangian=lambda q, v: (
            ca.dot(inertia, v**2) / 2 - p.M * p.g * p.l * quaternion.rotate(q, chi)[2]
        ),
        parameters=parameters,
    )
