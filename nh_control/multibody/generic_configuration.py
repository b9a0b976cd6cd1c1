"""A configuration for checks of a model: no axes are aligned, and units do not matter."""

from __future__ import annotations

import casadi as ca
import numpy as np

from nh_control.multibody.kinematics import Tree
from nh_control.multibody.parts import MultibodyParts


def generic_configuration(model: MultibodyParts) -> np.ndarray:
    """Random changes (nq) of the origin: angles below 1 rad, translations below the model's size,
    the largest distance between frames, to a center of mass, or radius of gyration.
    """
    tree = model.tree
    change = np.random.default_rng(0).uniform(-1, 1, tree.space.nv)
    change[_translations(tree)] *= _size(model)
    return tree.space.retract(tree.space.origin, change)


def _translations(tree: Tree) -> list[int]:
    """Places of the tangent coordinates that turn no frame."""
    turns = set()
    for frame in tree.frames.values():
        if frame.mimic or frame.is_fixed:
            continue
        space, (_, places) = frame.joint.space(frame.coordinate), tree.slices(frame.coordinate)
        for i, v in enumerate(np.eye(space.nv)):
            omega = np.asarray(ca.DM(frame.joint.motion(ca.SX(space.origin), ca.SX(v)).omega))
            if omega.any():
                turns.add(places.start + i)
    return [i for i in range(tree.space.nv) if i not in turns]


def _size(model: MultibodyParts) -> float:
    """1 for a model without lengths."""
    lengths = [np.linalg.norm(frame.position) for frame in model.frames]
    for body in model.bodies:
        gyration = np.sqrt(np.trace(np.array(body.inertia)) / body.mass)
        lengths += [np.linalg.norm(body.center), gyration]
    return float(max(lengths, default=0.0)) or 1.0
