"""The model's state from what is measured: configurations, with or without velocities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem


class StateEstimate:
    """States of the model `dsys` from measured configurations and velocities.

    Without velocities the momentum is the one with which the model's step under the last input
    joins the last two configurations. Where steps are missing between the two, or none joins them,
    it is that of their mean velocity, counted in `approximated`; at the very first configuration
    it is the reference's.
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
        """State (nx) at step k of configuration q (nq), velocity v (nw) or None, and the input u
        (nu) that was held since step k - 1; `target` (nx) is where the plant should be."""
        x = (
            self._dsys.measured_state(q, v)
            if v is not None
            else self._without_velocity(k, q, u, target)
        )
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
