"""New goals and trajectories for quadrotors with a payload in flight: each new path joins the
present one with six continuous derivatives.
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
"""Duration of the first path for a goal, ratio of the following durations, and duration of the
longest path.
"""

JOINED_M = 0.01
"""Distance from the present path within which a trajectory's point at time 0 counts as on it."""

SAMPLES = 100
"""Number of points of a path at which its loads are computed."""


@dataclass(frozen=True)
class PayloadGuidance:
    """A reference of a payload and its path, from which goals and trajectories continue.

    Steps count from the start of the present reference. A new reference begins at the step k at
    which it leaves the present one; k may be in the future, which gives time for planning. Goals
    are reached with at most `acceleration` (m/s^2) and with inputs within the fraction `margin` of
    their ranges, because feedback needs the rest.
    """

    dsys: DiscreteSystem
    reference: Trajectory
    path: Path
    formation: Formation = Formation()
    acceleration: float = 4.0
    margin: float = 0.8

    def to_goal(self, k: int, position: ArrayLike) -> PayloadGuidance:
        """The guidance whose reference leaves the present one at step k and comes to rest with the
        payload at `position` (3) in m, as fast as acceleration and margin allow.

        The path is the sum of a stop and of a path from rest to rest, so it stays gentle over any
        distance. Raises InfeasiblePath with the reason, and ValueError for a step below 0.
        """
        goal = np.asarray(position, dtype=float)
        if goal.shape != (3,) or not np.isfinite(goal).all():
            raise InfeasiblePath(f"a goal is a finite position (3) in m, got {goal.tolist()}")
        jet = self._jet(k)
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
                f"no way to the goal {goal.tolist()} within {LONGEST_S:g} s keeps the limits; "
                f"the gentlest: {reason}"
            ) from None

    def through_points(
        self, k: int, times_s: ArrayLike, positions: ArrayLike, velocities: ArrayLike | None = None
    ) -> PayloadGuidance:
        """The guidance whose reference leaves the present one at step k and has the payload at
        `positions` (n, 3) in m, with `velocities` (n, 3) in m/s if given, `times_s` (n) after step
        k; at the last it rests.

        A point at time 0 must be on the present path. Raises InfeasiblePath with the reason, and
        ValueError for a step below 0.
        """
        jet = self._jet(k)
        times, positions = np.asarray(times_s, dtype=float), np.asarray(positions, dtype=float)
        velocities = None if velocities is None else np.asarray(velocities, dtype=float)
        _require_points(times, positions, velocities)
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
        """Position and six derivatives (7, 3) of the present path at step k."""
        if not k >= 0:
            raise ValueError(f"step must be at least 0, got {k}")
        return self.path.jets([k * self.dsys.h])[0]

    def _gentle(self, make: Callable[[float], Path]) -> Path:
        """The shortest of the paths `make(duration)` that keeps acceleration and margin, or the
        one with the smallest excess.
        """
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
        """Largest acceleration or input on the path, as a fraction of the largest one that is
        allowed for goals or present at its start; infinite if there is no motion.
        """
        times = np.linspace(0, path.duration, SAMPLES)
        lower, upper = self.dsys.system.input_bounds.T
        try:
            inputs = flat_motion(payload_parameters(self.dsys), path, times, self.formation).u
        except InfeasiblePath:
            return np.inf
        used = np.abs(2 * inputs - lower - upper) / (upper - lower)
        pull = np.linalg.norm(path.jets(times)[:, 2], axis=1)
        loads = np.maximum(used.max(axis=1) / self.margin, pull / self.acceleration)
        return loads.max() / max(1.0, loads[0])

    def _follow(self, k: int, path: Path) -> PayloadGuidance:
        """The motion along the path from the state of the present reference at step k, held past
        its end.
        """
        old = self.reference
        try:
            new = flat_reference(
                self.dsys, path, self.formation, name=old.name, start=old.states[min(k, len(old))]
            )
        except StepFailed as failure:
            raise InfeasiblePath(
                f"the path is too swift for steps of {self.dsys.h:g} s: {failure}"
            ) from None
        return replace(self, reference=new, path=path)


def _require_points(
    times: np.ndarray, positions: np.ndarray, velocities: np.ndarray | None
) -> None:
    """Raises InfeasiblePath unless these are points a path can go through and end at rest."""
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
            f"a trajectory may last {LONGEST_S:g} s, got {times[-1]:g} s: send it in parts"
        )
    if velocities is not None and np.any(velocities[-1]):
        raise InfeasiblePath(
            f"a trajectory must end at rest, its last velocity is {velocities[-1].tolist()} m/s"
        )
