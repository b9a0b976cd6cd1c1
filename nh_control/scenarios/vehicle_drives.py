"""Drives of vehicles that turn on the spot or steer, and maneuvers to goals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from nh_control.control.joint_reference import InfeasibleTrajectory
from nh_control.scenarios.vehicle_guidance import Drive, Maneuver, rest_to_rest

NEAR = 1e-4
"""Maximum distance (m) and angle (rad) from a goal at which it counts as reached."""
STRAIGHT_M = (0.0, 3.0, 6.0, 10.0)
"""Candidate lengths (m) of a straight line before or after a curve."""
TANGENTS = (0.6, 1.0, 1.5, 2.2)
"""Candidate lengths of the tangents at the ends of a curve, divided by the distance between the
ends.
"""
SAMPLES = 200
"""Number of points at which the curvature of a curve is computed."""
STEER_GAIN = 4.0
"""Gain (1/s) that drives the steering angle to the commanded angle."""


def turning_drive(
    velocity: Callable[[Any, float, float], np.ndarray],
    speeds: tuple[float, float],
    accelerations: tuple[float, float],
    ahead: Callable[[Any], float] = lambda parameters: 0.0,
) -> Drive:
    """The drive of a vehicle that can turn on the spot.

    `velocity(parameters, forward, yaw_rate)` returns the vehicle's velocity (nw). The vehicle
    turns about a point that is `ahead(parameters)` (m) behind the origin of its body. The pose
    (theta, x, y) of the body consists of the last coordinates of the configuration.
    """

    def maneuvers(
        drive: Drive, parameters: Any, q: np.ndarray, goal: np.ndarray
    ) -> list[Maneuver]:
        start, end = (_ahead(pose, -ahead(parameters)) for pose in (q[-3:], goal))
        return _turn_drive_turn(drive, start, end)

    return Drive(
        speeds,
        accelerations,
        rates=lambda v: np.array([v[-2], v[-3]]),
        aim=lambda parameters, q, command: command,
        velocity=lambda parameters, q, rates: velocity(parameters, rates[0], rates[1]),
        maneuvers=maneuvers,
    )


def _turn_drive_turn(drive: Drive, pose: np.ndarray, goal: np.ndarray) -> list[Maneuver]:
    """Turn towards the goal, drive straight to the goal, and turn to its heading."""
    straight = goal[1:] - pose[1:]
    distance = float(np.hypot(straight[0], straight[1]))
    bearing = np.arctan2(straight[1], straight[0]) if distance > NEAR else pose[0]
    turns = _wrapped(bearing - pose[0]), _wrapped(goal[0] - bearing)
    changes = [(0.0, turns[0]), (distance, 0.0), (0.0, turns[1])]
    return [_change(drive, np.array(c)) for c in changes if np.abs(c).max() > NEAR]


def steering_drive(
    length: float,
    radius: float,
    steering: tuple[float, float, float],
    speed: float,
    acceleration: float,
) -> Drive:
    """The drive of a car with q = (wheel, delta, theta, x, y) and
    `tan(delta) = length yaw_rate / forward`.

    `length` (m) is the distance between the axles, and `radius` (m) is the radius of the wheels.
    `steering` contains the maximum steering angle delta (rad), rate (rad/s) and acceleration
    (rad/s^2).
    """
    angle, rate, _ = steering

    def aim(parameters: Any, q: np.ndarray, command: np.ndarray) -> np.ndarray:
        forward, yaw_rate = command
        if forward == 0:
            return np.zeros(2)  # a car at rest does not turn
        target = np.clip(np.arctan(length * yaw_rate / forward), -angle, angle)
        return np.array([forward, np.clip(STEER_GAIN * (target - q[1]), -rate, rate)])

    def velocity(parameters: Any, q: np.ndarray, rates: np.ndarray) -> np.ndarray:
        forward, steer = rates
        return np.array([forward / radius, steer, np.tan(q[1]) / length * forward, forward, 0.0])

    def maneuvers(
        drive: Drive, parameters: Any, q: np.ndarray, goal: np.ndarray
    ) -> list[Maneuver]:
        straighten = [_change(drive, np.array([0.0, -q[1]]))] if abs(q[1]) > NEAR else []
        return straighten + _courses(drive, length, np.tan(angle) / length, q[-3:], goal)

    return Drive(
        (speed, rate),
        (acceleration, steering[2]),
        rates=lambda v: np.array([v[3], v[1]]),
        aim=aim,
        velocity=velocity,
        maneuvers=maneuvers,
    )


@dataclass(frozen=True)
class _Curve:
    """A polynomial curve x(s), y(s) with 0 <= s <= 1, whose curvature vanishes at both ends.
    `gear` is 1 when driving forward and -1 when driving backward.
    """

    x: Polynomial
    y: Polynomial
    gear: float

    def rates(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The speed |(x', y')|, the curvature in the driving direction, and the curvature's
        derivative d/ds.
        """
        (dx, ddx, dddx), (dy, ddy, dddy) = (
            [c.deriv(k)(s) for k in (1, 2, 3)] for c in (self.x, self.y)
        )
        # kappa = c / |x'|^3 with c = x' y'' - y' x'', and
        # kappa' = c' / |x'|^3 - 3 c (x' . x'') / |x'|^5.
        speed, cross = np.hypot(dx, dy), dx * ddy - dy * ddx
        slope = 3 * (dx * ddx + dy * ddy) / speed**2
        rate = (dx * dddy - dy * dddx) / speed**3 - cross / speed**3 * slope
        return speed, self.gear * cross / speed**3, self.gear * rate


def _courses(
    drive: Drive, length: float, curvature: float, start: np.ndarray, goal: np.ndarray
) -> list[Maneuver]:
    """The fastest maneuvers from the pose `start` to the pose `goal` with curvatures below
    `curvature` (1/m). They consist of a curve, and possibly a straight line before or after the
    curve.

    Raises InfeasibleTrajectory if no candidate satisfies the limit.
    """
    x, y = goal[1:] - start[1:]
    if np.hypot(x, y) < NEAR and abs(_wrapped(goal[0] - start[0])) < NEAR:
        return []
    courses: list[list[Maneuver]] = []
    for gear, straight, first in product((1.0, -1.0), STRAIGHT_M, (True, False)):
        if not straight and not first:
            continue
        # The straight line is driven in the opposite gear.
        begin = _ahead(start, -gear * straight) if first else start
        end = goal if first else _ahead(goal, gear * straight)
        for curve in _curves(begin, end, gear):
            if np.abs(curve.rates(np.linspace(0, 1, SAMPLES))[1]).max() < curvature:
                curved = _driven(drive, length, curve)
                line = np.array([-gear * straight, 0.0])
                other = [_change(drive, line)] if straight else []
                courses.append([*other, curved] if first else [curved, *other])
    if not courses:
        raise InfeasibleTrajectory(
            f"found no course with turning radii of at least {1 / curvature:.3g} m to the pose "
            f"{goal.round(3).tolist()}; set an intermediate goal first"
        )
    return min(courses, key=lambda course: sum(maneuver.duration_s for maneuver in course))


def _curves(start: np.ndarray, end: np.ndarray, gear: float) -> Iterator[_Curve]:
    """Quintic curves between poses (theta, x, y) with vanishing curvature at both ends."""
    dx, dy = end[1:] - start[1:]
    distance = float(np.hypot(dx, dy))
    if distance < NEAR:
        return
    s = Polynomial([0.0, 1.0])
    # Quintic Hermite polynomials with zero second derivatives, for the position at 1, the slope at
    # 0 and the slope at 1.
    reach = s**3 * (10 - 15 * s + 6 * s**2)
    leave, arrive = s - 6 * s**3 + 8 * s**4 - 3 * s**5, -4 * s**3 + 7 * s**4 - 3 * s**5
    for tangent in TANGENTS:
        ends = [
            gear * tangent * distance * np.array([np.cos(pose[0]), np.sin(pose[0])])
            for pose in (start, end)
        ]
        x, y = (
            start[1 + i] + (end[1 + i] - start[1 + i]) * reach + ends[0][i] * leave
            + ends[1][i] * arrive
            for i in range(2)
        )  # fmt: skip
        yield _Curve(x, y, gear)


def _driven(drive: Drive, length: float, curve: _Curve) -> Maneuver:
    """The maneuver along a curve from rest to rest. The arc length follows `rest_to_rest`, slowly
    enough to satisfy the limit of the steering rate.
    """
    from scipy.interpolate import CubicSpline

    grid = np.linspace(0, 1, SAMPLES)
    speed, bend, change = curve.rates(grid)
    along = CubicSpline(grid, speed).antiderivative()(grid)
    total = float(along[-1])
    steering = length * change / speed / (1 + (length * bend) ** 2)  # d delta / d (arc length)
    angle, parameter = CubicSpline(along, steering), CubicSpline(along, grid)
    # The integral of `rest_to_rest` is the fraction of the length that has been covered.
    run = Polynomial([0, 0, 0, 0, 35, -84, 70, -20])
    times = np.linspace(0, 1, SAMPLES)
    needed = np.abs(angle(total * run(times)) * total * run.deriv()(times)).max()
    duration = max(drive.duration((total, 0.0)), float(needed) / drive.speeds[1])

    def rates(t: float) -> np.ndarray:
        done = total * run(min(t / duration, 1.0))
        forward = total * rest_to_rest(t, duration)
        fast, bend, change = curve.rates(parameter(done))
        steer = length * change / fast / (1 + (length * bend) ** 2) * forward
        return np.array([curve.gear * forward, steer])

    return Maneuver(duration, rates)


def _change(drive: Drive, changes: np.ndarray) -> Maneuver:
    """The maneuver whose rates follow `rest_to_rest` and integrate to the given changes (2)."""
    duration = drive.duration(changes)
    return Maneuver(duration, lambda t: changes * rest_to_rest(t, duration))


def _ahead(pose: np.ndarray, distance: float) -> np.ndarray:
    """The pose (theta, x, y) at the given distance (m) straight ahead."""
    return pose + distance * np.array([0.0, np.cos(pose[0]), np.sin(pose[0])])


def _wrapped(angle: float) -> float:
    """The equivalent angle in [-pi, pi)."""
    return float((angle + np.pi) % (2 * np.pi) - np.pi)
