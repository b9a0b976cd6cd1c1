"""The models that the linear-time kernel of trees supports."""

from __future__ import annotations

from nh_control.multibody.constraint_rows import unknown_constraint
from nh_control.multibody.elements import (
    Damper,
    JointDamper,
    JointFriction,
    JointInput,
    JointSpring,
    Spring,
    Wrench,
)
from nh_control.multibody.external_wrenches import unknown_wrench
from nh_control.multibody.model import Multibody

ON_JOINTS = (JointSpring, JointDamper, JointFriction, JointInput)


def not_a_tree(model: Multibody) -> str:
    """The part of a model that the kernel does not support, "" if it supports all."""
    if unknown := unknown_constraint(model):
        return f"a {unknown}"
    if unknown := unknown_wrench(model):
        return unknown
    rough = [part.coordinate for part in model.elements if isinstance(part, JointFriction)]
    if len(set(rough)) < len(rough):
        return "several JointFrictions of one joint"
    for part in (*model.elements, *model.inputs):
        if type(part) in (Wrench, Spring, Damper):
            continue
        # `type(part)`: a subclass may do anything, and the kernel would not do it
        if not isinstance(part, ON_JOINTS) or type(part) not in ON_JOINTS:
            return f"a {type(part).__name__}"
        if part.coordinate not in model.tree.scalars:
            return f"a {type(part).__name__} of a constraint"
    return ""
