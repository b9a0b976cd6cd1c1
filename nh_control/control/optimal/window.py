"""The reference of a horizon that reaches past its end, and the parameters along it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost, reference_parameters, triangles
from nh_control.control.damping import damping_or_idle
from nh_control.control.weights import StateWeight
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


def continued(dsys: DiscreteSystem, reference: Trajectory, steps: int) -> Trajectory:
    """The reference and, from its end on, the model's motion under the damping that acts there for
    so many steps, or as far as it can be stepped: a motion does not stop where its reference does.
    """
    states, inputs = [reference.states[-1]], []
    try:
        for _ in range(steps):
            u = damping_or_idle(dsys, states[-1])
            states.append(dsys.step(states[-1], u))
            inputs.append(u)
    except StepFailed:
        pass  # the last state repeats
    return Trajectory(
        reference.h,
        np.vstack([reference.states, *states[1:]]),
        np.vstack([reference.inputs, *inputs]),
    )


def with_terminal_weights(cost: Cost, dsys: DiscreteSystem, P: np.ndarray) -> Cost:
    """A quadratic cost about a reference, whose parameters end with the terminal weight, the
    triangle of one of P (N + 1, ndx, ndx), the last one at later nodes.
    """
    given = np.zeros((0, 0)) if cost.parameters is None else cost.parameters
    nx, first = dsys.nx, given.shape[1]

    def terminal(x: ca.SX, w: ca.SX) -> ca.SX:
        dx = dsys.state_space.local(w[:nx], x)
        weight = ca.triu2symm(ca.SX(ca.Sparsity.upper(dsys.ndx), w[first:]))
        return ca.bilin(weight, dx, dx) / 2

    table = np.hstack([given, triangles(P, len(given))])
    return replace(cost, terminal=terminal, parameters=table)


@dataclass(frozen=True)
class HorizonParameters:
    """Parameters of cost and constraints at the nodes of a reference, a `table` (N + 1, n), of
    which those from the columns `disturbed` on are estimated forces (nrho).
    """

    table: np.ndarray
    disturbed: list[int]

    @classmethod
    def of(
        cls,
        dsys: DiscreteSystem,
        reference: Trajectory,
        ahead: Trajectory,
        constraints: Sequence[Constraint],
        Q: StateWeight,
        P: np.ndarray | None = None,
    ) -> HorizonParameters:
        """The parameters along a reference with its continuation, `ahead`, which repeats the last
        ones. Q is the weight of the quadratic cost, and P are terminal weights at the nodes, see
        `with_terminal_weights`. Raises ValueError for a constraint whose parameters are neither
        one for each node nor one for each step.
        """
        given, disturbed = len(reference), list[int]()
        inputs = np.vstack([ahead.inputs, ahead.inputs[-1:]])
        table = [reference_parameters(dsys, ahead.states, inputs, Q)]
        if P is not None:
            table.append(triangles(P, len(ahead) + 1))
        for c in constraints:
            if c.parameters is not None and len(c.parameters) not in (given, given + 1):
                raise ValueError(
                    f"{dsys}: constraint {c.name!r} has parameters of {len(c.parameters)} "
                    f"nodes, the reference has {given + 1}"
                )
            if c.parameters is not None:
                nodes = np.arange(len(ahead) + 1).clip(max=len(c.parameters) - 1)
                table.append(c.parameters[nodes])
            if c.disturbed:
                disturbed.append(sum(part.shape[1] for part in table))
                table.append(np.zeros((len(ahead) + 1, dsys.system.nrho)))
        return cls(np.hstack(table), disturbed)
