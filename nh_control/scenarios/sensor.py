"""The sensors of a scenario. They are outputs of its system with noise, bias, rate and delay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nh_control.mechanics.system import System

STATE, SENSORS = "state", "sensors"
ESTIMATES = STATE, SENSORS
"""Sources of the states for a tracker: direct measurements, or a filter that uses sensors."""


@dataclass(frozen=True)
class Sensor:
    """A sensor for the system's `output` c. It measures `y = retract(c(q, v, u), bias + n)`.

    `noise` is the standard deviation of n, and `bias` is a constant error. Both are in the
    output's units, and are a single number for all local coordinates or a number for each. The
    sensor measures at `rate_hz`, or in every step if this is 0. Its values arrive `delay_s` later,
    stamped with the time of measurement. `frame` is the frame of its messages, which nodes publish
    on `sensors/<name>`.
    """

    name: str
    output: str
    noise: float | tuple[float, ...]
    bias: float | tuple[float, ...] = 0.0
    rate_hz: float = 0.0
    delay_s: float = 0.0
    frame: str = ""

    def __post_init__(self) -> None:
        sizes = [*np.atleast_1d(self.noise), self.rate_hz, self.delay_s]
        if not (np.isfinite([*sizes, *np.atleast_1d(self.bias)]).all() and min(sizes) >= 0):
            raise ValueError(
                f"sensor {self.name}: noise, rate_hz and delay_s must be at least 0, and these "
                f"and bias finite, got {self}"
            )

    def require_steps(self, h: float) -> None:
        """Raise ValueError if a step of h s is longer than the time between measurements."""
        if self.rate_hz * h > 1 + 1e-9:
            raise ValueError(
                f"sensor {self.name} measures at {self.rate_hz:g} Hz, faster than the steps of "
                f"{h:g} s; choose {1 / h:g} Hz or less, or a shorter step"
            )

    def deviations(self, n: int) -> np.ndarray:
        """The standard deviations (n) of the noise."""
        return np.broadcast_to(np.asarray(self.noise, dtype=float), (n,))

    def errors(self, n: int) -> np.ndarray:
        """The bias (n)."""
        return np.broadcast_to(np.asarray(self.bias, dtype=float), (n,))

    def every(self, h: float) -> int:
        """The number of steps of h s from one measurement to the next."""
        return max(1, round(1 / (self.rate_hz * h))) if self.rate_hz else 1

    def delay(self, h: float) -> int:
        """The number of steps of h s by which values are delayed."""
        return math.ceil(self.delay_s / h - 1e-9)


@dataclass(frozen=True)
class SensingOptions:
    """Options of the filter that estimates states from sensors. `acceleration` (m/s^2, rad/s^2) is
    the standard deviation of unknown forces, expressed as an acceleration. `start_error` (m, rad,
    m/s, rad/s) is the standard deviation of the difference between the initial state and its
    target. The filter ignores innovations of more than `outlier` standard deviations, where 0
    accepts all innovations.
    """

    acceleration: float = 1.0
    start_error: float = 0.1
    outlier: float = 6.0

    def __post_init__(self) -> None:
        if not (self.acceleration > 0 and self.start_error > 0 and self.outlier >= 0):
            raise ValueError(
                f"acceleration and start_error must be greater than 0, outlier at least 0, got "
                f"{self}"
            )


def check_sensors(where: str, sensors: Sequence[Sensor], system: System) -> None:
    """Raise ValueError for sensors with equal names, for unknown outputs, and for noise or bias
    with a wrong shape.
    """
    names = [sensor.name for sensor in sensors]
    if len(set(names)) != len(names):
        raise ValueError(f"{where}: names of sensors must differ, got {names}")
    for sensor in sensors:
        (output,) = system.chosen_outputs([sensor.output])
        n = output.values.nv
        for what, value in (("noise", sensor.noise), ("bias", sensor.bias)):
            if np.ndim(value) and np.shape(value) != (n,):
                raise ValueError(
                    f"{where}: sensor {sensor.name}: {what} must be one number or {n}, one for "
                    f"each of {output.values.tangent_names}, got {value}"
                )
