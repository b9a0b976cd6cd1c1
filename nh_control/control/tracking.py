"""Tracking of a reference by linear feedback in local coordinates, with actuator limits and an
optional disturbance estimate.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control import lqr
from nh_control.control.damping import damping_or_idle
from nh_control.control.disturbance_gains import disturbance_gains, momenta
from nh_control.control.equilibrium import NoEquilibrium, equilibrium
from nh_control.control.feedback_law import FeedbackLaw, matrix_vector_product
from nh_control.control.run_length import rests_at_end as rests_at_end
from nh_control.control.run_length import run_steps as run_steps
from nh_control.control.weights import StateWeight, is_local, weight_matrix, weight_names
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DisturbanceEstimate:
    """The memory of a tracker between steps: the estimated disturbance (nrho), a change of the
    momenta per step, and the state predicted for the next step.
    """

    disturbance: np.ndarray
    predicted: np.ndarray | None = None


@dataclass(frozen=True)
class Command:
    """Input u (nu) within the limits, which inputs are saturated (nu), the tracking error dx
    (ndx), and the memory to pass to the next call.
    """

    u: np.ndarray
    saturated: np.ndarray
    error: np.ndarray
    memory: Any = None


@runtime_checkable
class Controller(Protocol):
    """A controller for closed loops and nodes: commands at the steps of a model `dsys` along a
    `reference`.
    """

    dsys: DiscreteSystem
    reference: Trajectory

    def target(self, k: int) -> np.ndarray:
        """Reference state at step k."""

    def command(self, k: int, x: ArrayLike, memory: Any = None) -> Command:
        """Command for step k at state x (nx); `memory` comes from the last command, None at the
        start.
        """


def input_limits(dsys: DiscreteSystem, limits: ArrayLike | None = None) -> np.ndarray:
    """Lower and upper limits (nu, 2) of the inputs, by default the system's; raises ValueError for
    another shape, and for a lower limit that is NaN or above the upper one.
    """
    limits = np.asarray(dsys.system.input_bounds if limits is None else limits, dtype=float)
    if limits.shape != (dsys.nu, 2):
        raise ValueError(f"limits must have shape ({dsys.nu}, 2), got {limits.shape}")
    if not (limits[:, 0] <= limits[:, 1]).all():
        raise ValueError(f"limits must be rows (lower, upper), lower <= upper, got {limits}")
    return limits


class LqrTracker:
    """LQR tracker of a reference, `u = clip(u_d - K local(x_d, x), limits)`.

    With `hold` the reference must end at rest. The terminal cost is then the cost of the
    stationary LQR problem there, without the coordinates named in `excluded` (see
    `lqr.infinite_horizon`), and past the end the last gain holds the last state. If the last state
    is at rest only under other inputs than the last ones, as in results of `collocate`, a step at
    rest is appended. Without `hold`, motion is damped past the end (`damping_input`), and `steps`
    refuses longer runs unless the reference ends at rest. Commands of a system without inputs are
    empty. With `stance` the gains act only in the
    directions that contacts with a load leave free, see `stance.Stance`: a robot's feet stay.

    With `disturbance_gain` in (0, 1] the tracker estimates a constant disturbance d of the
    momenta, `x1 = retract(f(x, u), (0, d))`, from the innovation,
    `d += gain local(predicted, x)_rho`. Its gains solve the LQR problem with d as a known
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
            raise ValueError("with hold the terminal cost is determined; give no Qf")
        if stance and disturbance_gain:
            raise ValueError("gains of a stance have no disturbance estimate: disturbance_gain=0")
        if disturbance_gain and not dsys.nu:
            raise ValueError(f"{dsys}: nothing can compensate a disturbance: it has no inputs")
        kept = lqr.kept_coordinates(dsys, excluded)
        if hold:
            reference = _with_rest(dsys, reference, kept)
        self.dsys, self.reference, self.hold = dsys, reference, hold
        self.disturbance_gain = disturbance_gain
        self.limits = input_limits(dsys, limits)
        self._bounds = tuple(self.limits.T)
        self._weights, self._excluded, self._stance = (Q, R, Qf), tuple(excluded), stance
        constrained = dsys.system.n_holonomic_constraints > 0
        self._impulses = (
            [dsys.constraint_impulses(x) for x in reference.states] if constrained else None
        )
        end = (
            lqr.infinite_horizon(
                *(dsys, reference.states[-1], reference.inputs[-1], Q, R, lqr.FEASIBLE),
                *(excluded, stance),
            )
            if hold and dsys.nu
            else None
        )
        self._given_gain: np.ndarray | None = None
        self._disturbance_gains: np.ndarray | None = None
        if not dsys.nu:  # nothing to command
            steps, n = len(reference), dsys.ndx
            self.gains = lqr.Gains(np.zeros((steps, 0, n)), np.zeros((steps + 1, n, n)))
        elif disturbance_gain == 0:
            terminal = Qf if end is None else end.P
            self.gains = lqr.finite_horizon(dsys, reference, Q, R, terminal, stance=stance)
        else:
            self.gains, self._disturbance_gains = disturbance_gains(
                dsys, reference, Q, R, Qf, kept if hold else None
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dsys}, {self.reference})"

    @cached_property
    def law(self) -> FeedbackLaw:
        """The feedback as arrays, for native loops."""
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
        """The same tracker with a gain K (nu, ndx) of another design, or (N, nu, ndx) with one for
        every step, `u = u_d - K local(x_d, x)`, such as `control.dlqr` of `to_control` gives.

        Raises ValueError for another shape, and for a tracker with a disturbance estimate, because
        its gains belong together.
        """
        if self.disturbance_gain:
            raise ValueError("gains of another design need a tracker without disturbance_gain")
        steps, shape = len(self.reference), (self.dsys.nu, self.dsys.ndx)
        given = np.array(K, dtype=float)
        if given.shape not in (shape, (steps, *shape)) or not np.isfinite(given).all():
            raise ValueError(
                f"{self.dsys}: gains must be finite and have shape {shape} or {(steps, *shape)}, "
                f"got {given.shape}"
            )
        tracker = copy.copy(self)
        tracker.__dict__.pop("law", None)
        tracker._given_gain = given
        each = np.ascontiguousarray(np.broadcast_to(given, (steps, *shape)))
        tracker.gains = replace(self.gains, K=each)
        return tracker

    def with_reference(self, reference: Trajectory) -> LqrTracker:
        """The same tracker on another reference, with the given gain if there is one for all
        steps; raises ValueError for a tracker with given gains of every step.
        """
        tracker = self._on(reference, *self._weights)
        return tracker if self._given_gain is None else tracker.with_gains(self._given_gain)

    def _on(
        self, reference: Trajectory, Q: StateWeight, R: ArrayLike, Qf: StateWeight | None
    ) -> LqrTracker:
        """A tracker with the options of this one."""
        return LqrTracker(
            self.dsys,
            reference,
            *(Q, R, Qf),
            self.limits,
            self.disturbance_gain,
            self.hold,
            self._excluded,
            self._stance,
        )

    def with_weights(self, state: Mapping[int, float], inputs: Mapping[int, float]) -> LqrTracker:
        """The same tracker with other diagonal weights for `weighted` coordinates (`state`) and
        inputs, by their indices. Rows and columns of Q, R and Qf are scaled by `sqrt(new / old)`.
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
        """Names of what Q weights: local coordinates, or changes of configuration and velocity."""
        local = is_local(self.dsys, self._weights[0])
        return self.dsys.state_space.tangent_names if local else weight_names(self.dsys)

    @property
    def diagonal_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Diagonal weights of the `weighted` coordinates and the inputs (nu)."""
        Q, R, _ = self._weights
        return np.diag(weight_matrix(self.dsys, "Q", Q)).copy(), np.diag(R).copy()

    def steps(self, duration_s: float = 0.0) -> int:
        """Number of steps of a run, see `run_steps`."""
        return run_steps(self.dsys, self.reference, duration_s, self.hold)

    def target(self, k: int) -> np.ndarray:
        """Reference state at step k (the last one past the end)."""
        return self.reference.states[min(k, len(self.reference))]

    def is_following(self, k: int) -> bool:
        """Whether step k is on the reference, or past an end that the tracker holds."""
        return self.hold or k < len(self.reference)

    def error(self, k: int, x: ArrayLike) -> np.ndarray:
        """Tracking error `local(x_d, x)` (ndx) of state x (nx) at step k."""
        return self.dsys.local(self.target(k), self.comparable(k, x))

    def command(self, k: int, x: ArrayLike, memory: DisturbanceEstimate | None = None) -> Command:
        """Command for step k at state x (nx); pass the last command's `memory` to keep the
        disturbance estimate (None starts it at zero).
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
        clipped = u.clip(*self._bounds)
        if memory is not None:
            memory = self.predict(x, clipped, memory)
        return Command(clipped, clipped != u, error, memory)

    def comparable(self, k: int, x: ArrayLike) -> np.ndarray:
        """The state with the constraint impulses of the target in its momentum. A measured
        velocity does not determine them, and no step depends on them.
        """
        if self._impulses is None:
            return np.asarray(x, dtype=float)
        return self.dsys.with_constraint_impulses(x, self._impulses[min(k, len(self.reference))])

    def estimate(
        self, k: int, x: np.ndarray, memory: DisturbanceEstimate | None
    ) -> DisturbanceEstimate:
        """The disturbance estimate after the state x (nx), `d += gain local(predicted, x)_rho`."""
        if memory is None:
            return DisturbanceEstimate(np.zeros(self.dsys.system.nrho))
        if memory.predicted is None:
            return memory
        innovation = self.dsys.local(self.comparable(k, memory.predicted), x)[momenta(self.dsys)]
        return DisturbanceEstimate(memory.disturbance + self.disturbance_gain * innovation)

    def predict(
        self, x: np.ndarray, u: np.ndarray, memory: DisturbanceEstimate
    ) -> DisturbanceEstimate:
        """The memory with the next state predicted, `retract(f(x, u), (0, d))`."""
        try:
            expected = self.dsys.step(x, u)
        except StepFailed:
            return DisturbanceEstimate(memory.disturbance)
        d = np.zeros(self.dsys.ndx)
        d[momenta(self.dsys)] = memory.disturbance
        return DisturbanceEstimate(memory.disturbance, self.dsys.retract(expected, d))


def _with_rest(dsys: DiscreteSystem, reference: Trajectory, kept: list[int]) -> Trajectory:
    """The reference, with a step at rest appended if its last state is at rest only under other
    inputs than the last ones. Motion of coordinates that are not `kept` does not count.
    """
    x, u = reference.states[-1], reference.inputs[-1]
    if np.abs(dsys.local(x, dsys.step(x, u))[kept]).max() <= lqr.FEASIBLE:
        return reference
    try:
        u = equilibrium(dsys, x, u, fixed=dsys.state_space.tangent_names)[1]
    except NoEquilibrium as nearest:
        u = nearest.u
        if np.abs(nearest.motion).max() > lqr.FEASIBLE:
            return reference
    log.warning(
        "%s: under the last inputs of the reference %r its last state is not at rest; a step at "
        "rest under the inputs %s is appended",
        dsys,
        reference.name,
        np.round(u, 6).tolist(),
    )
    states, inputs = np.vstack([reference.states, x]), np.vstack([reference.inputs, u])
    return replace(reference, states=states, inputs=inputs)


def _scaled(weight: ArrayLike, nominal: ArrayLike, new: Mapping[int, float]) -> np.ndarray:
    """`weight` with its rows and columns scaled by the factors that give the diagonal of `nominal`
    the new values. Where that diagonal is 0, the new value is added.
    """
    out, old = np.array(weight, dtype=float), np.diag(nominal)
    for i, value in new.items():
        if old[i] > 0:
            out[i] *= np.sqrt(value / old[i])
            out[:, i] *= np.sqrt(value / old[i])
        else:
            out[i, i] += value
    return out
