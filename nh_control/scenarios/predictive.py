"""Predictive trackers for scenarios."""

from __future__ import annotations

from functools import partial

from nh_control.control.constraints import Constraint
from nh_control.control.optimal.mpc import MpcTracker
from nh_control.control.trackers import LateMpc
from nh_control.control.weights import with_memory
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.scenarios.constraints import ALL, MpcOptions, chosen
from nh_control.scenarios.scenario import Scenario


def mpc_tracker(
    scenario: Scenario,
    model: DiscreteSystem,
    reference: Trajectory,
    options: MpcOptions = MpcOptions(),
    integral: bool = False,
) -> MpcTracker:
    """A predictive tracker for a reference, with the scenario's weights, input limits and
    constraints, and with a disturbance estimate if `integral`. Raises UnknownName and ValueError.
    """
    Q, R, Qf = scenario.weights
    kind = partial(LateMpc, is_late=options.is_late) if options.late else MpcTracker
    return kind(
        model,
        reference,
        with_memory(model, Q),
        R,
        None if Qf is None else with_memory(model, Qf),
        horizon_s=options.horizon_s or scenario.horizon_s,
        constraints=constraints_along(scenario, model, reference.name, options.constraints),
        iterations=options.iterations,
        disturbance_gain=scenario.disturbance_gain if integral else 0.0,
        hold=scenario.holds(reference.name),
        excluded=scenario.excluded,
        stance=scenario.stance,
    )


def constraints_along(
    scenario: Scenario, model: DiscreteSystem, reference: str, names: tuple[str, ...] = (ALL,)
) -> tuple[Constraint, ...]:
    """The scenario's soft constraints along a reference, or those with the given names, as
    constraints for the model. Raises UnknownName.
    """
    constraints = chosen(scenario.constraints, reference, names)
    return tuple(constraint.make(model) for constraint in constraints.values())
