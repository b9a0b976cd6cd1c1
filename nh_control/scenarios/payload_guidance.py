"""New goals and trajectories for quadrotors with a payload during flight. Each new path joins the
current path with six continuous derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control import paths
from nh_control.control.paths import Path
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.scenarios.payload_flatness import (
    InfeasiblePath,
    flat_motion,
    flat_reference,
    payload_parameters,
)
from nh_control.systems.quadrotor_payload import Formation

SHORTEST_S, LONGEST_S, GROWTH = 1.0, 300.0, 1.1
"""Shortest and longest duration (s) of a path to a goal, and ratio of successive durations in the
search.
"""

JOINED_M = 0.01
"""Maximum distance (m) between the current path and a trajectory's point at time 0."""

SAMPLES = 100
"""Number of points along a path at which the load is computed."""


@dataclass(frozen=True)
class PayloadGuidance:
    """A payload's reference and its path. Motions to new goals and new trajectories continue from
    them.

    Steps are counted from the beginning of the current reference. A new reference begins at step
    k, where it leaves the current one. Step k may be in the future, to allow time for planning.
    Motions to goals use at most `acceleration` (m/s^2) and at most the fraction `margin` of the
    input ranges. The rest is left for feedback.
    """

    dsys: DiscreteSystem
    reference: Trajectory
    path: Path
    formation: Formation = Formation()
    acceleration: float = 4.0
    margin: float = 0.8

    def to_goal(self, k: int, position: ArrayLike) -> PayloadGuidance:
        """Return the guidance along a reference that leaves the current one at step k and brings
        the payload to rest at `position` (3) in m, as fast as acceleration and margin allow.

        The path is the sum of a path that comes to rest and a path from rest to rest, so it
        remains smooth over any distance. Raises InfeasiblePath, which contains the reason, and
        ValueError for a negative step.
        """
        goal = np.asarray(position, dtype=float)
        if goal.shape != (3,) or not np.isfinite(goal).all():
            raise InfeasiblePath(f"a goal is a finite position (3) in m, got {goal.tolist()}")
        jet = self._jet(k)
        # x(t) = stop(t) + r(t), where stop comes to rest, and r covers the distance from rest to
        # rest.
        stop = self._gentle(partial(paths.stop, jet))
        distance = goal - stop.jets([stop.duration])[0, 0]
        path = self._gentle(
            lambda duration: paths.superpose(
                stop, paths.through([0.0, duration], [np.zeros(3), distance])
            )
        )
        try:
            return self._follow(k, path)
        except InfeasiblePath as reason:
            raise InfeasiblePath(
                f"no path to the goal {goal.tolist()} within {LONGEST_S:g} s satisfies the "
                f"limits; the gentlest: {reason}"
            ) from None

    def through_points(
        self, k: int, times_s: ArrayLike, positions: ArrayLike, velocities: ArrayLike | None = None
    ) -> PayloadGuidance:
        """Return the guidance along a reference that leaves the current one at step k and takes
        the payload through `positions` (n, 3) in m, optionally with `velocities` (n, 3) in m/s, at
        the times `times_s` (n) after step k. The payload comes to rest at the last position.

        A point at time 0 must be on the current path. Raises InfeasiblePath, which contains the
        reason, and ValueError for a negative step.
        """
        jet = self._jet(k)
        times, positions = np.asarray(times_s, dtype=float), np.asarray(positions, dtype=float)
        velocities = None if velocities is None else np.asarray(velocities, dtype=float)
        _require_points(times, positions, velocities)
        # The current path determines the state at time 0, so a point at time 0 is only checked.
        first = 1 if times[0] == 0 else 0
        if first and not np.linalg.norm(positions[0] - jet[0]) <= JOINED_M:
            raise InfeasiblePath(
                f"the trajectory starts at {positions[0].tolist()} but the payload will be at "
                f"{jet[0].round(3).tolist()}"
            )
        knots, points = np.r_[0.0, times[first:]], np.vstack([jet[:1], positions[first:]])
        speeds = None if velocities is None else np.vstack([jet[1:2], velocities[first:]])
        return self._follow(k, paths.through(knots, points, speeds, start=jet[1:]))

    def _jet(self, k: int) -> np.ndarray:
        """The position on the current path at step k, with six derivatives (7, 3)."""
        if not k >= 0:
            raise ValueError(f"step must be at least 0, got {k}")
        return self.path.jets([k * self.dsys.h])[0]

    def _gentle(self, make: Callable[[float], Path]) -> Path:
        """The path `make(duration)` with the shortest duration that respects acceleration and
        margin. If there is none, the path that exceeds them least.
        """
        # Durations form a geometric sequence from SHORTEST_S to LONGEST_S.
        tries = np.arange(np.log(LONGEST_S / SHORTEST_S) / np.log(GROWTH))
        longer = map(make, SHORTEST_S * GROWTH**tries)
        best = next(longer)
        least = self._load(best)
        while least > 1 and (path := next(longer, None)) is not None:
            load = self._load(path)
            if load < least:
                best, least = path, load
        return best

    def _load(self, path: Path) -> float:
        """The largest acceleration or input along the path, divided by its limit for goals or, if
        larger, by its initial value. The result is infinite if there is no motion.
        """
        times = np.linspace(0, path.duration, SAMPLES)
        lower, upper = self.dsys.system.input_bounds.T
        try:
            inputs = flat_motion(payload_parameters(self.dsys), path, times, self.formation).u
        except InfeasiblePath:
            return np.inf
        # The used fraction of each input's range is |u - middle| / (half the range).
        used = np.abs(2 * inputs - lower - upper) / (upper - lower)
        pull = np.linalg.norm(path.jets(times)[:, 2], axis=1)
        loads = np.maximum(used.max(axis=1) / self.margin, pull / self.acceleration)
        return loads.max() / max(1.0, loads[0])

    def _follow(self, k: int, path: Path) -> PayloadGuidance:
        """The motion along the path, starting from the state at step k of the current reference,
        or from its last state if the reference is over.
        """
        old = self.reference
        try:
            new = flat_reference(
                self.dsys, path, self.formation, name=old.name, start=old.states[min(k, len(old))]
            )
        except StepFailed as failure:
            raise InfeasiblePath(
                f"the path is too fast for steps of {self.dsys.h:g} s: {failure}"
            ) from None
        return replace(self, reference=new, path=path)


def _require_points(
    times: np.ndarray, positions: np.ndarray, velocities: np.ndarray | None
) -> None:
    """Raise InfeasiblePath unless a path can pass through the given points and end at rest."""
    shape = (len(times) if times.ndim == 1 else 0, 3)
    for name, value in (("positions", positions), ("velocities", velocities)):
        if value is not None and (value.shape != shape or not shape[0]):
            raise InfeasiblePath(
                f"a trajectory needs n >= 1 times and {name} (n, 3), got shapes {times.shape} "
                f"and {value.shape}"
            )
    for name, value in (("times", times), ("positions", positions), ("velocities", velocities)):
        if value is not None and not np.isfinite(value).all():
            raise InfeasiblePath(f"{name} of a trajectory must be finite, got {value.tolist()}")
    if times[0] < 0 or times[-1] <= 0 or not (np.diff(times) > 0).all():
        raise InfeasiblePath(
            f"times of a trajectory must increase and not lie in the past, got {times.tolist()} s"
        )
    if times[-1] > LONGEST_S:
        raise InfeasiblePath(
            f"a trajectory may last {LONGEST_S:g} s, got {times[-1]:g} s; send it in parts"
        )
    if velocities is not None and np.any(velocities[-1]):
        raise InfeasiblePath(
            f"a trajectory must end at rest, its last velocity is {velocities[-1].tolist()} m/s"
        )
