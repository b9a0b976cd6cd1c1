"""The common part of all trackers: a reference, tracking errors, and input limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.run_length import run_steps
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


@dataclass(frozen=True)
class Command:
    """The input u (nu) within the limits, the mask (nu) of saturated inputs, the tracking error dx
    (ndx), and the memory for the next call.
    """

    u: np.ndarray
    saturated: np.ndarray
    error: np.ndarray
    memory: Any = None


def input_limits(dsys: DiscreteSystem, limits: ArrayLike | None = None) -> np.ndarray:
    """Lower and upper limits (nu, 2) of the inputs, by default those of the system. Raises
    ValueError for a wrong shape, for NaN, and for a lower limit above the upper limit.
    """
    limits = np.asarray(dsys.system.input_bounds if limits is None else limits, dtype=float)
    if limits.shape != (dsys.nu, 2):
        raise ValueError(f"limits must have shape ({dsys.nu}, 2), got {limits.shape}")
    if not (limits[:, 0] <= limits[:, 1]).all():
        raise ValueError(
            f"limits must be rows (lower, upper) with lower <= upper, got {limits.tolist()}"
        )
    return limits


class ReferenceTracker:
    """Targets and errors along a reference of a model, and the limits (nu, 2) of its inputs, by
    default those of the system. With `hold`, the last state remains the target after the end of
    the reference.
    """

    disturbance_gain = 0.0

    def __init__(
        self,
        dsys: DiscreteSystem,
        reference: Trajectory,
        limits: ArrayLike | None = None,
        hold: bool = False,
    ):
        self.dsys, self.reference, self.hold = dsys, reference, hold
        self.limits = input_limits(dsys, limits)
        self._bounds = tuple(self.limits.T)
        constrained = dsys.system.n_holonomic_constraints > 0
        self._impulses = (
            # the states of constrained systems contain the constraint impulses
            [dsys.constraint_impulses(x) for x in reference.states] if constrained else None
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dsys}, {self.reference})"

    def steps(self, duration_s: float = 0.0) -> int:
        """The number of steps of a run (see `run_steps`)."""
        return run_steps(self.dsys, self.reference, duration_s, self.hold)

    def target(self, k: int) -> np.ndarray:
        """The reference state at step k, or the last reference state if k is after the end."""
        return self.reference.states[min(k, len(self.reference))]

    def is_following(self, k: int) -> bool:
        """Whether step k is on the reference, or after its end if the tracker holds the last
        state.
        """
        return self.hold or k < len(self.reference)

    def error(self, k: int, x: ArrayLike) -> np.ndarray:
        """The tracking error `local(x_d, x)` (ndx) of state x (nx) at step k."""
        # dx = local(x_d, x)
        return self.dsys.local(self.target(k), self.comparable(k, x))

    def comparable(self, k: int, x: ArrayLike) -> np.ndarray:
        """The state x, with the constraint impulses of the target at step k in its momentum.
        Measured velocities do not determine these impulses, and no step depends on these impulses.
        """
        if self._impulses is None:
            return np.asarray(x, dtype=float)
        return self.dsys.with_constraint_impulses(x, self._impulses[min(k, len(self.reference))])
