"""Which inputs acted when."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.ros.loop.step_clock import NANOSECONDS

KEPT = 1000
"""Inputs that are kept: more than can act between two states."""
SHORTEST = 1e-3
"""Part of a step below which a piece of time is joined to the next."""


class InputHistory:
    """Inputs u (nu) with the times (ns) from which they act; before the first, none do, so `idle`
    (nu) does.
    """

    def __init__(self, idle: np.ndarray):
        self._idle = np.asarray(idle, dtype=float)
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self._entries: deque[tuple[int, np.ndarray]] = deque(maxlen=KEPT)

    def add(self, time_ns: int, u: np.ndarray) -> None:
        """The input u acts from a time on, instead of all that were to act later."""
        while self._entries and self._entries[-1][0] >= time_ns:
            self._entries.pop()
        self._entries.append((time_ns, u))

    def between(self, begin_ns: int, end_ns: int) -> Iterator[tuple[np.ndarray, float]]:
        """Inputs that act from `begin_ns` to `end_ns`, in turn, each with its time in s."""
        at, u = begin_ns, self._idle
        for time_ns, after in self._entries:
            if time_ns > at:
                until = min(time_ns, end_ns)
                if until > at:
                    yield u, (until - at) / NANOSECONDS
                at = max(at, until)
            u = after
            if at >= end_ns:
                return
        if end_ns > at:
            yield u, (end_ns - at) / NANOSECONDS


def steps_of(dsys: DiscreteSystem, duration_s: float) -> Iterator[DiscreteSystem]:
    """The system with the steps that make up a duration: whole ones and a shorter last one."""
    whole, rest = divmod(duration_s, dsys.h)
    for _ in range(int(whole)):
        yield dsys
    if rest > SHORTEST * dsys.h:
        yield dsys.with_step(rest)
