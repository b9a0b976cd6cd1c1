"""A plant's sensors in a run, and the state that a filter estimates from their measurements."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from nh_control.control.estimation import Belief, Innovation, KalmanFilter
from nh_control.discrete.system import DiscreteSystem
from nh_control.scenarios.sensor import Sensor

LEAST = 1e-9
"""Minimum standard deviation that a filter assumes for a sensor."""


@dataclass(frozen=True)
class Measurement:
    """Values (ny) that a sensor measured at a step."""

    sensor: Sensor
    step: int
    values: np.ndarray


class Sensors:
    """The sensors of a plant with a time step of h s. The noise depends only on the seed, the
    sensor and the step, so a repeated run has the same measurements. Raises ValueError for a
    sensor that measures more often than once per step.
    """

    def __init__(self, sensors: Sequence[Sensor], plant: DiscreteSystem, h: float, seed: int = 0):
        for sensor in sensors:
            sensor.require_steps(h)
        self.sensors, self._h, self._seed = tuple(sensors), h, seed
        self._late: list[tuple[int, Measurement]] = []
        self.change_plant(plant)

    def change_plant(self, plant: DiscreteSystem) -> None:
        """Measure another system with the same outputs from now on."""
        self._outputs = {sensor.name: plant.outputs(sensor.output) for sensor in self.sensors}

    def reset(self) -> None:
        """Forget the measurements that have not arrived yet."""
        self._late.clear()

    def measure(self, k: int, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> list[Measurement]:
        """Return the measurements that arrive at step k. The plant has the configuration q (nq)
        and the velocity v (nw) after the inputs u (plant.nu).
        """
        for sensor in self.sensors:
            if k % sensor.every(self._h) == 0:
                measured = Measurement(sensor, k, self._values(sensor, k, q, v, u))
                self._late.append((k + sensor.delay(self._h), measured))
        arrived = [measurement for due, measurement in self._late if due <= k]
        self._late = [(due, measurement) for due, measurement in self._late if due > k]
        return arrived

    def _values(
        self, sensor: Sensor, k: int, q: np.ndarray, v: np.ndarray, u: np.ndarray
    ) -> np.ndarray:
        outputs = self._outputs[sensor.name]
        n = outputs.space.nv
        # y = retract(g(q, v, u), bias + noise), where (seed, sensor, step) seeds the noise
        draw = np.random.default_rng([self._seed, zlib.crc32(sensor.name.encode()), k])
        error = sensor.errors(n) + sensor.deviations(n) * draw.standard_normal(n)
        return outputs.space.retract(outputs.values(q, v, u), error)


@dataclass
class Watch:
    """A sensor's innovations in standard deviations: the numbers of used and refused measurements,
    the last innovation, and the sum of squares over the used measurements.
    """

    taken: int = 0
    refused: int = 0
    last: float = 0.0
    squares: float = 0.0

    def add(self, innovation: Innovation, refused: bool) -> None:
        """Add a measurement."""
        self.last = innovation.deviation
        self.refused += refused
        if not refused:
            self.taken += 1
            # e^T S^{-1} e / n: its mean is 1 for a consistent filter
            scaled = np.linalg.solve(innovation.S, innovation.value)
            self.squares += float(innovation.value @ scaled) / len(innovation.value)

    @property
    def fit(self) -> float:
        """Mean of `e^T S^{-1} e / n`: 1 if noise and model are as declared, NaN without data."""
        return self.squares / self.taken if self.taken else float("nan")


@dataclass
class _Past:
    """A step that may still be corrected: the belief before its measurements, the measurements,
    the input before it, and the input after it.
    """

    belief: Belief
    input_before: np.ndarray
    input_after: np.ndarray | None = None
    measured: list[Measurement] = field(default_factory=list)


class SensorFilter:
    """An extended Kalman filter on a model with a measurement function for each sensor. A late
    measurement corrects the step at which it was taken, and all later steps are filtered again.

    Unknown forces change velocities by `acceleration` (m/s^2, rad/s^2) in any direction.
    Measurements whose innovation exceeds `outlier` standard deviations are left out and counted;
    0 uses all measurements. Raises ValueError without sensors and for acceleration <= 0.
    """

    def __init__(
        self,
        model: DiscreteSystem,
        sensors: Sequence[Sensor],
        start: Belief,
        acceleration: float,
        outlier: float = 0.0,
    ):
        if not sensors or not acceleration > 0:
            raise ValueError(
                f"{model}: a filter needs sensors and acceleration > 0, got {len(sensors)} "
                f"sensors and {acceleration}"
            )
        self._model, self._outlier = model, outlier
        unit = unit_momenta(model, start.x)
        # W = (acceleration h)^2 G G^T, where G contains the momenta for unit velocities
        W = (acceleration * model.h) ** 2 * unit @ unit.T
        self._filters = {}
        for sensor in sensors:
            n = model.outputs(sensor.output).space.nv
            V = np.diag(np.maximum(sensor.deviations(n), LEAST) ** 2)
            self._filters[sensor.name] = KalmanFilter(model, W, V, sensor.output)
        self._kalman = next(iter(self._filters.values()))
        # the longest delay determines how many steps can still be corrected
        longest = max(sensor.delay(model.h) for sensor in sensors)
        self._past: deque[_Past] = deque(maxlen=longest + 1)
        self._start = start
        self.reset(0, start)

    def reset(self, k: int, start: Belief) -> None:
        """Start at step k with the given belief, before the measurements at that step."""
        self.step, self.watches = k, {name: Watch() for name in self._filters}
        self._past.clear()
        self._past.append(_Past(start, np.zeros(self._model.nu)))
        self.belief = start

    def update(self, measured: Iterable[Measurement]) -> Belief:
        """Return the belief at the present step after the given measurements. Measurements older
        than the stored steps are counted as refused.
        """
        first = self.step + 1
        for measurement in measured:
            age = self.step - measurement.step
            if not 0 <= age < len(self._past):
                self.watches[measurement.sensor.name].refused += 1
                continue
            self._past[-1 - age].measured.append(measurement)
            first = min(first, measurement.step)
            self._watch(measurement, self._past[-1 - age])
        if first <= self.step:
            self._filter_from(first)
        return self.belief

    def predict(self, u: np.ndarray) -> Belief:
        """Return the belief at the next step under the input u (nu). Raises StepFailed."""
        self._past[-1].input_after = u
        ahead = self._kalman.predict(self.belief, u)
        self._past.append(_Past(ahead, u))
        self.step, self.belief = self.step + 1, ahead
        return ahead

    def _filter_from(self, k: int) -> None:
        # filter again from step k: correct each belief with its measurements, then predict the
        # next belief
        for i in range(len(self._past) - 1 - (self.step - k), len(self._past)):
            now = self._past[i]
            belief = now.belief
            for measurement in now.measured:
                kalman = self._filters[measurement.sensor.name]
                innovation = kalman.innovation(belief, measurement.values, now.input_before)
                if not self._outside(innovation):
                    belief = kalman.correct(belief, innovation)
            if i + 1 < len(self._past) and now.input_after is not None:
                self._past[i + 1].belief = self._kalman.predict(belief, now.input_after)
            self.belief = belief

    def _watch(self, measurement: Measurement, past: _Past) -> None:
        kalman = self._filters[measurement.sensor.name]
        innovation = kalman.innovation(past.belief, measurement.values, past.input_before)
        self.watches[measurement.sensor.name].add(innovation, self._outside(innovation))

    def _outside(self, innovation: Innovation) -> bool:
        return bool(self._outlier) and not innovation.deviation <= self._outlier

    @property
    def warning(self) -> str:
        """A warning about sensors whose measurements were left out, or ""."""
        left_out = {name: w for name, w in self.watches.items() if w.refused}
        return ", ".join(
            f"{w.refused} of {w.refused + w.taken} measurements of {name} left out, the last "
            f"innovation {w.last:.3g} standard deviations"
            for name, w in left_out.items()
        )


def unit_momenta(model: DiscreteSystem, x: np.ndarray) -> np.ndarray:
    """Return the changes (ndx, nw) in a state for unit velocities."""
    q, v = model.configuration(x), model.velocity(x)
    units = np.eye(model.system.space.nw)
    return np.array([model.local(x, model.measured_state(q, v + unit)) for unit in units]).T


def first_belief(
    model: DiscreteSystem, x: np.ndarray, configuration: float, velocity: float
) -> Belief:
    """Return the belief that the state is x (nx), with standard deviations of the configuration
    (m, rad) and of the velocities (m/s, rad/s).
    """
    unit, n = velocity * unit_momenta(model, x), model.system.space.nv
    # P = velocity^2 G G^T + configuration^2 I on the first n coordinates
    P = unit @ unit.T
    P[:n, :n] += configuration**2 * np.eye(n)
    return Belief(x, P)
