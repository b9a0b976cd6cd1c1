"""Portraits of nonholonomic systems, which are pictures of their motions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D

from nh_control import systems
from nh_control.figures import style
from nh_control.figures.scene import visual_scene
from nh_control.figures.spatial import draw_scene
from nh_control.integrators import nonholonomic_midpoint
from nh_control.mechanics.system import System
from nh_control.scenarios import (
    car_visual,
    chaotic_quartic_visual,
    chaplygin_sleigh_visual,
    differential_drive_visual,
    gearbox_visual,
    roller_racer_visual,
    rolling_ball_visual,
    rolling_disk_visual,
    snakeboard_visual,
    suslov_visual,
)
from nh_control.scenarios.visual_model import VisualModel

SHOWN = 6
"""Number of times at which a system is drawn."""
VIEW = {"elev": 38, "azim": -62}


@dataclass(frozen=True)
class Portrait:
    """A system with its visual model and its motion. The motion starts at a configuration q (nq)
    with a velocity v (nw), has the inputs `inputs(t)`, and is computed in steps of h s.
    """

    make: Callable[[], System]
    visual: Callable[[Any], VisualModel]
    q: tuple[float, ...]
    v: tuple[float, ...]
    h: float
    steps: int
    inputs: Callable[[float], list[float]] | None = None

    def configurations(self) -> tuple[System, np.ndarray]:
        """Return the system and its configurations (steps + 1, nq)."""
        dsys = nonholonomic_midpoint(self.make(), self.h)
        # The inputs are evaluated at the midpoints of the steps.
        times = self.h * (np.arange(self.steps) + 0.5)
        # Systems without an input function coast.
        u = np.zeros((self.steps, dsys.nu))
        if self.inputs is not None:
            u[:] = [self.inputs(t) for t in times]
        run = dsys.simulate(dsys.state(np.array(self.q), np.array(self.v)), u)
        return dsys.system, run.states[:, : dsys.system.space.nq]


PORTRAITS: Mapping[str, Portrait] = {
    "rolling disk": Portrait(
        systems.rolling_disk,
        rolling_disk_visual.visual_model,
        (0.0, 0.0, 0.0, 0.0),
        (4.0, 1.0, 1.0, 0.0),
        0.02,
        220,
    ),
    "Chaplygin sleigh": Portrait(
        systems.chaplygin_sleigh,
        chaplygin_sleigh_visual.visual_model,
        (0.0, 0.0, 0.0),
        (0.3, -1.0, 0.3),
        0.02,
        400,
    ),
    "snakeboard": Portrait(
        systems.snakeboard,
        snakeboard_visual.visual_model,
        (0.0, 0.4, 0.0, 0.0, 0.0),
        (0.0, 0.0, -0.4228, 2.0, 0.0),
        0.02,
        300,
    ),
    "differential drive": Portrait(
        systems.differential_drive,
        differential_drive_visual.visual_model,
        (0.0, 0.0, 0.0, 0.0, 0.0),
        (4.0, 6.0, 0.533, 0.4, 0.0),
        0.02,
        250,
        lambda t: [-0.01, 0.03],
    ),
    "car": Portrait(
        systems.car,
        car_visual.visual_model,
        (0.0, 0.35, 0.0, 0.0, 0.0),
        (10.0, 0.0, np.tan(0.35) / 2.5 * 3.0, 3.0, 0.0),
        0.02,
        300,
    ),
    "roller racer": Portrait(
        systems.roller_racer,
        roller_racer_visual.visual_model,
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 0.0, 0.5, 0.0),
        0.02,
        350,
        lambda t: [3.0 * np.cos(2 * np.pi * t)],
    ),
    "rolling ball": Portrait(
        systems.rolling_ball,
        rolling_ball_visual.visual_model,
        (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        (0.5, 3.0, 4.0, 0.6, -0.1),
        0.02,
        150,
    ),
    "Suslov problem": Portrait(
        systems.suslov,
        suslov_visual.visual_model,
        (1.0, 0.0, 0.0, 0.0),
        (0.9, 0.2, 0.0),
        0.02,
        120,
    ),
    "gearbox": Portrait(
        systems.gearbox,
        gearbox_visual.visual_model,
        (0.5, -1.0, 2.0),
        (-0.4, 0.44, 0.5),
        0.02,
        120,
    ),
    "chaotic quartic": Portrait(
        systems.chaotic_quartic,
        chaotic_quartic_visual.visual_model,
        (0.3, 0.5, -0.6, 0.4, 0.7, -0.2, 0.5),
        (-0.2, 0.6, -0.4, 0.7, 0.5, 0.8, -0.3),
        0.02,
        250,
    ),
}
"""The portraits by name. Every initial velocity leads to an admissible state."""


def sheet(columns: int = 5) -> Figure:
    """Draw all portraits in a single figure."""
    rows = -(-len(PORTRAITS) // columns)
    figure = Figure(figsize=(2.6 * columns, 2.5 * rows), layout="constrained")
    for place, (name, portrait) in enumerate(PORTRAITS.items(), 1):
        axes: Axes3D = figure.add_subplot(
            rows, columns, place, projection="3d", computed_zorder=False
        )
        axes.set_title(name, loc="center")
        draw(axes, portrait)
    return figure


def draw(axes: Axes3D, portrait: Portrait) -> None:
    """Draw the system at equal time intervals, in colors that show the time, and draw its
    trail.
    """
    system, configurations = portrait.configurations()
    visual = portrait.visual(system.parameters)
    trail = np.array(
        [visual.poses(system.parameters, q)[visual.trail].position for q in configurations]
    )
    axes.plot(*trail.T, color=style.RUN, linewidth=1.2, zorder=2)
    points = [trail]
    colors = matplotlib.colormaps["viridis"]
    # Nodes at equal time intervals.
    for k in np.linspace(0, len(configurations) - 1, SHOWN).round().astype(int):
        shapes = visual_scene(visual, system.parameters, configurations[k])
        draw_scene(axes, shapes, colors(0.92 * k / len(configurations)))
        points.append(shapes.points)
    fit(axes, np.vstack(points), VIEW)


def fit(axes: Axes3D, points: np.ndarray, view: Mapping[str, float]) -> None:
    """Show points (n, 3) at the same scale in all directions and hide the axes. `view` contains
    the arguments of `Axes3D.view_init`.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    # For equal scales, the box has the proportions of the data.
    axes.set_box_aspect(high - low, zoom=1.0)
    axes.view_init(**view)
    axes.set_axis_off()
