"""The wheels of a URDF robot, measured from its geometry and described as for vehicle
controllers.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from nh_control.multibody.model import Multibody
from nh_control.multibody.wheels import RollingWheel
from nh_control.scenarios.wheeled_base import (
    AckermannBase,
    DifferentialBase,
    SteeredBase,
    WheeledBase,
)

UPRIGHT = 0.99
"""Minimum vertical component of a steering joint's axis."""


def base_of_robot(model: Multibody, driven: Collection[str]) -> WheeledBase | None:
    """The wheeled base of a robot with the given `driven` joints, measured with all joints at 0.

    The base has a driven wheel on each side with either no or two steered joints in front of them,
    or it has a driven wheel and a steered joint. The result is None for other robots. In the axes
    of the root link, x points forward and y points to the left.
    """
    wheels = [wheel for wheel in model.wheels if isinstance(wheel, RollingWheel)]
    frames = {frame.name: frame for frame in model.frames}
    poses, root = model.poses(model.configuration()), model.frames[0].name
    turned: dict[str, tuple[np.ndarray, float]] = {}
    steered: dict[str, np.ndarray] = {}
    for wheel in wheels:
        frame = frames[wheel.point.frame]
        at = poses[root].rotation.T @ (poses[frame.name].position - poses[root].position)
        if frame.coordinate in driven and wheel.radius is not None:
            turned[frame.coordinate] = at, wheel.radius
        parent = frames.get(frame.parent)
        # A driven joint with a vertical axis between a wheel and the root steers the wheel.
        while parent is not None and parent.name != root:
            axis = getattr(parent.joint, "axis", None)
            vertical = axis is not None and abs(poses[parent.name].rotation @ axis)[2] > UPRIGHT
            if vertical and parent.coordinate in driven:
                steered[parent.coordinate] = at
            parent = frames.get(parent.parent)
    if not turned or len({round(radius, 6) for _, radius in turned.values()}) > 1:
        return None
    radius = next(radius for _, radius in turned.values())
    # The left wheels, with the larger y, come first.
    by_side = sorted(turned, key=lambda name: -turned[name][0][1])
    front = sorted(steered, key=lambda name: -steered[name][1])
    if (len(by_side), len(front)) == (1, 1):
        length = float(steered[front[0]][0] - turned[by_side[0]][0][0])
        return SteeredBase(by_side[0], front[0], radius, length)
    if len(by_side) != 2 or len(front) not in (0, 2):
        return None
    width = float(turned[by_side[0]][0][1] - turned[by_side[1]][0][1])
    if not front:
        left, right = by_side
        return DifferentialBase(left, right, radius, width)
    length = float(steered[front[0]][0] - turned[by_side[0]][0][0])
    ahead = float(steered[front[0]][1] - steered[front[1]][1])
    return AckermannBase(tuple(by_side), tuple(front), radius, length, width, ahead)
