"""Sketches of the papers' mechanical systems, drawn from their visual models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D

from nh_control.figures import portraits
from nh_control.figures.scene import visual_scene
from nh_control.figures.spatial import draw_scene
from nh_control.figures.style import TARGET
from nh_control.papers.paper import Experiment, Outcome
from nh_control.scenarios.visual_model import VisualModel

PANEL_IN = 3.2
MARK: dict[str, Any] = {
    "fontsize": 10,
    "ha": "center",
    "va": "center",
    "bbox": {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.0},
}
PLAN = {"elev": 55, "azim": -75}
FRONT = {"elev": 5, "azim": -90}
"""Views of systems that move on the ground, and of systems in a vertical plane."""


@dataclass(frozen=True)
class Sketched:
    """A system to sketch: its visual model at configuration q (nq). `marks` contains texts drawn
    at the origins of the model's frames. `view` contains arguments for `Axes3D.view_init`.
    """

    title: str
    visual: VisualModel
    parameters: Any
    q: np.ndarray
    marks: Mapping[str, str] = field(default_factory=dict)
    view: Mapping[str, float] = field(default_factory=lambda: portraits.VIEW)


def sketch(axes: Axes3D, system: Sketched) -> None:
    """Draw a system at the same scale in all directions, without axes."""
    shapes = visual_scene(system.visual, system.parameters, system.q)
    draw_scene(axes, shapes, TARGET)
    poses = system.visual.poses(system.parameters, system.q)
    for frame, text in system.marks.items():
        x, y, z = poses[frame].position
        axes.text(x, y, z, text, zorder=10, **MARK)
    portraits.fit(axes, shapes.points, system.view)
    axes.set_proj_type("ortho")
    axes.set_title(system.title, loc="center")
    # The axes are tight. Without this setting, they would cut off wheels and tips.
    for artist in axes.collections:
        artist.set_clip_on(False)


def draw(*systems: Sketched) -> Figure:
    """Draw sketches side by side."""
    size = (PANEL_IN * len(systems), PANEL_IN)
    figure = Figure(figsize=size, layout="constrained")
    for number, system in enumerate(systems, 1):
        axes: Axes3D = figure.add_subplot(
            1, len(systems), number, projection="3d", computed_zorder=False
        )
        sketch(axes, system)
    return figure


def experiment(number: str, title: str, *systems: Sketched) -> Experiment:
    """Return an experiment that draws systems and has no numbers."""
    return Experiment(number, title, lambda _: Outcome(lambda: draw(*systems), {}))
