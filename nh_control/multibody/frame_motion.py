"""Pose and velocity of one frame in another, and their composition along a chain."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.numerics.expressions import Vector

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def constant(values: ArrayLike | ca.SX) -> ca.DM | ca.SX:
    """A constant vector or matrix. Entries below 1e-15 times the largest become structural zeros,
    which keeps expressions small. Expressions (parameters) are returned unchanged.
    """
    if isinstance(values, ca.SX):
        return values
    values = np.asarray(values, dtype=float)
    return ca.sparsify(
        ca.DM(np.where(np.abs(values) < 1e-15 * np.abs(values).max(initial=0.0), 0.0, values))
    )


def three_numbers(values: Vector, name: str) -> tuple[float, float, float]:
    """The values as a tuple. An expression is returned unchanged. Unless the values are three
    finite numbers, raises a ValueError that contains their `name`.
    """
    if isinstance(values, ca.SX):
        return values
    array = np.array(values, dtype=float)
    if array.shape != (3,) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be three finite numbers, got {values}")
    x, y, z = array.tolist()
    return x, y, z


def unit_vector(axis: str | Vector, where: str) -> np.ndarray:
    """Unit vector (3) along an axis, given as "x", "y", "z", "-x", "-y", "-z" or three numbers.
    For any other axis, raises a ValueError with a message that begins with `where`.
    """
    if isinstance(axis, str):
        name = axis.removeprefix("-")
        if name not in AXES:
            raise ValueError(
                f"{where}: unknown axis {axis!r}, choose one of x, y, z, -x, -y, -z or three "
                f"numbers"
            )
        return np.array(AXES[name]) * (-1.0 if axis.startswith("-") else 1.0)
    vector = np.array(three_numbers(axis, f"{where}: axis"))
    if not vector.any():
        raise ValueError(f"{where}: the axis must not be zero")
    return vector / np.linalg.norm(vector)


def plane_axes(axis: np.ndarray) -> np.ndarray:
    """Two unit vectors (3, 2) that form a right-handed frame with the axis as the third vector.
    They are (x, y) for z, (y, z) for x and (z, x) for y.
    """
    for i, unit in enumerate(np.eye(3)):
        if np.array_equal(axis, unit):
            return np.roll(np.eye(3), -i - 1, axis=1)[:, :2]
    # the cross product with the coordinate axis farthest from `axis` is best conditioned
    first = np.cross(axis, np.array(AXES["xyz"[int(np.argmin(np.abs(axis)))]]))
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(axis, first)], axis=1)


def rotation_about(axis: np.ndarray, angle: ca.SX) -> ca.SX:
    """Rotation matrix (3, 3) about a constant unit vector a:
    `a a^T + cos(angle) (I - a a^T) + sin(angle) hat(a)`.
    """
    along = np.outer(axis, axis)
    return (
        ca.SX(constant(along))
        + ca.cos(angle) * constant(np.eye(3) - along)
        + ca.sin(angle) * constant(np.cross(np.eye(3), axis))
    )


@dataclass(frozen=True)
class FrameMotion:
    """Pose and velocity of a frame in an outer frame, as expressions with structural zeros. The
    pose is the rotation `R` (3, 3) and position `r` (3). The angular velocity `omega` (3) and
    linear velocity `v` (3) are in the moving frame's axes. `outer_v` is the linear velocity in the
    outer frame's axes if it is known without the product `R v`.
    """

    R: ca.SX
    r: ca.SX
    omega: ca.SX
    v: ca.SX
    outer_v: ca.SX | None = None

    @staticmethod
    def constant_pose(
        rotation: ArrayLike | None = None, position: ArrayLike | None = None
    ) -> FrameMotion:
        """A pose without velocity, with the given rotation (3, 3) and position (3). The default is
        the identity.
        """
        rotation = ca.SX.eye(3) if rotation is None else ca.SX(constant(rotation))
        return FrameMotion(
            rotation,
            ca.SX(3, 1) if position is None else ca.SX(constant(position)),
            ca.SX(3, 1),
            ca.SX(3, 1),
        )

    def compose(self, relative: FrameMotion) -> FrameMotion:
        """Motion, in the outer frame, of a frame whose motion in this frame is `relative`. It is
        `R R', r + R r', R'^T omega + omega', R'^T (v + omega x r') + v'`.
        """
        # velocity of this frame's material at the origin of the relative frame
        carried = self.v + ca.cross(self.omega, relative.r)
        return FrameMotion(
            self.R @ relative.R,
            self.r + self.R @ relative.r,
            relative.R.T @ self.omega + relative.omega,
            relative.R.T @ carried + relative.v,
            # if this frame is at rest, only the relative motion contributes: R R' v' = R outer_v'
            self.R @ relative.outer_v
            if relative.outer_v is not None and self.is_at_rest
            else None,
        )

    @property
    def is_at_rest(self) -> bool:
        """Whether the velocities are structurally zero."""
        return self.omega.nnz() == 0 and self.v.nnz() == 0

    def point(self, offset: ArrayLike) -> ca.SX:
        """Position (3), in the outer frame, of a point at `offset` (3) in this frame."""
        return self.r + self.R @ constant(offset)
