"""The tippe top: a ball with its center of mass off its center, which friction turns over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

import nh_control as nh
from nh_control.benchmarks.benchmark import CLOSED_FORM, Benchmark
from nh_control.benchmarks.motion import METHOD, moved
from nh_control.multibody import Body, Element, Kinematics, Point, PointOnPlane, floating

MASS, RADIUS, GRAVITY = 0.02, 0.02, 9.82
OFFSET = 0.3 * RADIUS
"""Of the center of mass below the center of the ball, m."""
AXIAL = 2 / 5 * MASS * RADIUS**2
ACROSS = 131 / 350 * MASS * RADIUS**2
"""Inertias about the center of mass."""
FRICTION = 0.3 * MASS * GRAVITY
"""Viscous, N s/m: 0.3 s/m times the weight."""
TILT, SPIN, DURATION = 0.1, 155.0, 30.0


@dataclass(frozen=True)
class SlidingFriction(Element):
    """A force against the sliding of a ball on the ground, `-FRICTION * slip`."""

    frame: str

    def power(self, k: Kinematics, virtual: Kinematics) -> ca.SX:
        slips = []
        for motion in (k, virtual):
            touch = next(nh.Sphere(RADIUS).touches(motion, Point(self.frame), nh.Plane()))
            slips.append(touch.tangents @ touch.velocity)
        return -FRICTION * ca.dot(*slips)


def top() -> nh.Multibody:
    """The ball stays on the plane z = 0; its frame is at its center, its axis along z."""
    return nh.Multibody(
        "tippe_top",
        [floating("top", space="SO3xR3")],
        [Body("top", MASS, (0, 0, -OFFSET), (ACROSS, ACROSS, AXIAL))],
        elements=[SlidingFriction("top")],
        constraints=[PointOnPlane("ground", "top", Point("world", (0, 0, RADIUS)))],
        gravity=(0, 0, -GRAVITY),
    )


def jellett() -> float:
    """Jellett's integral `-L . a` of the start, L the angular momentum about the center of mass, a
    from there to the point that touches. Friction keeps it.
    """
    return AXIAL * SPIN * (RADIUS * np.cos(TILT) - OFFSET)


def compute() -> Mapping[str, float]:
    model = top()
    names = model.space.names
    turn = dict(zip(names[:4], (np.cos(TILT / 2), np.sin(TILT / 2), 0.0, 0.0)))
    q = model.configuration({**turn, names[6]: RADIUS})
    v = np.array([0.0, 0.0, SPIN, 0.0, 0.0, 0.0])
    q, v = moved(model.system, q, v, DURATION, steps=20_000)
    pose = model.pose(q, "top")
    center = pose.position - OFFSET * pose.rotation[:, 2]
    momentum = pose.rotation @ (np.array([ACROSS, ACROSS, AXIAL]) * v[:3])
    arm = pose.position - [0, 0, RADIUS] - center
    return {
        "height of the center of mass, m": center[2],
        "spin about the vertical, rad/s": (pose.rotation @ v[:3])[2],
        "Jellett's integral, kg m^3/s": -momentum @ arm,
    }


TIPPE_TOP = Benchmark(
    name="tippe_top",
    title="tippe top: turned over after 30 s, spin and Jellett's integral",
    source="turned over, height and spin follow from Jellett's integral (1872)",
    reference=CLOSED_FORM,
    published={
        "height of the center of mass, m": RADIUS + OFFSET,
        "spin about the vertical, rad/s": jellett() / AXIAL / (RADIUS + OFFSET),
        "Jellett's integral, kg m^3/s": jellett(),
    },
    compute=compute,
    method=METHOD,
)
