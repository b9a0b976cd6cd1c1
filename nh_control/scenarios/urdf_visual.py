"""Visual model of a robot: the pictures of its URDF file, or a skeleton of rods between its joints
and centers of mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from nh_control.multibody import WORLD, Multibody
from nh_control.multibody.motion import plane_axes
from nh_control.scenarios import urdf_meshes
from nh_control.scenarios.robot_bodies import root_frame
from nh_control.scenarios.visual_model import ORANGE, STEEL, WOOD, Pose, Shape, VisualModel

THINNEST = 0.01
"""Shortest rod that is drawn, as a part of the longest."""


def robot(model: Multibody, source: str | Path, parameters: object = None) -> VisualModel:
    """The pictures of the model's URDF file; the skeleton if it has none."""
    skeleton = visual_model(model)
    frames = {frame.name for frame in model.frames}
    drawn = tuple(shape for shape in urdf_meshes.shapes(source) if shape.frame in frames)
    return replace(skeleton, shapes=drawn, lines=skeleton.shapes) if drawn else skeleton


def visual_model(model: Multibody, parameters: object = None) -> VisualModel:
    """Rods from frames to the joints and centers of mass on them, orange balls at the joints,
    brown ones at the centers of mass, scaled by the longest rod.
    """
    joints = [(f.parent, f"{f.name} rod", np.array(f.position)) for f in model.frames]
    masses = [(b.frame, f"{b.frame} mass", np.array(b.center)) for b in model.bodies]
    lengths = [np.linalg.norm(end) for _, _, end in (*joints, *masses)]
    longest = max(lengths, default=0.0) or 1.0
    d = 0.08 * longest
    rods = [
        (frame, name, end, length)
        for (frame, name, end), length in zip((*joints, *masses), lengths)
        if length > THINNEST * longest and frame != WORLD
    ]
    shapes = [Shape("cylinder", (d, d, float(length)), STEEL, name) for _, name, _, length in rods]
    shapes += [
        Shape("sphere", (1.6 * d,) * 3, ORANGE, f.name) for f in model.frames if not f.is_fixed
    ]
    shapes += [
        Shape("sphere", (1.4 * d,) * 3, WOOD, b.frame, tuple(b.center)) for b in model.bodies
    ]
    middles = [(frame, name, _middle(end)) for frame, name, end, _ in rods]
    moving = [f.name for f in model.frames if not f.is_fixed]
    return VisualModel(
        root_frame(model),
        partial(poses, model, middles),
        tuple(shapes),
        trail=moving[-1],
    )


def poses(
    model: Multibody, rods: Sequence[tuple[str, str, Pose]], parameters: object, q: np.ndarray
) -> dict[str, Pose]:
    """All frames at a configuration q (nq), and those of the rods: frame, name, and pose in it."""
    frames = {name: Pose(p.position, p.rotation) for name, p in model.poses(q).items()}
    for frame, name, middle in rods:
        start = frames[frame]
        frames[name] = Pose(
            start.position + start.rotation @ middle.position, start.rotation @ middle.rotation
        )
    return frames


def _middle(end: np.ndarray) -> Pose:
    """The middle of a rod from the origin, with z along it."""
    axis = end / np.linalg.norm(end)
    return Pose(end / 2, np.column_stack([plane_axes(axis), axis]))
