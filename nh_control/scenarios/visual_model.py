"""Visual models of scenarios: shapes on moving frames, cables between frames, and arrows for
inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from transforms3d.axangles import axangle2mat

Color = tuple[float, float, float]
Vector = tuple[float, float, float]

ODOM = "odom"
"""Name of the frame that is fixed to the ground, as in REP 105."""
WOOD, STEEL, RUBBER, ORANGE, BLUE = (
    (0.55, 0.35, 0.17),
    (0.65, 0.67, 0.7),
    (0.12, 0.12, 0.13),
    (0.95, 0.5, 0.1),
    (0.15, 0.4, 0.8),
)
AXIS_COLORS = ((0.82, 0.29, 0.36), (0.16, 0.62, 0.56), (0.12, 0.31, 0.71))
"""Colors of the x, y and z axes."""


@dataclass(frozen=True)
class Pose:
    """The pose of a frame relative to a parent frame: its `position` (3) in m, and its `rotation`
    (3, 3). The columns of the rotation are the frame's axes.
    """

    position: np.ndarray
    rotation: np.ndarray

    @staticmethod
    def at(position: Any, rotation: Any = None) -> Pose:
        """The pose at a position (3), with a rotation (3, 3) if one is given."""
        turn = np.eye(3) if rotation is None else np.asarray(rotation, dtype=float)
        return Pose(np.asarray(position, dtype=float), turn)

    @staticmethod
    def planar(theta: float, x: float, y: float) -> Pose:
        """The pose of a planar body on the ground."""
        return Pose(np.array([x, y, 0.0]), axangle2mat([0.0, 0.0, 1.0], theta))

    def rotated(
        self, angle: float, hinge: Vector, axis: Vector | np.ndarray = (0.0, 0.0, 1.0)
    ) -> Pose:
        """The pose of a frame at `hinge` (m) in this frame, rotated by `angle` (rad) about an
        axis.
        """
        return Pose(
            self.position + self.rotation @ hinge, self.rotation @ axangle2mat(axis, angle)
        )

    def __matmul__(self, frame: Pose) -> Pose:
        """The pose of a frame that is given relative to this frame, `(x + R x_f, R R_f)`."""
        return Pose(self.position + self.rotation @ frame.position, self.rotation @ frame.rotation)

    def relative_to(self, parent: Pose) -> Pose:
        """This pose relative to another frame, `(R_p^T (x - x_p), R_p^T R)`."""
        inverse = parent.rotation.T
        return Pose(inverse @ (self.position - parent.position), inverse @ self.rotation)


@dataclass(frozen=True, eq=False)
class Mesh:
    """A surface that consists of `triangles` (m, 3), counterclockwise as seen from outside, with
    `vertices` (n, 3).
    """

    vertices: np.ndarray
    triangles: np.ndarray


@dataclass(frozen=True)
class Shape:
    """A shape with the given extents (m). Its center is at `offset` (m) in a frame, and it is
    rotated by `roll` (rad) about the frame's x axis. The `kind` is "box", "cylinder" (along z),
    "sphere", or "mesh". The vertices of a mesh are multiplied by the extents.
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
    """A cable between the origins of two frames. If `monitored` names a monitored value of the
    scenario, the cable is drawn slack while this value is too low.
    """

    start: str
    end: str
    monitored: str = ""
    diameter: float = 0.015


@dataclass(frozen=True)
class Arrow:
    """An arrow that shows the value of an input. It points along the z axis of a frame, is `scale`
    m long per unit, and starts at `offset` (m) above the frame's origin.
    """

    input: str
    frame: str
    scale: float
    offset: float = 0.0


@dataclass(frozen=True)
class VisualModel:
    """A drawing of a system. `poses(parameters, q)` returns the poses of frames by name at
    configuration q (nq), relative to the frame `parent`. It is a `FrameTree`, which declares the
    frames with their joints, or any other function. Without a tree, the scenario has no URDF, and
    all frames are floating frames on `parent`.

    `lines` are the shapes that replace the others in line drawings, such as the skeleton of a
    robot with meshes. `trail` is the frame that leaves a trail ("" for none). A thin closed line
    connects the frames in `outline`.
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
        """The shapes for line drawings."""
        return self.lines or self.shapes


def wheel(frame: str, radius: float, width: float) -> tuple[Shape, ...]:
    """A wheel with the given radius and width (m) about the y axis of its frame, with spokes that
    show its rotation.
    """
    tire = Shape("cylinder", (2 * radius, 2 * radius, width), RUBBER, frame, roll=np.pi / 2)
    # Two crossed spokes, slightly wider than the tire, so that they are visible.
    long, thin, across = 1.5 * radius, 0.22 * radius, 1.15 * width
    return (
        tire,
        Shape("box", (long, across, thin), STEEL, frame),
        Shape("box", (thin, across, long), STEEL, frame),
    )
