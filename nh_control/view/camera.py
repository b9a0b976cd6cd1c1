"""The initial view of an animation: camera, ground and light. Pages and films share it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.spatial.transform import Rotation

from nh_control.scenarios.visual_model import Shape, VisualModel
from nh_control.view.animation import Animation, Poses

FIELD, MARGIN = 0.7, 0.88
"""Vertical angle of view (rad), and fraction of the picture that the motion fills."""
ASPECTS = (0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 16 / 9, 2.2, 3.0)
"""Aspect ratios (width / height) for which camera distances are computed."""
SUN = np.array([0.35, -0.45, 1.0]) / np.linalg.norm([0.35, -0.45, 1.0])
"""Direction towards the light."""
FROM_THE_SIDE, FROM_ABOVE = (-np.pi / 2 - 0.25, 0.16), (-2.2, 0.42)
"""Yaw and pitch (rad) of the direction from the center to the camera."""
FLAT = 1e-6
LOOKED_AT = 60
"""Number of times at which the extent of the motion is measured."""
SMALL = 0.1
"""The camera follows bodies that are smaller than this fraction of the motion."""
CORNERS = np.array(list(product((-0.5, 0.5), repeat=3)))


@dataclass(frozen=True)
class View:
    """The camera looks at `center` (3) from the direction `yaw`, `pitch` (rad). `distances` (m)
    contains the camera distance for each of the aspect ratios `aspects` (width / height). The
    motion fills a sphere of radius `size` (m), `ground` is the height of the floor (m), and
    `follow` tells whether the camera follows the motion.
    """

    center: tuple[float, float, float]
    size: float
    ground: float
    yaw: float
    pitch: float
    aspects: tuple[float, ...]
    distances: tuple[float, ...]
    follow: bool

    def eye(self, aspect: float) -> np.ndarray:
        """The position (3) of the camera for a picture with the given aspect ratio (width /
        height).
        """
        distance = np.interp(aspect, self.aspects, self.distances)
        return np.array(self.center) + distance * _toward(self.yaw, self.pitch)


def first_view(animation: Animation) -> View:
    """The view that shows the whole motion. Motions in a vertical plane are seen from the side."""
    visual, run = animation.visual, animation.run
    rows = np.unique(np.linspace(0, len(animation.times) - 1, LOOKED_AT).round().astype(int))
    points = _corners(visual, run, rows)
    if animation.reference is not None:
        points = np.concatenate([points, _corners(visual, animation.reference, rows)])
    points = points if points.size else np.zeros((1, 1, 3))
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    center, size = (low + high) / 2, max(0.05, float(np.linalg.norm(high - low)) / 2)
    moves = run.position - run.position[:1]
    # A motion in the x-z plane, such as a pendulum's, is seen from the side.
    upright = np.abs(moves[..., 1]).max(initial=0.0) < FLAT and np.ptp(moves[..., 2]) > FLAT
    yaw, pitch = FROM_THE_SIDE if upright else FROM_ABOVE
    # The typical size of the system at a given time, compared with the size of the motion.
    body = float(np.median(np.linalg.norm(np.ptp(points, axis=1), axis=1)))
    return View(
        (float(center[0]), float(center[1]), float(center[2])),
        size,
        _ground(float(low[2]), size),
        yaw,
        pitch,
        ASPECTS,
        tuple(_distance(points.reshape(-1, 3) - center, yaw, pitch, ratio) for ratio in ASPECTS),
        bool(visual.trail) and body < SMALL * 2 * size,
    )


def extent(visual: VisualModel, poses: Poses) -> float:
    """The largest side (m) of the box around all shapes in the first poses, or 1 without
    shapes.
    """
    low, high = box(visual, poses)
    return float((high - low).max())


def box(visual: VisualModel, poses: Poses) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest coordinates (3) in m of the box around all shapes in the first poses.
    If there are no shapes, the sides of the box are 1 m long.
    """
    corners = _corners(visual, poses, np.array([0]))[0]
    if not len(corners):
        return np.full(3, -0.5), np.full(3, 0.5)
    return corners.min(axis=0), corners.max(axis=0)


def placement(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """The rotation (3, 3) and the offset (3) of a shape in its frame."""
    return Rotation.from_rotvec([shape.roll, 0.0, 0.0]).as_matrix(), np.array(shape.offset)


def _corners(visual: VisualModel, poses: Poses, rows: np.ndarray) -> np.ndarray:
    """The corners (rows, n, 3) of the boxes around all shapes, the ends of the cables, and the
    points of the trail.
    """
    boxes = [np.zeros((len(rows), 0, 3))]
    rotations = Rotation.from_quat(np.roll(poses.wxyz[rows].reshape(-1, 4), -1, axis=1))
    matrices = rotations.as_matrix().reshape(len(rows), len(poses.names), 3, 3)
    for shape in visual.shapes:
        i = poses.names.index(shape.frame)
        rotation, offset = placement(shape)
        corners = offset + CORNERS * shape.extents @ rotation.T
        # Rotate the corners c of the box with the rotation of each row n.
        placed = np.einsum("nij,cj->nci", matrices[:, i], corners)
        boxes.append(poses.position[rows, i][:, None] + placed)
    ends = {end for cable in visual.cables for end in (cable.start, cable.end)}
    for name in sorted(ends | ({visual.trail} if visual.trail else set())):
        boxes.append(poses.track(name)[rows][:, None])
    return np.concatenate(boxes, axis=1)


def _ground(low: float, size: float) -> float:
    """The height of the ground. It is 0 if the lowest point of the motion is near z = 0 or
    moderately above it. Otherwise the ground is below the motion.
    """
    return 0.0 if -0.02 * size < low < size else low - 0.05 * size


def _toward(yaw: float, pitch: float) -> np.ndarray:
    return np.array([np.cos(pitch) * np.cos(yaw), np.cos(pitch) * np.sin(yaw), np.sin(pitch)])


def _distance(points: np.ndarray, yaw: float, pitch: float, aspect: float) -> float:
    """The camera distance at which all points (n, 3) are within the margin. The points are
    relative to the center of the view.
    """
    back = _toward(yaw, pitch)
    right = np.array([-np.sin(yaw), np.cos(yaw), 0.0])
    up = np.cross(back, right)
    tangent = MARGIN * np.tan(FIELD / 2)
    # A point with the coordinates r (right), u (up) and b (back) is visible if
    # |r| <= (d - b) tan aspect and |u| <= (d - b) tan.
    across = np.abs(points @ right) / (tangent * aspect) + points @ back
    high = np.abs(points @ up) / tangent + points @ back
    return float(max(across.max(), high.max(), 0.3))
