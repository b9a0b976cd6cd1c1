"""The bodies on spherical joints of [mueller2013 5], as trees of frames: a box as a top, a double
pendulum, two floating bodies, a closed loop.
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
"""Distance of the closed loop's two joints on the ground, m; the paper gives none."""
NONE = (0.0, 0.0, 0.0)


def box(frame: str, sides: Sequence[float], center: Sequence[float] = NONE) -> Body:
    """A solid aluminum box with sides (a, b, c) along the axes of the frame,
    `J = m/12 diag(b^2 + c^2, a^2 + c^2, a^2 + b^2)`.
    """
    mass, squares = DENSITY * float(np.prod(sides)), np.square(sides)
    return Body(frame, mass, tuple(center), mass / 12 * (squares.sum() - squares))


def box_top(gravity: tuple[float, float, float] = NONE) -> Multibody:
    """A box of 21.6 kg, its center 0.5 m from the pivot, with `gravity` (3) in m/s^2
    [mueller2013 5.1].
    """
    return Multibody(
        "box_top",
        frames=[spherical("box")],
        bodies=[box("box", (0.1, 0.2, 0.4), center=(0.5, 0.0, 0.0))],
        gravity=gravity,
    )


def double_pendulum() -> Multibody:
    """Two links in a row, aligned with x at the origin, in gravity [mueller2013 5.2]."""
    half = (LINK[0] / 2, 0.0, 0.0)
    return Multibody(
        "spherical_double_pendulum",
        frames=[spherical("upper"), spherical("lower", "upper", position=(LINK[0], 0.0, 0.0))],
        bodies=[box("upper", LINK, half), box("lower", LINK, half)],
    )


def floating_pair() -> Multibody:
    """Two links joined end to end, floating without gravity; the frame of the first is at its
    center, that of the other at the joint [mueller2013 5.3].
    """
    half = (LINK[0] / 2, 0.0, 0.0)
    return Multibody(
        "floating_pair",
        frames=[floating("first"), spherical("second", "first", position=half)],
        bodies=[box("first", LINK), box("second", LINK, half)],
        gravity=NONE,
    )


def three_bar_loop() -> Multibody:
    """Two links and the ground, joined to a triangle in the plane x, z by three spherical joints,
    in gravity [mueller2013 5.4].

    The tree is link "left" on the ground, "right" at its end; a constraint "base" closes the loop.
    """
    half, end = (LINK[0] / 2, 0.0, 0.0), (LINK[0], 0.0, 0.0)
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
    """Rotation that takes x down by a positive angle, (3, 3)."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
