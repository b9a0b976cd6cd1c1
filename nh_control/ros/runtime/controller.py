"""The tracker that a node's parameters select, and its planner."""

from __future__ import annotations

from nh_control.control.constraint_margins import ConstraintMargins
from nh_control.control.trackers import Tracker
from nh_control.ros.loop.planner import Planner
from nh_control.ros.runtime.declared_tracker import HALF_A_STEP
from nh_control.ros.runtime.model import Model
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.spec import UsageError
from nh_control.scenarios import MpcOptions, constraints_along, mpc_tracker


def controller(model: Model, parameters: Parameters) -> tuple[Tracker, Planner]:
    """The tracker that the parameter `controller` selects, with its planner; raises UsageError for
    options that the scenario does not have.
    """
    p, scenario, dsys = parameters, model.scenario, model.dsys
    if p["controller"] == "lqr":
        return scenario.tracker(dsys, model.reference, p["integral"]), Planner(None)
    try:
        options = MpcOptions(
            p["mpc.horizon_s"],
            p["mpc.iterations"],
            tuple(p["mpc.constraints"]),
            p["mpc.late"],
            p["mpc.seed"],
        )
        tracker = mpc_tracker(scenario, dsys, model.reference, options, p["integral"])
        kept = constraints_along(scenario, dsys, model.reference.name, options.constraints)
    except (ValueError, OSError) as error:
        raise UsageError(f"controller mpc: {error}") from error
    deadline_s = p["mpc.deadline_s"]
    if deadline_s == HALF_A_STEP:
        deadline_s = dsys.h / 2
    waits = p["lockstep"] and p["source"] == "simulation"
    return tracker, Planner(
        None if waits else deadline_s,
        p["source"] == "simulation",
        ConstraintMargins(dsys, kept),
    )
