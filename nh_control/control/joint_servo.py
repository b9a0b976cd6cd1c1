"""Inner loop of actuated joints: positions or velocities as commands of a discrete system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nh_control.discrete.results import SolvedStep
from nh_control.discrete.system import DiscreteSystem

POSITION, VELOCITY = "position", "velocity"
CORRECTIONS = 2
"""Newton corrections of the inputs of a step; velocities are almost linear in them."""
PROBE = 1e-4
"""Size of the change of a state in the computation of an input's effect on velocities."""


class ServoStep(NamedTuple):
    """The state (nx) before the last of some steps, this step, and its inputs (nu)."""

    before: np.ndarray
    solved: SolvedStep
    inputs: np.ndarray

    @property
    def after(self) -> np.ndarray:
        """The state (nx) after it."""
        return self.solved.x1


@dataclass(frozen=True)
class JointServo:
    """A loop at every step of a plant in which each of the `coordinates` is moved by one input,
    numbered in `inputs`; `kind` is "position" or "velocity".

    Its joints are critically damped with the `bandwidth` w (rad/s): from the distance
    `e = c - target` and the rate v a step of h leads to the rate
    `v1 = (v - w (v + w e) h) exp(-w h)`, the solution of `e'' + 2 w e' + w^2 e = 0`, or for
    velocities to `v1 = target + (v - target) exp(-w h)`. The inputs that do so follow from the
    exact linearization of the step, so gains are those of the mass matrix, and weight and coupling
    are compensated. Where the limits of the inputs do not allow that, all joints change their
    rates by the same smaller part.
    """

    coordinates: tuple[str, ...]
    inputs: tuple[int, ...]
    kind: str = POSITION
    bandwidth: float = 10.0

    def __post_init__(self) -> None:
        if self.kind not in (POSITION, VELOCITY):
            raise ValueError(f"a servo's kind is {POSITION} or {VELOCITY}, got {self.kind!r}")
        if not 0 < self.bandwidth < np.inf:
            raise ValueError(f"a servo's bandwidth must be positive, got {self.bandwidth} rad/s")
        if not self.coordinates or len(self.coordinates) != len(self.inputs):
            raise ValueError(
                f"a servo needs one input for each of its joints, got {len(self.coordinates)} "
                f"joints and {len(self.inputs)} inputs"
            )

    def rest(self, dsys: DiscreteSystem, q: np.ndarray) -> np.ndarray:
        """The targets that keep the joints where they are at configuration q (nq)."""
        places, _ = self._columns(dsys)
        return np.array(q)[places] if self.kind == POSITION else np.zeros(len(places))

    def advance(
        self,
        dsys: DiscreteSystem,
        x: np.ndarray,
        targets: np.ndarray,
        inputs: np.ndarray,
        steps: int = 1,
    ) -> ServoStep:
        """Some steps of the plant from state x (nx) towards targets, under `inputs` (nu), in which
        the servo replaces the inputs of the joints. Raises StepFailed, and ValueError for no
        steps.
        """
        if steps < 1:
            raise ValueError(f"a servo makes at least one step, got steps = {steps}")
        u, before = np.array(inputs, dtype=float), x
        u[list(self.inputs)] = 0.0
        for _ in range(steps):
            before = x
            u = self._limited(
                dsys, x, self._leading(dsys, x, u, self._rate_after(dsys, x, targets))
            )
            solved = dsys.solve(x, u)
            x = solved.x1
        return ServoStep(before, solved, u)

    def _limited(self, dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Inputs (nu) within the limits. If u exceeds them, the result is the farthest point
        within them on the line to u from the inputs that keep the rates: all joints are then
        slower by the same factor.
        """
        lower, upper = (dsys.system.input_bounds[list(self.inputs), i] for i in range(2))
        own = u[list(self.inputs)]
        if (own >= lower).all() and (own <= upper).all():
            return u
        _, rates = self._columns(dsys)
        keeping = self._leading(dsys, x, u, dsys.velocity(x)[rates])[list(self.inputs)]
        keeping = np.clip(keeping, lower, upper)
        change = own - keeping
        room = np.where(change > 0, upper - keeping, keeping - lower)
        moving = np.abs(change) > 0
        part = min(1.0, (room[moving] / np.abs(change[moving])).min(initial=1.0))
        limited = u.copy()
        limited[list(self.inputs)] = np.clip(keeping + part * change, lower, upper)
        return limited

    def _rate_after(self, dsys: DiscreteSystem, x: np.ndarray, targets: np.ndarray) -> np.ndarray:
        places, rates = self._columns(dsys)
        v, w, h = dsys.velocity(x)[rates], self.bandwidth, dsys.h
        decay = np.exp(-w * h)
        if self.kind == VELOCITY:
            return targets + (v - targets) * decay
        e = dsys.configuration(x)[places] - targets
        return (v - w * (v + w * e) * h) * decay

    def _leading(
        self, dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, wanted: np.ndarray
    ) -> np.ndarray:
        """Inputs (nu) under which a step from state x (nx) leads to the wanted rates, by Newton's
        method from u (nu).
        """
        for _ in range(CORRECTIONS):
            u = u + self._correction(dsys, x, u, wanted)
        return u

    def _correction(
        self, dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray, wanted: np.ndarray
    ) -> np.ndarray:
        """Change of the inputs (nu) that leads to the wanted rates, `(dv1/du) du = v1* - v1`."""
        _, rates = self._columns(dsys)
        step, own = dsys.linearize(x, u), list(self.inputs)
        reached = dsys.velocity(step.x1)[rates]
        slope = np.empty((len(rates), len(own)))
        for i, column in enumerate(step.B[:, own].T):
            size = PROBE / np.abs(column).max()
            probed = dsys.velocity(dsys.retract(step.x1, size * column))[rates]
            slope[:, i] = (probed - reached) / size
        change = np.zeros(len(u))
        change[own] = np.linalg.solve(slope, wanted - reached)
        return change

    def _columns(self, dsys: DiscreteSystem) -> tuple[list[int], list[int]]:
        """Places of the joints in configurations and in velocities."""
        space = dsys.system.space
        places = [space.names.index(name) for name in self.coordinates]
        return places, [space.velocity_names.index(f"{name}_dot") for name in self.coordinates]


def joint_servo(
    dsys: DiscreteSystem, joints: Sequence[tuple[str, int]], kind: str, bandwidth: float, nu: int
) -> JointServo:
    """The servo of joints, each a coordinate and its input; their inputs must be all `nu` inputs
    of the commands. Raises ValueError.
    """
    if len(joints) != nu:
        raise ValueError(
            f"{kind} commands need a joint for every input that it alone drives; of the {nu} "
            f"inputs of {dsys} {len(joints)} have one: use effort"
        )
    ordered = sorted(joints, key=lambda one: one[1])
    return JointServo(
        tuple(name for name, _ in ordered), tuple(i for _, i in ordered), kind, bandwidth
    )
