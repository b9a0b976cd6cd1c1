"""Poses and body velocities of the frames of a tree, by recursion from the world outwards."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca


@dataclass(frozen=True)
class Motion:
    """Pose (R, p) of a frame in the world and its velocity (omega, v) in its own axes, v that of its origin."""

    R: ca.SX
    p: ca.SX
    omega: ca.SX
    v: ca.SX

    def point(self, offset) -> ca.SX:
        """World position of a point fixed in the frame, (3)."""
        return self.p + self.R @ ca.DM(offset)

    def point_velocity(self, offset) -> ca.SX:
        """World velocity of a point fixed in the frame, (3)."""
        return self.R @ (self.v + ca.cross(self.omega, ca.DM(offset)))


WORLD = Motion(ca.SX.eye(3), ca.SX.zeros(3), ca.SX.zeros(3), ca.SX.zeros(3))


def moved(parent: Motion, rotation, translation) -> Motion:
    """A frame fixed in its parent."""
    v = parent.v + ca.cross(parent.omega, translation)
    return Motion(parent.R @ rotation, parent.p + parent.R @ translation, rotation.T @ parent.omega, rotation.T @ v)


def revolute(parent: Motion, axis, angle, rate) -> Motion:
    """A frame turned about a unit axis of its parent: `R_rel = I + sin(a) hat(axis) + (1 - cos(a)) hat(axis)^2`."""
    k = ca.skew(ca.DM(axis))
    turned = moved(parent, ca.sparsify(ca.DM.eye(3)) + ca.sin(angle) * k + (1 - ca.cos(angle)) * (k @ k), ca.SX(3, 1))
    return Motion(turned.R, turned.p, turned.omega + ca.DM(axis) * rate, turned.v)


def prismatic(parent: Motion, axis, distance, rate) -> Motion:
    """A frame shifted along a unit axis of its parent."""
    shifted = moved(parent, ca.SX.eye(3), ca.DM(axis) * distance)
    return Motion(shifted.R, shifted.p, shifted.omega, shifted.v + ca.DM(axis) * rate)
