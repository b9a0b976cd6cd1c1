"""Obstacles as constraints on a scenario's motions: balls, pillars and windows, with their
shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import casadi as ca
import numpy as np

from nh_control.control.constraints import Constraint
from nh_control.control.path_constraints import keep_out
from nh_control.discrete.system import DiscreteSystem
from nh_control.scenarios.constraints import OBSTACLES, ScenarioConstraint
from nh_control.scenarios.visual_model import Shape, Vector

RED = (0.8, 0.2, 0.18)
PILLAR_M, BAR_M = 0.5, 0.05
"""Height of a pillar, and thickness of the bars around a window (m)."""
Point: TypeAlias = "Callable[[ca.SX], ca.SX] | str"
"""A point, which is a function of the configuration or a frame of a `Multibody`."""


def together(name: str, parts: Sequence[Constraint], weight: float) -> Constraint:
    """A single soft constraint `f >= 0` that contains the rows of several constraints."""
    return Constraint(
        name,
        lambda x, u, w: ca.vertcat(*(part.f(x, u, w) for part in parts)),
        lower=0.0,
        weight=weight,
    )


def clear_of(
    points: Sequence[Point],
    balls: Sequence[tuple[Sequence[float], float]],
    weight: float,
    references: tuple[str, ...] = (),
    shapes: Sequence[Shape] | None = None,
) -> ScenarioConstraint:
    """Points stay outside of balls (center and radius in m), or outside of pillars if the centers
    are planar. The balls or pillars are drawn, unless other `shapes` are passed.
    """

    def make(model: DiscreteSystem) -> Constraint:
        parts = [
            keep_out(model, point, center, radius) for point in points for center, radius in balls
        ]
        return together("obstacles", parts, weight)

    drawn = [_pillar(c, r) if len(c) == 2 else _ball(c, r) for c, r in balls]
    return ScenarioConstraint(make, "m", references, tuple(drawn if shapes is None else shapes))


def through_windows(
    point: Callable[[ca.SX], ca.SX],
    windows: Sequence[tuple[Vector, float]],
    depth: float,
    weight: float,
    references: tuple[str, ...] = (),
    size: float = 0.0,
) -> ScenarioConstraint:
    """A point (3) that depends on the configuration passes through windows in walls perpendicular
    to x.

    A window consists of its center (3) and the radius r of its opening (m). The point stays inside
    a one-sheeted hyperboloid that touches the opening and widens over `depth` (m):
    `(1 - (y^2 + z^2) / r^2 + x^2 / depth^2) r / 2 >= 0`. Windows are drawn open at the top. If the
    body around the point has a `size` (m), the windows are closed and enlarged by this size.
    """

    def make(model: DiscreteSystem) -> Constraint:
        def inside(x: ca.SX, u: ca.SX, w: ca.SX) -> ca.SX:
            rows, position = [], point(x[: model.system.space.nq])
            for center, r in windows:
                # The factor r / 2 makes the value a distance (m) near the edge of the opening.
                d = position - np.array(center)
                rows.append((1 - (d[1] ** 2 + d[2] ** 2) / r**2 + d[0] ** 2 / depth**2) * r / 2)
            return ca.vertcat(*rows)

        return Constraint("windows", inside, lower=0.0, weight=weight)

    bars = tuple(
        bar for center, radius in windows for bar in _window(center, radius + size, size > 0)
    )
    return ScenarioConstraint(make, "m", references, bars)


def _window(center: Vector, radius: float, closed: bool) -> tuple[Shape, ...]:
    """Bars on both sides of a window and below it. There is also a bar above the window if it is
    closed.
    """
    (x, y, z), out = center, radius + BAR_M / 2
    height, width = 2 * radius, 2 * radius + 2 * BAR_M
    level = (z - out, z + out) if closed else (z - out,)
    return (
        Shape("box", (BAR_M, BAR_M, height), RED, OBSTACLES, (x, y - out, z)),
        Shape("box", (BAR_M, BAR_M, height), RED, OBSTACLES, (x, y + out, z)),
        *(Shape("box", (BAR_M, width, BAR_M), RED, OBSTACLES, (x, y, at)) for at in level),
    )


def _ball(center: Sequence[float], radius: float) -> Shape:
    x, y, z = center
    return Shape("sphere", (2 * radius,) * 3, RED, OBSTACLES, (x, y, z), opacity=0.5)


def _pillar(center: Sequence[float], radius: float) -> Shape:
    extents = (2 * radius, 2 * radius, PILLAR_M)
    x, y = center
    return Shape("cylinder", extents, RED, OBSTACLES, (x, y, PILLAR_M / 2), opacity=0.7)
