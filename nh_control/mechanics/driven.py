"""Velocities that a single actuator drives, such as those of a robot's joints."""

from __future__ import annotations

import casadi as ca

from nh_control.mechanics.lagrangian_system import LagrangianSystem


def single_drives(system: LagrangianSystem, inputs: int) -> dict[int, tuple[int, float]]:
    """The input's index i and the constant a in `df/du_i = a e_row`, for each row that exactly one
    of the first `inputs` inputs drives, if this input drives no other row. The rows are those of
    the generalized force, followed by the rates of first-order coordinates.
    """
    q, v, u = system.symbols
    moves = ca.vertcat(system.generalized_force(q, v, u), system.rate_at(q, v, u))
    slope = ca.simplify(ca.jacobian(moves, u))[:, :inputs]
    reached: dict[int, list[int]] = {}  # inputs that move a row
    moved: dict[int, list[int]] = {}  # rows that an input moves
    for row, column in zip(*slope.sparsity().get_triplet()):
        if not slope[row, column].is_zero():
            reached.setdefault(row, []).append(column)
            moved.setdefault(column, []).append(row)
    return {
        row: (driving[0], float(slope[row, driving[0]]))
        for row, driving in reached.items()
        if len(driving) == 1 and len(moved[driving[0]]) == 1
        if slope[row, driving[0]].is_constant()
    }
