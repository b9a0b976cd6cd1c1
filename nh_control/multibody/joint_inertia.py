"""The inertia that a joint moves, in the axes of the joint."""

from __future__ import annotations

import numpy as np

from nh_control.multibody.bodies import SpatialInertia
from nh_control.multibody.frames import Frame
from nh_control.multibody.joint_types import Planar, ScalarJoint, Spherical
from nh_control.multibody.planar_frames import axes_of

ALL = [0, 1, 2, 3, 4, 5]
FREE = {Planar: [2, 3, 4], Spherical: [0, 1, 2]}
"""Components of a twist, in the kernel's axes, that a joint with several coordinates leaves free;
a joint that is not listed leaves all of them free.
"""
REGULAR = 1e-9
"""Relative inertia, against the other inertias of the body, above which a motion moves mass."""


def moves_mass(frame: Frame, part: SpatialInertia) -> bool:
    """Whether every motion of a joint alone gives kinetic energy to the bodies on its frame."""
    axes = axes_of(frame)
    mass, first, inertia = moments(part, axes)
    if isinstance(frame.joint, ScalarJoint):
        # 2 T = J_axis + slide^2 m for a unit rate; the terms in the first moment cancel
        about, along = frame.joint.rotates, frame.joint.slide**2 * mass
        return bool(about * inertia[2, 2] + along > REGULAR * (about * inertia.trace() + along))
    lever = np.cross(np.eye(3), first)
    spatial = np.block([[inertia, lever], [lever.T, mass * np.eye(3)]])
    free = FREE.get(type(frame.joint), ALL)
    energy, scale = spatial[np.ix_(free, free)], np.diag(spatial)[free]
    if not (scale > REGULAR * np.where(np.array(free) < 3, inertia.trace(), mass)).all():
        return False
    ratios = energy / np.sqrt(np.outer(scale, scale))
    return bool(np.linalg.eigvalsh(ratios)[0] > REGULAR)


def moments(part: SpatialInertia | None, own: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, first moment (3) and inertia (3, 3) about the frame's origin, in the axes `own`."""
    if part is None:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    c = own.T @ part.center
    inertia = own.T @ part.inertia @ own
    return part.mass, part.mass * c, inertia + part.mass * (c @ c * np.eye(3) - np.outer(c, c))
