"""Lengths of lines through points in a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.multibody.kinematics import Kinematics, Point
from nh_control.multibody.parts import MultibodyParts


@dataclass(frozen=True)
class TapeMeasure:
    """A line from point to point (each a `Point` or a frame's name), for user-defined elements and
    constraints. It has the length `sum_i |r_{i+1} - r_i|` (m) and the rate of this length.
    Consecutive points must not coincide, because the length has no derivative there.

    Raises ValueError for fewer than two points.
    """

    points: Sequence[Point | str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", tuple(self.points))
        if len(self.points) < 2:
            raise ValueError(f"a tape measure needs two or more points, got {self.points}")

    def length(self, k: Kinematics) -> ca.SX:
        """The length at k."""
        positions = map(k.position, self.points)
        return sum((ca.norm_2(b - a) for a, b in pairwise(positions)), ca.SX(0))

    def rate(self, k: Kinematics) -> ca.SX:
        """The rate (m/s) of the length at k."""
        ends = ((k.position(point), k.velocity(point)) for point in self.points)
        return sum(
            (
                # d/dt |d| = d . d' / |d|
                ca.dot(q1 - q0, v1 - v0) / ca.norm_2(q1 - q0)
                for (q0, v0), (q1, v1) in pairwise(ends)
            ),
            ca.SX(0),
        )

    def measure(self, model: MultibodyParts, q: ArrayLike, v: ArrayLike) -> tuple[float, float]:
        """Length and rate of a model at configuration q (nq) and velocity v (nw)."""
        k = model.kinematics(ca.SX(np.asarray(q, float)), ca.SX(np.asarray(v, float)))
        return float(ca.DM(self.length(k))), float(ca.DM(self.rate(k)))
