"""Visual models of scenarios: solids on moving frames, cables between frames, arrows of inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from transforms3d.axangles import axangle2mat

Color = tuple[float, float, float]
Vector = tuple[float, float, float]

WOOD, STEEL, RUBBER, ORANGE, BLUE = (
    (0.55, 0.35, 0.17),
    (0.65, 0.67, 0.7),
    (0.12, 0.12, 0.13),
    (0.95, 0.5, 0.1),
    (0.15, 0.4, 0.8),
)
AXIS_COLORS = ((0.82, 0.29, 0.36), (0.16, 0.62, 0.56), (0.12, 0.31, 0.71))
"""Colors of x, y and z."""


@dataclass(frozen=True)
class Pose:
    """The pose of a frame: `position` (3) in m and `rotation` (3, 3), whose columns are its axes,
    in the scenario's parent frame.
    """

    position: np.ndarray
    rotation: np.ndarray

    @staticmethod
    def at(position: Any, rotation: Any = None) -> Pose:
        """The pose at a position (3), with a rotation (3, 3) if there is one."""
        turn = np.eye(3) if rotation is None else np.asarray(rotation, dtype=float)
        return Pose(np.asarray(position, dtype=float), turn)

    @staticmethod
    def planar(theta: float, x: float, y: float) -> Pose:
        """The pose of a planar body on the ground."""
        return Pose(np.array([x, y, 0.0]), axangle2mat([0.0, 0.0, 1.0], theta))

    def rotated(
        self, angle: float, hinge: Vector, axis: Vector | np.ndarray = (0.0, 0.0, 1.0)
    ) -> Pose:
        """The frame at `hinge` (m) of this one, turned by `angle` (rad) about an axis."""
        return Pose(
            self.position + self.rotation @ hinge, self.rotation @ axangle2mat(axis, angle)
        )

    def __matmul__(self, frame: Pose) -> Pose:
        """The pose of a frame that is given in this one's axes, `(p + R p_f, R R_f)`."""
        return Pose(self.position + self.rotation @ frame.position, self.rotation @ frame.rotation)

    def relative_to(self, parent: Pose) -> Pose:
        """This pose in the axes of another frame, `(R_p^T (p - p_p), R_p^T R)`."""
        inverse = parent.rotation.T
        return Pose(inverse @ (self.position - parent.position), inverse @ self.rotation)


@dataclass(frozen=True, eq=False)
class Mesh:
    """A surface of `triangles` (m, 3), counter-clockwise from outside, of `vertices` (n, 3)."""

    vertices: np.ndarray
    triangles: np.ndarray


@dataclass(frozen=True)
class Shape:
    """A "box", "cylinder" (axis along z) or "sphere" of the given extents (m), its center at
    `offset` (m) of a frame, rolled (rad) about the frame's x; or a "mesh", whose vertices are
    scaled by the extents.
    """

    kind: str
    extents: Vector
    color: Color
    frame: str
    offset: Vector = (0.0, 0.0, 0.0)
    roll: float = 0.0
    opacity: float = 1.0
    mesh: Mesh | None = None


@dataclass(frozen=True)
class Cable:
    """A cable between the origins of two frames; it is shown slack while the scenario's monitored
    value of the name `monitored`, if any, is too low.
    """

    start: str
    end: str
    monitored: str = ""
    diameter: float = 0.015


@dataclass(frozen=True)
class Arrow:
    """The value of an input along the z axis of a frame, `scale` m for one unit, from `offset` (m)
    above its origin.
    """

    input: str
    frame: str
    scale: float
    offset: float = 0.0


@dataclass(frozen=True)
class VisualModel:
    """A drawing of a system: `poses(parameters, q)` are the frames by name at configuration q
    (nq), in the frame `parent`. It is a `FrameTree`, which declares the frames with their joints,
    or any function; without joints the scenario has no URDF, and all frames float on `parent`.

    `lines` are other shapes for drawings of lines: for a robot with meshes its skeleton. `trail`
    is the frame that leaves a trail ("" for none); a thin closed line joins the frames of
    `outline`.
    """

    parent: str
    poses: Callable[[Any, np.ndarray], Mapping[str, Pose]]
    shapes: tuple[Shape, ...]
    trail: str = ""
    cables: tuple[Cable, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    outline: tuple[str, ...] = ()
    lines: tuple[Shape, ...] = ()

    @property
    def line_shapes(self) -> tuple[Shape, ...]:
        """The shapes for drawings of lines."""
        return self.lines or self.shapes


def wheel(frame: str, radius: float, width: float) -> tuple[Shape, ...]:
    """A wheel of this radius and width (m) about the y axis of its frame, with spokes that show
    its turning.
    """
    tire = Shape("cylinder", (2 * radius, 2 * radius, width), RUBBER, frame, roll=np.pi / 2)
    long, thin, across = 1.5 * radius, 0.22 * radius, 1.15 * width
    return (
        tire,
        Shape("box", (long, across, thin), STEEL, frame),
        Shape("box", (thin, across, long), STEEL, frame),
    )
