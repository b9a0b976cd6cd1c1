"""Holonomic constraints as records for the linear-time tree kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from nh_control.multibody.constraints import Coincident, Constraint, Distance, PointOnPlane
from nh_control.multibody.frame_motion import unit_vector
from nh_control.multibody.frames import ORIGIN, WORLD
from nh_control.multibody.joints import JointConstraint
from nh_control.multibody.kernel_layout import CONSTRAINT, NONE, ConstraintType
from nh_control.multibody.kinematics import Point
from nh_control.multibody.parts import MultibodyParts

KNOWN = (Distance, PointOnPlane, Coincident, JointConstraint)


def unknown_constraint(model: MultibodyParts) -> str:
    """The type of a constraint in the model that the kernel does not support, or "" if it supports
    all of them.
    """
    for constraint in model.constraints:
        if type(constraint) not in KNOWN:
            return type(constraint).__name__
        length = constraint.length if isinstance(constraint, Distance) else 0.0
        if isinstance(length, str) and length not in model.tree.scalars:
            return "Distance by the coordinate of a constraint"
    return ""


def located(
    model: MultibodyParts, index: dict[str, int], axes: dict[str, np.ndarray], point: Point | str
) -> tuple[int, np.ndarray]:
    """The number of the moving frame that carries a point, and the point's position (3) in that
    frame, in the kernel's axes. `index` contains the numbers of the moving frames. `axes` contains
    the kernel's axes (3, 3) in each frame's axes.
    """
    frame, place = (point.frame, point.position) if isinstance(point, Point) else (point, ORIGIN)
    anchor, origin, rotation = model.tree.anchors[frame]
    # the anchor is the moving frame that `frame` is rigidly attached to, r_anchor = o + R r_frame
    position = axes[anchor].T @ (origin + rotation @ np.array(place))
    return (NONE if anchor == WORLD else index[anchor]), position


@dataclass(frozen=True)
class Row:
    """One row of h(q) between points a and b. Each point has a frame number, a position and a
    direction in the kernel's axes. `turning` tells whether a's direction is fixed in its frame
    rather than in the world. For a screw, `zero` is b's direction in a's frame at zero angle.
    """

    kind: ConstraintType
    a: tuple[int, np.ndarray]
    b: tuple[int, np.ndarray]
    along_a: np.ndarray
    along_b: np.ndarray
    value: float = 0.0
    length: tuple[int, int] = (NONE, NONE)
    turning: bool = False
    zero: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def packed(self) -> np.ndarray:
        """The row packed as a record of type `struct constraint_row`."""
        return CONSTRAINT.record(
            type=self.kind,
            a=self.a[0],
            b=self.b[0],
            body_fixed=self.turning,
            length_q=self.length[0],
            length_v=self.length[1],
            value=self.value,
            at_a=self.a[1],
            at_b=self.b[1],
            e_a=self.along_a,
            e_b=self.along_b,
            e_zero=self.zero,
        )


@dataclass(frozen=True)
class Rows:
    """The rows of a model's constraints, in order. `index` contains the numbers of the moving
    frames. `axes` contains the kernel's axes (3, 3) in each frame's axes.
    """

    model: MultibodyParts
    index: dict[str, int]
    axes: dict[str, np.ndarray]

    def __iter__(self) -> Iterator[Row]:
        for constraint in self.model.constraints:
            yield from self._of(constraint)

    def _of(self, constraint: Constraint) -> Iterator[Row]:
        where = f"constraint {constraint.name!r}"
        if isinstance(constraint, Distance):
            yield self._distance(constraint)
        elif isinstance(constraint, PointOnPlane):
            normal = unit_vector(constraint.normal, where)
            yield self._along(constraint.plane, constraint.point, normal, True)
        elif isinstance(constraint, Coincident):
            for axis in constraint.along:
                yield self._along(constraint.b, constraint.a, unit_vector(axis, where), False)
        elif isinstance(constraint, JointConstraint):
            # if all three positions are equal, the rows need no joint axes and are written along
            # the world axes
            turning = len(constraint.positions.T) < 3
            for direction in constraint.positions.T if turning else np.eye(3):
                yield self._along(constraint.a, constraint.b, direction, turning)
            # e_a . e_b = cosine for each pair of fixed directions
            for at_a, at_b, cosine in constraint.directions:
                yield self._turned(constraint, at_a, at_b, cosine)
            if constraint.kind == "helical":
                yield self._screw(constraint)

    def _distance(self, constraint: Distance) -> Row:
        value, indices = 0.0, (NONE, NONE)
        if isinstance(constraint.length, str):
            indices = self.model.tree.scalar_indices(constraint.length)
        else:
            value = constraint.length
        return Row(
            ConstraintType.DISTANCE,
            self._point(constraint.a),
            self._point(constraint.b),
            along_a=np.zeros(3),
            along_b=np.zeros(3),
            value=value,
            length=indices,
        )

    def _along(self, a: Point | str, b: Point | str, direction: np.ndarray, turning: bool) -> Row:
        direction = self._direction(a, direction) if turning else self.axes[WORLD].T @ direction
        return Row(
            ConstraintType.ALONG_AXIS,
            self._point(a),
            self._point(b),
            along_a=direction,
            along_b=np.zeros(3),
            turning=turning,
        )

    def _turned(
        self, joint: JointConstraint, at_a: np.ndarray, at_b: np.ndarray, cosine: float
    ) -> Row:
        return Row(
            ConstraintType.AXES_COSINE,
            self._point(joint.a),
            self._point(joint.b),
            along_a=self._direction(joint.a, at_a),
            along_b=self._direction(joint.b, at_b),
            value=cosine,
        )

    def _screw(self, joint: JointConstraint) -> Row:
        axis, zero, at_b = joint.screw_axes
        return Row(
            ConstraintType.SCREW,
            self._point(joint.a),
            self._point(joint.b),
            along_a=self._direction(joint.a, axis),
            along_b=self._direction(joint.b, at_b),
            value=joint.pitch,
            turning=True,
            zero=self._direction(joint.a, zero),
        )

    def _point(self, point: Point | str) -> tuple[int, np.ndarray]:
        return located(self.model, self.index, self.axes, point)

    def _direction(self, point: Point | str, direction: np.ndarray) -> np.ndarray:
        frame = point.frame if isinstance(point, Point) else point
        anchor, _, rotation = self.model.tree.anchors[frame]
        return self.axes[anchor].T @ rotation @ direction
