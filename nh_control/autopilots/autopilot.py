"""The interface to flight controllers, which turn sensor samples into motor commands."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

MOST_LOST = 200
"""Number of consecutive samples without an answer after which a link ends."""


class AutopilotFailed(ConnectionError):
    """A flight controller cannot be started, configured or armed. The message says why."""


@dataclass(frozen=True)
class Sample:
    """The values of a craft's sensors at `time` (s) after power-on.

    `angular_velocity` (rad/s), `specific_force` (m/s^2), which points up at rest, and `field` (T)
    are in the body axes, forward-left-up. `attitude` (wxyz), `position` (m) and `velocity` (m/s)
    are in the world axes, east-north-up. `pressure` is in Pa, `geodetic` contains latitude and
    longitude in rad and altitude in m, and `gps_velocity` (m/s) is the velocity that the GPS
    receiver measures.
    """

    time: float
    angular_velocity: np.ndarray
    specific_force: np.ndarray
    attitude: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    pressure: float
    field: np.ndarray
    geodetic: np.ndarray
    gps_velocity: np.ndarray


@dataclass(frozen=True)
class Waypoint:
    """A target for a craft: its `position` (m) relative to the position at power-on and its
    `velocity` (m/s), both in the world axes, east-north-up, and the `yaw` (rad) of its nose,
    measured from east to the left.
    """

    position: np.ndarray
    velocity: np.ndarray
    yaw: float


@dataclass(frozen=True)
class Setpoint:
    """The setpoint from a pilot or an outer loop. It is either the `collective` motor command in
    [0, 1] with the body `rates` (3) in rad/s, forward-left-up, or a `waypoint` for the flight
    controller's position control. `is_held` tells whether the craft is held at its initial
    position.
    """

    collective: float
    rates: np.ndarray
    waypoint: Waypoint | None = None
    is_held: bool = False


@dataclass
class Link:
    """State of the link to a flight controller: the numbers of samples `sent` and `answered`, the
    number of consecutive losses `in_a_row`, the reason why the link has `ended` ("" while it is
    open), the number of `restarts` of the flight controller, and the wall times (s) of the last
    `exchanges`.
    """

    sent: int = 0
    answered: int = 0
    in_a_row: int = 0
    ended: str = ""
    disarmed: str = ""
    """Time of, and reason for, a disarming in flight."""
    restarts: int = 0
    exchanges: deque[float] = field(default_factory=lambda: deque(maxlen=2000))
    _began: float = 0.0

    @property
    def lost(self) -> int:
        """Number of samples without an answer."""
        return self.sent - self.answered

    @property
    def summary(self) -> str:
        """The link's state in one line."""
        times = self.exchanges
        median, longest = 1e6 * np.percentile(times, [50, 99]) if times else (np.nan, np.nan)
        text = f"{self.answered} of {self.sent} samples answered, {median:.0f} us (median), "
        text += f"{longest:.0f} us (99 %)"
        again = f"restarts: {self.restarts}" if self.restarts else ""
        return "; ".join(filter(None, (text, again, self.disarmed, self.ended)))

    def sends(self) -> None:
        """Record that a sample is sent now."""
        self.sent += 1
        self._began = time.perf_counter()

    def received(self, answered: bool) -> None:
        """Record whether the answer arrived in time. MOST_LOST consecutive losses end the link."""
        self.answered += answered
        # only consecutive losses show that the link is broken
        self.in_a_row = 0 if answered else self.in_a_row + 1
        if self.in_a_row >= MOST_LOST and not self.ended:
            self.ended = f"no answer to {self.in_a_row} samples in a row"
        self.exchanges.append(time.perf_counter() - self._began)


class Autopilot(Protocol):
    """The flight controller of one craft. Its samples have constant time steps."""

    link: Link
    name: str

    def start(self) -> None:
        """Start the flight controller or connect to it, and configure it. Raises
        AutopilotFailed.
        """

    def send(self, sample: Sample, setpoint: Setpoint, armed: bool) -> None:
        """Send a sample with the setpoint and the arming switch."""

    def receive(self) -> np.ndarray | None:
        """The motor commands (n) in [0, 1] that answer the last sample, in the airframe's order,
        or None if no answer arrives in time.
        """

    @property
    def refusal(self) -> str:
        """The reason why the flight controller refuses to be armed, or "" if it can be armed."""

    @property
    def spinning(self) -> bool:
        """Whether the flight controller is armed, according to its motor commands."""

    def close(self) -> None:
        """End the flight controller's processes and close its sockets."""
