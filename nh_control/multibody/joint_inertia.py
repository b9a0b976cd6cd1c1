"""The inertia that a joint moves, in the joint's axes."""

from __future__ import annotations

import numpy as np

from nh_control.multibody.bodies import SpatialInertia
from nh_control.multibody.frames import Frame
from nh_control.multibody.joint_types import Planar, ScalarJoint, Spherical
from nh_control.multibody.planar_frames import axes_of

ALL = [0, 1, 2, 3, 4, 5]
FREE = {Planar: [2, 3, 4], Spherical: [0, 1, 2]}
"""Twist components, in the kernel's axes, that each type of joint with several coordinates leaves
free. Types that are not listed leave all components free.
"""
REGULAR = 1e-9
"""Inertia, relative to the body's other inertias, above which a motion counts as moving mass."""


def moves_mass(frame: Frame, part: SpatialInertia) -> bool:
    """Whether every motion of the frame's joint alone moves the mass of the bodies on the
    frame.
    """
    axes = axes_of(frame)
    mass, first, inertia = moments(part, axes)
    if isinstance(frame.joint, ScalarJoint):
        # 2 T = J_axis + slide^2 m at unit rate, because the terms in the first moment cancel
        about, along = frame.joint.rotates, frame.joint.slide**2 * mass
        return bool(about * inertia[2, 2] + along > REGULAR * (about * inertia.trace() + along))
    # spatial inertia [J, m hat(c); m hat(c)^T, m 1] [featherstone2008, ch. 2]
    lever = np.cross(np.eye(3), first)
    spatial = np.block([[inertia, lever], [lever.T, mass * np.eye(3)]])
    free = FREE.get(type(frame.joint), ALL)
    energy, scale = spatial[np.ix_(free, free)], np.diag(spatial)[free]
    if not (scale > REGULAR * np.where(np.array(free) < 3, inertia.trace(), mass)).all():
        return False
    # scaling to a unit diagonal makes the smallest eigenvalue independent of units
    ratios = energy / np.sqrt(np.outer(scale, scale))
    return bool(np.linalg.eigvalsh(ratios)[0] > REGULAR)


def moments(
    part: SpatialInertia | None, frame_axes: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, first moment (3) and inertia (3, 3) about the frame's origin, in the axes `frame_axes`
    (3, 3).
    """
    if part is None:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    c = frame_axes.T @ part.center
    inertia = frame_axes.T @ part.inertia @ frame_axes
    return part.mass, part.mass * c, inertia + part.mass * (c @ c * np.eye(3) - np.outer(c, c))
