"""A pole that swings on a cart, which a limited force moves along a track."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Rn
from nh_control.mechanics.system import System
from nh_control.systems.parameters import require_positive


@dataclass(frozen=True)
class CartPoleParameters:
    """Masses (kg) of the cart, `m_cart`, and of the pole's end, `m_pole`; pole length `l` (m),
    gravity `g` (m/s^2), largest `force_limit` (N) on the cart.
    """

    m_cart: float = 1.0
    m_pole: float = 0.3
    l: float = 0.5
    g: float = 9.81
    force_limit: float = 15.0

    def __post_init__(self):
        require_positive(self)


def cart_pole(parameters: CartPoleParameters = CartPoleParameters()) -> System:
    """Cart at x (m) with a pole at the angle theta (rad) from the downward vertical, its mass at
    its end, (x + l sin(theta), -l cos(theta)).

    `L = (m_cart + m_pole) x'^2 / 2 + m_pole (l x' theta' cos(theta) + l^2 theta'^2 / 2 + g l
    cos(theta))`; the input is the force (N) on the cart.
    """
    p = parameters

    def lagrangian(q, v):
        swing = (
            p.l * v[0] * v[1] * ca.cos(q[1]) + p.l**2 * v[1] ** 2 / 2 + p.g * p.l * ca.cos(q[1])
        )
        return (p.m_cart + p.m_pole) * v[0] ** 2 / 2 + p.m_pole * swing

    return System(
        name="cart_pole",
        space=Rn("x", "theta"),
        lagrangian=lagrangian,
        inputs=("force",),
        input_units=("N",),
        force=lambda q, v, u: ca.vertcat(u, 0),
        parameters=parameters,
        input_limits=np.array([[-p.force_limit, p.force_limit]]),
    )
