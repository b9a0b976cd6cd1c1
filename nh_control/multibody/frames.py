"""Frames in a tree. Each frame has a constant placement in its parent, followed by the motion of a
joint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from nh_control.multibody.frame_motion import three_numbers, unit_vector
from nh_control.multibody.joint_types import (
    CONFIGURATION_SPACES,
    Fixed,
    Floating,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
)
from nh_control.numerics.expressions import Vector

WORLD = "world"
"""Name of the root frame, which does not move."""
ORIGIN = (0.0, 0.0, 0.0)
NO_ROTATION = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True)
class Mimic:
    """A rule that makes a joint follow another joint. The follower's coordinate is
    `ratio * coordinate + offset`. The other joint may itself follow a third.
    """

    coordinate: str
    ratio: float = 1.0
    offset: float = 0.0


def of_leader(mimic: Mimic, followers: Mapping[str, Mimic]) -> Mimic:
    """A `Mimic` that describes the same motion in terms of the joint at the end of a chain of
    followers, with `r1 (r2 q + o2) + o1 = r1 r2 q + (r1 o2 + o1)`. `followers` maps the
    coordinates of the followers to their mimics.

    Raises ValueError if the chain is circular.
    """
    chain = list[str]()
    while mimic.coordinate in followers:
        if mimic.coordinate in chain:
            raise ValueError(
                f"the mimics of {', '.join(map(repr, chain))} form a cycle; one of them needs an "
                "independent coordinate"
            )
        chain.append(mimic.coordinate)
        # r1 (r2 q + o2) + o1 = r1 r2 q + (r1 o2 + o1)
        next_ = followers[mimic.coordinate]
        mimic = Mimic(
            next_.coordinate, mimic.ratio * next_.ratio, mimic.ratio * next_.offset + mimic.offset
        )
    return mimic


@dataclass(frozen=True)
class CoordinateLimits:
    """Range of a joint's coordinate (rad or m) and its maximum speed. Planners and controllers
    respect these limits, but the dynamics have no stops. Raises ValueError for an empty range.
    """

    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf

    def __post_init__(self) -> None:
        if not (self.lower <= self.upper and self.velocity >= 0):
            raise ValueError(
                f"CoordinateLimits: expected lower <= upper and velocity >= 0, got "
                f"{self.lower}, {self.upper} and {self.velocity}"
            )


NO_LIMITS = CoordinateLimits()


def rotation_rows(values: ArrayLike, owner: str) -> tuple[tuple[float, ...], ...]:
    """The rows of a rotation matrix (3, 3). If the values are not a rotation, raises a ValueError
    that names the owner.
    """
    rotation = np.array(values, dtype=float)
    if (
        # R R^T = I with det R = 1 excludes reflections
        rotation.shape != (3, 3)
        or not np.allclose(rotation @ rotation.T, np.eye(3), rtol=0, atol=1e-9)
        or np.linalg.det(rotation) < 0
    ):
        raise ValueError(
            f"{owner}: rotation must be a (3, 3) rotation matrix, got {rotation.tolist()}"
        )
    return tuple(map(tuple, rotation.tolist()))


@dataclass(frozen=True)
class Frame:
    """A frame that its joint moves relative to a constant placement in its parent. The placement
    has a `position` (3, m) and a `rotation` (3, 3). `coordinate` names the joint's coordinates and
    defaults to the frame's name. `fixed`, `revolute`, `prismatic`, `helical`, `planar`,
    `spherical` and `floating` each return one frame. `universal` and `cylindrical` each return
    two.
    """

    name: str
    parent: str
    joint: Joint
    position: Vector = ORIGIN
    rotation: ArrayLike = NO_ROTATION
    coordinate: str = ""
    mimic: Mimic | None = None
    limits: CoordinateLimits = NO_LIMITS

    def __post_init__(self) -> None:
        rotation = rotation_rows(self.rotation, f"frame {self.name!r}")
        object.__setattr__(
            self, "position", three_numbers(self.position, f"frame {self.name!r}: position")
        )
        object.__setattr__(self, "rotation", rotation)
        object.__setattr__(self, "coordinate", self.coordinate or self.name)

    @property
    def is_fixed(self) -> bool:
        """Whether the frame is fixed in its parent."""
        return isinstance(self.joint, Fixed)


def following_leaders(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The frames, where each frame that followed a follower now follows its leader instead (see
    `of_leader`).
    """
    # a coordinate that several joints share is independent if one of them follows nothing
    independent = {frame.coordinate for frame in frames if frame.mimic is None}
    followers = {
        f.coordinate: f.mimic for f in frames if f.mimic and f.coordinate not in independent
    }
    return tuple(
        replace(frame, mimic=of_leader(frame.mimic, followers)) if frame.mimic else frame
        for frame in frames
    )


def fixed(
    name: str,
    parent: str = WORLD,
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
) -> Frame:
    """A frame at a constant pose in its parent."""
    return Frame(name, parent, Fixed(), position, rotation)


def revolute(
    name: str,
    parent: str = WORLD,
    axis: str | Vector = "z",
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
    coordinate: str = "",
    mimic: Mimic | None = None,
    limits: CoordinateLimits = NO_LIMITS,
) -> Frame:
    """A frame that turns about an axis ("x", "-z", ... or three numbers). It may follow another
    coordinate (`Mimic`) and have `CoordinateLimits`.
    """
    return Frame(
        name, parent, Revolute(_axis(name, axis)), position, rotation, coordinate, mimic, limits
    )


def helical(
    name: str,
    parent: str = WORLD,
    axis: str | Vector = "z",
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
    coordinate: str = "",
    mimic: Mimic | None = None,
    limits: CoordinateLimits = NO_LIMITS,
    *,
    pitch: float,
) -> Frame:
    """A frame on a screw. It turns by q (rad) about an axis ("x", "-z", ... or three numbers) and
    moves by `pitch * q` along the axis, with `pitch` in m/rad. It may follow another coordinate
    (`Mimic`) and have `CoordinateLimits`. Raises ValueError if the pitch is not finite.
    """
    # zero pitch gives a revolute joint
    if not np.isfinite(pitch):
        raise ValueError(f"frame {name!r}: pitch must be finite, got {pitch}")
    joint = Helical(_axis(name, axis), float(pitch))
    return Frame(name, parent, joint, position, rotation, coordinate, mimic, limits)


def prismatic(
    name: str,
    parent: str = WORLD,
    axis: str | Vector = "x",
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
    coordinate: str = "",
    mimic: Mimic | None = None,
    limits: CoordinateLimits = NO_LIMITS,
) -> Frame:
    """A frame that slides along an axis ("x", "-z", ... or three numbers). It may follow another
    coordinate (`Mimic`) and have `CoordinateLimits`.
    """
    return Frame(
        name, parent, Prismatic(_axis(name, axis)), position, rotation, coordinate, mimic, limits
    )


def planar(
    name: str,
    parent: str = WORLD,
    axis: str | Vector = "z",
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
    coordinate: str = "",
) -> Frame:
    """A frame that slides and turns in the plane normal to an axis. Its coordinates are
    (theta, x, y), and its velocities are in the moving frame's axes.
    """
    return Frame(name, parent, Planar(_axis(name, axis)), position, rotation, coordinate)


def spherical(
    name: str,
    parent: str = WORLD,
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
    coordinate: str = "",
    retraction: str = "exp",
) -> Frame:
    """A frame that turns about its origin. Its coordinates are a unit quaternion, and its velocity
    is the angular velocity in the frame's axes. `retraction` is "exp" or "cay", as for `SO3`.
    """
    return Frame(name, parent, Spherical(retraction), position, rotation, coordinate)


def floating(
    name: str,
    parent: str = WORLD,
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
    coordinate: str = "",
    retraction: str = "exp",
    space: str = "SE3",
) -> Frame:
    """A frame that moves freely. Its coordinates are a unit quaternion and a position. The angular
    velocity is in the frame's axes. The linear velocity is in the frame's axes if the `space` is
    "SE3", and in the axes of the placement if it is "SO3xR3". `retraction` is "exp" or "cay", as
    for `SE3`. Raises ValueError for other spaces.
    """
    if space not in CONFIGURATION_SPACES:
        raise ValueError(
            f"frame {name!r}: unknown space {space!r} of a floating frame, choose one of "
            f"{', '.join(CONFIGURATION_SPACES)}"
        )
    return Frame(name, parent, Floating(retraction, space), position, rotation, coordinate)


def universal(
    name: str,
    parent: str = WORLD,
    axes: tuple[str | Vector, str | Vector] = ("x", "y"),
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
) -> tuple[Frame, Frame]:
    """Two frames. `<name>_cross` turns about the first axis, and the frame itself turns about the
    second axis, which passes through the same point.
    """
    # the frame between both joints carries no body
    cross = revolute(f"{name}_cross", parent, axes[0], position, rotation)
    return cross, revolute(name, cross.name, axes[1])


def cylindrical(
    name: str,
    parent: str = WORLD,
    axis: str | Vector = "z",
    position: Vector = ORIGIN,
    rotation: ArrayLike = NO_ROTATION,
) -> tuple[Frame, Frame]:
    """Two frames. `<name>_slide` slides along an axis, and the frame itself turns about that
    axis.
    """
    # the frame between both joints carries no body
    slide = prismatic(f"{name}_slide", parent, axis, position, rotation)
    return slide, revolute(name, slide.name, axis)


def _axis(name: str, axis: str | Vector) -> tuple[float, float, float]:
    x, y, z = unit_vector(axis, f"frame {name!r}").tolist()
    return x, y, z
