"""Tracking of a reference with linear feedback in local coordinates, with actuator limits and an
optional disturbance estimate.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control import lqr
from nh_control.control.damping import damping_or_idle
from nh_control.control.disturbance_gains import disturbance_gains, momenta
from nh_control.control.equilibrium import NoEquilibrium, equilibrium
from nh_control.control.feedback_law import FeedbackLaw, matrix_vector_product
from nh_control.control.reference_tracker import Command, ReferenceTracker
from nh_control.control.weights import StateWeight, is_local, weight_matrix, weight_names
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DisturbanceEstimate:
    """The memory of a tracker between steps: the estimated disturbance (nrho), which is a change
    of the momenta per step, and the predicted next state.
    """

    disturbance: np.ndarray
    predicted: np.ndarray | None = None


class LqrTracker(ReferenceTracker):
    """LQR tracker of a reference, `u = clip(u_d - K local(x_d, x), limits)`.

    With `hold`, the reference must end at rest. The terminal cost is then that of the stationary
    LQR problem at the end of the reference, without the coordinates named in `excluded` (see
    `lqr.infinite_horizon`). After the end, the last gain holds the last state. If the last inputs
    do not keep the last state at rest but other inputs do, as in results of `collocate`, a step at
    rest is appended. Without `hold`, the motion is damped after the end of the reference
    (`damping_input`), and `steps` rejects longer runs unless the reference ends at rest. If a
    system has no inputs, its commands are empty. With `stance`, the gains act only in the
    directions that loaded contacts leave free (see `stance.Stance`), so the feet of a robot remain
    in place.

    With a `disturbance_gain` in (0, 1], the tracker estimates a constant disturbance d of the
    momenta, `x1 = retract(f(x, u), (0, d))`, from the innovation,
    `d += gain local(predicted, x)_rho`. The gains solve the LQR problem with d as a known
    constant, `u = u_d - K local(x_d, x) - K_d d`. This integral action removes the effect of a
    wrong mass or a steady wind.
    """

    def __init__(
        self,
        dsys: DiscreteSystem,
        reference: Trajectory,
        Q: StateWeight,
        R: ArrayLike,
        Qf: StateWeight | None = None,
        limits: ArrayLike | None = None,
        disturbance_gain: float = 0.0,
        hold: bool = False,
        excluded: Sequence[str] = (),
        stance: bool = False,
    ):
        if not 0 <= disturbance_gain <= 1:
            raise ValueError(f"disturbance_gain must lie in [0, 1], got {disturbance_gain}")
        if hold and Qf is not None:
            raise ValueError("hold determines the terminal cost; omit Qf")
        if stance and disturbance_gain:
            raise ValueError(
                "a stance cannot be combined with a disturbance estimate; set disturbance_gain=0"
            )
        if disturbance_gain and not dsys.nu:
            raise ValueError(f"{dsys}: a system without inputs cannot compensate a disturbance")
        stabilized = lqr.stabilized_coordinates(dsys, excluded)
        if hold:
            reference = _with_rest(dsys, reference, stabilized)
        super().__init__(dsys, reference, limits, hold)
        self.disturbance_gain = disturbance_gain
        self._weights, self._excluded, self._stance = (Q, R, Qf), tuple(excluded), stance
        end = (
            lqr.infinite_horizon(
                dsys,
                reference.states[-1],
                reference.inputs[-1],
                Q,
                R,
                drift=lqr.FEASIBLE,
                excluded=excluded,
                stance=stance,
            )
            if hold and dsys.nu
            else None
        )
        self._custom_gain: np.ndarray | None = None
        self._disturbance_gains: np.ndarray | None = None
        if not dsys.nu:  # the gains have no rows
            steps, n = len(reference), dsys.ndx
            self.gains = lqr.Gains(np.zeros((steps, 0, n)), np.zeros((steps + 1, n, n)))
        elif disturbance_gain == 0:
            # with hold, the terminal cost is that of the stationary problem
            terminal = Qf if end is None else end.P
            self.gains = lqr.finite_horizon(dsys, reference, Q, R, terminal, stance=stance)
        else:
            self.gains, self._disturbance_gains = disturbance_gains(
                dsys, reference, Q, R, Qf, stabilized if hold else None
            )

    @cached_property
    def law(self) -> FeedbackLaw:
        """The feedback law as arrays, for native loops."""
        return FeedbackLaw(
            self.reference.states,
            self.reference.inputs,
            self.gains.K,
            self._disturbance_gains,
            None if self._impulses is None else np.array(self._impulses),
            self.limits,
            self.hold,
            self.disturbance_gain,
        )

    def with_gains(self, K: ArrayLike) -> LqrTracker:
        """The same tracker with a gain K (nu, ndx) from a different design method, for example
        from `control.dlqr` applied to the result of `to_control`, or with gains (N, nu, ndx), one
        for each step: `u = u_d - K local(x_d, x)`.

        Raises ValueError for a wrong shape, and for a tracker with a disturbance estimate, because
        all gains of such a tracker are designed together.
        """
        if self.disturbance_gain:
            raise ValueError("gains from another design need a tracker without disturbance_gain")
        steps, shape = len(self.reference), (self.dsys.nu, self.dsys.ndx)
        gain = np.array(K, dtype=float)
        if gain.shape not in (shape, (steps, *shape)) or not np.isfinite(gain).all():
            raise ValueError(
                f"{self.dsys}: gains must be finite and have shape {shape} or {(steps, *shape)}, "
                f"got {gain.shape}"
            )
        tracker = copy.copy(self)
        # the cached law contains the old gains
        tracker.__dict__.pop("law", None)
        tracker._custom_gain = gain
        each = np.ascontiguousarray(np.broadcast_to(gain, (steps, *shape)))
        tracker.gains = replace(self.gains, K=each)
        return tracker

    def with_reference(self, reference: Trajectory) -> LqrTracker:
        """The same tracker with a different reference. A single gain that was set by `with_gains`
        remains. Raises ValueError if `with_gains` set one gain per step.
        """
        Q, R, Qf = self._weights
        tracker = self._on(reference, Q, R, Qf)
        return tracker if self._custom_gain is None else tracker.with_gains(self._custom_gain)

    def _on(
        self, reference: Trajectory, Q: StateWeight, R: ArrayLike, Qf: StateWeight | None
    ) -> LqrTracker:
        """A tracker with the options of this tracker."""
        return LqrTracker(
            self.dsys,
            reference,
            Q,
            R,
            Qf,
            limits=self.limits,
            disturbance_gain=self.disturbance_gain,
            hold=self.hold,
            excluded=self._excluded,
            stance=self._stance,
        )

    def with_weights(self, state: Mapping[int, float], inputs: Mapping[int, float]) -> LqrTracker:
        """The same tracker with different diagonal weights for `weighted` coordinates (`state`)
        and inputs, by index. The rows and columns of Q, R and Qf are scaled by `sqrt(new / old)`.
        """
        Q, R, Qf = self._weights
        Q = weight_matrix(self.dsys, "Q", Q)
        Qf = None if Qf is None else _scaled(weight_matrix(self.dsys, "Qf", Qf), Q, state)
        return self._on(self.reference, _scaled(Q, Q, state), _scaled(R, R, inputs), Qf)

    @property
    def weights(self) -> tuple[StateWeight, ArrayLike, StateWeight | None]:
        """The weights (Q, R, Qf)."""
        return self._weights

    @property
    def weighted(self) -> tuple[str, ...]:
        """The names of the coordinates of Q, which are local coordinates, or changes of the
        configuration and the velocity.
        """
        local = is_local(self.dsys, self._weights[0])
        return self.dsys.state_space.tangent_names if local else weight_names(self.dsys)

    @property
    def diagonal_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """The diagonal weights of the `weighted` coordinates and of the inputs (nu)."""
        Q, R, _ = self._weights
        return np.diag(weight_matrix(self.dsys, "Q", Q)).copy(), np.diag(R).copy()

    def command(self, k: int, x: ArrayLike, memory: DisturbanceEstimate | None = None) -> Command:
        """The command for step k at state x (nx). Pass the `memory` of the previous command to
        continue the disturbance estimate. If it is None, the estimate starts at zero.
        """
        # tracking error dx = local(x_d, x)
        error = self.dsys.local(self.target(k), x := self.comparable(k, x))
        if not self.is_following(k):
            u, memory = damping_or_idle(self.dsys, x), None
        else:
            k = min(k, len(self.reference) - 1)
            # feedforward and feedback, u = u_d - K dx - K_d d
            u = self.reference.inputs[k] - matrix_vector_product(self.gains.K[k], error)
            if self._disturbance_gains is not None:
                memory = self.estimate(k, x, memory)
                u = u - matrix_vector_product(self._disturbance_gains[k], memory.disturbance)
        lower, upper = self._bounds
        clipped = u.clip(lower, upper)
        if memory is not None:
            memory = self.predict(x, clipped, memory)
        return Command(clipped, clipped != u, error, memory)

    def estimate(
        self, k: int, x: np.ndarray, memory: DisturbanceEstimate | None
    ) -> DisturbanceEstimate:
        """The disturbance estimate updated with the state x (nx),
        `d += gain local(predicted, x)_rho`.
        """
        if memory is None:
            return DisturbanceEstimate(np.zeros(self.dsys.system.nrho))
        if memory.predicted is None:
            return memory
        # d += gain local(predicted, x)_rho
        innovation = self.dsys.local(self.comparable(k, memory.predicted), x)[momenta(self.dsys)]
        return DisturbanceEstimate(memory.disturbance + self.disturbance_gain * innovation)

    def predict(
        self, x: np.ndarray, u: np.ndarray, memory: DisturbanceEstimate
    ) -> DisturbanceEstimate:
        """The memory with the predicted next state, `retract(f(x, u), (0, d))`."""
        try:
            # retract(f(x, u), (0, d))
            expected = self.dsys.step(x, u)
        except StepFailed:
            return DisturbanceEstimate(memory.disturbance)
        d = np.zeros(self.dsys.ndx)
        d[momenta(self.dsys)] = memory.disturbance
        return DisturbanceEstimate(memory.disturbance, self.dsys.retract(expected, d))


def _with_rest(dsys: DiscreteSystem, reference: Trajectory, stabilized: list[int]) -> Trajectory:
    """The reference. A step at rest is appended if the last inputs do not keep the last state at
    rest but other inputs do. Only the `stabilized` coordinates must be at rest.
    """
    x, u = reference.states[-1], reference.inputs[-1]
    if np.abs(dsys.local(x, dsys.step(x, u))[stabilized]).max() <= lqr.FEASIBLE:
        return reference
    try:
        u = equilibrium(dsys, x, u, fixed=dsys.state_space.tangent_names)[1]
    except NoEquilibrium as nearest:
        u = nearest.u
        if np.abs(nearest.motion).max() > lqr.FEASIBLE:
            return reference
    log.warning(
        "%s: the last inputs of the reference %r do not keep its last state at rest; appended a "
        "step at rest with the inputs %s",
        dsys,
        reference.name,
        np.round(u, 6).tolist(),
    )
    # repeat the last state under the inputs that keep it at rest
    states, inputs = np.vstack([reference.states, x]), np.vstack([reference.inputs, u])
    return replace(reference, states=states, inputs=inputs)


def _scaled(weight: ArrayLike, nominal: ArrayLike, new: Mapping[int, float]) -> np.ndarray:
    """`weight` with rows and columns scaled by the factors that change the diagonal of `nominal`
    to the new values. If a diagonal entry is 0, its new value is added instead.
    """
    out, old = np.array(weight, dtype=float), np.diag(nominal)
    for i, value in new.items():
        # W <- D W D with D_ii = sqrt(new / old)
        if old[i] > 0:
            out[i] *= np.sqrt(value / old[i])
            out[:, i] *= np.sqrt(value / old[i])
        else:
            out[i, i] += value
    return out
