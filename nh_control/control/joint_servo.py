"""The inner control loop of actuated joints, which are commanded by positions or velocities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nh_control.control.target_motion import Target
from nh_control.discrete.results import SolvedStep
from nh_control.discrete.system import DiscreteSystem

POSITION, VELOCITY = "position", "velocity"
CORRECTIONS = 2
"""Number of Newton corrections of the inputs per step. Velocities are almost linear in the inputs.
"""
PROBE = 1e-4
"""Change of the state in the finite differences of velocities with respect to inputs."""
DEPENDENT = 1e-8
"""Relative singular value below which joints cannot move independently."""


class ServoStep(NamedTuple):
    """The last of several steps: the state (nx) before it, its result, and its inputs (nu)."""

    before: np.ndarray
    solved: SolvedStep
    inputs: np.ndarray

    @property
    def after(self) -> np.ndarray:
        """The state (nx) after the step."""
        return self.solved.x1


@dataclass(frozen=True)
class JointServo:
    """A control loop that runs at every step of a plant. Each of the `coordinates` is driven by
    one input; `inputs` contains the indices of these inputs. The command of a joint is a target
    position or a target velocity (see `kinds`).

    The joints are critically damped with the `bandwidth` w (rad/s). For a joint at c with velocity
    v and a target position r, the error is `e = c - r` and its rate is `e' = v - r'`. A step of
    length h leads to the velocity `v1 = r' + r'' h + (e' - w (e' + w e) h) exp(-w h)`, which is
    the solution of `e'' + 2 w e' + w^2 e = 0` along the target. For a target velocity r, the step
    leads to `v1 = r + r' h + (v - r) exp(-w h)`. Therefore, the joints follow moving targets
    without lag.

    The inputs follow from the exact linearization of the step. The linearization contains the mass
    matrix, so the inputs compensate weight and coupling. If the inputs exceed their limits, the
    changes of all joint velocities are reduced by the same factor. Joints that cannot move
    independently, such as the wheels of an axle, get least-squares velocities and inputs of
    minimum norm.
    """

    coordinates: tuple[str, ...]
    inputs: tuple[int, ...]
    kinds: tuple[str, ...]
    bandwidth: float = 20.0

    def __post_init__(self) -> None:
        if others := sorted(set(self.kinds) - {POSITION, VELOCITY}):
            raise ValueError(
                f"the kind of a servo must be {POSITION} or {VELOCITY}, got {others[0]!r}"
            )
        if not 0 < self.bandwidth < np.inf:
            raise ValueError(
                f"the bandwidth of a servo must be positive, got {self.bandwidth} rad/s"
            )
        sizes = len(self.inputs), len(self.kinds)
        if not self.coordinates or set(sizes) != {len(self.coordinates)}:
            raise ValueError(
                f"a servo needs one input and kind for each of its joints, got "
                f"{len(self.coordinates)} joints, {sizes[0]} inputs and {sizes[1]} kinds"
            )

    @property
    def places(self) -> np.ndarray:
        """The mask (n) of joints that are commanded by positions."""
        return np.array([kind == POSITION for kind in self.kinds])

    def rest(self, dsys: DiscreteSystem, q: np.ndarray) -> np.ndarray:
        """The targets (n) that keep the joints at configuration q (nq)."""
        places, _ = self._columns(dsys)
        return np.where(self.places, np.array(q)[places], 0.0)

    def advance(
        self,
        dsys: DiscreteSystem,
        x: np.ndarray,
        target: Callable[[float], Target],
        inputs: np.ndarray,
        steps: int = 1,
    ) -> ServoStep:
        """Take `steps` steps of the plant from state x (nx) along the targets `target(t)`, with t
        = 0 at x. In `inputs` (nu), the servo replaces the inputs of its joints. Raises StepFailed,
        and ValueError unless steps >= 1.
        """
        if steps < 1:
            raise ValueError(f"a servo must take at least one step, got steps = {steps}")
        u, before = np.array(inputs, dtype=float), x
        # Newton's method starts with zero servo forces
        u[list(self.inputs)] = 0.0
        for k in range(steps):
            before, target_rates = x, self._rate_after(dsys, x, target(k * dsys.h))
            u = self._limited(dsys, x, self._inputs_for(dsys, x, u, target_rates))
            solved = dsys.solve(x, u)
            x = solved.x1
        return ServoStep(before, solved, u)

    def _limited(self, dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Inputs (nu) within the limits. If u exceeds the limits, the result is on the line from
        the inputs that keep the velocities constant to u, as close to u as the limits permit. This
        reduces the changes of all velocities by the same factor.
        """
        lower, upper = (dsys.system.input_bounds[list(self.inputs), i] for i in range(2))
        of_joints = u[list(self.inputs)]
        if (of_joints >= lower).all() and (of_joints <= upper).all():
            return u
        _, rates = self._columns(dsys)
        steady = self._inputs_for(dsys, x, u, dsys.velocity(x)[rates])[list(self.inputs)]
        steady = np.clip(steady, lower, upper)
        change = of_joints - steady
        # largest fraction <= 1 with lower <= steady + fraction change <= upper
        margin = np.where(change > 0, upper - steady, steady - lower)
        moving = np.abs(change) > 0
        fraction = min(1.0, (margin[moving] / np.abs(change[moving])).min(initial=1.0))
        limited = u.copy()
        limited[list(self.inputs)] = np.clip(steady + fraction * change, lower, upper)
        return limited

    def _rate_after(self, dsys: DiscreteSystem, x: np.ndarray, target: Target) -> np.ndarray:
        """The target velocities v1 (n) after a step from state x (nx)."""
        columns, rates = self._columns(dsys)
        v, w, h = dsys.velocity(x)[rates], self.bandwidth, dsys.h
        e, change = dsys.configuration(x)[columns] - target.value, v - target.rate
        # exact solution of e'' + 2 w e' + w^2 e = 0 after h; for a velocity target, e' + w e = 0
        decay, ahead = np.exp(-w * h), target.rate + h * target.acceleration
        place = ahead + (change - w * (change + w * e) * h) * decay
        rate = target.value + h * target.rate + (v - target.value) * decay
        return np.where(self.places, place, rate)

    def _inputs_for(
        self, dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, target_rates: np.ndarray
    ) -> np.ndarray:
        """The inputs (nu) with which a step from state x (nx) leads to the target velocities.
        Newton's method starts from u (nu).
        """
        for _ in range(CORRECTIONS):
            u = u + self._correction(dsys, x, u, target_rates)
        return u

    def _correction(
        self, dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, target_rates: np.ndarray
    ) -> np.ndarray:
        """The Newton correction of the inputs (nu), `(dv1/du) du = v1* - v1`."""
        _, rates = self._columns(dsys)
        step, joints = dsys.linearize(x, u), list(self.inputs)
        reached = dsys.velocity(step.x1)[rates]
        slope = np.empty((len(rates), len(joints)))
        # dv1/du: finite difference of the velocity along each column of B
        for i, column in enumerate(step.B[:, joints].T):
            size = PROBE / np.abs(column).max()
            probed = dsys.velocity(dsys.retract(step.x1, size * column))[rates]
            slope[:, i] = (probed - reached) / size
        change = np.zeros(len(u))
        change[joints] = np.linalg.lstsq(slope, target_rates - reached, rcond=DEPENDENT)[0]
        return change

    def _columns(self, dsys: DiscreteSystem) -> tuple[list[int], list[int]]:
        """The indices of the joints in the configuration and in the velocity."""
        space = dsys.system.space
        places = [space.names.index(name) for name in self.coordinates]
        return places, [space.velocity_names.index(f"{name}_dot") for name in self.coordinates]


def joint_servo(
    dsys: DiscreteSystem,
    joints: Sequence[tuple[str, int]],
    kinds: Sequence[str],
    bandwidth: float,
    nu: int,
) -> JointServo:
    """The servo of `joints`, with the `kinds` of their commands. Each joint is a pair of a
    coordinate and its input, in the order of the inputs. Raises ValueError unless each of the `nu`
    inputs in a command drives a joint.
    """
    if len(joints) != nu:
        raise ValueError(
            f"position or velocity commands require that every input drives a separate joint, but "
            f"only {len(joints)} of the {nu} inputs of {dsys} do; use effort"
        )
    names, inputs = zip(*joints)
    return JointServo(names, inputs, tuple(kinds), bandwidth)
