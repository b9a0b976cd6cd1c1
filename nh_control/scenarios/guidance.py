"""Planning of new motions while a body moves."""

from __future__ import annotations

from typing import Protocol

from numpy.typing import ArrayLike

from nh_control.discrete.trajectory import Trajectory


class Guidance(Protocol):
    """Plans motions that leave the `reference` at step k. A plan is a guidance along the new
    reference, which begins at step k. Raises ValueError for motions that cannot be planned.
    """

    @property
    def reference(self) -> Trajectory:
        """The reference that planned motions leave."""

    def to_goal(self, k: int, position: ArrayLike) -> Guidance:
        """Plan a motion that comes to rest at `position` (3) in m."""

    def through_points(
        self, k: int, times_s: ArrayLike, positions: ArrayLike, velocities: ArrayLike | None = None
    ) -> Guidance:
        """Plan a motion through `positions` (n, 3) in m, optionally with `velocities` (n, 3) in
        m/s, at the times `times_s` (n) after step k. The motion comes to rest at the last
        position.
        """
