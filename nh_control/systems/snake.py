"""A snake robot: links on passive wheels, torques on the joints between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System
from nh_control.multibody import (
    Body,
    JointDamper,
    JointInput,
    Multibody,
    Point,
    planar,
    revolute,
)
from nh_control.multibody.wheels import Skate

LINKS = 6
JOINTS = tuple(f"joint{i}" for i in range(1, LINKS))
FRAMES = ("head", *(f"link{i}" for i in range(2, LINKS + 1)))
"""The links from the head to the tail."""
WHEELED = "head", "link3", "link6"
"""The links with wheels of a snake with prescribed joints."""


@dataclass(frozen=True)
class SnakeParameters(Parameters):
    """Physical parameters of every link; the wheels are under its center of mass and have no mass
    of their own.
    """

    m: float = parameter(0.4, "kg", "mass of a link")
    l: float = parameter(0.15, "m", "length of a link")
    J: float = parameter(1e-3, "kg m^2", "yaw inertia of a link")
    damping: float = parameter(0.005, "N m s/rad", "damping of every joint", at_least=0.0)
    torque_limit: float = parameter(1.0, "N m", "largest torque of a joint")


def snake(parameters: SnakeParameters = SnakeParameters()) -> System:
    """The snake as a `System` on SE(2) x R^5: pose of the head, angles of the joints, of which a
    positive one turns the link behind it to the left; their torques are the inputs.

    Wheels under every link let it glide along itself alone. Their rows are independent in every
    shape, because each one holds the joint in front of its link. Two velocities remain, those with
    which the head goes on and turns; the links follow it as trailers do, `omega_i = -2 v / l
    sin(phi) - omega cos(phi)` behind a link with v and omega. So a gait may prescribe the head or
    any two joints, not all of them. Torques push the snake forwards unless all joints have the
    same angle: then all axles meet in one point, or are parallel.

    Wheels under three links alone would let a gait prescribe all five joints, and determine the
    motion of the head by them. But the determinant of these rows has the opposite sign in the
    mirror image of a shape, into which half a period turns every wave: in between they depend on
    each other.
    """
    return snake_model(parameters).system


def kinematic_snake(parameters: SnakeParameters = SnakeParameters()) -> System:
    """The snake with prescribed joints, whose next angles are the inputs: wheels under the three
    links of `WHEELED` then determine the motion of the head.
    """
    model = snake_model(parameters)
    wheels = [wheel for wheel in model.wheels if wheel.point.frame in WHEELED]
    kinematic = replace(
        model, name="kinematic_snake", inputs=(), elements=(), prescribed=JOINTS, wheels=wheels
    )
    return kinematic.system


@cache
def snake_model(parameters: SnakeParameters = SnakeParameters()) -> Multibody:
    """The tree of frames, from the middle of the head backwards; joints are in front of links."""
    p, half = parameters, parameters.l / 2
    frames = [planar("head")]
    frames += [
        revolute(name, parent, "z", (-half if parent == "head" else -p.l, 0.0, 0.0), coordinate=c)
        for name, parent, c in zip(FRAMES[1:], FRAMES, JOINTS)
    ]
    centers = [Point("head"), *(Point(name, (-half, 0.0, 0.0)) for name in FRAMES[1:])]
    return Multibody(
        "snake",
        frames,
        [Body(c.frame, p.m, c.position, (0.6 * p.J, 0.6 * p.J, p.J)) for c in centers],
        elements=[JointDamper(c, p.damping) for c in JOINTS],
        inputs=[JointInput(c, p.torque_limit) for c in JOINTS],
        wheels=[Skate(at=c, name=f"wheels{i}") for i, c in enumerate(centers, 1)],
        gravity=(0.0, 0.0, 0.0),
    )


def following(l: float, q: np.ndarray, v: float, omega: float) -> np.ndarray:
    """Velocity (8) of a snake with links of length l (m) at configuration q (8) whose head goes on
    at v (m/s) and turns at omega (rad/s).
    """
    rates, forward, turn = list[float](), v, omega
    for phi in q[3:]:
        s, c = np.sin(phi), np.cos(phi)
        next_turn = -2 / l * forward * s - turn * c
        forward = forward * c - l / 2 * turn * s
        rates.append(next_turn - turn)
        turn = next_turn
    return np.array([omega, v, 0.0, *rates])
