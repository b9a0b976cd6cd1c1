"""What the tracker says about itself."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from nh_control.control import Command
from nh_control.ros.report import Report


class TrackerReport:
    """Collects what happened between reports; `names` are those of the components of the tracking error."""

    def __init__(self, names: Sequence[str]):
        self._names = tuple(names)
        self._step, self._approximated, self._saturated, self._refused = -1, 0, 0, 0
        self._error = np.zeros(len(self._names))
        self._trouble = ""
        self._clear()

    def _clear(self) -> None:
        self._since, self._answers, self._busy_s, self._slowest_s, self._refusals = time.monotonic(), 0, 0.0, 0.0, 0

    def refuse(self, reason: str) -> None:
        """A state could not be used."""
        self._refused += 1
        self._refusals += 1
        self._trouble = reason

    def computed(self, step: int, command: Command, approximated: int) -> None:
        """A command was computed for a step; `approximated` momenta so far were not exact."""
        self._step, self._error, self._approximated = step, command.error, approximated
        self._saturated += bool(command.saturated.any())

    def answered(self, seconds: float) -> None:
        """A command was published so long after its state arrived."""
        self._answers += 1
        self._busy_s += seconds
        self._slowest_s = max(self._slowest_s, seconds)

    def make(self) -> Report:
        """The report since the last one."""
        elapsed = time.monotonic() - self._since
        values = {
            "step": self._step,
            "rate_hz": self._answers / elapsed if elapsed > 0 else 0.0,
            "response_mean_us": self._busy_s / max(1, self._answers) * 1e6,
            "response_max_us": self._slowest_s * 1e6,
            "error_norm": float(np.linalg.norm(self._error)),
            **{f"error: {name}": float(value) for name, value in zip(self._names, self._error)},
            "steps_saturated": self._saturated,
            "states_refused": self._refused,
            "momenta_approximated": self._approximated,
        }
        level, message = self._judge()
        self._clear()
        return Report(level, message, values)

    def _judge(self) -> tuple[str, str]:
        if self._refusals:
            return "error", f"{self._refusals} states refused, the last one: {self._trouble}"
        if not self._answers:
            return "warn", "no new states" if self._step >= 0 else "waiting for states"
        return "ok", "tracking"
