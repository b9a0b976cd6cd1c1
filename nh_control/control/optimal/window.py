"""The reference of a horizon that reaches past its end, and the parameters along it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nh_control.control.constraints import Constraint
from nh_control.control.damping import damping_or_idle
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
    ) -> HorizonParameters:
        """Along a reference and what is `ahead` with it, where its last parameters repeat; raises
        ValueError for parameters of a constraint that are not those of its nodes or steps.
        """
        given, disturbed = len(reference), list[int]()
        table = [np.hstack([ahead.states, np.vstack([ahead.inputs, ahead.inputs[-1:]])])]
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
