"""Estimates of the model's states from sensor measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from nh_control.control.estimation import Belief
from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.sensing import Measurement, SensorFilter, first_belief
from nh_control.scenarios.sensor import SensingOptions, Sensor


class SensedState:
    """Estimates states of the model `dsys` with a filter for the `sensors`, in place of a
    `StateEstimate`. The filter starts from the expected state and uses no measured state. Raises
    ValueError without sensors.
    """

    def __init__(self, sensors: Sequence[Sensor], options: SensingOptions, dsys: DiscreteSystem):
        self._options, self._dsys, self.approximated = options, dsys, 0
        self.sensors = tuple(sensors)
        self._arrived: list[Measurement] = []
        self._filter = self._make_filter(
            dsys.state(dsys.system.nominal_configuration, _rest(dsys))
        )
        self.reset()

    def reset(self) -> None:
        """Start again with the next state."""
        self._began = -1

    def add(self, measured: Iterable[Measurement], start_step: int) -> None:
        """Add measurements from a run whose reference began at `start_step`."""
        self._arrived += [replace(m, step=m.step - start_step) for m in measured]

    def state(
        self,
        k: int,
        q: Sequence[float],
        v: Sequence[float] | None,
        u: np.ndarray,
        target: np.ndarray,
    ) -> np.ndarray:
        """Return the state (nx) at step k from the measurements so far. The input u (nu) has acted
        since the last step, and the expected state is `target` (nx). Raises StepFailed.
        """
        # a step back means a new run: start from the expected state, without older measurements
        if self._began < 0 or k <= self._filter.step:
            self._began = k
            self._filter.reset(k, self._start(target))
        while self._filter.step < k:
            self._filter.predict(u)
        known = [m for m in self._arrived if m.step >= self._began]
        self._arrived.clear()
        return self._filter.update(known).x

    def values(self) -> dict[str, object]:
        """Return each sensor's values for the diagnostics."""
        report: dict[str, object] = {}
        for name, watch in self._filter.watches.items():
            report[f"sensor {name}: measurements"] = watch.taken
            report[f"sensor {name}: left out"] = watch.refused
            report[f"sensor {name}: last innovation (standard deviations)"] = watch.last
        return report

    @property
    def warning(self) -> str:
        """A warning about measurements that were left out, or ""."""
        return self._filter.warning

    def _start(self, target: np.ndarray) -> Belief:
        error = self._options.start_error
        return first_belief(self._dsys, target, error, error)

    def _make_filter(self, x: np.ndarray) -> SensorFilter:
        o = self._options
        return SensorFilter(self._dsys, self.sensors, self._start(x), o.acceleration, o.outlier)


def _rest(dsys: DiscreteSystem) -> np.ndarray:
    return np.zeros(dsys.system.space.nw)
