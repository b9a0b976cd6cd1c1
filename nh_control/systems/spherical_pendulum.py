"""The N-fold spherical pendulum on (S^2)^N."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from nh_control.geometry.rotations import S2
from nh_control.geometry.spaces import Product
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System


@dataclass(frozen=True)
class SphericalPendulumParameters(Parameters):
    """Masses and lengths of the N links, from the pivot outward."""

    masses: Sequence[float] = parameter((1.0,), "kg", "mass at the end of each link")
    lengths: Sequence[float] = parameter((1.0,), "m", "length of each link")
    g: float = parameter(9.81, "m/s^2", "gravity")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.masses) != len(self.lengths):
            raise ValueError(
                f"SphericalPendulumParameters: {len(self.masses)} masses but {len(self.lengths)} "
                f"lengths"
            )


def spherical_pendulum(
    parameters: SphericalPendulumParameters = SphericalPendulumParameters(),
    retraction: str = "cay",
) -> System:
    """A chain of massless links with unit vectors q_i (z up) and point masses at
    `r_i = sum_{j <= i} l_j q_j`, `L = sum_i m_i (|r_i'|^2 / 2 - g r_i,z)` [celledoni2021 5]. There
    are no inputs.
    """

    def lagrangian(q: ca.SX, v: ca.SX, params: SphericalPendulumParameters) -> ca.SX:
        total, height, velocity = ca.SX(0), ca.SX(0), ca.SX.zeros(3)
        for i, (m, l) in enumerate(zip(params.masses, params.lengths)):
            # r_i = r_{i-1} + l_i q_i
            height = height + l * q[3 * i + 2]
            velocity = velocity + l * v[3 * i : 3 * i + 3]
            total = total + m * (ca.sumsqr(velocity) / 2 - params.g * height)
        return total

    spaces = [S2(f"link{i + 1}_", retraction) for i in range(len(parameters.masses))]
    return System(
        name=f"spherical_pendulum_{len(spaces)}",
        space=Product(*spaces),
        lagrangian=lagrangian,
        parameters=parameters,
    )
