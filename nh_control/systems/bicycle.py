"""The Carvallo-Whipple bicycle in Meijaard, Papadopoulos, Ruina and Schwab (2007). It has a rear
frame with a rigid rider, a front frame that turns about a tilted steering axis, and two knife-edge
wheels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System
from nh_control.multibody import Body, JointInput, Multibody, fixed, planar, revolute
from nh_control.multibody.wheels import RollingWheel

SADDLE = (0.2, 0.95)
"""Position (m) of the saddle, where pushes act, in front of the rear contact and above the ground.
"""


def _inertia(xx: float, yy: float, zz: float, xz: float, of: str) -> Any:
    return parameter((xx, yy, zz, xz), "kg m^2", f"{of}: xx, yy, zz, xz", above=-math.inf)


@dataclass(frozen=True)
class BicycleParameters(Parameters):
    """The benchmark in [meijaard2007, table 1], but with x forward from the rear contact and z up,
    so the products of inertia have the opposite sign. The torque limits are not part of the
    benchmark.
    """

    wheelbase: float = parameter(1.02, "m", "distance of the contacts")
    trail: float = parameter(0.08, "m", "distance of the front contact behind the steering axis")
    tilt: float = parameter(np.pi / 10, "rad", "backward tilt of the steering axis", at_least=0.0)
    g: float = parameter(9.81, "m/s^2", "gravity")
    rear_radius: float = parameter(0.3, "m", "radius of the rear wheel")
    rear_mass: float = parameter(2.0, "kg", "mass of the rear wheel")
    rear_inertia: tuple[float, ...] = parameter((0.0603, 0.12), "kg m^2", "rear wheel: xx, yy")
    frame_center: tuple[float, ...] = parameter((0.3, 0.9), "m", "center of the rear frame: x, z")
    frame_mass: float = parameter(85.0, "kg", "mass of the rear frame with its rider")
    frame_inertia: tuple[float, ...] = _inertia(9.2, 11.0, 2.8, -2.4, "rear frame with its rider")
    fork_center: tuple[float, ...] = parameter((0.9, 0.7), "m", "center of the front frame: x, z")
    fork_mass: float = parameter(4.0, "kg", "mass of the front frame")
    fork_inertia: tuple[float, ...] = _inertia(0.05892, 0.06, 0.00708, 0.00756, "front frame")
    front_radius: float = parameter(0.35, "m", "radius of the front wheel")
    front_mass: float = parameter(3.0, "kg", "mass of the front wheel")
    front_inertia: tuple[float, ...] = parameter((0.1405, 0.28), "kg m^2", "front wheel: xx, yy")
    steer_torque_limit: float = parameter(30.0, "N m", "largest torque between the frames")
    drive_torque_limit: float = parameter(30.0, "N m", "largest torque on the rear wheel")


def bicycle(parameters: BicycleParameters = BicycleParameters()) -> System:
    """The bicycle as a `System` with torques on the steering and on the rear wheel."""
    return bicycle_model(parameters).system


def bicycle_model(parameters: BicycleParameters = BicycleParameters()) -> Multibody:
    """The tree of frames. `contact` is at the rear contact in the plane, and `lean` (rad, positive
    to the right) is about its x axis. `pitch` (rad) is about y at the rear hub, and the height of
    the front wheel determines it. The wheels rotate, and the front frame turns by `steer` (rad,
    positive to the left).

    Lean, pitch and steer are zero when the bicycle is upright and goes straight ahead.
    """

    hub = np.array([0.0, 0.0, parameters.rear_radius])
    front_hub = np.array([parameters.wheelbase, 0.0, parameters.front_radius])
    # where the steering axis meets the ground
    ground = np.array([parameters.wheelbase + parameters.trail, 0.0, 0.0])
    s, c = np.sin(parameters.tilt), np.cos(parameters.tilt)
    # the steering axis z is tilted backward
    tilted = np.array([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]])
    frames = [
        planar("contact"),
        revolute("lean", "contact", "x"),
        revolute("frame", "lean", "y", position=hub, coordinate="pitch"),
        revolute("rear_wheel", "frame", "y"),
        revolute("steering", "frame", "z", ground - hub, tilted, coordinate="steer"),
        fixed("fork", "steering", tilted.T @ (front_hub - ground), tilted.T),
        revolute("front_wheel", "fork", "y"),
        fixed("saddle", "frame", np.array([SADDLE[0], 0.0, SADDLE[1]]) - hub),
    ]
    bodies = [
        _wheel("rear_wheel", parameters.rear_mass, parameters.rear_inertia),
        _frame(
            "frame", parameters.frame_mass, parameters.frame_center, hub, parameters.frame_inertia
        ),
        _frame(
            "fork",
            parameters.fork_mass,
            parameters.fork_center,
            front_hub,
            parameters.fork_inertia,
        ),
        _wheel("front_wheel", parameters.front_mass, parameters.front_inertia),
    ]
    return Multibody(
        "bicycle",
        frames,
        bodies,
        inputs=[
            JointInput("steer", parameters.steer_torque_limit),
            JointInput("rear_wheel", parameters.drive_torque_limit, "drive_torque"),
        ],
        wheels=[
            RollingWheel(at="rear_wheel", radius=parameters.rear_radius),
            RollingWheel(at="front_wheel", radius=parameters.front_radius),
        ],
        gravity=(0.0, 0.0, -parameters.g),
    )


def _wheel(name: str, mass: float, inertia: tuple[float, ...]) -> Body:
    across, about = inertia
    return Body(name, mass, inertia=(across, about, across))


def _frame(
    name: str,
    mass: float,
    center: tuple[float, ...],
    origin: np.ndarray,
    inertia: tuple[float, ...],
) -> Body:
    xx, yy, zz, xz = inertia
    # symmetry about the xz plane implies Jxy = Jyz = 0
    matrix = np.array([[xx, 0.0, xz], [0.0, yy, 0.0], [xz, 0.0, zz]])
    return Body(name, mass, np.array([center[0], 0.0, center[1]]) - origin, matrix)
