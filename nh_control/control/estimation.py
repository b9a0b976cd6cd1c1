"""State estimation on manifolds: the extended Kalman filter on a system's exact linearization,
with covariances in local coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.lqr import checked_weight
from nh_control.control.tracking import Command, Controller
from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics import states
from nh_control.numerics.compiled import Functions


@dataclass(frozen=True)
class Belief:
    """What is known of a state: the true one is `retract(x, e)` with an error e of mean zero and
    covariance P (ndx, ndx).
    """

    x: np.ndarray
    P: np.ndarray


@dataclass(frozen=True)
class Innovation:
    """A measurement less what a belief expects of it, `value` (n), with its slope H (n, ndx) by
    the state and its covariance `S = H P H^T + V` (n, n).
    """

    value: np.ndarray
    H: np.ndarray
    S: np.ndarray

    @property
    def deviation(self) -> float:
        """The largest of its numbers in standard deviations, `max_i |value_i| / sqrt(S_ii)`."""
        return float(np.max(np.abs(self.value) / np.sqrt(np.diag(self.S))))


class KalmanFilter:
    """Extended Kalman filter of `x1 = retract(f(x, u), w)`, w of covariance W (ndx, ndx), from
    measurements with noise of covariance V.

    Measured are configurations, `y = retract(q, n)` with n (nv), unless `measurement(x)` gives a
    vector h(x) as CasADi expression of the state: then
    `y = h(x) + n`. Covariances are in the local coordinates of the estimate, and are carried to
    those of the next one by the exact derivative. On Rn and a linear system it is the Kalman
    filter. Raises ValueError for covariances of wrong shape, W not semidefinite or V not definite.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        W: ArrayLike,
        V: ArrayLike,
        measurement: Callable[[ca.SX], ca.SX] | None = None,
    ):
        self.dsys, self._measurement = dsys, measurement
        self.W = checked_weight("W", W, dsys.ndx)
        self.V = checked_weight(
            "V",
            V,
            len(self.expected(dsys.state_space.origin)) if measurement else dsys.system.space.nv,
        )
        if np.linalg.eigvalsh(self.V).min() <= 0:
            raise ValueError(
                f"{dsys}: V must be positive definite, its smallest eigenvalue is "
                f"{np.linalg.eigvalsh(self.V).min():.1e}"
            )

    def predict(self, belief: Belief, u: ArrayLike, step: DiscreteSystem | None = None) -> Belief:
        """Belief after a step under the input u (nu): `P <- A P A^T + W`, or that of the same
        system with another `step`, which has a part of W in proportion; raises StepFailed, and
        ValueError for what is not finite.
        """
        self._require_finite(belief)
        step = step or self.dsys
        lin = step.linearize(belief.x, u)
        return Belief(lin.x1, lin.A @ belief.P @ lin.A.T + step.h / self.dsys.h * self.W)

    def update(self, belief: Belief, y: ArrayLike) -> Belief:
        """Belief after the measurement y: `K = P H^T (H P H^T + V)^{-1}`,
        `x <- retract(x, K innovation)`, P in Joseph's form, carried to the new x.

        Raises ValueError for a belief or a measurement that is not finite, and for a measured
        configuration that is none.
        """
        return self.correct(belief, self.innovation(belief, y))

    def innovation(self, belief: Belief, y: ArrayLike) -> Innovation:
        """What the measurement y says that the belief did not expect; raises ValueError as
        `update`.
        """
        self._require_finite(belief)
        difference, H = self._functions("innovation", belief.x, self._measured(y))
        return Innovation(difference[:, 0], H, H @ belief.P @ H.T + self.V)

    def correct(self, belief: Belief, innovation: Innovation) -> Belief:
        """The second part of `update`: the belief after the measurement with this innovation."""
        H = innovation.H
        K = np.linalg.solve(innovation.S, H @ belief.P).T
        rest = np.eye(self.dsys.ndx) - K @ H
        x, carry = self._functions("correct", belief.x, K @ innovation.value)
        P = carry @ (rest @ belief.P @ rest.T + K @ self.V @ K.T) @ carry.T
        return Belief(x[:, 0], (P + P.T) / 2)

    def expected(self, x: ArrayLike) -> np.ndarray:
        """Measurement at the state x (nx) without noise."""
        return self._functions("measure", x)[0][:, 0]

    def _measured(self, y: ArrayLike) -> np.ndarray:
        if self._measurement is None:
            return states.configuration(self.dsys, self.dsys.system.space, y)
        return states.numbers(self.dsys, "a measurement", y, len(self.V))

    def _require_finite(self, belief: Belief) -> None:
        for what, value in (("x", belief.x), ("P", belief.P)):
            if not np.isfinite(value).all():
                raise ValueError(
                    f"{self.dsys}: {what} of the belief must be finite, got "
                    f"{np.asarray(value).tolist()}; start again from a state that is known"
                )

    @cached_property
    def _functions(self) -> Functions:
        d = self.dsys
        space, phase = d.system.space, d.state_space
        x, e, dx = ca.SX.sym("x", d.nx), ca.SX.sym("e", d.ndx), ca.SX.sym("dx", d.ndx)
        if self._measurement is None:
            expected, y = x[: space.nq], ca.SX.sym("y", space.nq)
            difference, H = space.local(x[: space.nq], y), ca.SX.eye(d.ndx)[: space.nv, :]
        else:
            expected = ca.vertcat(self._measurement(x))
            y = ca.SX.sym("y", expected.shape[0])
            slope = ca.jacobian(ca.vertcat(self._measurement(phase.retract(x, e))), e)
            difference, H = y - expected, ca.substitute(slope, e, ca.SX.zeros(d.ndx))
        corrected = phase.retract(x, dx)
        carry = ca.jacobian(phase.local(corrected, phase.retract(x, dx + e)), e)
        return Functions(
            f"{d.system.name}_kalman",
            [
                ca.Function("measure", [x], [expected], ["x"], ["y"]),
                ca.Function(
                    "innovation", [x, y], [difference, H], ["x", "y"], ["difference", "H"]
                ),
                ca.Function(
                    "correct",
                    [x, dx],
                    [corrected, ca.substitute(carry, e, ca.SX.zeros(d.ndx))],
                    ["x", "dx"],
                    ["x1", "carry"],
                ),
            ],
        )


class OutputFeedback:
    """A controller that gets measurements, with a filter's estimate in place of the state.

    Its memory is the belief before the next measurement, and the controller's own.
    """

    def __init__(self, controller: Controller, kalman: KalmanFilter, start: Belief):
        self.dsys, self.reference = controller.dsys, controller.reference
        self.target = controller.target
        self._controller, self._kalman, self._start = controller, kalman, start

    def command(
        self, k: int, y: ArrayLike, memory: tuple[Belief, object] | None = None
    ) -> Command:
        """Command for step k at the measurement y; the error is that of the estimate. Raises
        StepFailed.
        """
        before, inner = memory or (self._start, None)
        belief = self._kalman.update(before, y)
        command = self._controller.command(k, belief.x, inner)
        return Command(
            command.u,
            command.saturated,
            command.error,
            (self._kalman.predict(belief, command.u), command.memory),
        )
