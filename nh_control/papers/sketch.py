"""Sketches of the mechanical systems that the papers treat, as their visual models show them."""

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
"""Views of systems that move on the ground, and in a plane that stands on it."""


@dataclass(frozen=True)
class Sketched:
    """A system to sketch: its looks at configuration q (nq) and the `marks`, texts at the origins
    of the visual model's frames; `view` is that of `Axes3D.view_init`.
    """

    title: str
    visual: VisualModel
    parameters: Any
    q: np.ndarray
    marks: Mapping[str, str] = field(default_factory=dict)
    view: Mapping[str, float] = field(default_factory=lambda: portraits.VIEW)


def sketch(axes: Axes3D, one: Sketched) -> None:
    """Draw the system in equal scales in all directions, without axes."""
    shapes = visual_scene(one.visual, one.parameters, one.q)
    draw_scene(axes, shapes, TARGET)
    poses = one.visual.poses(one.parameters, one.q)
    for frame, text in one.marks.items():
        axes.text(*poses[frame].position, text, zorder=10, **MARK)
    portraits.fit(axes, shapes.points, one.view)
    axes.set_proj_type("ortho")
    axes.set_title(one.title, loc="center")
    for artist in axes.collections:
        artist.set_clip_on(False)


def draw(*systems: Sketched) -> Figure:
    """Sketches side by side."""
    size = (PANEL_IN * len(systems), PANEL_IN)
    figure = Figure(figsize=size, layout="constrained")
    for place, one in enumerate(systems, 1):
        axes: Axes3D = figure.add_subplot(
            1, len(systems), place, projection="3d", computed_zorder=False
        )
        sketch(axes, one)
    return figure


def experiment(number: str, title: str, *systems: Sketched) -> Experiment:
    """A figure of a paper that shows its systems, which has no numbers."""
    return Experiment(number, title, lambda _: Outcome(lambda: draw(*systems), {}))
