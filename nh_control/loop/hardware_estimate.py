"""Estimates of states from noisy hardware measurements at arbitrary times."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from nh_control.control.estimation import Belief, KalmanFilter
from nh_control.control.input_history import Inputs, split_into_steps
from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.clocks import NANOSECONDS
from nh_control.loop.reports import Refusal, Unusable
from nh_control.loop.state_estimate import completed


class Implausible(Unusable):
    """A measurement does not fit the earlier ones; the message contains the reason."""


class MeasuredState:
    """The state computed from the last measurement alone. A velocity that is not measured is the
    mean velocity since the previous measurement or, for the first measurement, the velocity of the
    `expected` state.
    """

    def __init__(self, dsys: DiscreteSystem):
        self._dsys = dsys
        self.reset()

    def reset(self) -> None:
        """Forget the last measurement."""
        self._last: tuple[int, np.ndarray] | None = None

    @property
    def configuration(self) -> np.ndarray | None:
        """The last configuration (nq), or None before the first one."""
        return None if self._last is None else self._last[1]

    def shift(self, i: int, change: float) -> None:
        """Add whole turns to the heading, which is component i of the configuration."""
        if self._last is not None:
            self._last = self._last[0], _shifted(self._last[1], i, change)

    def state(
        self,
        time_ns: int,
        q: Sequence[float],
        v: Sequence[float] | None,
        inputs: Inputs,
        expected: np.ndarray,
    ) -> np.ndarray:
        """Return the state (nx) at a given time from the configuration q (nq) and the velocity v
        (nw). A velocity that is not measured is None or NaN.
        """
        dsys, here = self._dsys, np.array(q)
        if self._last is None:
            velocity = dsys.velocity(expected)
        else:
            # the mean velocity since the last configuration is the negated velocity from here back
            # to it
            elapsed_s = (time_ns - self._last[0]) / NANOSECONDS
            velocity = -dsys.system.space.velocity(here, self._last[1]) / elapsed_s
        self._last = time_ns, here
        return dsys.measured_state(here, completed(v, velocity))


class FilteredState:
    """The estimate of an extended Kalman filter on the model. Measurements may be taken at any
    time; the filter uses the inputs that acted between them.

    Measured configurations have noise with the standard deviation `noise` (m, rad). Unknown forces
    change velocities by `acceleration` (m/s^2, rad/s^2) in any direction. Each step adds
    `W = (acceleration h)^2 G G^T` to the covariance, where G contains the momenta for unit
    velocities. Measured velocities are used only for the first state; velocities that are not
    measured are taken from the `expected` state. A measurement that is more than `outlier`
    standard deviations away from its expected value is Implausible; 0 accepts all measurements.
    Raises ValueError for noise or acceleration <= 0, or outlier < 0.
    """

    def __init__(
        self, dsys: DiscreteSystem, noise: float, acceleration: float, outlier: float = 0.0
    ):
        if not (noise > 0 and acceleration > 0):
            raise ValueError(
                f"a filter needs noise > 0 and acceleration > 0, got {noise} and {acceleration}"
            )
        if not outlier >= 0:
            raise ValueError(f"a filter needs outlier >= 0, got {outlier}")
        self._dsys, self._acceleration = dsys, acceleration
        self._outlier, n = outlier, dsys.system.space.nv
        self._quiet = KalmanFilter(dsys, np.zeros((dsys.ndx, dsys.ndx)), noise**2 * np.eye(n))
        self._quiet.expected(dsys.state_space.origin)  # compile it once for all estimates
        self.reset()

    def reset(self) -> None:
        """Forget the estimate."""
        self._known: tuple[KalmanFilter, Belief] | None = None

    @property
    def configuration(self) -> np.ndarray | None:
        """The estimated configuration (nq), or None before the first one."""
        return None if self._known is None else self._dsys.configuration(self._known[1].x)

    def shift(self, i: int, change: float) -> None:
        """Add whole turns to the heading, which is component i of the configuration."""
        if self._known is not None:
            kalman, belief = self._known
            self._known = kalman, replace(belief, x=_shifted(belief.x, i, change))

    def state(
        self,
        time_ns: int,
        q: Sequence[float],
        v: Sequence[float] | None,
        inputs: Inputs,
        expected: np.ndarray,
    ) -> np.ndarray:
        """Return the state (nx) at a given time from the configuration q (nq) and the velocity v
        (nw). A velocity that is not measured is None or NaN. Raises StepFailed and Implausible.
        """
        if self._known is None:
            kalman, belief = self._begin(np.asarray(q), v, self._dsys.velocity(expected))
        else:
            kalman, belief = self._known
            # predict with the inputs since the last measurement, then correct
            for u, duration_s in inputs:
                for step in split_into_steps(self._dsys, duration_s):
                    belief = kalman.predict(belief, u, step)
            innovation = kalman.innovation(belief, q)
            if self._outlier:
                self._require_plausible(innovation.deviation)
            belief = kalman.correct(belief, innovation)
        self._known = kalman, belief
        return belief.x

    def _require_plausible(self, deviation: float) -> None:
        if not deviation <= self._outlier:
            raise Implausible(
                Refusal.IMPLAUSIBLE,
                f"{deviation:.3g} standard deviations from the prediction of the model, more than "
                f"{self._outlier:g}",
            )

    def _begin(
        self, q: np.ndarray, measured: Sequence[float] | None, expected: np.ndarray
    ) -> tuple[KalmanFilter, Belief]:
        dsys, n = self._dsys, self._dsys.system.space.nv
        v = completed(measured, expected)
        x = dsys.measured_state(q, v)
        # G: column j is the change in the state, in local coordinates, for unit velocity j
        units = np.eye(dsys.system.space.nw)
        momenta = np.array([dsys.local(x, dsys.measured_state(q, v + unit)) for unit in units]).T
        change = (self._acceleration * dsys.h) ** 2
        kalman = copy(self._quiet)
        kalman.W = change * momenta @ momenta.T
        is_known = ~np.isnan(completed(measured, np.full(len(v), np.nan)))
        # P = G D G^T + V for positions; D = (acceleration h)^2 if measured, 1 if only expected
        P = momenta * np.where(is_known, change, 1.0) @ momenta.T
        P[:n, :n] += kalman.V
        return kalman, Belief(x, P)


def _shifted(values: np.ndarray, i: int, change: float) -> np.ndarray:
    shifted = values.copy()
    shifted[i] += change
    return shifted
