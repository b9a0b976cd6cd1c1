"""The results of an adaptive run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

Points = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Points (n, .) at fractions theta (n) of steps with starts and curves, n rows each."""


@dataclass(frozen=True)
class DenseOutput:
    """The solution at any time of the run, `sol(t)`: (nx) at a time t, (nx, n) at times (n), on
    the manifold as the steps' ends are.

    Steps from times[k] to times[k + 1] with `starts` and `curves`; the solution ends at `t_end`.
    `sol` raises ValueError for a time that the run has not reached.
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
                f"the solution is known for times from {self.t_min:g} to {self.t_max:g}, one or a "
                f"row of them, got {t!r}"
            )
        flat = np.atleast_1d(times)
        forward = 1.0 if self.times[-1] >= self.times[0] else -1.0
        k = np.searchsorted(forward * self.times[1:-1], forward * flat)
        start, size = self.times[k], self.times[k + 1] - self.times[k]
        theta = (flat - start) / np.where(size == 0.0, 1.0, size)
        x = self.points(self.starts[k], self.curves[k], theta)[:, : self.nx].T
        return x[:, 0] if times.ndim == 0 else x


@dataclass(frozen=True)
class Solution:
    """A run as `scipy.integrate.solve_ivp` gives it: states y (nx, n) at the times t (n), and for
    each event the times t_events (m) and states y_events (m, nx); None without events.

    `status` is 0 at the end of the time span, 1 at a terminal event, -1 after a failure, which
    `message` explains; the states before it are kept. `sol` is None unless it was requested.
    `nfev` counts evaluations of the field, `naccepted` and `nrejected` steps.
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
