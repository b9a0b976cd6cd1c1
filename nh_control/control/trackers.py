"""Trackers for scenarios and nodes, with linear feedback or model predictive control, and a
predictive tracker with late plans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from nh_control.control.controller import ControllerLike, ControllerTracker
from nh_control.control.optimal.mpc import MpcTracker
from nh_control.control.optimal.plan import Plan
from nh_control.control.reference_tracker import Command
from nh_control.control.tracking import LqrTracker
from nh_control.control.weights import StateWeight
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

Tracker: TypeAlias = LqrTracker | MpcTracker | ControllerTracker
"""A tracker for scenarios and nodes."""


def as_tracker(
    controller: Tracker | ControllerLike, model: DiscreteSystem, steps: int | None = None
) -> Tracker:
    """A tracker for runs of any length: `controller` itself if it is a tracker, otherwise the
    controller as a tracker of the model. The last target of a controller remains valid after the
    last step. If the controller has no targets, `steps` is required. Raises TypeError for an
    object that is neither a tracker nor a controller.
    """
    if isinstance(controller, LqrTracker | MpcTracker | ControllerTracker):
        return controller
    return ControllerTracker(model, controller, hold=True, steps=steps)


class LateMpc(MpcTracker):
    """An `MpcTracker` with late plans, for studies. The plan of step k is late if `is_late(k)`.
    The first plan of a run is never late.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        reference: Trajectory,
        Q: StateWeight,
        R: ArrayLike,
        Qf: StateWeight | None = None,
        *,
        is_late: Callable[[int], bool],
        **options: Any,
    ):
        super().__init__(dsys, reference, Q, R, Qf, **options)
        self.is_late = is_late
        self._options["is_late"] = is_late

    def command(self, k: int, x: ArrayLike, memory: Plan | None = None) -> Command:
        """The command for step k at state x (nx). If the plan of this step is late, there is no
        new plan.
        """
        if memory is not None and self.is_late(k):
            # the last plan and its gains determine the command
            return self.late(k, x, memory)
        return super().command(k, x, memory)


def is_late(tracker: Tracker, k: int) -> bool:
    """Whether the plan of step k is late."""
    return isinstance(tracker, LateMpc) and tracker.is_late(k)


def linear(tracker: LqrTracker | MpcTracker) -> LqrTracker:
    """The tracker itself if it is an LQR tracker; for a predictive tracker, the LQR tracker with
    the same weights.
    """
    return tracker.fallback if isinstance(tracker, MpcTracker) else tracker


def moved(memory: Any, steps: int) -> Any:
    """The memory of a tracker, converted to a reference that starts `steps` steps earlier."""
    # only plans contain step numbers
    return replace(memory, k=memory.k + steps) if isinstance(memory, Plan) and steps else memory
