"""Smoothing of recorded data: the most probable motion, estimated from all earlier and later
measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.estimation import Belief, KalmanFilter
from nh_control.discrete.results import StepFailed
from nh_control.discrete.simulation import input_rows
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.space import Space
from nh_control.numerics.compiled import Functions

SETTLED = 1e-6
"""Correction, in standard deviations, at or below which the iteration stops."""
LEAST_STEP = 1 / 64
"""Minimum fraction of a correction that is tried."""


@dataclass(frozen=True)
class SmoothedMotion:
    """A smoothed motion: its `trajectory` with states x_k at N + 1 nodes, and the covariances
    (N + 1, ndx, ndx) of the errors. The true states are `retract(x_k, e_k)`, where the errors e_k
    have zero mean.

    `disturbances` (N, ndx) are the most probable process noise, `local(f(x_k, u_k), x_(k+1))`.
    `iterations` is the number of Gauss-Newton iterations, and `correction` is the largest
    component of the last correction in standard deviations.
    """

    trajectory: Trajectory
    covariances: np.ndarray
    disturbances: np.ndarray
    iterations: int
    correction: float

    def belief(self, k: int) -> Belief:
        """The state at node k and its covariance."""
        return Belief(self.trajectory.states[k], self.covariances[k])


def smooth(
    kalman: KalmanFilter,
    start: Belief,
    inputs: ArrayLike | int,
    measurements: Sequence[ArrayLike | None],
    *,
    max_iterations: int = 50,
) -> SmoothedMotion:
    """The most probable motion x_0 ... x_N under inputs (N, nu), or over N steps without inputs,
    given measurements y_0 ... y_N. Any measurement may be None.

    The motion minimizes `|local(x_s, x_0)|^2_P + sum |local(f(x_k, u_k), x_(k+1))|^2_W + sum
    |n(x_k, y_k)|^2_V` with `|e|^2_W = e^T W^{-1} e`. Here `start` (x_s, P) is the belief before
    the first measurement. The covariances W, V and the measurement are those of the filter, with
    `n = local(q_k, y_k)` or `y_k - h(x_k)`. W and P may be singular.

    The method is Gauss-Newton with the iterated Kalman smoother (Bell 1994, The iterated Kalman
    smoother as a Gauss-Newton method; Bell and Cathey 1993; Sarkka, Bayesian filtering and
    smoothing, 10). Every iteration linearizes the problem about the last motion, exactly and in
    local coordinates. A filter and the smoother of Bierman (1973), which does not invert P, solve
    the linearized problem. The first motion consists of the filter's estimates. Each correction is
    halved until the next correction is smaller (Deuflhard's natural test).

    Raises StepFailed with the number of the step, and ValueError for wrong shapes, for numbers
    that are not finite, and if the iteration does not converge.
    """
    dsys = kalman.dsys
    if kalman.takes_inputs or not kalman.measures_vectors:
        raise ValueError(
            f"{dsys}: the smoother takes configurations, or outputs that are vectors and do not "
            "depend on inputs; omit accelerations, attitudes and poses"
        )
    rows = input_rows(dsys, inputs, None, 1)
    ys = _measured(kalman, measurements, len(rows))
    problem = _Linearized(kalman, start, rows, ys)
    now = problem.about(_filtered(kalman, start, rows, ys))
    for iterations in range(max_iterations + 1):
        if now.size <= SETTLED:
            states = dsys.retract(now.x, now.dx)
            trajectory = Trajectory(
                dsys.h, states, rows, dsys.state_names, dsys.inputs, "smoothed", dsys
            )
            noise = problem.disturbances(states)
            return SmoothedMotion(trajectory, now.P, noise, iterations, now.size)
        now = _shortened(problem, now)
    raise _not_converged(dsys, now)


@dataclass(frozen=True)
class _Iterate:
    """A motion x (N + 1, nx), and its correction dx (N + 1, ndx) with covariances P."""

    x: np.ndarray
    dx: np.ndarray
    P: np.ndarray

    @property
    def size(self) -> float:
        """The largest component of the correction in standard deviations."""
        deviations = np.sqrt(np.maximum(np.einsum("kii->ki", self.P), 0.0))
        nonzero = self.dx != 0.0
        with np.errstate(divide="ignore"):
            return float((np.abs(self.dx[nonzero]) / deviations[nonzero]).max(initial=0.0))


def _shortened(problem: _Linearized, now: _Iterate) -> _Iterate:
    """The iterate after a correction t dx, where t is halved until the next correction is smaller.
    Raises ValueError if no tried correction achieves this.
    """
    t = 1.0
    while t >= LEAST_STEP:
        try:
            after = problem.about(problem.dsys.retract(now.x, t * now.dx))
        except StepFailed:  # an infeasible motion is not an improvement
            after = None
        # natural test: the next correction must be smaller by the factor 1 - t / 4
        if after and (after.size < (1 - t / 4) * now.size or after.size <= SETTLED):
            return after
        t /= 2
    raise _not_converged(problem.dsys, now)


def _not_converged(dsys: DiscreteSystem, now: _Iterate) -> ValueError:
    return ValueError(
        f"{dsys}: the smoother does not converge, its correction remains {now.size:.1e} standard "
        "deviations; measure more, or use a start with a smaller covariance"
    )


def _measured(
    kalman: KalmanFilter, measurements: Sequence[ArrayLike | None], steps: int
) -> list[np.ndarray | None]:
    """The measurements as arrays. Raises ValueError unless there is one per node."""
    if len(measurements) != steps + 1:
        raise ValueError(
            f"{kalman.dsys}: {steps} inputs need {steps + 1} measurements, one per node "
            f"(None if there is none), got {len(measurements)}"
        )
    return [None if y is None else kalman.measured(y) for y in measurements]


def _filtered(
    kalman: KalmanFilter,
    start: Belief,
    inputs: np.ndarray,
    measurements: Sequence[np.ndarray | None],
) -> np.ndarray:
    """The filter's estimates (N + 1, nx)."""
    belief, estimates = start, []
    for k, y in enumerate(measurements):
        if k:
            try:
                belief = kalman.predict(belief, inputs[k - 1])
            except StepFailed as failure:
                raise failure.at_step(k - 1) from None
        belief = belief if y is None else kalman.update(belief, y)
        estimates.append(belief.x)
    return np.array(estimates)


class _Update(NamedTuple):
    """Terms of a filter update: `I - K H, H^T S^{-1} innovation, H^T S^{-1} H`."""

    complement: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray


def _smooth_backwards(
    means: np.ndarray,
    covariances: np.ndarray,
    updates: Sequence[_Update],
    transitions: Sequence[np.ndarray],
) -> None:
    """Replace the filtered means and covariances with smoothed ones. The adjoints are computed
    backward (Bierman 1973): `x_k|N = x_k|k - P_k|k lam, P_k|N = P_k|k - P_k|k Lam P_k|k`.
    """
    n = means.shape[1]
    lam, Lam = np.zeros(n), np.zeros((n, n))
    for k in reversed(range(len(means))):
        P = covariances[k].copy()
        means[k] -= P @ lam
        smoothed = P - P @ Lam @ P
        covariances[k] = (smoothed + smoothed.T) / 2
        if k:
            # lam <- F^T ((I - K H)^T lam - H^T S^{-1} innovation), Lam likewise
            complement, slope, curvature = updates[k]
            F = transitions[k - 1]
            lam = F.T @ (complement.T @ lam - slope)
            Lam = F.T @ (complement.T @ Lam @ complement + curvature) @ F


class _Linearized:
    """The problem linearized about a motion: `dx_(k+1) = F_k dx_k + c_k + w_k` and
    `n_k = r_k - H_k dx_k`.
    """

    def __init__(
        self,
        kalman: KalmanFilter,
        start: Belief,
        inputs: np.ndarray,
        measurements: Sequence[np.ndarray | None],
    ):
        self._kalman, self._start, self._inputs = kalman, start, inputs
        self._measurements, self.dsys = measurements, kalman.dsys

    def about(self, x: np.ndarray) -> _Iterate:
        """The states x (N + 1, nx), with the mean and the covariances of the smoothed motion in
        local coordinates about these states.
        """
        n, ends = self.dsys.ndx, len(x)
        means, covariances = np.empty((ends, n)), np.empty((ends, n, n))
        updates, transitions = [], []
        m, P = self._prior(x[0])
        for k in range(ends):
            # update: m <- m + K (r - H m), P in Joseph's form
            r, H, V = self._measurement(k, x[k])
            S = H @ P @ H.T + V
            K = np.linalg.solve(S, H @ P).T
            innovation, complement = r - H @ m, np.eye(n) - K @ H
            weighted = H.T @ np.linalg.solve(S, np.column_stack([innovation, H]))
            updates.append(_Update(complement, weighted[:, 0], weighted[:, 1:]))
            m, P = m + K @ innovation, complement @ P @ complement.T + K @ V @ K.T
            means[k], covariances[k] = m, P
            # prediction: m <- F m + c, P <- F P F^T + W
            if k + 1 < ends:
                F, c, W = self._transition(k, x[k], x[k + 1])
                transitions.append(F)
                m, P = F @ m + c, F @ P @ F.T + W
        _smooth_backwards(means, covariances, updates, transitions)
        return _Iterate(x, means, covariances)

    def disturbances(self, x: np.ndarray) -> np.ndarray:
        """`local(f(x_k, u_k), x_(k+1))` (N, ndx)."""
        rows = [
            self.dsys.local(self.dsys.step(before, u), after)
            for before, u, after in zip(x[:-1], self._inputs, x[1:])
        ]
        return np.reshape(rows, (len(rows), self.dsys.ndx))

    def _prior(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of dx, if e = local(x_s, retract(x, dx)) has the covariance P."""
        e, _, by_dx = self._differences("states", self._start.x, x)
        # e + D dx has mean 0 and covariance P
        inverse = np.linalg.inv(by_dx)
        return -inverse @ e[:, 0], inverse @ self._start.P @ inverse.T

    def _transition(
        self, k: int, x: np.ndarray, after: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """F, c and the covariance of w, derived from the noise `local(f(retract(x, dx), u),
        retract(after, dx1)) = e + D A dx + D1 dx1`.
        """
        try:
            lin = self.dsys.linearize(x, self._inputs[k])
        except StepFailed as failure:
            raise failure.at_step(k) from None
        e, D, D1 = self._differences("states", lin.x1, after)
        # e + D A dx + D1 dx1 = w, solved for dx1
        inverse = np.linalg.inv(D1)
        return (
            -inverse @ D @ lin.A,
            -inverse @ e[:, 0],
            inverse @ self._kalman.W @ inverse.T,
        )

    def _measurement(self, k: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """r, H and V. They have no rows if there is no measurement."""
        y, n = self._measurements[k], self.dsys.ndx
        if y is None:
            return np.zeros(0), np.zeros((0, n)), np.zeros((0, 0))
        if self._kalman.measures_configuration:
            q = self.dsys.configuration(x)
            r, by_q, _ = self._differences("configurations", q, y)
            H = np.zeros((len(r), n))
            H[:, : len(r)] = -by_q
            return r[:, 0], H, self._kalman.V
        innovation = self._kalman.innovation(Belief(x, self._start.P), y)
        return innovation.value, innovation.H, self._kalman.V

    @cached_property
    def _differences(self) -> Functions:
        """The function local(a, b) with its derivatives along retract(a, e) and retract(b, e)."""
        spaces = {
            "states": self.dsys.state_space,
            "configurations": self.dsys.system.space,
        }
        functions = [_difference(name, space) for name, space in spaces.items()]
        return Functions(f"{self.dsys.system.name}_differences", functions)


def _difference(name: str, space: Space) -> ca.Function:
    a, b, e = ca.SX.sym("a", space.nq), ca.SX.sym("b", space.nq), ca.SX.sym("e", space.nv)
    varied = space.local(space.retract(a, e), b), space.local(a, space.retract(b, e))
    at_zero = [ca.substitute(ca.jacobian(f, e), e, ca.SX.zeros(space.nv)) for f in varied]
    return ca.Function(name, [a, b], [space.local(a, b), *map(ca.densify, at_zero)])
