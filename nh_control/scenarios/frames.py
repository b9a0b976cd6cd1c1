"""Frames of a multibody model as targets of external forces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import casadi as ca

from nh_control.mechanics.external_forces import FORCE, TORQUE, ForceTarget
from nh_control.multibody import Multibody
from nh_control.numerics.expressions import Graph


def on_frames(model: Multibody, frames: Iterable[str]) -> tuple[ForceTarget, ...]:
    """A force (N) at the origin of every one of the frames and a torque (N m), in the axes of the
    world.
    """
    return tuple(_on_frame(model, model.tree.checked_frame(name)) for name in frames)


def _on_frame(model: Multibody, name: str) -> ForceTarget:
    def force(q: Graph, v: Graph, w: Graph, p: Any) -> Graph:
        # generalized force: gradient of the virtual power by the virtual velocity
        virtual = ca.SX.sym("virtual", model.space.nw)
        k = model.kinematics(q, virtual)
        power = ca.dot(w[:3], k.velocity(name)) + ca.dot(w[3:], k.angular_velocity(name))
        return ca.gradient(power, virtual)

    units = ("N",) * 3 + ("N m",) * 3
    about = f"force at the origin of {name} and torque, in the axes of the world"
    return ForceTarget(name, FORCE + TORQUE, units, force, about)
