"""Smooth paths of a point, from rest to rest unless said otherwise, with their time derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb

import casadi as ca
import numpy as np
from scipy.interpolate import make_interp_spline

ORDER = 6
"""Highest derivative that paths have and that jets hold."""


@dataclass(frozen=True)
class Path:
    """A path of `duration` s: `jets(times)` are position (m) and its time derivatives up to order 6 at times (N), (N, 7, 3). Past its end it stays where it is."""

    duration: float
    jets: Callable[[Sequence[float]], np.ndarray]


def symbolic(duration: float, position: Callable[[ca.SX], ca.SX]) -> Path:
    """The path `position(t)` (3), a CasADi expression with six derivatives, which are taken by automatic differentiation."""
    if not (np.isfinite(duration) and duration > 0):
        raise ValueError(f"the duration of a path must be positive and finite, got {duration}")
    t = ca.SX.sym("t")
    derivatives = [ca.SX(ca.vertcat(position(t)))]
    for _ in range(ORDER):
        derivatives.append(ca.jacobian(derivatives[-1], t))
    values = ca.Function("jets", [t], [ca.horzcat(*derivatives)], {"cse": True})
    return Path(duration, lambda times: np.array([np.asarray(values(time)).T for time in times]))


def smoothstep(s):
    """Polynomial from 0 at s <= 0 to 1 at s >= 1 whose derivatives up to order 6 vanish at both ends."""
    s = ca.fmin(ca.fmax(s, 0), 1)
    return s ** (ORDER + 1) * sum(c * s**k for k, c in enumerate(_STEP))


def _smoothstep_integral(s):
    s = ca.fmin(ca.fmax(s, 0), 1)
    return s ** (ORDER + 2) * sum(c / (ORDER + 2 + k) * s**k for k, c in enumerate(_STEP))


_STEP = [comb(ORDER + k, k) * comb(2 * ORDER + 1, ORDER - k) * (-1) ** k for k in range(ORDER + 1)]


def cruise(t, duration: float, ramp: float, from_rest: bool = True):
    """Path parameter in s that runs at rate 1 but starts (unless `from_rest` is False) and ends at rest, each within `ramp` s; constant after `duration`.

    It ends at `duration - ramp`, or at `duration - ramp / 2` if not from rest.
    """
    if not 0 < ramp <= duration / 2:
        raise ValueError(f"ramp must be positive and at most half the duration of {duration:g} s, got {ramp:g}")
    start = ramp * _smoothstep_integral(t / ramp) + ca.fmax(t - ramp, 0) if from_rest else t
    return start - ramp * _smoothstep_integral((t - duration + ramp) / ramp) - ca.fmax(t - duration, 0)


def point(position, duration: float) -> Path:
    """The path that stays at a position (3)."""
    return symbolic(duration, lambda t: ca.DM(position))


def line(start, end, duration: float) -> Path:
    """Straight from `start` (3) to `end` (3)."""
    start, end = ca.DM(start), ca.DM(end)
    return symbolic(duration, lambda t: start + smoothstep(t / duration) * (end - start))


def circle(radius: float, speed: float, laps: float, ramp: float, height: float = 0.0) -> Path:
    """Horizontal circle about (0, 0, height), at constant speed between ramps of `ramp` s."""
    rate = speed / radius
    duration = ramp + 2 * np.pi * laps / rate

    def position(t):
        angle = rate * cruise(t, duration, ramp)
        return ca.vertcat(radius * ca.cos(angle), radius * ca.sin(angle), height)

    return symbolic(duration, position)


def figure_of_eight(length: float, width: float, speed: float, laps: float, ramp: float, height: float = 0.0) -> Path:
    """Horizontal Lissajous eight, `length` along x by `width` along y, from and to its middle (0, 0, height), where it reaches its largest speed `speed`."""
    rate = speed / np.hypot(length / 2, width)
    duration = ramp + 2 * np.pi * laps / rate

    def position(t):
        angle = rate * cruise(t, duration, ramp)
        return ca.vertcat(length / 2 * ca.sin(angle), width / 2 * ca.sin(2 * angle), height)

    return symbolic(duration, position)


def parabola(duration: float = 8.0, ramp: float = 3.0) -> Path:
    """`(s - 2.5, 0, 7 - (s - 2.5)^2)`, in motion from the start with s = t until it brakes to rest within the last `ramp` s.

    The data of [celledoni2021 6.2] with its z pointing down (converted).
    """

    def position(t):
        s = cruise(t, duration, ramp, from_rest=False) - 2.5
        return ca.vertcat(s, 0, 7 - s**2)

    return symbolic(duration, position)


def through(times, points) -> Path:
    """Spline of degree 13 through points (N, 3) at increasing times (N) from 0, at rest at both ends."""
    times, points = np.asarray(times, dtype=float), np.asarray(points, dtype=float)
    if times.ndim != 1 or len(times) < 2 or points.shape != (len(times), 3) or not (np.isfinite(times).all() and np.isfinite(points).all()):
        raise ValueError(f"a path needs at least two finite points (N, 3) and as many times, got shapes {points.shape} and {times.shape}")
    if times[0] != 0 or not (np.diff(times) > 0).all():
        raise ValueError(f"the times of a path must increase from 0, got {times.tolist()}")
    rest = [(order, np.zeros(3)) for order in range(1, ORDER + 1)]
    spline = make_interp_spline(times, points, k=2 * ORDER + 1, bc_type=(rest, rest))
    pieces = [spline.derivative(order) if order else spline for order in range(ORDER + 1)]
    return Path(float(times[-1]), lambda at: np.stack([piece(np.clip(at, 0, times[-1])) for piece in pieces], axis=1))
