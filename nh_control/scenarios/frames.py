"""Frames of a multibody model as targets for external forces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca

from nh_control.mechanics.external_forces import (
    FORCE,
    TORQUE,
    ForceTarget,
    with_external_forces,
)
from nh_control.mechanics.system import System
from nh_control.multibody import Multibody, Wrench
from nh_control.multibody.model import MultibodySystem
from nh_control.numerics.expressions import Graph


@dataclass(frozen=True)
class FrameTarget(ForceTarget):
    """A target whose force is the input `wrench` of a multibody model."""

    wrench: Wrench | None = None


def with_forces(system: System, targets: Iterable[ForceTarget]) -> System:
    """Return the system with forces on the targets (see `with_external_forces`). Forces on frames
    of a multibody model become inputs of the model, so its steps still use the linear-time kernel.
    """
    targets = tuple(targets)
    model = system.model if isinstance(system, MultibodySystem) else None
    wrenches = [t.wrench for t in targets if isinstance(t, FrameTarget) and t.wrench]
    if model is None or len(wrenches) < len(targets):
        return with_external_forces(system, targets)
    name, inputs = f"{system.name}_disturbed", (*model.inputs, *wrenches)
    return replace(model, name=name, inputs=inputs).system


def on_frames(model: Multibody, frames: Iterable[str]) -> tuple[ForceTarget, ...]:
    """A target for each frame: a force (N) at the frame's origin and a torque (N m), in world
    axes.
    """
    return tuple(_on_frame(model, model.tree.checked_frame(name)) for name in frames)


def _on_frame(model: Multibody, name: str) -> ForceTarget:
    wrench = Wrench(name, name, "world", FORCE + TORQUE)

    def force(q: Graph, v: Graph, w: Graph, parameters: Any) -> Graph:
        # The generalized force is the gradient of the virtual power w.r.t. the virtual velocity.
        virtual = ca.SX.sym("virtual", model.space.nw)
        return ca.gradient(wrench.power(model.kinematics(q, virtual), w), virtual)

    units = ("N",) * 3 + ("N m",) * 3
    about = f"force at the origin of {name} and torque, in the axes of the world"
    return FrameTarget(name, FORCE + TORQUE, units, force, about, wrench=wrench)
