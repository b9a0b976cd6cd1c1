"""Assembles states of hardware from messages that come one by one, with stamps of their own."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from nh_control.control.input_history import NANOSECONDS

JUMP_S = 1.0
"""Largest backward jump of stamps of hardware (s) that does not start a new sequence."""


class Assembly:
    """Assembles `n_parts` parts of a state, whose stamps are up to `spread_s` apart. A state is
    complete when all its parts are newer than the last state; its stamp is the newest of theirs.
    """

    def __init__(self, n_parts: int, spread_s: float):
        self._n, self._spread_ns = n_parts, round(spread_s * NANOSECONDS)
        self._stamps: dict[Hashable, int] = {}
        self._last = -1

    def add(self, parts: Iterable[Hashable], stamp: int) -> float:
        """Note the arrival of parts of a stamp (ns). Returns the seconds by which the stamps have
        jumped back, or 0; after a jump the sequence starts again.
        """
        self._stamps |= dict.fromkeys(parts, stamp)
        newest = max(self._stamps.values(), default=self._last)
        if newest >= self._last - JUMP_S * NANOSECONDS:
            return 0.0
        back_s, self._last = (self._last - newest) / NANOSECONDS, -1
        return back_s

    def take(self) -> int | None:
        """The stamp (ns) of a complete state, once; None without one."""
        if len(self._stamps) < self._n or not self._stamps:
            return None
        oldest, newest = min(self._stamps.values()), max(self._stamps.values())
        if oldest <= self._last or newest - oldest > self._spread_ns:
            return None
        self._last = newest
        return newest
