"""States of a simulated plant for its tracker: the model's state from measured configurations, and
a check whether a tracker that starts late can join the run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nh_control.control.trackers import linear
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.reference_sequence import ReferenceSequence


def is_whole(v: Sequence[float]) -> bool:
    """Whether all numbers of a velocity are measured; those that are not are NaN."""
    return not any(map(math.isnan, v))


def completed(v: Sequence[float] | None, otherwise: np.ndarray) -> np.ndarray:
    """The velocity v (nw) with the numbers of another one (nw) where it is NaN, or None."""
    return otherwise if v is None else np.where(np.isnan(v), otherwise, v)


class StateEstimate:
    """States of the model `dsys` from measured configurations and velocities.

    Without velocities, the momentum is the one with which a step of the model under the last input
    joins the last two configurations. If steps are missing between them, or no step joins them, it
    is the momentum of their mean velocity; `approximated` counts these cases. The first
    configuration has the momentum of the reference. If only some velocities are measured, the
    other ones are those of this momentum.
    """

    def __init__(self, dsys: DiscreteSystem):
        self._dsys = dsys
        self.approximated = 0
        self.reset()

    def reset(self) -> None:
        """Forget the last configuration."""
        self._step = -1
        self._configuration: np.ndarray | None = None

    def state(
        self,
        k: int,
        q: Sequence[float],
        v: Sequence[float] | None,
        u: np.ndarray,
        target: np.ndarray,
    ) -> np.ndarray:
        """State (nx) at step k from configuration q (nq), velocity v (nw), None or NaN where it is
        not measured, and the input u (nu) of the step before; `target` (nx) is the expected state.
        """
        dsys = self._dsys
        if v is not None and is_whole(v):
            x = dsys.measured_state(q, v)
        else:
            x = self._without_velocity(k, q, u, target)
            if v is not None and not np.isnan(v).all():
                x = dsys.measured_state(q, completed(v, dsys.velocity(x)))
        self._step, self._configuration = k, np.array(q)
        return x

    def _without_velocity(
        self, k: int, q: Sequence[float], u: np.ndarray, target: np.ndarray
    ) -> np.ndarray:
        if self._configuration is None or k <= self._step:
            return self._dsys.measured_state(q, self._dsys.velocity(target))
        if k == self._step + 1:
            try:
                return self._dsys.state_from_configurations(self._configuration, q, u)
            except (ValueError, StepFailed):
                pass  # measured configurations need not be joined by a step of the model
        self.approximated += 1
        elapsed_s = (k - self._step) * self._dsys.h
        return self._dsys.measured_state(
            q, -self._dsys.system.space.velocity(q, self._configuration) / elapsed_s
        )


REPEAT_S = 1.0
"""Time after which a tracker that cannot join checks again."""


class JoinCheck:
    """Lets a tracker follow a run from its start. A tracker that comes later starts with the first
    state from which the tracked model reaches the reference's end; this is checked every REPEAT_S.
    """

    def __init__(self, sequence: ReferenceSequence):
        self._sequence = sequence
        self.reset()

    def reset(self) -> None:
        """Prepare for another run."""
        self._joined, self._ask_at, self._obstacle = False, 0, ""

    def require(self, k: int, x: np.ndarray) -> None:
        """Raise ValueError if the reference cannot be followed from the state x (nx) at step k."""
        if not self._joined and k >= self._ask_at:
            self._ask_at = k + round(REPEAT_S / self._sequence.dsys.h)
            self._obstacle = obstacle(self._sequence, k, x) if k else ""
            self._joined = not self._obstacle
        if not self._joined:
            raise ValueError(
                f"the reference cannot be joined at step {k}: {self._obstacle}; set another "
                f"`reference`, or reset the run"
            )


def obstacle(sequence: ReferenceSequence, k: int, x: np.ndarray) -> str:
    """The reason why the tracked model does not reach the present leg's end from the state x (nx)
    at step k, "" if it does.
    """
    leg, i = sequence.leg(k), k
    tracker = linear(leg.tracker)
    try:
        for i in range(k, leg.end):
            x = sequence.dsys.step(x, tracker.command(i - leg.start, x).u)
    except (StepFailed, ValueError, np.linalg.LinAlgError) as reason:
        return f"tracked from there, the model fails at t = {i * sequence.dsys.h:.3f} s, {reason}"
    return ""
