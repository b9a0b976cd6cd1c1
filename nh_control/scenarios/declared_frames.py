"""The frames of visual models, declared as a tree with joints and bodies. Poses, TF and URDF
follow from this tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from transforms3d.quaternions import quat2mat

from nh_control.multibody.bodies import Body, inertia_problem
from nh_control.multibody.frame_motion import unit_vector
from nh_control.scenarios.visual_model import Pose, Vector

FIXED, CONTINUOUS, PRISMATIC, PLANAR, FLOATING = (
    "fixed",
    "continuous",
    "prismatic",
    "planar",
    "floating",
)
COUNTS = {FIXED: (0,), CONTINUOUS: (1,), PRISMATIC: (1,), PLANAR: (3,), FLOATING: (4, 7)}
"""The kinds of joints, as in URDF, with their possible numbers of coordinates."""
ORIGIN, X, Z = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame that a joint moves relative to `origin` in its `parent`: `T = origin motion(c)`.

    The motion depends on the `kind` of the joint and the values c of its `coordinates`:

    - fixed: no motion.
    - continuous: a rotation about the `axis` ("x", "-z", ... or three numbers) by
      `ratio c + offset` (rad).
    - prismatic: a translation along the `axis` by `ratio c + offset` (m).
    - planar: a rotation by theta about z and a translation by (x, y), where c = (theta, x, y).
    - floating: the pose `motion(c)`. Without this function, c is either the pose
      (x, y, z, qw, qx, qy, qz) or the rotation (qw, qx, qy, qz).

    Raises ValueError for an unknown kind, a wrong number of coordinates, and an axis that is not a
    direction.
    """

    name: str
    parent: str
    kind: str = FIXED
    coordinates: tuple[str, ...] = ()
    origin: Pose = field(default_factory=lambda: Pose.at(ORIGIN))
    axis: str | Vector = Z
    ratio: float = 1.0
    offset: float = 0.0
    motion: Callable[[np.ndarray], Pose] | None = None

    def __post_init__(self) -> None:
        if self.kind not in COUNTS:
            raise ValueError(
                f"frame {self.name!r}: unknown kind {self.kind!r} of a joint, choose one of "
                f"{', '.join(COUNTS)}"
            )
        count = len(self.coordinates)
        if self.motion is None and count not in COUNTS[self.kind]:
            counts = " or ".join(map(str, COUNTS[self.kind]))
            raise ValueError(
                f"frame {self.name!r}: a {self.kind} joint has {counts} coordinates, got "
                f"{self.coordinates}"
            )
        if self.motion is not None and self.kind != FLOATING:
            raise ValueError(
                f"frame {self.name!r}: only a floating joint may declare a motion, this one is "
                f"{self.kind}"
            )
        # Normalize the axis once, although the dataclass is frozen.
        axis = tuple(unit_vector(self.axis, f"frame {self.name!r}").tolist())
        object.__setattr__(self, "axis", axis)

    def pose(self, values: np.ndarray) -> Pose:
        """The pose in the parent for the given values of the coordinates."""
        if self.kind == FIXED:
            return self.origin
        if self.motion is not None:
            return self.origin @ self.motion(values)
        if self.kind == PLANAR:
            theta, x, y = values
            return self.origin @ Pose.planar(theta, x, y)
        if self.kind == FLOATING:
            position = values[:3] if len(values) == 7 else np.zeros(3)
            return self.origin @ Pose(position, quat2mat(values[-4:]))
        # The other kinds move along or about the axis by ratio c + offset.
        amount, axis = self.ratio * values[0] + self.offset, np.asarray(self.axis, dtype=float)
        if self.kind == PRISMATIC:
            return self.origin @ Pose.at(amount * axis)
        return self.origin.rotated(amount, ORIGIN, axis)


def fixed(name: str, parent: str, position: Vector = ORIGIN, rotation: Any = None) -> Frame:
    """A frame with a constant pose in its parent."""
    return Frame(name, parent, origin=Pose.at(position, rotation))


def revolute(
    name: str,
    parent: str,
    coordinate: str,
    axis: str | Vector = Z,
    position: Vector = ORIGIN,
    rotation: Any = None,
    ratio: float = 1.0,
) -> Frame:
    """A frame that rotates about an axis by `ratio` times a coordinate (rad)."""
    origin = Pose.at(position, rotation)
    return Frame(name, parent, CONTINUOUS, (coordinate,), origin, axis, ratio)


def prismatic(
    name: str, parent: str, coordinate: str, axis: str | Vector = X, position: Vector = ORIGIN
) -> Frame:
    """A frame that translates along an axis by a coordinate (m)."""
    return Frame(name, parent, PRISMATIC, (coordinate,), Pose.at(position), axis)


def planar(
    name: str,
    parent: str,
    coordinates: tuple[str, ...] = ("theta", "x", "y"),
    position: Vector = ORIGIN,
) -> Frame:
    """A frame that moves in the x-y plane of its parent with the coordinates (theta, x, y)."""
    return Frame(name, parent, PLANAR, coordinates, Pose.at(position))


def floating(
    name: str,
    parent: str,
    coordinates: Sequence[str],
    motion: Callable[[np.ndarray], Pose] | None = None,
    position: Vector = ORIGIN,
) -> Frame:
    """A frame whose pose is `motion(coordinates)`, or consists of the coordinates (see
    `Frame`).
    """
    return Frame(name, parent, FLOATING, tuple(coordinates), Pose.at(position), motion=motion)


@dataclass(frozen=True, eq=False)
class FrameTree:
    """The `frames` of a system, each listed after its parent, the names `coordinates` (nq) of the
    entries in a configuration, and the `bodies` on the frames.

    A tree can be used as the function `poses(parameters, q)` of a `VisualModel`. The root is the
    parent of the first frame and does not move. The total kinetic energy of the bodies is the
    kinetic energy of the system. If there are no bodies, `no_bodies` explains why. Raises
    ValueError for a frame that is declared twice or before its parent, and for unknown coordinates
    and frames.
    """

    coordinates: Sequence[str]
    frames: Sequence[Frame]
    bodies: Sequence[Body] = ()
    no_bodies: str = "the visual model declares no bodies"

    def __post_init__(self) -> None:
        # Parents come first, so a single pass computes all poses.
        known = [self.root]
        for frame in self.frames:
            if frame.name in known:
                raise ValueError(f"frame {frame.name!r} is declared twice; names must differ")
            if frame.parent not in known:
                raise ValueError(
                    f"frame {frame.name!r}: its parent {frame.parent!r} must be declared before "
                    f"it; declared so far: {', '.join(known)}, where {self.root} is the root"
                )
            unknown = [name for name in frame.coordinates if name not in self.coordinates]
            if unknown:
                raise ValueError(
                    f"frame {frame.name!r}: unknown coordinate {unknown[0]!r}, choose one of "
                    f"{', '.join(self.coordinates)}"
                )
            known.append(frame.name)
        for body in self.bodies:
            if body.frame not in known:
                raise ValueError(
                    f"body on {body.frame!r}: no such frame, choose one of {', '.join(known)}"
                )

    @property
    def root(self) -> str:
        """The frame that does not move, which is the parent of the first frame."""
        return self.frames[0].parent if self.frames else ""

    def __call__(self, _: Any, q: np.ndarray) -> dict[str, Pose]:
        """The poses of all frames relative to the root at a configuration q (nq), computed by
        forward kinematics, `T_frame = T_parent T(q)`.
        """
        q = np.asarray(q, dtype=float)
        poses = dict[str, Pose]()
        for frame, columns in zip(self.frames, self._columns):
            pose = frame.pose(q[columns])
            poses[frame.name] = poses[frame.parent] @ pose if frame.parent in poses else pose
        return poses

    @cached_property
    def _columns(self) -> list[list[int]]:
        """The indices of each frame's coordinates in a configuration."""
        places = {name: i for i, name in enumerate(self.coordinates)}
        return [[places[name] for name in frame.coordinates] for frame in self.frames]


def remainder(whole: Body, parts: Iterable[tuple[Body, Pose]]) -> Body | None:
    """The remainder of a body after some parts are removed. Each part is given with the pose of
    its frame in the body's frame. The result is None if no rigid body can have the remaining mass
    and inertia.
    """
    rest = whole.inertia_in(whole.frame, np.zeros(3), np.eye(3))
    for part, pose in parts:
        # Subtract the mass, the first moment and the inertia of each part.
        rest = rest + part.inertia_in(whole.frame, pose.position, pose.rotation).scaled(-1.0)
    # The remaining inertia must satisfy the triangle inequality.
    if rest.mass <= 0 or inertia_problem(rest.inertia):
        return None
    return Body(whole.frame, rest.mass, rest.center, rest.inertia)
