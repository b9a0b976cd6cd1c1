"""Bounds on the tracking error. Beyond them, a tracker warns or counts as failed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.loop.arming import error_limit
from nh_control.scenarios import Scenario

WARNING_PART = 0.3
"""Default warning bound as a fraction of the error bound."""


@dataclass(frozen=True)
class ErrorBounds:
    """Bounds (m, rad) on the largest tracked component of a configuration error, and the mask
    `tracked` (nv) of these components. An infinite bound is disabled.
    """

    tracked: np.ndarray
    warning: float = np.inf
    error: float = np.inf

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        dsys: DiscreteSystem,
        reference: Trajectory,
        warning: float = -1.0,
        error: float = -1.0,
    ) -> ErrorBounds:
        """Create the bounds for a scenario. An `error` of -1 selects the limit at which a hardware
        tracker disarms. A `warning` of -1 selects WARNING_PART of the error bound. 0 disables a
        bound.
        """
        if error < 0:
            error = error_limit(scenario, dsys, reference)
        error = error or np.inf
        if warning < 0:
            warning = WARNING_PART * error
        return cls(scenario.tracked(dsys.system.space), warning or np.inf, error)

    def size(self, errors: np.ndarray) -> np.ndarray:
        """Return the largest tracked component (...) of each local state error (..., ndx). It is
        infinite for an error with NaN.
        """
        numbers = np.abs(errors[..., : len(self.tracked)][..., self.tracked])
        largest = numbers.max(axis=-1, initial=0.0)  # NaN if a component is NaN
        return np.where(np.isnan(largest), np.inf, largest)

    def judge(self, size: float) -> tuple[str, str]:
        """Return the level and the message for an error of the given size: "ok" and "" within the
        bounds.
        """
        for level, bound in (("error", self.error), ("warn", self.warning)):
            # `not <=`: a NaN is beyond every bound
            if not size <= bound:
                return level, f"tracking error {size:.3g} (m, rad) is beyond {bound:.3g}"
        return "ok", ""
