"""The planning of motions of a body that moves already."""

from __future__ import annotations

from typing import Protocol

from numpy.typing import ArrayLike

from nh_control.discrete.trajectory import Trajectory


class Guidance(Protocol):
    """Plans motions that leave its `reference` at a step k of it. A plan is a guidance along the
    planned reference, which begins at this step; raises ValueError for what cannot be planned.
    """

    @property
    def reference(self) -> Trajectory:
        """The reference from which motions are planned."""

    def to_goal(self, k: int, position: ArrayLike) -> Guidance:
        """The motion to rest at `position` (3) in m."""

    def through_points(
        self, k: int, times_s: ArrayLike, positions: ArrayLike, velocities: ArrayLike | None = None
    ) -> Guidance:
        """The motion through `positions` (n, 3) in m, with `velocities` (n, 3) in m/s if given,
        `times_s` (n) after step k, to rest at the last one.
        """
