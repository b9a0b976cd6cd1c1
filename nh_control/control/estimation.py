"""State estimation on manifolds with an extended Kalman filter. The filter uses the exact
linearization of a system, and its covariances are in local coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.modes import (
    NotDetectable,
    natural_sizes,
    require_none,
    unobservable_modes,
)
from nh_control.control.tracking import DisturbanceEstimate, LqrTracker
from nh_control.control.weights import checked_weight
from nh_control.discrete.outputs import OutputMap
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.spaces import Product, Rn, Space
from nh_control.mechanics import states
from nh_control.numerics.compiled import SMALL, Functions


@dataclass(frozen=True)
class Belief:
    """A state estimate x (nx) with its covariance P (ndx, ndx). The true state is `retract(x, e)`,
    where the error e has zero mean and covariance P.
    """

    x: np.ndarray
    P: np.ndarray


@dataclass(frozen=True)
class Innovation:
    """A measurement minus its prediction, `value` (n), the Jacobian H (n, ndx) of the measurement
    with respect to the state, and the covariance `S = H P H^T + V` (n, n) of the innovation.
    """

    value: np.ndarray
    H: np.ndarray
    S: np.ndarray

    @property
    def deviation(self) -> float:
        """The largest component in standard deviations, `max_i |value_i| / sqrt(S_ii)`."""
        return float(np.max(np.abs(self.value) / np.sqrt(np.diag(self.S))))


class KalmanFilter:
    """Extended Kalman filter for `x1 = retract(f(x, u), w)`. The process noise w has the
    covariance W (ndx, ndx), and the measurement noise n has the covariance V.

    By default, the measurement is a configuration, `y = retract(q, n)` with n (nv). If
    `measurement` names outputs of the system, the measurement consists of the values of these
    outputs, `y = retract(c(x, u), n)`, with n in the local coordinates of their space. If
    `measurement(x)` is a function that returns a vector h(x) as a CasADi expression of the state,
    the measurement is `y = h(x) + n`. Covariances are in local coordinates about the estimate.
    When the estimate changes, the exact derivative transforms them (the reset of an error-state
    filter, Sola 2017, 6.3). For a linear system on Rn, the filter is the Kalman filter. Raises
    ValueError if a covariance has the wrong shape, if W is not positive semidefinite, and if V is
    not positive definite.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        W: ArrayLike,
        V: ArrayLike,
        measurement: Callable[[ca.SX], ca.SX] | str | Sequence[str] | None = None,
    ):
        self.dsys, self._measurement = dsys, measurement
        self._outputs: OutputMap | None = None
        if measurement is not None and not callable(measurement):
            names = (measurement,) if isinstance(measurement, str) else measurement
            self._outputs = dsys.outputs(*names)
        self.W = checked_weight("W", W, dsys.ndx)
        self.V = checked_weight("V", V, self._space.nv)
        if np.linalg.eigvalsh(self.V).min() <= 0:
            raise ValueError(
                f"{dsys}: V must be positive definite, its smallest eigenvalue is "
                f"{np.linalg.eigvalsh(self.V).min():.1e}"
            )

    def predict(self, belief: Belief, u: ArrayLike, step: DiscreteSystem | None = None) -> Belief:
        """The belief after a step under the input u (nu), `x <- f(x, u), P <- A P A^T + W`. `step`
        is the same system with a different step size; W is scaled in proportion. Raises
        StepFailed, and ValueError for a belief that is not finite.
        """
        self._require_finite(belief)
        step = step or self.dsys
        lin = step.linearize(belief.x, u)
        return Belief(lin.x1, lin.A @ belief.P @ lin.A.T + step.h / self.dsys.h * self.W)

    def update(self, belief: Belief, y: ArrayLike, u: ArrayLike | None = None) -> Belief:
        """The belief after the measurement y: `K = P H^T (H P H^T + V)^{-1}`,
        `x <- retract(x, K innovation)`, and P in Joseph's form, transformed to the new x.

        Outputs that depend on the inputs, such as accelerations, need the current inputs u (nu).
        Raises ValueError if the belief or the measurement is not finite, if a measured
        configuration is not on its manifold, and if u is missing.
        """
        return self.correct(belief, self.innovation(belief, y, u))

    def innovation(self, belief: Belief, y: ArrayLike, u: ArrayLike | None = None) -> Innovation:
        """The measurement y minus its prediction from the belief. Raises ValueError as `update`
        does.
        """
        self._require_finite(belief)
        arguments = belief.x, *self._acting(u), self.measured(y)
        difference, H = self._functions("innovation", *arguments)
        # S = H P H^T + V
        return Innovation(difference[:, 0], H, H @ belief.P @ H.T + self.V)

    def correct(self, belief: Belief, innovation: Innovation) -> Belief:
        """The second part of `update`: the belief after a measurement, from its innovation."""
        H = innovation.H
        # Kalman gain K = P H^T S^{-1}
        K = np.linalg.solve(innovation.S, H @ belief.P).T
        rest = np.eye(self.dsys.ndx) - K @ H
        x, transform = self._functions("correct", belief.x, K @ innovation.value)
        # covariance in Joseph's form, then in the local coordinates of the new estimate
        P = transform @ (rest @ belief.P @ rest.T + K @ self.V @ K.T) @ transform.T
        return Belief(x[:, 0], (P + P.T) / 2)

    def require_detectable(self, x: ArrayLike, u: ArrayLike) -> None:
        """Raise NotDetectable if the linearization about the state x (nx) and the input u (nu) has
        modes that neither decay nor are observed by the measurement. The error contains these
        modes. The covariance of their estimates would stay constant or grow.
        """
        lin, y = self.dsys.linearize(x, u), self.expected(x, u)
        _, H = self._functions("innovation", x, *self._acting(u), y)
        require_none(
            NotDetectable,
            unobservable_modes(lin.A, H, natural_sizes(self.dsys, lin.A), growing=True),
            self.dsys.state_space.tangent_names,
            f"{self.dsys}: the measurement does not observe modes that do not decay",
            "Measure {} as well",
        )

    def expected(self, x: ArrayLike, u: ArrayLike | None = None) -> np.ndarray:
        """The measurement without noise at the state x (nx) under the inputs u (nu)."""
        return self._functions("measure", x, *self._acting(u))[0][:, 0]

    @property
    def measures_configuration(self) -> bool:
        """Whether the measurement is a configuration, not a function of the state."""
        return self._measurement is None

    def measured(self, y: ArrayLike) -> np.ndarray:
        """A measurement as an array. Raises ValueError as `update` does."""
        if self._measurement is None:
            return states.configuration(self.dsys, self.dsys.system.space, y)
        return states.numbers(self.dsys, "a measurement", y, self._space.nq)

    @property
    def measures_vectors(self) -> bool:
        """Whether the measurement is a configuration or a vector, not an attitude or a pose."""
        return self._measurement is None or flat(self._space)

    @cached_property
    def takes_inputs(self) -> bool:
        """Whether the measurement depends on the inputs."""
        return self._outputs is not None and self._outputs.takes_inputs

    @cached_property
    def _space(self) -> Space:
        """The space of the measurements."""
        if self._outputs is not None:
            return self._outputs.space
        if not callable(self._measurement):
            return self.dsys.system.space
        values = ca.vertcat(self._measurement(ca.SX.sym("x", self.dsys.nx)))
        return Rn(*(f"y_{i}" for i in range(values.shape[0])))

    def _acting(self, u: ArrayLike | None) -> tuple[np.ndarray, ...]:
        """The inputs (nu) as an additional argument, if the measurement depends on them."""
        outputs = self._outputs
        return (outputs.inputs(u),) if outputs is not None and self.takes_inputs else ()

    def _expression(self, x: ca.SX, u: ca.SX) -> ca.SX:
        """The expression of the measurement without noise."""
        if self._outputs is not None:
            return self._outputs.expression(x, u)
        return ca.vertcat(self._measurement(x)) if callable(self._measurement) else x

    def _require_finite(self, belief: Belief) -> None:
        for what, value in (("x", belief.x), ("P", belief.P)):
            if not np.isfinite(value).all():
                raise ValueError(
                    f"{self.dsys}: {what} of the belief must be finite, got "
                    f"{np.asarray(value).tolist()}; restart from a known state"
                )

    @cached_property
    def _functions(self) -> Functions:
        equations = self.equations
        size = sum(function.n_instructions() for function in equations)
        # compiling large outputs, such as accelerations, would take longer than running without
        # compiled code
        compiled = self._outputs is None or size <= SMALL
        return Functions(f"{self.dsys.system.name}_kalman", equations, compiled=compiled)

    @property
    def equations(self) -> list[ca.Function]:
        """`measure(x) -> y`; `innovation(x, y) -> difference, H`;
        `correct(x, dx) -> x1, transform`, which are the state x1 = retract(x, dx) and the matrix
        that transforms errors to the coordinates at x1. If the measurement depends on the inputs u
        (nu), the first two functions take them after x.
        """
        d = self.dsys
        space, phase = d.system.space, d.state_space
        x, e, dx = ca.SX.sym("x", d.nx), ca.SX.sym("e", d.ndx), ca.SX.sym("dx", d.ndx)
        u, y = ca.SX.sym("u", d.system.nu), ca.SX.sym("y", self._space.nq)
        if self._measurement is None:
            expected, H = x[: space.nq], ca.SX.eye(d.ndx)[: space.nv, :]
        else:
            # H = d local(c(x), c(retract(x, e))) / de at e = 0
            expected, here = self._expression(x, u), ca.SX.sym("here", y.shape[0])
            change = self._space.local(here, self._expression(phase.retract(x, e), u))
            zero = ca.SX.zeros(d.ndx)
            (H,) = ca.substitute([ca.jacobian(change, e)], [e, here], [zero, expected])
        difference = self._space.local(expected, y)
        # the error in coordinates about x + dx as a function of the error in coordinates about x
        corrected = phase.retract(x, dx)
        transform = ca.jacobian(phase.local(corrected, phase.retract(x, dx + e)), e)
        acting, names = ([u], ["x", "u"]) if self.takes_inputs else ([], ["x"])
        results = [corrected, ca.substitute(transform, e, ca.SX.zeros(d.ndx))]
        return [
            ca.Function("measure", [x, *acting], [expected], names, ["y"]),
            ca.Function(
                "innovation", [x, *acting, y], [difference, H], [*names, "y"], ["difference", "H"]
            ),
            ca.Function("correct", [x, dx], results, ["x", "dx"], ["x1", "transform"]),
        ]


def flat(space: Space) -> bool:
    """Whether a space is a vector space."""
    return isinstance(space, Rn) or (isinstance(space, Product) and all(map(flat, space.factors)))


class OutputFeedback:
    """A controller that receives measurements and uses a filter's estimate instead of the state.

    A run starts with the belief `start`. `belief` is the current belief, before the next
    measurement.
    """

    def __init__(self, tracker: LqrTracker, kalman: KalmanFilter, start: Belief):
        self.targets = tracker.reference.states
        self._tracker, self._kalman, self._start = tracker, kalman, start
        self.reset()

    def reset(self) -> None:
        """Begin a run. No input has acted yet."""
        self.belief, self._u = self._start, np.zeros(self._tracker.dsys.nu)
        self._memory: DisturbanceEstimate | None = None

    def command(self, k: int, y: ArrayLike) -> np.ndarray:
        """The inputs u (nu) for step k after the measurement y. Raises StepFailed."""
        belief = self._kalman.update(self.belief, y, self._u)
        command = self._tracker.command(k, belief.x, self._memory)
        self.belief = self._kalman.predict(belief, command.u)
        # the next measurement may depend on this input
        self._u, self._memory = command.u, command.memory
        return command.u
