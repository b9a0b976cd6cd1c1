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
    """A state estimate x (nx) with its covariance: the true state is `retract(x, e)` with an error
    e of mean zero and covariance P (ndx, ndx).
    """

    x: np.ndarray
    P: np.ndarray


@dataclass(frozen=True)
class Innovation:
    """A measurement less its prediction, `value` (n), with the Jacobian H (n, ndx) of the
    measurement by the state and the covariance `S = H P H^T + V` (n, n) of the innovation.
    """

    value: np.ndarray
    H: np.ndarray
    S: np.ndarray

    @property
    def deviation(self) -> float:
        """The largest component in standard deviations, `max_i |value_i| / sqrt(S_ii)`."""
        return float(np.max(np.abs(self.value) / np.sqrt(np.diag(self.S))))


class KalmanFilter:
    """Extended Kalman filter for `x1 = retract(f(x, u), w)` with process noise w of covariance W
    (ndx, ndx) and measurement noise n of covariance V.

    The measurement is a configuration, `y = retract(q, n)` with n (nv), or, if `measurement(x)`
    gives a vector h(x) as a CasADi expression of the state, `y = h(x) + n`. Covariances are in the
    local coordinates of the estimate; the exact derivative transforms them when the estimate moves
    (the reset of an error-state filter, Sola 2017, 6.3). For a linear system on Rn it is the
    Kalman filter. Raises ValueError for covariances of wrong shape, W not
    semidefinite or V not definite.
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
        """Belief after a step under the input u (nu), `x <- f(x, u), P <- A P A^T + W`; `step` is
        the same system with another step size, for which W is scaled in proportion. Raises
        StepFailed, and ValueError for a belief that is not finite.
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
        """The measurement y less its prediction from the belief; raises ValueError as `update`."""
        self._require_finite(belief)
        difference, H = self._functions("innovation", belief.x, self.measured(y))
        return Innovation(difference[:, 0], H, H @ belief.P @ H.T + self.V)

    def correct(self, belief: Belief, innovation: Innovation) -> Belief:
        """The second part of `update`: the belief after the measurement with this innovation."""
        H = innovation.H
        # Kalman gain K = P H^T S^{-1}
        K = np.linalg.solve(innovation.S, H @ belief.P).T
        rest = np.eye(self.dsys.ndx) - K @ H
        x, transform = self._functions("correct", belief.x, K @ innovation.value)
        # covariance in Joseph's form, then in the local coordinates of the new estimate
        P = transform @ (rest @ belief.P @ rest.T + K @ self.V @ K.T) @ transform.T
        return Belief(x[:, 0], (P + P.T) / 2)

    def expected(self, x: ArrayLike) -> np.ndarray:
        """Measurement at the state x (nx) without noise."""
        return self._functions("measure", x)[0][:, 0]

    @property
    def measures_configuration(self) -> bool:
        """Whether the measurement is a configuration, and no function of the state."""
        return self._measurement is None

    def measured(self, y: ArrayLike) -> np.ndarray:
        """A measurement as an array; raises ValueError as `update`."""
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
        return Functions(f"{self.dsys.system.name}_kalman", self.equations)

    @property
    def equations(self) -> list[ca.Function]:
        """`measure(x) -> y`; `innovation(x, y) -> difference, H`; `correct(x, dx) -> x1,
        transform`, the state moved by dx, and how errors are carried there.
        """
        d = self.dsys
        space, phase = d.system.space, d.state_space
        x, e, dx = ca.SX.sym("x", d.nx), ca.SX.sym("e", d.ndx), ca.SX.sym("dx", d.ndx)
        if self._measurement is None:
            expected, y = x[: space.nq], ca.SX.sym("y", space.nq)
            difference, H = space.local(x[: space.nq], y), ca.SX.eye(d.ndx)[: space.nv, :]
        else:
            expected = ca.vertcat(self._measurement(x))
            y = ca.SX.sym("y", expected.shape[0])
            jacobian = ca.jacobian(ca.vertcat(self._measurement(phase.retract(x, e))), e)
            difference, H = y - expected, ca.substitute(jacobian, e, ca.SX.zeros(d.ndx))
        # the error in coordinates at x + dx, by the error in coordinates at x
        corrected = phase.retract(x, dx)
        transform = ca.jacobian(phase.local(corrected, phase.retract(x, dx + e)), e)
        moved = [corrected, ca.substitute(transform, e, ca.SX.zeros(d.ndx))]
        return [
            ca.Function("measure", [x], [expected], ["x"], ["y"]),
            ca.Function("innovation", [x, y], [difference, H], ["x", "y"], ["difference", "H"]),
            ca.Function("correct", [x, dx], moved, ["x", "dx"], ["x1", "transform"]),
        ]


class OutputFeedback:
    """A controller that gets measurements: it uses a filter's estimate instead of the state.

    Its memory is the belief before the next measurement and the memory of the inner controller.
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
