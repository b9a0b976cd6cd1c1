"""External wrenches that other nodes apply to a simulated plant. They are checked, bounded and
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
"""Simulated time (s) for which a wrench acts, unless another one replaces it."""
PROBE, LEAST = 1e-2, 1e-4
"""Force (N) or torque (N m) of the test pushes in `bounds`, and a fraction of a target's largest
response. Smaller responses count as zero.
"""


def none_yet(targets: Sequence[ForceTarget]) -> tuple[Disturbance, ...]:
    """Return disturbances without force, which give a plant inputs for wrenches."""
    return tuple(Disturbance(target.name, Constant((0.0,) * target.n)) for target in targets)


class Wrenches:
    """Forces (N) and torques (N m) on `targets`. Each one acts for DURATION_S of simulated time,
    in steps of h s. `bounds` contains two numbers for each target: the largest component of a
    force and the largest component of a torque.
    """

    def __init__(self, targets: Sequence[ForceTarget], bounds: Mapping[str, np.ndarray], h: float):
        self._targets = {target.name: target for target in targets}
        self.bounds, self._steps = dict(bounds), max(1, round(DURATION_S / h))
        self._acting: dict[str, tuple[int, np.ndarray]] = {}
        self.accepted, self.refused, self._reason = 0, 0, ""

    def offer(self, name: str, values: Sequence[float], step: int) -> None:
        """Apply the values (6) to a target, beginning at a step, in place of its last wrench.
        Raises Unusable with the reason if they are refused.
        """
        try:
            self._acting[name] = step, self._checked(name, np.array(values, dtype=float))
        except Unusable as error:
            self.refused, self._reason = self.refused + 1, f"wrench refused: {error}"
            raise
        self.accepted += 1

    def add(self, step: int, forces: Mapping[str, np.ndarray]) -> None:
        """Add a step's wrenches to the external forces, which are given by target name."""
        for name, (start, values) in list(self._acting.items()):
            if start <= step < start + self._steps:
                forces[name][:] += values
            else:  # it has ended, or a reset has set the time back
                del self._acting[name]

    def report(self) -> tuple[dict[str, object], str]:
        """Return counts and bounds, and the last refusal since the last report, or "" without a
        refusal.
        """
        reason, self._reason = self._reason, ""
        counts = {"wrenches_accepted": self.accepted, "wrenches_refused": self.refused}
        forces = {f"wrench bound {n} (N)": float(both[0]) for n, both in self.bounds.items()}
        torques = {f"wrench bound {n} (N m)": float(both[1]) for n, both in self.bounds.items()}
        return {**counts, **forces, **torques}, reason

    def _checked(self, name: str, values: np.ndarray) -> np.ndarray:
        """Return the values of the target's components. Raises Unusable."""
        target = self._targets.get(name)
        if target is None:
            known = ", ".join(self._targets)
            raise Unusable(Refusal.FRAME, f"on {name[:60]!r}; expected one of {known}")
        if not np.isfinite(values).all():
            raise Unusable(Refusal.NOT_FINITE, f"{values.tolist()} on {name} is not finite")
        components = dict(zip(COMPONENTS, values.tolist()))
        for component, value in components.items():
            if value and component not in target.components:
                has = ", ".join(target.components)
                raise Unusable(Refusal.NAMES, f"{component} on {name}, which has {has}")
            # the first three components are forces, and the others are torques
            bound = self.bounds[name][COMPONENTS.index(component) // 3]
            if abs(value) > bound:
                text = f"{component} of {value:.3g} on {name} is beyond its bound of {bound:.3g}"
                raise Unusable(Refusal.IMPLAUSIBLE, text)
        return np.array([components[component] for component in target.components])


def bounds(
    plant: DiscreteSystem,
    x: np.ndarray,
    targets: Sequence[ForceTarget],
    first: int,
    acceleration: float,
) -> dict[str, np.ndarray]:
    """Return bounds (2) on the forces and the torques at the targets. Their components are the
    plant's inputs, beginning with index `first`. A bound is the smallest force or torque that
    accelerates a target at rest in state x (nx) by `acceleration` (m/s^2 and rad/s^2) along one
    axis in the first step.

    `bound = acceleration / max_i (J dv_i / (h w))_i`, where `J^T w_i` is the generalized force of
    component i, and dv_i is the change in velocity that this force causes in the step. Raises
    StepFailed.
    """
    u = plant.idle(x)
    plain, q = plant.velocity(plant.step(x, u)), plant.configuration(x)
    bounds_by_target: dict[str, np.ndarray] = {}
    for target in targets:
        jacobian, responses = _jacobian(plant, target, q), list[float]()
        for i in range(target.n):
            # (J dv_i / (h w))_i for a push w along component i
            pushed = u.copy()
            pushed[first + i] += PROBE
            gained = plant.velocity(plant.step(x, pushed)) - plain
            responses.append(abs(float(jacobian[i] @ gained)) / (plant.h * PROBE))
        first += target.n
        torques = np.array([component in TORQUE for component in target.components])
        largest = [np.max(np.array(responses)[torques == kind], initial=0) for kind in (0, 1)]
        least = LEAST * max(largest)
        # an almost zero response (a constrained direction) has no useful bound, so the bound is 0
        bounds_by_target[target.name] = np.array(
            [acceleration / r if r > least else 0.0 for r in largest]
        )
    return bounds_by_target


def _jacobian(plant: DiscreteSystem, target: ForceTarget, q: np.ndarray) -> np.ndarray:
    """Return J (n, nw), which maps the system's velocities to those of the target along its
    components.
    """
    space, parameters = plant.system.space, plant.system.numeric.parameters
    # the generalized force is J^T w, so its derivative with respect to w is J^T
    w = ca.SX.sym("w", target.n)
    force = target.force(ca.SX(q), ca.SX.zeros(space.nw), w, parameters)
    evaluated = ca.Function("jacobian", [], [ca.jacobian(force, w)])()
    return np.array(next(iter(evaluated.values()))).T
