"""The reference of a moving horizon, continued after the end of the reference, and the parameters
along it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost, QuadraticWeights, triangles
from nh_control.control.damping import damping_or_idle
from nh_control.control.weights import StateWeight
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


def continued(dsys: DiscreteSystem, reference: Trajectory, steps: int) -> Trajectory:
    """The reference, followed by the model's damped motion for `steps` steps or until a step
    fails. The motion does not stop at the end of the reference.
    """
    states, inputs = [reference.states[-1]], []
    try:
        for _ in range(steps):
            u = damping_or_idle(dsys, states[-1])
            states.append(dsys.step(states[-1], u))
            inputs.append(u)
    except StepFailed:
        pass  # the horizon repeats the last state
    return Trajectory(
        reference.h,
        np.vstack([reference.states, *states[1:]]),
        np.vstack([reference.inputs, *inputs]),
    )


def with_terminal_weights(cost: Cost, dsys: DiscreteSystem, P: np.ndarray) -> Cost:
    """A quadratic cost about a reference, with a terminal weight at every node. The parameters of
    a node end with the triangle of P (N + 1, ndx, ndx) at this node; nodes after the last one use
    the last triangle.
    """
    parameters = np.zeros((0, 0)) if cost.parameters is None else cost.parameters
    nx, first = dsys.nx, parameters.shape[1]

    def terminal(x: ca.SX, w: ca.SX) -> ca.SX:
        dx = dsys.state_space.local(w[:nx], x)
        weight = ca.triu2symm(ca.SX(ca.Sparsity.upper(dsys.ndx), w[first:]))
        return ca.bilin(weight, dx, dx) / 2

    table = np.hstack([parameters, triangles(P, len(parameters))])
    return replace(cost, terminal=terminal, parameters=table)


@dataclass(frozen=True)
class HorizonParameters:
    """A `table` (N + 1, n) of the parameters of the cost and the constraints at the nodes of a
    reference. Each entry of `disturbed` is the first of nrho columns that contain estimated
    forces.
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
        weights: tuple[StateWeight, ArrayLike, np.ndarray | None],
        P: np.ndarray | None = None,
    ) -> HorizonParameters:
        """The parameters along `ahead`, which is the reference with its continuation. In the
        continuation, the last parameters of the constraints repeat. The weights Q, R and Qf are
        those of the quadratic cost, and P contains the terminal weights at the nodes (see
        `with_terminal_weights`). Raises ValueError unless each constraint with parameters has them
        for every node or for every step.
        """
        steps, disturbed = len(reference), list[int]()
        inputs = np.vstack([ahead.inputs, ahead.inputs[-1:]])
        Q, R, Qf = weights
        quadratic = QuadraticWeights.of(dsys, ahead.states, Q, R, Qf)
        table = [quadratic.parameters(ahead.states, inputs)]
        if P is not None:
            table.append(triangles(P, len(ahead) + 1))
        for c in constraints:
            if c.parameters is not None and len(c.parameters) not in (steps, steps + 1):
                raise ValueError(
                    f"{dsys}: constraint {c.name!r} has parameters for {len(c.parameters)} "
                    f"nodes, but the reference has {steps + 1}"
                )
            if c.parameters is not None:
                # after the end of the reference, the last parameters repeat
                nodes = np.arange(len(ahead) + 1).clip(max=len(c.parameters) - 1)
                table.append(c.parameters[nodes])
            if c.disturbed:
                # the first of nrho columns for the estimated forces
                disturbed.append(sum(part.shape[1] for part in table))
                table.append(np.zeros((len(ahead) + 1, dsys.system.nrho)))
        return cls(np.hstack(table), disturbed)
