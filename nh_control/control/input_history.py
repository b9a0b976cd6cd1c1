"""The history of inputs, and the prediction of states from this history."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np

from nh_control.discrete.system import DiscreteSystem

NANOSECONDS = 1_000_000_000
LENGTH = 1000
"""Default length of the history. It is larger than the number of inputs between two states."""
SHORTEST = 1e-3
"""Minimum step, as a fraction of a whole step. If the remainder of a duration is shorter, it is
ignored.
"""

Inputs = Iterable[tuple[np.ndarray, float]]
"""Successive inputs (nu), each with its duration (s)."""


class InputHistory:
    """The last `length` inputs u (nu), or all inputs if `length` is None, each with the time (ns)
    at which it begins to act. Before the first input, the input is `idle` (nu).
    """

    def __init__(self, idle: np.ndarray, length: int | None = LENGTH):
        self._idle, self._length = np.asarray(idle, dtype=float), length
        self.clear()

    def clear(self) -> None:
        """Delete all inputs."""
        self._entries: deque[tuple[int, np.ndarray]] = deque(maxlen=self._length)

    def add(self, time_ns: int, u: np.ndarray) -> None:
        """Add an input u that begins to act at the given time. It replaces all inputs that begin
        at this time or later.
        """
        # later inputs are obsolete
        while self._entries and self._entries[-1][0] >= time_ns:
            self._entries.pop()
        self._entries.append((time_ns, u))

    def between(self, begin_ns: int, end_ns: int) -> Iterator[tuple[np.ndarray, float]]:
        """The inputs that act between `begin_ns` and `end_ns`, in order, each with its duration in
        s.
        """
        now_ns, u = begin_ns, self._idle
        # each entry ends the previous input u, which has been acting since now_ns
        for time_ns, after in self._entries:
            if time_ns > now_ns:
                until = min(time_ns, end_ns)
                if until > now_ns:
                    yield u, (until - now_ns) / NANOSECONDS
                now_ns = max(now_ns, until)
            u = after
            if now_ns >= end_ns:
                return
        if end_ns > now_ns:
            yield u, (end_ns - now_ns) / NANOSECONDS


def split_into_steps(dsys: DiscreteSystem, duration_s: float) -> Iterator[DiscreteSystem]:
    """Yield the system for every step of a duration: whole steps, then a shorter last step."""
    # a duration slightly shorter than a multiple of h counts as whole steps
    whole = int(duration_s / dsys.h + SHORTEST)
    for _ in range(whole):
        yield dsys
    if (rest := duration_s - whole * dsys.h) > SHORTEST * dsys.h:
        yield dsys.with_step(rest)


def predict(dsys: DiscreteSystem, x: np.ndarray, inputs: Inputs) -> np.ndarray:
    """The state (nx) after the inputs have acted on a state x (nx). Raises StepFailed."""
    for u, duration_s in inputs:
        for step in split_into_steps(dsys, duration_s):
            x = step.step(x, u)
    return x
