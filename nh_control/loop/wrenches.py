"""External wrenches on a simulated plant, from other nodes: checked, bounded, and
limited in time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import casadi as ca
import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.reports import Refusal, Unusable
from nh_control.mechanics.external_forces import FORCE, TORQUE, ForceTarget
from nh_control.scenarios import Constant, Disturbance

COMPONENTS = (*FORCE, *TORQUE)
DURATION_S = 0.25
"""Simulated time for which a wrench acts, unless another one replaces it."""
PROBE, LEAST = 1e-2, 1e-4
"""Force (N) or torque (N m) of the test pushes of `bounds`; and the share of a target's largest
response below which a response counts as zero.
"""


def none_yet(targets: Sequence[ForceTarget]) -> tuple[Disturbance, ...]:
    """Disturbances without force: they give a plant the inputs for wrenches."""
    return tuple(Disturbance(one.name, Constant((0.0,) * one.n)) for one in targets)


class Wrenches:
    """Forces (N) and torques (N m) on `targets`. Each acts for DURATION_S of simulated time, in
    steps of h s. `bounds` has two numbers for each target: the largest component of a force, and
    the largest component of a torque.
    """

    def __init__(self, targets: Sequence[ForceTarget], bounds: Mapping[str, np.ndarray], h: float):
        self._targets = {target.name: target for target in targets}
        self.bounds, self._steps = dict(bounds), max(1, round(DURATION_S / h))
        self._acting: dict[str, tuple[int, np.ndarray]] = {}
        self.accepted, self.refused, self._reason = 0, 0, ""

    def offer(self, name: str, values: Sequence[float], step: int) -> None:
        """Apply the values (6) to a target from a step on, instead of its last wrench; raises
        Unusable with the reason of a refusal.
        """
        try:
            self._acting[name] = step, self._checked(name, np.array(values, dtype=float))
        except Unusable as error:
            self.refused, self._reason = self.refused + 1, f"wrench refused: {error}"
            raise
        self.accepted += 1

    def add(self, step: int, forces: Mapping[str, np.ndarray]) -> None:
        """Add the wrenches of a step to the external forces, by the names of their targets."""
        for name, (start, values) in list(self._acting.items()):
            if start <= step < start + self._steps:
                forces[name][:] += values
            else:  # over, or of a time before a reset
                del self._acting[name]

    def report(self) -> tuple[dict[str, object], str]:
        """Counts and bounds, and the last refusal since the last report, "" without one."""
        reason, self._reason = self._reason, ""
        counts = {"wrenches_accepted": self.accepted, "wrenches_refused": self.refused}
        forces = {f"wrench bound {n} (N)": float(both[0]) for n, both in self.bounds.items()}
        torques = {f"wrench bound {n} (N m)": float(both[1]) for n, both in self.bounds.items()}
        return {**counts, **forces, **torques}, reason

    def _checked(self, name: str, values: np.ndarray) -> np.ndarray:
        """The values of the target's components."""
        target = self._targets.get(name)
        if target is None:
            known = ", ".join(self._targets)
            raise Unusable(Refusal.FRAME, f"on {name[:60]!r}; expected one of {known}")
        if not np.isfinite(values).all():
            raise Unusable(Refusal.NOT_FINITE, f"{values.tolist()} on {name} is not finite")
        given = dict(zip(COMPONENTS, values.tolist()))
        for component, value in given.items():
            if value and component not in target.components:
                has = ", ".join(target.components)
                raise Unusable(Refusal.NAMES, f"{component} on {name}, which has {has}")
            bound = self.bounds[name][COMPONENTS.index(component) // 3]
            if abs(value) > bound:
                text = f"{component} of {value:.3g} on {name} is beyond its bound of {bound:.3g}"
                raise Unusable(Refusal.IMPLAUSIBLE, text)
        return np.array([given[component] for component in target.components])


def bounds(
    plant: DiscreteSystem,
    x: np.ndarray,
    targets: Sequence[ForceTarget],
    first: int,
    acceleration: float,
) -> dict[str, np.ndarray]:
    """Bounds (2) of forces and of torques on the targets, whose components are the plant's inputs
    from index `first` on. A bound is the smallest one that accelerates a target at rest in state x
    (nx) by `acceleration` (m/s^2 and rad/s^2) along one axis in the first step.

    `bound = acceleration / max_i (J dv_i / (h w))_i`, with `J^T w_i` the generalized force of the
    component i, and dv_i the velocity that the step gains by it. Raises StepFailed.
    """
    u = plant.idle(x)
    plain, q = plant.velocity(plant.step(x, u)), plant.configuration(x)
    bounds_by_target: dict[str, np.ndarray] = {}
    for target in targets:
        jacobian, responses = _jacobian(plant, target, q), list[float]()
        for i in range(target.n):
            pushed = u.copy()
            pushed[first + i] += PROBE
            gained = plant.velocity(plant.step(x, pushed)) - plain
            responses.append(abs(float(jacobian[i] @ gained)) / (plant.h * PROBE))
        first += target.n
        torques = np.array([component in TORQUE for component in target.components])
        largest = [np.max(np.array(responses)[torques == kind], initial=0) for kind in (0, 1)]
        least = LEAST * max(largest)
        bounds_by_target[target.name] = np.array(
            [acceleration / r if r > least else 0.0 for r in largest]
        )
    return bounds_by_target


def _jacobian(plant: DiscreteSystem, target: ForceTarget, q: np.ndarray) -> np.ndarray:
    """J (n, nw), which maps velocities of the system to the target's, along its components."""
    space, parameters = plant.system.space, plant.system.numeric.parameters
    w = ca.SX.sym("w", target.n)
    force = target.force(ca.SX(q), ca.SX.zeros(space.nw), w, parameters)
    evaluated = ca.Function("jacobian", [], [ca.jacobian(force, w)])()
    return np.array(next(iter(evaluated.values()))).T
