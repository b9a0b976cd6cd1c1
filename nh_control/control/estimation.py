"""State estimation on manifolds: the extended Kalman filter on a system's exact linearization,
with covariances in local coordinates.
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
from nh_control.control.tracking import Command, Controller
from nh_control.control.weights import checked_weight
from nh_control.discrete.outputs import OutputMap
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.spaces import Product, Rn, Space
from nh_control.mechanics import states
from nh_control.numerics.compiled import SMALL, Functions


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

    The measurement is a configuration, `y = retract(q, n)` with n (nv). With names of the system's
    outputs as the `measurement` it is their values, `y = retract(c(x, u), n)`, n in the local
    coordinates of their space; with a function `measurement(x)` that gives a vector h(x) as a
    CasADi expression of the state, `y = h(x) + n`. Covariances are in the local coordinates of the
    estimate; the exact derivative transforms them when the estimate moves
    (the reset of an error-state filter, Sola 2017, 6.3). For a linear system on Rn it is the
    Kalman filter. Raises ValueError for covariances of wrong shape, W not
    semidefinite or V not definite.
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
        """Belief after a step under the input u (nu), `x <- f(x, u), P <- A P A^T + W`; `step` is
        the same system with another step size, for which W is scaled in proportion. Raises
        StepFailed, and ValueError for a belief that is not finite.
        """
        self._require_finite(belief)
        step = step or self.dsys
        lin = step.linearize(belief.x, u)
        return Belief(lin.x1, lin.A @ belief.P @ lin.A.T + step.h / self.dsys.h * self.W)

    def update(self, belief: Belief, y: ArrayLike, u: ArrayLike | None = None) -> Belief:
        """Belief after the measurement y: `K = P H^T (H P H^T + V)^{-1}`,
        `x <- retract(x, K innovation)`, P in Joseph's form, carried to the new x.

        Outputs that depend on the inputs, such as accelerations, need the inputs u (nu) that act.
        Raises ValueError for a belief or a measurement that is not finite, for a measured
        configuration off its manifold, and for a missing u.
        """
        return self.correct(belief, self.innovation(belief, y, u))

    def innovation(self, belief: Belief, y: ArrayLike, u: ArrayLike | None = None) -> Innovation:
        """The measurement y less its prediction from the belief; raises ValueError as `update`."""
        self._require_finite(belief)
        arguments = belief.x, *self._acting(u), self.measured(y)
        difference, H = self._functions("innovation", *arguments)
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

    def require_detectable(self, x: ArrayLike, u: ArrayLike) -> None:
        """Raises NotDetectable with the modes of the linearization about a state x (nx) under the
        input u (nu) that do not decay and that the measurement does not see: the covariance of
        their estimate stays or grows.
        """
        lin, y = self.dsys.linearize(x, u), self.expected(x, u)
        _, H = self._functions("innovation", x, *self._acting(u), y)
        require_none(
            NotDetectable,
            unobservable_modes(lin.A, H, natural_sizes(self.dsys, lin.A), growing=True),
            self.dsys.state_space.tangent_names,
            f"{self.dsys}: the measurement does not see modes that do not decay",
            "Measure {} as well",
        )

    def expected(self, x: ArrayLike, u: ArrayLike | None = None) -> np.ndarray:
        """Measurement at the state x (nx) under the inputs u (nu) without noise."""
        return self._functions("measure", x, *self._acting(u))[0][:, 0]

    @property
    def measures_configuration(self) -> bool:
        """Whether the measurement is a configuration, not a function of the state."""
        return self._measurement is None

    def measured(self, y: ArrayLike) -> np.ndarray:
        """A measurement as an array; raises ValueError as `update`."""
        if self._measurement is None:
            return states.configuration(self.dsys, self.dsys.system.space, y)
        return states.numbers(self.dsys, "a measurement", y, self._space.nq)

    @property
    def measures_vectors(self) -> bool:
        """Whether the measurement is a configuration or a vector, not an attitude or pose."""
        return self._measurement is None or flat(self._space)

    @cached_property
    def takes_inputs(self) -> bool:
        """Whether the measurement depends on the inputs that act."""
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
        """The forces (nu) that act, if the measurement depends on them."""
        outputs = self._outputs
        return (outputs.inputs(u),) if outputs is not None and self.takes_inputs else ()

    def _expression(self, x: ca.SX, u: ca.SX) -> ca.SX:
        """The measurement without noise."""
        if self._outputs is not None:
            return self._outputs.expression(x, u)
        return ca.vertcat(self._measurement(x)) if callable(self._measurement) else x

    def _require_finite(self, belief: Belief) -> None:
        for what, value in (("x", belief.x), ("P", belief.P)):
            if not np.isfinite(value).all():
                raise ValueError(
                    f"{self.dsys}: {what} of the belief must be finite, got "
                    f"{np.asarray(value).tolist()}; start again from a state that is known"
                )

    @cached_property
    def _functions(self) -> Functions:
        equations = self.equations
        size = sum(function.n_instructions() for function in equations)
        # outputs as large as accelerations take longer to compile than runs take without
        compiled = self._outputs is None or size <= SMALL
        return Functions(f"{self.dsys.system.name}_kalman", equations, compiled=compiled)

    @property
    def equations(self) -> list[ca.Function]:
        """`measure(x) -> y`; `innovation(x, y) -> difference, H`;
        `correct(x, dx) -> x1, transform`, the state moved by dx, and the matrix that carries
        errors there. If the measurement depends on the forces u (nu) that act, the first two take
        them after x.
        """
        d = self.dsys
        space, phase = d.system.space, d.state_space
        x, e, dx = ca.SX.sym("x", d.nx), ca.SX.sym("e", d.ndx), ca.SX.sym("dx", d.ndx)
        u, y = ca.SX.sym("u", d.system.nu), ca.SX.sym("y", self._space.nq)
        if self._measurement is None:
            expected, H = x[: space.nq], ca.SX.eye(d.ndx)[: space.nv, :]
        else:
            expected, here = self._expression(x, u), ca.SX.sym("here", y.shape[0])
            change = self._space.local(here, self._expression(phase.retract(x, e), u))
            at_rest = [e, here], [ca.SX.zeros(d.ndx), expected]
            (H,) = ca.substitute([ca.jacobian(change, e)], *at_rest)
        difference = self._space.local(expected, y)
        # the error in coordinates at x + dx, by the error in coordinates at x
        corrected = phase.retract(x, dx)
        transform = ca.jacobian(phase.local(corrected, phase.retract(x, dx + e)), e)
        acting, names = ([u], ["x", "u"]) if self.takes_inputs else ([], ["x"])
        moved = [corrected, ca.substitute(transform, e, ca.SX.zeros(d.ndx))]
        return [
            ca.Function("measure", [x, *acting], [expected], names, ["y"]),
            ca.Function(
                "innovation", [x, *acting, y], [difference, H], [*names, "y"], ["difference", "H"]
            ),
            ca.Function("correct", [x, dx], moved, ["x", "dx"], ["x1", "transform"]),
        ]


def flat(space: Space) -> bool:
    """Whether a space is one of vectors."""
    return isinstance(space, Rn) or (isinstance(space, Product) and all(map(flat, space.factors)))


class OutputFeedback:
    """A controller that gets measurements: it uses a filter's estimate instead of the state.

    Its memory is the belief before the next measurement, the last input (zero before the first
    step), and the memory of the inner controller.
    """

    def __init__(self, controller: Controller, kalman: KalmanFilter, start: Belief):
        self.dsys, self.reference = controller.dsys, controller.reference
        self.target = controller.target
        self._controller, self._kalman, self._start = controller, kalman, start

    def command(
        self, k: int, y: ArrayLike, memory: tuple[Belief, np.ndarray, object] | None = None
    ) -> Command:
        """Command for step k at the measurement y; the error is that of the estimate. Raises
        StepFailed.
        """
        before, acting, inner = memory or (self._start, np.zeros(self.dsys.nu), None)
        belief = self._kalman.update(before, y, acting)
        command = self._controller.command(k, belief.x, inner)
        return Command(
            command.u,
            command.saturated,
            command.error,
            (self._kalman.predict(belief, command.u), command.u, command.memory),
        )
