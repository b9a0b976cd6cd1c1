"""Frames of a multibody model as targets of external forces."""

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
    """A target whose force is that of an input of multibody models, `wrench`."""

    wrench: Wrench | None = None


def with_forces(system: System, targets: Iterable[ForceTarget]) -> System:
    """`with_external_forces`; forces on frames of a multibody model are inputs of the model, so
    that its steps stay those of the linear-time kernel.
    """
    targets = tuple(targets)
    model = system.model if isinstance(system, MultibodySystem) else None
    wrenches = [one.wrench for one in targets if isinstance(one, FrameTarget) and one.wrench]
    if model is None or len(wrenches) < len(targets):
        return with_external_forces(system, targets)
    name, inputs = f"{system.name}_disturbed", (*model.inputs, *wrenches)
    return replace(model, name=name, inputs=inputs).system


def on_frames(model: Multibody, frames: Iterable[str]) -> tuple[ForceTarget, ...]:
    """A force (N) at the origin of every one of the frames and a torque (N m), in the axes of the
    world.
    """
    return tuple(_on_frame(model, model.tree.checked_frame(name)) for name in frames)


def _on_frame(model: Multibody, name: str) -> ForceTarget:
    wrench = Wrench(name, name, "world", FORCE + TORQUE)

    def force(q: Graph, v: Graph, w: Graph, p: Any) -> Graph:
        # generalized force: gradient of the virtual power by the virtual velocity
        virtual = ca.SX.sym("virtual", model.space.nw)
        return ca.gradient(wrench.power(model.kinematics(q, virtual), w), virtual)

    units = ("N",) * 3 + ("N m",) * 3
    about = f"force at the origin of {name} and torque, in the axes of the world"
    return FrameTarget(name, FORCE + TORQUE, units, force, about, wrench=wrench)
