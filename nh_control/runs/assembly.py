"""Assembles hardware states from messages that arrive one at a time with different stamps."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from nh_control.control.input_history import NANOSECONDS

JUMP_S = 1.0
"""Maximum backward jump (s) in hardware stamps that does not start a new sequence."""


class Assembly:
    """Assembles `n_parts` parts of a state whose stamps are up to `spread_s` apart. A state is
    complete when all its parts are newer than the last state; its stamp is the newest of them.
    """

    def __init__(self, n_parts: int, spread_s: float):
        self._n, self._spread_ns = n_parts, round(spread_s * NANOSECONDS)
        self._stamps: dict[Hashable, int] = {}
        self._last = -1

    def add(self, parts: Iterable[Hashable], stamp: int) -> float:
        """Note the arrival of parts with a stamp (ns). Returns the time (s) by which the stamps
        have jumped back, or 0. After a jump, the sequence starts again.
        """
        self._stamps |= dict.fromkeys(parts, stamp)
        # messages may arrive out of order, so only a large jump counts
        newest = max(self._stamps.values(), default=self._last)
        if newest >= self._last - JUMP_S * NANOSECONDS:
            return 0.0
        back_s, self._last = (self._last - newest) / NANOSECONDS, -1
        return back_s

    def take(self) -> int | None:
        """Return the stamp (ns) of a complete state, once for each state. Returns None if no state
        is complete.
        """
        if len(self._stamps) < self._n or not self._stamps:
            return None
        oldest, newest = min(self._stamps.values()), max(self._stamps.values())
        # a part belongs to the last state, or the parts belong to different states
        if oldest <= self._last or newest - oldest > self._spread_ns:
            return None
        self._last = newest
        return newest
