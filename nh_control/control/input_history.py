"""The history of inputs, and predictions of states by it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np

from nh_control.discrete.system import DiscreteSystem

NANOSECONDS = 1_000_000_000
KEPT = 1000
"""Default length of the history: more inputs than can act between two states."""
SHORTEST = 1e-3
"""Tolerance, as a fraction of a step, for a duration to count as whole steps."""

Inputs = Iterable[tuple[np.ndarray, float]]
"""Inputs (nu) in turn, each with the time (s) for which it acts."""


class InputHistory:
    """Inputs u (nu) with the times (ns) from which they act: the last `kept` inputs (None: all).
    Before the first one the input is `idle` (nu).
    """

    def __init__(self, idle: np.ndarray, kept: int | None = KEPT):
        self._idle, self._kept = np.asarray(idle, dtype=float), kept
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self._entries: deque[tuple[int, np.ndarray]] = deque(maxlen=self._kept)

    def add(self, time_ns: int, u: np.ndarray) -> None:
        """Add the input u that acts from a time on; it replaces all inputs from that time on."""
        while self._entries and self._entries[-1][0] >= time_ns:
            self._entries.pop()
        self._entries.append((time_ns, u))

    def between(self, begin_ns: int, end_ns: int) -> Iterator[tuple[np.ndarray, float]]:
        """Inputs that act from `begin_ns` to `end_ns`, in order, each with its duration in s."""
        now_ns, u = begin_ns, self._idle
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
    """The system once for every step of a duration: whole steps, then a shorter last one."""
    whole = int(duration_s / dsys.h + SHORTEST)
    for _ in range(whole):
        yield dsys
    if (rest := duration_s - whole * dsys.h) > SHORTEST * dsys.h:
        yield dsys.with_step(rest)


def predict(dsys: DiscreteSystem, x: np.ndarray, inputs: Inputs) -> np.ndarray:
    """State (nx) after the inputs have acted on a state x (nx); raises StepFailed."""
    for u, duration_s in inputs:
        for step in split_into_steps(dsys, duration_s):
            x = step.step(x, u)
    return x
