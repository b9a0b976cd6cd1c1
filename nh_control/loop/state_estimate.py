"""Estimates the model's states from measured configurations, for a simulated plant's tracker."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem


def is_whole(v: Sequence[float]) -> bool:
    """Whether all components of a velocity are measured. Unmeasured components are NaN."""
    return not any(map(math.isnan, v))


def completed(v: Sequence[float] | None, otherwise: np.ndarray) -> np.ndarray:
    """Return the velocity v (nw), with NaN components replaced by those of `otherwise` (nw). If v
    is None, all components are replaced.
    """
    return otherwise if v is None else np.where(np.isnan(v), otherwise, v)


class StateEstimate:
    """Estimates states of the model `dsys` from measured configurations and velocities.

    Without velocities, the momentum is chosen so that a step of the model under the last input
    connects the last two configurations. If steps are missing between them, or if no step connects
    them, the momentum is that of their mean velocity; `approximated` counts these cases. The first
    configuration has the momentum of the reference. If only some velocities are measured, the
    others are computed from the momentum that is chosen in this way.
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
        """Return the state (nx) at step k from the configuration q (nq), the velocity v (nw), and
        the input u (nu) of the previous step. A velocity that is not measured is None or NaN.
        `target` (nx) is the expected state.
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
        # one step apart: the step that connects both configurations determines the momentum
        if k == self._step + 1:
            try:
                return self._dsys.state_from_configurations(self._configuration, q, u)
            except (ValueError, StepFailed):
                pass  # perhaps no step of the model connects noisy configurations
        self.approximated += 1
        # the mean velocity since the last configuration is the negated velocity from here back to
        # it
        elapsed_s = (k - self._step) * self._dsys.h
        return self._dsys.measured_state(
            q, -self._dsys.system.space.velocity(q, self._configuration) / elapsed_s
        )
