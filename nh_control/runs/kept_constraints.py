"""Values and margins of the scenario's constraints in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nh_control.control.constraint_margins import ConstraintMargins
from nh_control.control.constraints import Constraint
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.scenarios.constraints import ScenarioConstraint


@dataclass(frozen=True)
class KeptConstraint:
    """A constraint with the values (N, n) of its rows before every step of a run, in `unit`, and
    the smallest margin (N) between these values and the bounds. The margin is negative if the
    constraint is violated.
    """

    constraint: Constraint
    unit: str
    values: np.ndarray
    margins: np.ndarray

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds (n)."""
        n = self.values.shape[1]
        lower, upper = (
            np.broadcast_to(b, n) for b in (self.constraint.lower, self.constraint.upper)
        )
        return lower, upper


def kept_constraints(
    model: DiscreteSystem, declared: Mapping[str, ScenarioConstraint], path: Trajectory
) -> dict[str, KeptConstraint]:
    """Return the `declared` constraints by name, with their values along a path of the model
    without disturbances.
    """
    if not (declared and len(path)):
        return {}
    constraints = [constraint.make(model) for constraint in declared.values()]
    margins = ConstraintMargins(model, constraints)
    # constraints depend on the state and the input, and the last node has no input
    values = margins.values_along(path.states[:-1], path.inputs)
    least = margins.least(values)
    return {
        name: KeptConstraint(c, constraint.unit, values[i], least[:, i])
        for i, ((name, constraint), c) in enumerate(zip(declared.items(), constraints))
    }
