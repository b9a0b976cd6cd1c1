"""The visual model of a robot: the shapes in its URDF file, or a skeleton of rods between its
joints and centers of mass.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import casadi as ca
import numpy as np

from nh_control import multibody
from nh_control.multibody import WORLD, Body, Mimic, Multibody
from nh_control.multibody.bodies import SpatialInertia
from nh_control.multibody.frame_motion import plane_axes
from nh_control.multibody.joint_types import Fixed, Joint, Planar, Prismatic, Revolute
from nh_control.scenarios import urdf_meshes
from nh_control.scenarios.declared_frames import (
    CONTINUOUS,
    FLOATING,
    PLANAR,
    PRISMATIC,
    Frame,
    FrameTree,
)
from nh_control.scenarios.robot_bodies import root_frame
from nh_control.scenarios.visual_model import ORANGE, STEEL, WOOD, Pose, Shape, VisualModel

THINNEST = 0.01
"""Minimum length of a rod that is drawn, as a fraction of the longest rod."""


def robot(model: Multibody, source: str | Path, parameters: object = None) -> VisualModel:
    """The visual model with the shapes in the URDF file, or with the skeleton if there are
    none.
    """
    skeleton = visual_model(model)
    frames = {frame.name for frame in model.frames}
    # Shapes cannot be placed on links that are not frames of the model.
    drawn = tuple(shape for shape in urdf_meshes.shapes(source) if shape.frame in frames)
    return replace(skeleton, shapes=drawn, lines=skeleton.shapes) if drawn else skeleton


def visual_model(model: Multibody, parameters: object = None) -> VisualModel:
    """Rods from frames to the joints and centers of mass on them, orange balls at the joints, and
    brown balls at the centers of mass. The sizes are proportional to the longest rod.
    """
    joints = [(f.parent, f"{f.name} rod", np.array(f.position)) for f in model.frames]
    masses = [(b.frame, f"{b.frame} mass", np.array(b.center)) for b in model.bodies]
    # Rods that are much shorter than the longest rod would be invisible.
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
    middles = [Frame(name, frame, origin=_middle(end)) for frame, name, end, _ in rods]
    moving = [f.name for f in model.frames if not f.is_fixed]
    return VisualModel(
        root_frame(model),
        frame_tree(model, middles),
        tuple(shapes),
        trail=moving[-1],
    )


def frame_tree(model: Multibody, rods: Iterable[Frame] = ()) -> FrameTree:
    """The frames of the model's tree with its joints and bodies, and additional frames for
    rods.
    """
    declared = (_declared(model, frame) for frame in model.frames)
    masses = dict[str, SpatialInertia]()
    for body in model.bodies:
        inertia = body.inertia_in(body.frame, np.zeros(3), np.eye(3))
        # URDF allows only one inertia for each link, so inertias on the same frame are added.
        masses[body.frame] = masses[body.frame] + inertia if body.frame in masses else inertia
    bodies = (
        Body(m.frame, m.mass, m.center, m.inertia, accept_any_inertia=True)
        for m in masses.values()
    )
    return FrameTree(model.space.names, (*declared, *rods), tuple(bodies))


def _declared(model: Multibody, frame: multibody.Frame) -> Frame:
    """Convert a frame in a tree to a frame in a visual model."""
    name, parent, origin = frame.name, frame.parent, Pose.at(frame.position, frame.rotation)
    joint, mimic = frame.joint, frame.mimic or Mimic(frame.coordinate)
    if isinstance(joint, Fixed):
        return Frame(name, parent, origin=origin)
    # A follower moves by ratio c + offset, where c is the leader's coordinate.
    in_q, _ = model.tree.slices(mimic.coordinate)
    names = tuple(model.space.names[in_q])
    if isinstance(joint, (Revolute, Prismatic)):
        kind = CONTINUOUS if joint.rotates else PRISMATIC
        return Frame(name, parent, kind, names, origin, joint.axis, mimic.ratio, mimic.offset)
    if joint == Planar((0.0, 0.0, 1.0)):
        return Frame(name, parent, PLANAR, names, origin)
    return Frame(name, parent, FLOATING, names, origin, motion=partial(_moved, joint, mimic))


@cache
def _placement(joint: Joint) -> ca.Function:
    """The rotation (3, 3) and position (3) as functions of a joint's coordinates."""
    space = joint.space("q")
    q = ca.SX.sym("q", space.nq)
    # Only the pose is needed, so the velocity is zero.
    motion = joint.motion(q, ca.SX(space.nw, 1))
    return ca.Function("placement", [q], [motion.R, motion.r])


def _moved(joint: Joint, mimic: Mimic, values: np.ndarray) -> Pose:
    rotation, position = _placement(joint)(mimic.ratio * values + mimic.offset)
    return Pose.at(np.asarray(position).ravel(), rotation)


def _middle(end: np.ndarray) -> Pose:
    """The pose at the midpoint of a rod that starts at the origin, with z along the rod."""
    axis = end / np.linalg.norm(end)
    return Pose(end / 2, np.column_stack([plane_axes(axis), axis]))
