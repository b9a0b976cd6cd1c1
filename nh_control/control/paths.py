"""Smooth paths of a point, with their time derivatives. Unless stated otherwise, paths start and
end at rest.
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
"""Order of the highest derivative of paths and jets."""


@dataclass(frozen=True)
class Path:
    """A path of `duration` s. `jets(times)` returns the position (m) and its derivatives up to
    order 6 at times (N), with shape (N, 7, 3). After `duration`, the point is at rest.
    """

    duration: float
    jets: Callable[[Vector], np.ndarray]


def symbolic(duration: float, position: Callable[[ca.SX], Expression]) -> Path:
    """The path `position(t)` (3, m), a CasADi expression with six derivatives, which automatic
    differentiation computes. Raises ValueError unless the duration (s) is positive and finite.
    """
    if not (np.isfinite(duration) and duration > 0):
        raise ValueError(f"the duration of a path must be positive and finite, got {duration}")
    t = ca.SX.sym("t")
    derivatives = [ca.SX(ca.vertcat(position(t)))]
    for _ in range(ORDER):
        derivatives.append(ca.jacobian(derivatives[-1], t))
    values = ca.Function("jets", [t], [ca.horzcat(*derivatives)], {"cse": True})

    def jets(times: Vector) -> np.ndarray:
        if not np.size(times):  # CasADi treats an argument without columns as zero
            return np.empty((0, ORDER + 1, 3))
        side_by_side = np.asarray(values(np.reshape(times, (1, -1))))  # one call for all times
        return side_by_side.reshape(3, np.size(times), ORDER + 1).transpose(1, 2, 0)

    return Path(duration, jets)


def smoothstep(s: ca.SX) -> ca.SX:
    """The polynomial from 0 at s <= 0 to 1 at s >= 1 whose derivatives up to order 6 are zero at
    both ends.
    """
    s = ca.fmin(ca.fmax(s, 0), 1)
    # s^(n+1) sum_k c_k s^k with n = ORDER
    return s ** (ORDER + 1) * sum(c * s**k for k, c in enumerate(_STEP))


def _smoothstep_integral(s: ca.SX) -> ca.SX:
    s = ca.fmin(ca.fmax(s, 0), 1)
    return s ** (ORDER + 2) * sum(c / (ORDER + 2 + k) * s**k for k, c in enumerate(_STEP))


_STEP = [comb(ORDER + k, k) * comb(2 * ORDER + 1, ORDER - k) * (-1) ** k for k in range(ORDER + 1)]


def cruise(t: ca.SX, duration: float, ramp: float, from_rest: bool = True) -> ca.SX:
    """Path parameter (s) with rate 1 between ramps of `ramp` s. It starts at rest unless
    `from_rest` is False, and is constant after `duration`.

    The final value is `duration - ramp`, or `duration - ramp / 2` if the path parameter does not
    start at rest. Raises ValueError if the ramp is longer than half the duration.
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
    """The straight path from `start` (3, m) to `end` (3, m) in `duration` s."""
    a, b = ca.DM(start), ca.DM(end)
    return symbolic(duration, lambda t: a + smoothstep(t / duration) * (b - a))


def circle(radius: float, speed: float, laps: float, ramp: float, height: float = 0.0) -> Path:
    """A horizontal circle about (0, 0, height), with lengths in m, at constant `speed` (m/s)
    between ramps of `ramp` s.
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
    """A horizontal Lissajous figure of eight with `length` along x and `width` along y, in m.

    The path starts and ends at its center (0, 0, height) with ramps of `ramp` s. Its highest
    speed, `speed` (m/s), is at the center.
    """
    # the speed at the center is rate |(length / 2, width)|
    rate = speed / np.hypot(length / 2, width)
    duration = ramp + 2 * np.pi * laps / rate

    def position(t: ca.SX) -> ca.SX:
        angle = rate * cruise(t, duration, ramp)
        return ca.vertcat(length / 2 * ca.sin(angle), width / 2 * ca.sin(2 * angle), height)

    return symbolic(duration, position)


def parabola(duration: float = 8.0, ramp: float = 3.0) -> Path:
    """The path `(s - 2.5, 0, 7 - (s - 2.5)^2)`. It starts in motion with s = t and comes to rest
    in the last `ramp` s.

    The data are those of [celledoni2021 6.2], converted from a z axis that points down.
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
    """Path through points (N, 3) at increasing times (N) from 0, with optional `velocities` (N, 3)
    at the points. It ends at rest.

    The path starts with the derivatives `start` (6, 3), by default at rest. Among all such paths,
    it minimizes the integral of the squared 7th derivative. The path is a spline of degree 13. If
    there are velocities, its inner knots are double. Raises ValueError for wrong shapes, values
    that are not finite, and times that do not increase.
    """
    times, points = np.asarray(times, dtype=float), np.asarray(points, dtype=float)
    velocities, start = (
        None if a is None else np.asarray(a, dtype=float) for a in (velocities, start)
    )
    _require_points(times, points, velocities, start)
    # if times are in units of the mean interval, the equations are well conditioned
    scale = times[-1] / (len(times) - 1)
    rest = np.zeros((ORDER, 3))
    first = rest if start is None else start * scale ** np.arange(1, ORDER + 1)[:, None]
    inner = points[:0] if velocities is None else velocities[1:-1] * scale
    spline = _spline(times / scale, points, inner, first, rest)
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
    """Path from the position and six derivatives in `jet` (7, 3) to rest. Its velocity is the
    polynomial of lowest degree that satisfies the conditions at both ends (Hermite interpolation).
    """
    m, jet = ORDER, np.asarray(jet, dtype=float)
    # the stopping distance is the integral of the velocity polynomial
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
    """The spline of degree 13 through points, with velocities `inner` (N - 2 or 0) at the inner
    points and given derivatives 1 ... 6 at both ends.
    """
    from scipy.interpolate import BSpline  # slow to import

    degree = 2 * ORDER + 1
    at_inner = times[1:-1] if len(inner) else times[:0]
    knots = np.sort(
        np.r_[[times[0]] * (degree + 1), times[1:-1], at_inner, [times[-1]] * (degree + 1)]
    )
    basis = BSpline(knots, np.eye(len(knots) - degree - 1), degree)
    slopes = [basis.derivative(order) for order in range(1, ORDER + 1)]
    # rows: positions, inner velocities, derivatives at both ends; scaled to similar sizes
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
            f"a path needs at least two finite points (N, 3) and the same number of times, got "
            f"shapes {points.shape} and {times.shape}"
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
