"""When the messages of hardware make a state: they come one by one, with stamps of their own."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from nh_control.control.input_history import NANOSECONDS

JUMP_S = 1.0
"""How far stamps of hardware may come out of order before they count as a new beginning."""


class Assembly:
    """Puts `n_parts` parts together, whose stamps are up to `spread_s` apart: a state is there
    once all its parts are newer than the last one; its stamp is that of the newest.
    """

    def __init__(self, n_parts: int, spread_s: float):
        self._n, self._spread_ns = n_parts, round(spread_s * NANOSECONDS)
        self._stamps: dict[Hashable, int] = {}
        self._last = -1

    def add(self, parts: Iterable[Hashable], stamp: int) -> float:
        """Parts of a stamp (ns) have come; returns the seconds by which the stamps have jumped
        back, after which they count anew, or 0.
        """
        self._stamps |= dict.fromkeys(parts, stamp)
        newest = max(self._stamps.values(), default=self._last)
        if newest >= self._last - JUMP_S * NANOSECONDS:
            return 0.0
        back_s, self._last = (self._last - newest) / NANOSECONDS, -1
        return back_s

    def take(self) -> int | None:
        """The stamp (ns) of the state that is there, once; None without one."""
        if len(self._stamps) < self._n or not self._stamps:
            return None
        oldest, newest = min(self._stamps.values()), max(self._stamps.values())
        if oldest <= self._last or newest - oldest > self._spread_ns:
            return None
        self._last = newest
        return newest
