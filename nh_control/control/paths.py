"""Smooth paths of a point, from rest to rest unless said otherwise, with their time
derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb, factorial
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.numerics.expressions import Expression, Vector

if TYPE_CHECKING:
    from scipy.interpolate import BSpline

ORDER = 6
"""Highest derivative that paths have and that jets hold."""


@dataclass(frozen=True)
class Path:
    """A path of `duration` s: `jets(times)` are position (m) and its derivatives up to order 6 at
    times (N), (N, 7, 3). Past its end the point rests.
    """

    duration: float
    jets: Callable[[Vector], np.ndarray]


def symbolic(duration: float, position: Callable[[ca.SX], Expression]) -> Path:
    """The path `position(t)` (3, m), a CasADi expression with six derivatives, which are taken by
    automatic differentiation; raises ValueError unless the duration (s) is positive and finite.
    """
    if not (np.isfinite(duration) and duration > 0):
        raise ValueError(f"the duration of a path must be positive and finite, got {duration}")
    t = ca.SX.sym("t")
    derivatives = [ca.SX(ca.vertcat(position(t)))]
    for _ in range(ORDER):
        derivatives.append(ca.jacobian(derivatives[-1], t))
    values = ca.Function("jets", [t], [ca.horzcat(*derivatives)], {"cse": True})

    def jets(times: Vector) -> np.ndarray:
        if not np.size(times):  # CasADi would take no columns for a zero
            return np.empty((0, ORDER + 1, 3))
        side_by_side = np.asarray(values(np.reshape(times, (1, -1))))  # one call for all times
        return side_by_side.reshape(3, np.size(times), ORDER + 1).transpose(1, 2, 0)

    return Path(duration, jets)


def smoothstep(s: ca.SX) -> ca.SX:
    """Polynomial from 0 at s <= 0 to 1 at s >= 1 whose derivatives up to order 6 vanish at both
    ends.
    """
    s = ca.fmin(ca.fmax(s, 0), 1)
    return s ** (ORDER + 1) * sum(c * s**k for k, c in enumerate(_STEP))


def _smoothstep_integral(s: ca.SX) -> ca.SX:
    s = ca.fmin(ca.fmax(s, 0), 1)
    return s ** (ORDER + 2) * sum(c / (ORDER + 2 + k) * s**k for k, c in enumerate(_STEP))


_STEP = [comb(ORDER + k, k) * comb(2 * ORDER + 1, ORDER - k) * (-1) ** k for k in range(ORDER + 1)]


def cruise(t: ca.SX, duration: float, ramp: float, from_rest: bool = True) -> ca.SX:
    """Path parameter in s with rate 1 that starts (unless `from_rest` is False) and ends at rest,
    with ramps of `ramp` s; constant after `duration`.

    It ends at `duration - ramp`, or at `duration - ramp / 2` if not from rest. Raises ValueError
    for a ramp that does not fit twice.
    """
    if not 0 < ramp <= duration / 2:
        raise ValueError(
            f"ramp must be positive and at most half the duration of {duration:g} s, got {ramp:g}"
        )
    start = ramp * _smoothstep_integral(t / ramp) + ca.fmax(t - ramp, 0) if from_rest else t
    return (
        start
        - ramp * _smoothstep_integral((t - duration + ramp) / ramp)
        - ca.fmax(t - duration, 0)
    )


def point(position: Vector, duration: float) -> Path:
    """The path that stays at a position (3, m) for `duration` s."""
    return symbolic(duration, lambda t: ca.DM(position))


def line(start: Vector, end: Vector, duration: float) -> Path:
    """Straight from `start` (3, m) to `end` (3, m) within `duration` s."""
    a, b = ca.DM(start), ca.DM(end)
    return symbolic(duration, lambda t: a + smoothstep(t / duration) * (b - a))


def circle(radius: float, speed: float, laps: float, ramp: float, height: float = 0.0) -> Path:
    """Horizontal circle about (0, 0, height), lengths in m, at constant `speed` (m/s) between
    ramps of `ramp` s.
    """
    rate = speed / radius
    duration = ramp + 2 * np.pi * laps / rate

    def position(t: ca.SX) -> ca.SX:
        angle = rate * cruise(t, duration, ramp)
        return ca.vertcat(radius * ca.cos(angle), radius * ca.sin(angle), height)

    return symbolic(duration, position)


def figure_of_eight(
    length: float, width: float, speed: float, laps: float, ramp: float, height: float = 0.0
) -> Path:
    """Horizontal Lissajous eight, `length` along x by `width` along y, in m, from and to its
    middle (0, 0, height), where it reaches its largest `speed` (m/s), with ramps of `ramp` s.
    """
    rate = speed / np.hypot(length / 2, width)
    duration = ramp + 2 * np.pi * laps / rate

    def position(t: ca.SX) -> ca.SX:
        angle = rate * cruise(t, duration, ramp)
        return ca.vertcat(length / 2 * ca.sin(angle), width / 2 * ca.sin(2 * angle), height)

    return symbolic(duration, position)


def parabola(duration: float = 8.0, ramp: float = 3.0) -> Path:
    """`(s - 2.5, 0, 7 - (s - 2.5)^2)`, in motion from the start with s = t until it brakes to rest
    within the last `ramp` s.

    The data of [celledoni2021 6.2] with its z pointing down (converted).
    """

    def position(t: ca.SX) -> ca.SX:
        s = cruise(t, duration, ramp, from_rest=False) - 2.5
        return ca.vertcat(s, 0, 7 - s**2)

    return symbolic(duration, position)


def through(
    times: ArrayLike,
    points: ArrayLike,
    velocities: ArrayLike | None = None,
    start: ArrayLike | None = None,
) -> Path:
    """Path through points (N, 3) at increasing times (N) from 0 that ends at rest, with the
    `velocities` (N, 3) at the points if they are given.

    It starts with the derivatives `start` (6, 3), at rest if not given. Of all such paths it has
    the least integral of the squared 7th derivative: a spline of degree 13, whose inner knots are
    double where velocities are given. Raises ValueError for shapes, values that are not finite and
    times that do not increase.
    """
    times, points = np.asarray(times, dtype=float), np.asarray(points, dtype=float)
    velocities, start = (
        None if a is None else np.asarray(a, dtype=float) for a in (velocities, start)
    )
    _require_points(times, points, velocities, start)
    scale = times[-1] / (len(times) - 1)
    ends = [
        np.zeros((ORDER, 3))
        if start is None
        else start * scale ** np.arange(1, ORDER + 1)[:, None],
        np.zeros((ORDER, 3)),
    ]
    inner = points[:0] if velocities is None else velocities[1:-1] * scale
    spline = _spline(times / scale, points, inner, *ends)
    pieces = [spline.derivative(order) if order else spline for order in range(ORDER + 1)]
    powers = scale ** -np.arange(ORDER + 1.0)[:, None]
    return Path(
        float(times[-1]),
        lambda at: (
            powers
            * np.stack([piece(np.clip(at, 0, times[-1]) / scale) for piece in pieces], axis=1)
        ),
    )


def stop(jet: ArrayLike, duration: float) -> Path:
    """Path from position and six derivatives `jet` (7, 3) to rest, with the velocity polynomial of
    least degree that meets both ends (Hermite interpolation).
    """
    m, jet = ORDER, np.asarray(jet, dtype=float)
    # stopping distance: the integral of that polynomial
    distance = sum(
        factorial(m)
        * factorial(2 * m - j)
        / (factorial(2 * m) * factorial(m - j) * factorial(j))
        * duration**j
        * jet[j]
        for j in range(1, m + 1)
    )
    return through([0.0, duration], [jet[0], jet[0] + distance], start=jet[1:])


def superpose(first: Path, second: Path) -> Path:
    """The sum of two paths that start together."""
    return Path(
        max(first.duration, second.duration), lambda times: first.jets(times) + second.jets(times)
    )


def _spline(
    times: np.ndarray, points: np.ndarray, inner: np.ndarray, start: np.ndarray, end: np.ndarray
) -> BSpline:
    """Spline of degree 13 through points, with velocities `inner` (N - 2 or 0) at the inner ones
    and derivatives 1 ... 6 at both ends.
    """
    from scipy.interpolate import BSpline  # takes long to import

    degree = 2 * ORDER + 1
    at_inner = times[1:-1] if len(inner) else times[:0]
    knots = np.sort(
        np.r_[[times[0]] * (degree + 1), times[1:-1], at_inner, [times[-1]] * (degree + 1)]
    )
    basis = BSpline(knots, np.eye(len(knots) - degree - 1), degree)
    slopes = [basis.derivative(order) for order in range(1, ORDER + 1)]
    rows = np.vstack(
        [
            basis(times),
            slopes[0](at_inner),
            *([slope(t) for slope in slopes] for t in times[[0, -1]]),
        ]
    )
    values = np.vstack([points, inner, start, end])
    size = np.abs(rows).max(axis=1, keepdims=True)
    return BSpline(knots, np.linalg.solve(rows / size, values / size), degree)


def _require_points(
    times: np.ndarray, points: np.ndarray, velocities: np.ndarray | None, start: np.ndarray | None
) -> None:
    if (
        times.ndim != 1
        or len(times) < 2
        or points.shape != (len(times), 3)
        or not (np.isfinite(times).all() and np.isfinite(points).all())
    ):
        raise ValueError(
            f"a path needs at least two finite points (N, 3) and as many times, got shapes "
            f"{points.shape} and {times.shape}"
        )
    for name, value, shape in (
        ("velocities", velocities, points.shape),
        ("start", start, (ORDER, 3)),
    ):
        if value is not None and (value.shape != shape or not np.isfinite(value).all()):
            raise ValueError(
                f"{name} of a path must be finite with shape {shape}, got shape {value.shape}"
            )
    if times[0] != 0 or not (np.diff(times) > 0).all():
        raise ValueError(f"the times of a path must increase from 0, got {times.tolist()}")
