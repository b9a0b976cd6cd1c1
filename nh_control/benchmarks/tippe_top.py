"""The tippe top: friction inverts a ball whose center of mass is below its geometric center."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

import nh_control as nh
from nh_control.benchmarks.benchmark import CLOSED_FORM, Benchmark
from nh_control.benchmarks.motion import METHOD, integrate
from nh_control.multibody import Body, Element, Kinematics, Point, PointOnPlane, floating

MASS, RADIUS, GRAVITY = 0.02, 0.02, 9.82
OFFSET = 0.3 * RADIUS
"""Distance (m) of the center of mass below the center of the ball."""
AXIAL = 2 / 5 * MASS * RADIUS**2
ACROSS = 131 / 350 * MASS * RADIUS**2
"""Inertias about the center of mass."""
FRICTION = 0.3 * MASS * GRAVITY
"""Viscous friction, N s/m: 0.3 s/m times the weight."""
TILT, SPIN, DURATION = 0.1, 155.0, 30.0


@dataclass(frozen=True)
class SlidingFriction(Element):
    """A force that opposes the sliding of a ball on the ground, `-FRICTION * slip`."""

    frame: str

    def power(self, k: Kinematics, virtual: Kinematics) -> ca.SX:
        slips = []
        for motion in (k, virtual):
            # The slip is the tangential velocity of the point of contact.
            touch = next(nh.Sphere(RADIUS).touches(motion, Point(self.frame), nh.Plane()))
            slips.append(touch.tangents @ touch.velocity)
        return -FRICTION * ca.dot(*slips)


def top() -> nh.Multibody:
    """Return the ball, which stays on the plane z = 0. Its frame is at its center, and its axis is
    z.
    """
    return nh.Multibody(
        "tippe_top",
        [floating("top", space="SO3xR3")],
        [Body("top", MASS, (0, 0, -OFFSET), (ACROSS, ACROSS, AXIAL))],
        elements=[SlidingFriction("top")],
        constraints=[PointOnPlane("ground", "top", Point("world", (0, 0, RADIUS)))],
        gravity=(0, 0, -GRAVITY),
    )


def jellett() -> float:
    """Return the initial value of Jellett's integral `-L . a`, where L is the angular momentum
    about the center of mass and a is the vector from there to the point of contact. Friction does
    not change this integral.
    """
    return AXIAL * SPIN * (RADIUS * np.cos(TILT) - OFFSET)


def compute() -> Mapping[str, float]:
    model = top()
    names = model.space.names
    turn = dict(zip(names[:4], (np.cos(TILT / 2), np.sin(TILT / 2), 0.0, 0.0)))
    q = model.configuration({**turn, names[6]: RADIUS})
    v = np.array([0.0, 0.0, SPIN, 0.0, 0.0, 0.0])
    q, v = integrate(model.system, q, v, DURATION, steps=20_000)
    # L about the center of mass, and the vector a from there to the lowest point of the ball.
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
    title="tippe top: height after the inversion (30 s), spin and Jellett's integral",
    source="after the inversion, height and spin follow from Jellett's integral (1872)",
    reference=CLOSED_FORM,
    published={
        "height of the center of mass, m": RADIUS + OFFSET,
        "spin about the vertical, rad/s": jellett() / AXIAL / (RADIUS + OFFSET),
        "Jellett's integral, kg m^3/s": jellett(),
    },
    compute=compute,
    method=METHOD,
)
