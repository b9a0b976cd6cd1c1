"""Tracking of a reference by linear feedback in local coordinates, with actuator limits and an optional disturbance estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nh_control.control import lqr
from nh_control.discrete import DiscreteSystem, StepFailed
from nh_control.trajectory import Trajectory


@dataclass(frozen=True)
class DisturbanceEstimate:
    """What a tracker remembers between steps: the estimated disturbance (n_rho) of the momenta per step and the state predicted for the next step."""

    disturbance: np.ndarray
    predicted: np.ndarray | None = None


@dataclass(frozen=True)
class Command:
    """Input u (nu) within the limits, which of them are saturated (nu), the tracking error dx (ndx), and what to pass to the next call."""

    u: np.ndarray
    saturated: np.ndarray
    error: np.ndarray
    memory: DisturbanceEstimate | None = None


class LqrTracker:
    """`u = clip(u_d - K local(x_d, x), limits)` along a reference; past its end the command is zero and the error is to the last state.

    With `disturbance_gain` in (0, 1] a constant disturbance d of the momenta, `x1 = f(x, u) + (0, d)`, is estimated from what the model did not predict,
    `d += gain (rho - rho_predicted)`, and the gains are those of the LQR problem that knows d, `u = u_d - K local(x_d, x) - K_d d`: integral action
    that removes what a wrong mass does to the momenta.
    """

    def __init__(self, dsys: DiscreteSystem, reference: Trajectory, Q, R, Qf=None, limits=None, disturbance_gain: float = 0.0):
        if not 0 <= disturbance_gain <= 1:
            raise ValueError(f"disturbance_gain must lie in [0, 1], got {disturbance_gain}")
        self.dsys, self.reference, self.disturbance_gain = dsys, reference, disturbance_gain
        self.limits = dsys.system.input_limits if limits is None else np.asarray(limits, dtype=float)
        if self.limits.shape != (dsys.nu, 2):
            raise ValueError(f"limits must have shape ({dsys.nu}, 2), got {self.limits.shape}")
        if disturbance_gain == 0:
            self.gains = lqr.finite_horizon(dsys, reference, Q, R, Qf)
            self._disturbance_gains = None
        else:
            self.gains, self._disturbance_gains = _disturbance_gains(dsys, reference, Q, R, Qf)

    def target(self, k: int) -> np.ndarray:
        """Reference state at step k (the last one past the end)."""
        return self.reference.states[min(k, len(self.reference))]

    def command(self, k: int, x, memory: DisturbanceEstimate | None = None) -> Command:
        """Command for step k at state x (nx); pass the last command's `memory` to keep the disturbance estimate (None starts it at zero)."""
        error = self.dsys.local(self.target(k), x)
        if k >= len(self.reference):
            u, memory = np.zeros(self.dsys.nu), None
        else:
            u = self.reference.inputs[k] - self.gains.K[k] @ error
            if self._disturbance_gains is not None:
                memory = self._estimate(np.asarray(x, float), memory)
                u = u - self._disturbance_gains[k] @ memory.disturbance
        clipped = np.clip(u, self.limits[:, 0], self.limits[:, 1])
        if memory is not None:
            memory = self._predict(x, clipped, memory)
        return Command(clipped, clipped != u, error, memory)

    def _estimate(self, x: np.ndarray, memory: DisturbanceEstimate | None) -> DisturbanceEstimate:
        if memory is None:
            return DisturbanceEstimate(np.zeros(self.dsys.system.n_rho))
        if memory.predicted is None:
            return memory
        surprise = (x - memory.predicted)[-self.dsys.system.n_rho :]
        return DisturbanceEstimate(memory.disturbance + self.disturbance_gain * surprise)

    def _predict(self, x, u, memory: DisturbanceEstimate) -> DisturbanceEstimate:
        try:
            predicted = self.dsys.step(x, u)
        except StepFailed:
            return DisturbanceEstimate(memory.disturbance)
        predicted[-self.dsys.system.n_rho :] += memory.disturbance
        return DisturbanceEstimate(memory.disturbance, predicted)


def _disturbance_gains(dsys: DiscreteSystem, reference: Trajectory, Q, R, Qf) -> tuple[lqr.Gains, np.ndarray]:
    """LQR gains with the disturbance as further constant states: K (N, nu, ndx) and K_d (N, nu, n_rho)."""
    n, d = dsys.ndx, dsys.system.n_rho
    A, B = lqr.linearize_along(dsys, reference)
    steps = len(A)
    A_d, B_d = np.zeros((steps, n + d, n + d)), np.zeros((steps, n + d, dsys.nu))
    A_d[:, :n, :n], A_d[:, n - d : n, n:], A_d[:, n:, n:] = A, np.eye(d), np.eye(d)
    B_d[:, :n] = B
    pad = ((0, d), (0, d))
    gains = lqr.riccati(A_d, B_d, np.pad(np.asarray(Q, float), pad), R, np.pad(np.asarray(Q if Qf is None else Qf, float), pad))
    return lqr.Gains(gains.K[:, :, :n], gains.P[:, :n, :n]), gains.K[:, :, n:]
