"""How far rotations, poses and directions turn in one step, which can tell less than half a
turn.
"""

from __future__ import annotations

import numpy as np

from nh_control.geometry.spaces import Space
from nh_control.mechanics import states


class TurnMonitor:
    """The largest turn in one step of the commands, `period_s`, since the last report; nothing in
    a space without rotations.
    """

    def __init__(self, space: Space, period_s: float):
        self._space, self._period_s = space, period_s
        self._turns, self._largest = states.has_rotations(space), 0.0

    def observe(self, v: np.ndarray) -> None:
        """Take the velocity (nw) after a step."""
        if self._turns:
            self._largest = max(
                self._largest, states.rotation_angle(self._space, v, self._period_s)
            )

    def report(self) -> tuple[dict[str, float], str]:
        """The largest turn since the last report, and a warning about one of half a turn or more,
        "" without.
        """
        if not self._turns:
            return {}, ""
        largest, self._largest = self._largest, 0.0
        return {"turn_per_step_rad": largest}, states.rotation_problem(largest, self._period_s)
