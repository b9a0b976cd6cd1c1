"""Samples and a flight controller for tests, without any program beside the test."""

from dataclasses import replace

import numpy as np

from nh_control.autopilots.autopilot import Link, Sample, Setpoint
from nh_control.systems import Airframe

SAMPLE = Sample(
    time=1.25,
    angular_velocity=np.array([0.1, 0.2, 0.3]),
    specific_force=np.array([1.0, 2.0, 9.0]),
    attitude=np.array([1.0, 0.0, 0.0, 0.0]),
    position=np.array([10.0, 20.0, 30.0]),
    velocity=np.array([1.0, 2.0, 3.0]),
    pressure=95000.0,
    field=np.array([1e-6, 2e-5, -4e-5]),
    geodetic=np.array([0.8, 0.1, 500.0]),
    gps_velocity=np.array([1.5, 2.5, 3.5]),
)
SETPOINT = Setpoint(0.5, np.array([0.5, -0.25, 0.125]))


def flown(one, steps, h=0.004):
    """The first motor of each answer of a flight controller, to samples every h s with the roll
    rates 0.00, 0.01, ..., 0.49 rad/s again and again; NaN where none came.
    """
    answers = []
    for k in range(steps):
        rate = np.array([0.01 * (k % 50), 0.0, 0.0])
        one.send(replace(SAMPLE, time=k * h, angular_velocity=rate), SETPOINT, False)
        motors = one.receive()
        answers.append(np.nan if motors is None else motors[0])
    return np.array(answers)


class RateController:
    """A flight controller in the test's own process: a proportional rate loop. `lost(k)` says
    whether the answer to sample k is lost; it `refuses` to be armed for that many questions.
    """

    def __init__(self, name="craft", lost=lambda k: False, refuses=0, frame=None, scale=1.0):
        self.name, self.link, self._lost, self._refuses = name, Link(), lost, refuses
        self._frame, self._inertia = frame or Airframe.x(), scale * np.array([8e-3, 8e-3, 14e-3])
        self.samples, self.setpoints, self.closed = [], [], False
        self.motors = np.zeros(4)

    def start(self):
        pass

    def send(self, sample, setpoint, armed):
        self.link.sends()
        self.samples.append(sample)
        self.setpoints.append(setpoint)
        error = setpoint.rates - sample.angular_velocity
        torque = self._inertia * error / 0.03
        turning = np.linalg.solve(self._frame.matrix, [0.0, *torque]) / self._frame.max_thrust
        self.motors = np.clip(setpoint.collective + turning, 0.05, 1.0) if armed else np.zeros(4)

    def receive(self):
        lost = bool(self.link.ended) or self._lost(len(self.samples) - 1)
        self.link.received(not lost)
        return None if lost else self.motors

    @property
    def refusal(self):
        self._refuses -= 1
        return "" if self._refuses < 0 else "calibrating"

    @property
    def spinning(self):
        return bool((self.motors > 0).all())

    def close(self):
        self.closed = True
