"""The bodies with spherical joints in [mueller2013 5] as trees of frames. They are a box as a top,
a double pendulum, two floating bodies, and a closed loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nh_control.multibody import (
    WORLD,
    Body,
    JointConstraint,
    Multibody,
    Point,
    floating,
    spherical,
)

DENSITY = 2700.0
"""Density of aluminum, kg/m^3."""
LINK = (0.2, 0.1, 0.05)
"""Sides of a link, m."""
BASE = 0.3
"""Distance (m) between the two joints of the closed loop on the ground. The paper does not state
it.
"""
NONE = (0.0, 0.0, 0.0)


def box(frame: str, sides: Sequence[float], center: Sequence[float] = NONE) -> Body:
    """A solid aluminum box with sides (a, b, c) along the frame's axes, and
    `J = m/12 diag(b^2 + c^2, a^2 + c^2, a^2 + b^2)`.
    """
    mass, squares = DENSITY * float(np.prod(sides)), np.square(sides)
    return Body(frame, mass, tuple(center), mass / 12 * (squares.sum() - squares))


def box_top(gravity: tuple[float, float, float] = NONE) -> Multibody:
    """A box with a mass of 21.6 kg and its center 0.5 m from the pivot, under `gravity` (3) in
    m/s^2 [mueller2013 5.1].
    """
    return Multibody(
        "box_top",
        frames=[spherical("box")],
        bodies=[box("box", (0.1, 0.2, 0.4), center=(0.5, 0.0, 0.0))],
        gravity=gravity,
    )


def double_pendulum() -> Multibody:
    """Two consecutive links under gravity. At the origin of the space, they are aligned with x
    [mueller2013 5.2].
    """
    half = (LINK[0] / 2, 0.0, 0.0)
    return Multibody(
        "spherical_double_pendulum",
        frames=[spherical("upper"), spherical("lower", "upper", position=(LINK[0], 0.0, 0.0))],
        bodies=[box("upper", LINK, half), box("lower", LINK, half)],
    )


def floating_pair() -> Multibody:
    """Two links that are joined at their ends and float without gravity. The frame of the first
    link is at its center, and the frame of the second link is at the joint [mueller2013 5.3].
    """
    half = (LINK[0] / 2, 0.0, 0.0)
    return Multibody(
        "floating_pair",
        frames=[floating("first"), spherical("second", "first", position=half)],
        bodies=[box("first", LINK), box("second", LINK, half)],
        gravity=NONE,
    )


def three_bar_loop() -> Multibody:
    """Two links and the ground, connected by three spherical joints to form a triangle in the xz
    plane, under gravity [mueller2013 5.4].

    In the tree, the link "left" is on the ground, and the link "right" is at its end. The
    constraint "base" closes the loop.
    """
    half, end = (LINK[0] / 2, 0.0, 0.0), (LINK[0], 0.0, 0.0)
    # in an isosceles triangle, BASE / 2 = length cos(down)
    down = np.arccos(BASE / 2 / LINK[0])
    return Multibody(
        "three_bar_loop",
        frames=[
            spherical("left", rotation=_about_y(down)),
            spherical("right", "left", position=end, rotation=_about_y(-2 * down)),
        ],
        bodies=[box("left", LINK, half), box("right", LINK, half)],
        constraints=[
            JointConstraint(
                "base", "spherical", Point(WORLD, (BASE, 0.0, 0.0)), Point("right", end)
            )
        ],
    )


def _about_y(angle: float) -> np.ndarray:
    """Rotation (3, 3) about y. A positive angle turns x downward."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
