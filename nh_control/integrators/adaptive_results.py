"""The results of an adaptive run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

Points = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""A function of (starts, curves, theta), with n rows each, that returns the points (n, .) at the
fractions theta of the steps.
"""


@dataclass(frozen=True)
class DenseOutput:
    """The solution `sol(t)` at any time in the run. It has the shape (nx) at a time t, and (nx, n)
    at times (n). It is on the manifold, like the ends of the steps.

    Step k from times[k] to times[k + 1] has the initial state starts[k] and the curve curves[k].
    The solution ends at `t_end`. `sol` raises ValueError for a time that the run has not reached.
    """

    points: Points
    nx: int
    times: np.ndarray
    starts: np.ndarray
    curves: np.ndarray
    t_end: float

    @property
    def t_min(self) -> float:
        """First time."""
        return min(float(self.times[0]), self.t_end)

    @property
    def t_max(self) -> float:
        """Last time."""
        return max(float(self.times[0]), self.t_end)

    def __call__(self, t: ArrayLike) -> np.ndarray:
        times = np.asarray(t, dtype=float)
        if times.ndim > 1 or not ((self.t_min <= times) & (times <= self.t_max)).all():
            raise ValueError(
                f"the solution is known for times from {self.t_min:g} to {self.t_max:g}; expected "
                f"a time or a row of times in this range, got {t!r}"
            )
        flat = np.atleast_1d(times)
        # searchsorted needs increasing times, so change the sign in a backward run
        forward = 1.0 if self.times[-1] >= self.times[0] else -1.0
        k = np.searchsorted(forward * self.times[1:-1], forward * flat)
        start, size = self.times[k], self.times[k + 1] - self.times[k]
        # theta = (t - t_k) / (t_{k+1} - t_k), 0 for a step of size zero
        theta = (flat - start) / np.where(size == 0.0, 1.0, size)
        x = self.points(self.starts[k], self.curves[k], theta)[:, : self.nx].T
        return x[:, 0] if times.ndim == 0 else x


@dataclass(frozen=True)
class Solution:
    """The result of a run, as in `scipy.integrate.solve_ivp`. It contains the states y (nx, n) at
    the times t (n) and, for each event, the times t_events (m) and the states y_events (m, nx).
    Without events, t_events and y_events are None.

    `status` is 0 at the end of the time span, 1 at a terminal event, and -1 after a failure.
    `message` explains the failure, and the result contains the states before it. `sol` is None
    unless it was requested. `nfev` counts evaluations of the field. `naccepted` and `nrejected`
    count steps.
    """

    t: np.ndarray
    y: np.ndarray
    sol: DenseOutput | None
    t_events: list[np.ndarray] | None
    y_events: list[np.ndarray] | None
    nfev: int
    naccepted: int
    nrejected: int
    status: int
    message: str

    @property
    def success(self) -> bool:
        """Whether the run reached the end or a terminal event."""
        return self.status >= 0
