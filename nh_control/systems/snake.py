"""A snake robot that consists of links on passive wheels, with torques on the joints between
them.
"""

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
"""The links that have wheels if the joints of a snake are prescribed."""


@dataclass(frozen=True)
class SnakeParameters(Parameters):
    """Physical parameters of each link. The massless wheels are under its center of mass."""

    m: float = parameter(0.4, "kg", "mass of a link")
    l: float = parameter(0.15, "m", "length of a link")
    J: float = parameter(1e-3, "kg m^2", "yaw inertia of a link")
    damping: float = parameter(0.005, "N m s/rad", "damping of every joint", at_least=0.0)
    torque_limit: float = parameter(1.0, "N m", "largest torque of a joint")


def snake(parameters: SnakeParameters = SnakeParameters()) -> System:
    """The snake as a `System` on SE(2) x R^5, with the pose of the head and the angles of the
    joints. A positive angle turns the link behind the joint to the left. The inputs are the joint
    torques.

    The wheels let each link glide only along its axis. Their constraints are independent in every
    shape, because each determines the rate of the joint in front of its link. Two velocities
    remain, the forward and the turning velocity of the head. The links follow the head like
    trailers, with `omega_i = -2 v / l sin(phi) - omega cos(phi)` behind a link with v and omega.
    Therefore a gait may prescribe the motion of the head or any two joints, but not all joints.
    Torques propel the snake unless all joints have the same angle. In that case, all axles meet in
    one point or are parallel.

    With wheels under only three links, a gait could prescribe all five joints, and this would
    determine the motion of the head. However, the determinant of these constraints changes sign
    for the mirror image of a shape. Every wave becomes its mirror image after half a period, so
    the constraints are dependent at some time in between.
    """
    return snake_model(parameters).system


def kinematic_snake(parameters: SnakeParameters = SnakeParameters()) -> System:
    """The snake with prescribed joints. The inputs are their next angles, and wheels under the
    three links of `WHEELED` determine the motion of the head.
    """
    model = snake_model(parameters)
    # five prescribed joints leave three velocities, and three wheels determine them
    wheels = [wheel for wheel in model.wheels if wheel.point.frame in WHEELED]
    kinematic = replace(
        model, name="kinematic_snake", inputs=(), elements=(), prescribed=JOINTS, wheels=wheels
    )
    return kinematic.system


@cache
def snake_model(parameters: SnakeParameters = SnakeParameters()) -> Multibody:
    """The tree of frames, from the middle of the head backward. Each joint is in front of its
    link.
    """
    half = parameters.l / 2
    frames = [planar("head")]
    frames += [
        revolute(
            name,
            parent,
            "z",
            (-half if parent == "head" else -parameters.l, 0.0, 0.0),
            coordinate=c,
        )
        for name, parent, c in zip(FRAMES[1:], FRAMES, JOINTS)
    ]
    centers = [Point("head"), *(Point(name, (-half, 0.0, 0.0)) for name in FRAMES[1:])]
    inertia = (0.6 * parameters.J, 0.6 * parameters.J, parameters.J)
    return Multibody(
        "snake",
        frames,
        [Body(c.frame, parameters.m, c.position, inertia) for c in centers],
        elements=[JointDamper(c, parameters.damping) for c in JOINTS],
        inputs=[JointInput(c, parameters.torque_limit) for c in JOINTS],
        wheels=[Skate(at=c, name=f"wheels{i}") for i, c in enumerate(centers, 1)],
        gravity=(0.0, 0.0, 0.0),
    )


def following(l: float, q: np.ndarray, v: float, omega: float) -> np.ndarray:
    """Velocity (8) of a snake with links of length l (m) at configuration q (8). Its head moves
    forward at v (m/s) and turns at omega (rad/s).
    """
    rates, forward, turn = list[float](), v, omega
    for phi in q[3:]:
        s, c = np.sin(phi), np.cos(phi)
        # omega_i = -2 v / l sin(phi) - omega cos(phi), because no link slips sideways
        next_turn = -2 / l * forward * s - turn * c
        forward = forward * c - l / 2 * turn * s
        # phi' = omega_i - omega_{i-1}
        rates.append(next_turn - turn)
        turn = next_turn
    return np.array([omega, v, 0.0, *rates])
