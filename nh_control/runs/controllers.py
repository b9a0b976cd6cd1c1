"""The tracker that a run's setting `controller` selects."""

from __future__ import annotations

from nh_control.control.controller import ControllerLike, ControllerTracker
from nh_control.control.trackers import Tracker
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.runs.settings import EXTERNAL, LQR, MPC
from nh_control.scenarios import MpcOptions, Scenario, mpc_tracker
from nh_control.scenarios.user_controller import external_tracker, resolved, user_tracker

OF_PYTHON = "python:controller"
"""The setting for a Python object, which cannot be named in a file."""


def make_tracker(
    scenario: Scenario,
    model: DiscreteSystem,
    reference: Trajectory,
    controller: str | ControllerLike = LQR,
    mpc: MpcOptions | None = None,
    integral: bool = False,
) -> tuple[str, Tracker]:
    """Return the setting and the tracker. The tracker is predictive if `mpc` options are passed.
    Otherwise it is the user's `controller`, which is an object or a name in a file or module, or
    LQR. Raises the same errors as `user_tracker`.
    """
    # whether the tracker holds the final state of this reference
    hold = scenario.holds(reference.name)
    if mpc is not None:
        return MPC, mpc_tracker(scenario, model, reference, mpc, integral)
    if controller == LQR:
        return LQR, scenario.tracker(model, reference, integral)
    if controller == EXTERNAL:
        return EXTERNAL, external_tracker(model, reference, hold)
    if isinstance(controller, str):
        controller = resolved(controller)
        return controller, user_tracker(controller, model, reference, hold)
    return OF_PYTHON, ControllerTracker(model, controller, reference, hold=hold)
