"""What a scenario says is worth watching, followed over every step and told in reports."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nh_control.scenarios import MonitoredOutput


class OutputMonitor:
    """Values of a scenario's monitor, if it has one, after every step, with the lowest of them
    since the last report.
    """

    def __init__(self, monitor: MonitoredOutput | None, parameters: object):
        self._monitor, self._parameters = monitor, parameters
        self._step = 0
        self._values: np.ndarray | None = None
        self._clear()

    def _clear(self) -> None:
        self._lowest: np.ndarray | None = None
        self._low_steps = 0

    def observe(
        self,
        step: int,
        q: np.ndarray,
        v: np.ndarray,
        u: np.ndarray,
        external: Mapping[str, np.ndarray],
    ) -> None:
        """Take the state (q, v) at a step, under the inputs u and the external forces that were
        held until then; step 0 and a step seen before do not count.
        """
        if self._monitor is None or step in (0, self._step):
            self._step = step
            return
        self._step = step
        values = self._values = self._monitor.values(self._parameters, q, v, u, external)
        self._lowest = values if self._lowest is None else np.minimum(self._lowest, values)
        self._low_steps += bool((values <= self._monitor.minimum).any())

    def report(self) -> tuple[dict[str, float], str]:
        """Present and lowest values since the last report, by name, and a warning about values
        that were too low, "" without.
        """
        monitor, warning = self._monitor, ""
        if monitor is None or self._values is None:
            return {}, ""
        lowest = self._values if self._lowest is None else self._lowest
        values = {
            f"{prefix}{monitor.title} {name} ({monitor.unit})": float(value)
            for prefix, row in (("", self._values), ("lowest ", lowest))
            for name, value in zip(monitor.names, row)
        }
        if self._low_steps:
            low = [name for name, value in zip(monitor.names, lowest) if value <= monitor.minimum]
            warning = f"{self._low_steps} steps with {monitor.warning} ({', '.join(low)})"
        self._clear()
        return values, warning
