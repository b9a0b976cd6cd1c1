"""Trackers of scenarios and nodes, by linear feedback or predictive; among the latter one whose
plans are late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from nh_control.control.optimal.mpc import MpcTracker
from nh_control.control.optimal.plan import Plan
from nh_control.control.tracking import Command, LqrTracker
from nh_control.control.weights import StateWeight
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

Tracker: TypeAlias = LqrTracker | MpcTracker
"""A tracker of scenarios and nodes."""


class LateMpc(MpcTracker):
    """An `MpcTracker` with late plans, for studies: the plan of step k is late if `is_late(k)`;
    the first plan of a run is in time.
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
        """Command for step k at state x (nx), without a new plan if it is late."""
        if memory is not None and self.is_late(k):
            return self.late(k, x, memory)
        return super().command(k, x, memory)


def is_late(tracker: Tracker, k: int) -> bool:
    """Whether the plan of step k is late."""
    return isinstance(tracker, LateMpc) and tracker.is_late(k)


def linear(tracker: Tracker) -> LqrTracker:
    """The LQR tracker: the tracker itself, or for a predictive one an LQR tracker of the same
    weights.
    """
    return tracker.fallback if isinstance(tracker, MpcTracker) else tracker


def moved(memory: Any, steps: int) -> Any:
    """The memory of a tracker for a reference that starts this number of steps earlier."""
    return replace(memory, k=memory.k + steps) if isinstance(memory, Plan) and steps else memory
