"""A cart that balances two poles on top of each other.

nh_control simulate cart_double_pendulum.py
nh_control simulate cart_double_pendulum.py --disturb tip:noise:0.2,0,0,correlation=0.1
nh_control run cart_double_pendulum.py --reference push --perturb-angle 0.02
ros2 launch nh_control scenario.launch.py scenario:=$PWD/cart_double_pendulum.py
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Rn
from nh_control.integrators import midpoint
from nh_control.mechanics.system import System
from nh_control.scenarios import (
    Joint,
    Parameters,
    Scenario,
    error_seed,
    initial_error,
    momentum_error,
    on_point,
    parameter,
)
from nh_control.scenarios.perturbation import Seeded, moved
from nh_control.scenarios.visual_model import BLUE, ORANGE, STEEL, Arrow, Pose, Shape, VisualModel


@dataclass(frozen=True)
class CartParameters(Parameters):
    """A cart and two poles with their masses at their ends."""

    cart: float = parameter(1.5, "kg", "mass of the cart")
    lower: float = parameter(0.3, "kg", "mass at the end of the lower pole")
    upper: float = parameter(0.2, "kg", "mass at the end of the upper pole")
    l1: float = parameter(0.5, "m", "length of the lower pole")
    l2: float = parameter(0.4, "m", "length of the upper pole")
    g: float = parameter(9.81, "m/s^2", "gravity")
    friction: float = parameter(0.5, "N s/m", "of the cart on its track", at_least=0.0)
    force_limit: float = parameter(40.0, "N", "of the motor")


def places(q, p):
    """Where the ends of the two poles are, (x, 0, z) each; angles are from upright."""
    end = ca.vertcat(q[0] + p.l1 * ca.sin(q[1]), 0, p.l1 * ca.cos(q[1]))
    return end, end + ca.vertcat(p.l2 * ca.sin(q[2]), 0, p.l2 * ca.cos(q[2]))


def cart_double_pendulum(parameters: CartParameters) -> System:
    """q = (x, lower, upper), both angles from upright; the input pushes the cart."""

    def lagrangian(q, v, p):
        total = p.cart * v[0] ** 2 / 2
        for mass, place in zip((p.lower, p.upper), places(q, p)):
            velocity = ca.jacobian(place, q) @ v
            total += mass * (ca.sumsqr(velocity) / 2 - p.g * place[2])
        return total

    return System(
        name="cart_double_pendulum",
        space=Rn("x", "lower", "upper"),
        lagrangian=lagrangian,
        inputs=("push",),
        input_units=("N",),
        input_limits=lambda p: np.array([[-p.force_limit, p.force_limit]]),
        force=lambda q, v, u, p: ca.vertcat(u - p.friction * v[0], 0, 0),
        parameters=parameters,
    )


def balance(model):
    """Both poles upright in the middle of the track for 5 s."""
    return model.simulate(np.zeros(6), np.zeros((round(5.0 / model.h), 1)))


def push(model):
    """The poles hang, the cart is pushed forth and back again, and they swing."""
    t = model.h * (np.arange(round(4.0 / model.h)) + 0.5)
    force = np.where(t < 2.0, 4.0 * np.sin(np.pi * t), 0.0)
    return model.simulate(model.state([0.0, np.pi, np.pi], np.zeros(3)), force[:, None])


@dataclass(frozen=True)
class CartPerturbation(Seeded):
    """How the start differs from the reference's: options `--perturb-position`, and so on."""

    position: float = initial_error("m", "of the cart")
    angle: float = initial_error("rad", "of both poles")
    momentum: float = momentum_error()
    seed: int = error_seed()


def perturbed(model, x, error: CartPerturbation):
    """The state x with these errors."""
    change = np.array([error.position, error.angle, error.angle])
    return moved(model, x, change, error.momentum, error.signs(model.ndx))


def poses(parameters: CartParameters, q: np.ndarray) -> dict[str, Pose]:
    """Frames of what is drawn; a pole's z axis points along it."""
    about_y = (0.0, 1.0, 0.0)
    cart = Pose(np.array([q[0], 0.0, 0.0]), np.eye(3))
    lower = cart.turned(q[1], (0.0, 0.0, 0.0), about_y)
    joint = lower.turned(q[2] - q[1], (0.0, 0.0, parameters.l1), about_y)
    return {
        "cart": cart,
        "lower": lower,
        "upper": joint,
        "tip": joint.turned(0.0, (0.0, 0.0, parameters.l2)),
        "motor": cart.turned(np.pi / 2, (0.0, 0.0, 0.0), about_y),
    }


def visual(parameters: CartParameters) -> VisualModel:
    """The cart, its poles, and the motor's force as an arrow."""
    l1, l2 = parameters.l1, parameters.l2
    shapes = (
        Shape("box", (0.3, 0.15, 0.1), BLUE, "cart"),
        Shape("cylinder", (0.03, 0.03, l1), STEEL, "lower", (0.0, 0.0, l1 / 2)),
        Shape("cylinder", (0.03, 0.03, l2), STEEL, "upper", (0.0, 0.0, l2 / 2)),
        Shape("sphere", (0.07, 0.07, 0.07), ORANGE, "upper"),
        Shape("sphere", (0.07, 0.07, 0.07), ORANGE, "tip"),
    )
    return VisualModel("odom", poses, shapes, "tip", arrows=(Arrow("push", "motor", 0.02),))


# the cost of errors of (x, lower, upper), of their momenta, and of the motor's force
Q = np.diag([20.0, 50.0, 50.0, 1.0, 1.0, 1.0])

CART_DOUBLE_PENDULUM = Scenario(
    name="cart_double_pendulum",
    title="A cart that balances two poles",
    parameters=CartParameters(),
    make_system=cart_double_pendulum,
    integrators={"midpoint": midpoint},
    references={"balance": balance, "push": push},
    weights=(Q, np.array([[0.01]]), 10 * Q),
    perturbation=CartPerturbation(position=0.1, angle=0.03),
    perturb=perturbed,
    joints=(
        Joint("cart_joint", "x", unit="m"),
        Joint("lower_joint", "lower"),
        Joint("upper_joint", "upper"),
    ),
    external=lambda system: (
        on_point(system.space, "tip", lambda q, p: places(q, p)[1], "force on the upper end"),
    ),
    visual=visual,
    step_s=0.01,
)
