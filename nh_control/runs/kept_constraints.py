"""Values and margins of the scenario's constraints in a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nh_control.control.constraint_margins import ConstraintMargins
from nh_control.control.constraints import Constraint
from nh_control.runs.experiment import Result
from nh_control.scenarios.constraints import ALL, ScenarioConstraint, chosen


@dataclass(frozen=True)
class KeptConstraint:
    """A constraint with the values (N, n) of its rows before every step of a run, in `unit`, and
    the smallest margin (N) of these to its bounds, negative where it is violated.
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


def declared_constraints(result: Result) -> dict[str, ScenarioConstraint]:
    """The scenario's constraints by name. With a predictive tracker, only the constraints that it
    keeps; else all that hold along the reference of the run.
    """
    e = result.experiment
    names = (ALL,) if e.mpc is None else e.mpc.constraints
    return chosen(e.scenario.constraints, e.tracker.reference.name, names)


def kept_constraints(result: Result) -> dict[str, KeptConstraint]:
    """The constraints of `declared_constraints` by name, with their values in a run. The values
    are those of the tracker's model, without disturbances.
    """
    e, trajectory = result.experiment, result.loop.trajectory
    declared = declared_constraints(result)
    made = [one.make(e.model) for one in declared.values()]
    margins = ConstraintMargins(e.model, made)
    steps = list(zip(trajectory.states, trajectory.inputs))
    values = [margins.values(x, u) for x, u in steps]
    least = margins.along(trajectory.states, trajectory.inputs)
    return {
        name: KeptConstraint(c, one.unit, np.array([row[i] for row in values]), least[:, i])
        for i, ((name, one), c) in enumerate(zip(declared.items(), made))
        if steps
    }
