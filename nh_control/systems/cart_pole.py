"""A pole that swings on a cart. A limited force moves the cart along a track."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Rn
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System


@dataclass(frozen=True)
class CartPoleParameters(Parameters):
    """A cart on a track, and a massless pole with a point mass at its end."""

    m_cart: float = parameter(1.0, "kg", "mass of the cart")
    m_pole: float = parameter(0.3, "kg", "mass at the pole's end")
    l: float = parameter(0.5, "m", "length of the pole")
    g: float = parameter(9.81, "m/s^2", "gravity")
    force_limit: float = parameter(15.0, "N", "largest force on the cart")


def cart_pole(parameters: CartPoleParameters = CartPoleParameters()) -> System:
    """A cart at x (m) with a pole at the angle theta (rad) from the downward vertical. The pole's
    mass is at its end, (x + l sin(theta), -l cos(theta)).

    `L = (m_cart + m_pole) x'^2 / 2 + m_pole (l x' theta' cos(theta) + l^2 theta'^2 / 2 + g l
    cos(theta))`. The input is the force (N) on the cart.
    """

    def lagrangian(q: ca.SX, v: ca.SX, params: CartPoleParameters) -> ca.SX:
        # l x' theta' cos(theta) + l^2 theta'^2 / 2 + g l cos(theta)
        swing = (
            params.l * v[0] * v[1] * ca.cos(q[1])
            + params.l**2 * v[1] ** 2 / 2
            + params.g * params.l * ca.cos(q[1])
        )
        return (params.m_cart + params.m_pole) * v[0] ** 2 / 2 + params.m_pole * swing

    return System(
        name="cart_pole",
        space=Rn("x", "theta"),
        lagrangian=lagrangian,
        inputs=("force",),
        input_units=("N",),
        force=lambda q, v, u, params: ca.vertcat(u, 0),
        parameters=parameters,
        input_limits=lambda params: np.array([[-params.force_limit, params.force_limit]]),
    )
