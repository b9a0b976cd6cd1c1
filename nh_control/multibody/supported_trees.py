"""Which models the linear-time tree kernel supports."""

from __future__ import annotations

from nh_control.multibody import joint_forces
from nh_control.multibody.constraint_rows import unknown_constraint
from nh_control.multibody.elements import (
    ConstantWrench,
    Damper,
    JointFriction,
    JointInput,
    NonlinearJointSpring,
    Spring,
    Wrench,
)
from nh_control.multibody.external_wrenches import unknown_wrench
from nh_control.multibody.model import Multibody

KNOWN = (*joint_forces.ON_JOINTS, JointInput)
ONCE = (JointFriction, NonlinearJointSpring)
"""Element types that the kernel supports only once per joint."""


def not_a_tree(model: Multibody) -> str:
    """A description of a part of the model that the kernel does not support, or "" if it supports
    all parts.
    """
    if unknown := unknown_constraint(model):
        return f"a {unknown}"
    if unknown := unknown_wrench(model):
        return unknown
    for kind in ONCE:
        # a joint's record in the kernel has one friction and one spline
        joints = [part.coordinate for part in model.elements if isinstance(part, kind)]
        if len(set(joints)) < len(joints):
            return f"a second {kind.__name__} of one joint"
    for part in (*model.elements, *model.inputs):
        if type(part) in (Wrench, ConstantWrench, Spring, Damper):
            continue
        # `type(part)`, because a subclass may behave differently, and the kernel would ignore that
        if not isinstance(part, KNOWN) or type(part) not in KNOWN:
            return f"a {type(part).__name__}"
        if part.coordinate not in model.tree.scalars:
            return f"a {type(part).__name__} of a constraint"
    return ""
