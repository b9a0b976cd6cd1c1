"""Joints with one actuator each: a command may name the joint instead of the actuator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from nh_control.mechanics.system import System
from nh_control.scenarios.scenario import Joint


@dataclass(frozen=True)
class DrivenJoint:
    """A joint's `name`, the index of its `input` in the system, and the input per effort on the
    joint (`gain`, with the joint's sign).
    """

    name: str
    input: int
    gain: float


def driven_joints(joints: Sequence[Joint], system: System, inputs: int) -> tuple[DrivenJoint, ...]:
    """Joints whose coordinate c is driven by exactly one of the system's first `inputs` inputs,
    which drives nothing else: `df/du_i = a e_c` with a constant a, so an effort tau on the joint
    is the input `sign tau / a`.

    If several joints show one coordinate, the first one is its driven joint.
    """
    system = system.numeric
    q, v, u = system.symbols
    moves = ca.vertcat(system.generalized_force(q, v, u), system.rate_at(q, v, u))
    slope = ca.simplify(ca.jacobian(moves, u))[:, :inputs]
    reached: dict[int, list[int]] = {}  # inputs that move a row of the force
    moved: dict[int, list[int]] = {}  # rows that an input moves
    for row, column in zip(*slope.sparsity().get_triplet()):
        if not slope[row, column].is_zero():
            reached.setdefault(row, []).append(column)
            moved.setdefault(column, []).append(row)
    by_input: dict[int, DrivenJoint] = {}
    for joint in joints:
        _, row = joint.place(system.space)
        driving = reached.get(row, [])
        if len(driving) != 1 or len(moved[driving[0]]) != 1 or driving[0] in by_input:
            continue
        a = slope[row, driving[0]]
        if a.is_constant():
            by_input[driving[0]] = DrivenJoint(joint.name, driving[0], joint.sign / float(a))
    return tuple(by_input.values())
