"""Stick figures: the motion of what a scenario looks like, for scenarios that show joints only."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Line3DCollection

from nh_control.experiment import Result
from nh_control.figures import style
from nh_control.scenarios.look import Look, Pose

SHOWN = 6
VIEW = {"elev": 12, "azim": 35}
POINTS_PER_M = 40.0
"""Width of a drawn limb in points per m of its diameter."""
CABLE, GHOST = 0.6, {"colors": style.TARGET, "linewidths": 0.6, "linestyles": [(0, (2, 2))]}


def path(result: Result) -> Figure:
    """The system at equal intervals of time, side by side, over its reference (dashed)."""
    experiment, states = result.experiment, result.loop.trajectory.states
    parameters = experiment.plant.system.parameters
    look = experiment.scenario.look(experiment.scenario.parameters)
    nodes = np.unique(np.linspace(0, len(states) - 1, SHOWN).round().astype(int))
    drawn = [[look.poses(parameters, table[k]) for table in (states, result.targets)] for k in nodes]
    figure = Figure(figsize=(style.WIDTH, style.WIDTH), layout="constrained")
    panels = figure.subplots(2, -(-len(nodes) // 2), subplot_kw={"projection": "3d", "computed_zorder": False}, squeeze=False).ravel()
    for panel in panels[len(nodes) :]:
        panel.set_visible(False)
    for panel, k, (run, target) in zip(panels, nodes, drawn):
        draw(panel, look, target, ghost=True)
        draw(panel, look, run)
        panel.set_title(f"t = {result.loop.trajectory.times[k]:.1f} s", fontsize=9)
    frame(panels[: len(nodes)], np.vstack([ends(look, poses).reshape(-1, 3) for pair in drawn for poses in pair]))
    figure.suptitle(f"{style.title(result)}: {style.run_label(result)}, dashed: reference", x=0.02, ha="left", fontsize=10)
    return figure


def ends(look: Look, poses: Mapping[str, Pose]) -> np.ndarray:
    """Ends (n, 2, 3) in m of the sticks: the longest axes of boxes, cylinders and spheres, then the cables."""
    sticks = []
    for shape in look.shapes:
        pose, extents = poses[shape.frame], np.array(shape.extents)
        half = np.where(np.arange(3) == np.argmax(extents), extents / 2, 0.0)
        sticks.append([pose.position + pose.rotation @ (np.array(shape.offset) + sign * half) for sign in (-1, 1)])
    cables = [[poses[cable.start].position, poses[cable.end].position] for cable in look.cables]
    return np.array(sticks + cables)


def draw(axes: Axes, look: Look, poses: Mapping[str, Pose], ghost: bool = False) -> None:
    """Draw the sticks in three-dimensional axes, in the colours of the shapes and as wide as these, or thin and dashed."""
    widths = [max(1.0, POINTS_PER_M * sorted(shape.extents)[1]) for shape in look.shapes] + [CABLE] * len(look.cables)
    colors = [shape.color for shape in look.shapes] + [style.TARGET] * len(look.cables)
    how = GHOST if ghost else {"colors": colors, "linewidths": widths, "capstyle": "round"}
    axes.add_collection3d(Line3DCollection(list(ends(look, poses)), **how))


def frame(panels, points: np.ndarray) -> None:
    """Give all panels the same box around the points (n, 3), with equal scales and without ticks on the floor's axes."""
    low, high = points.min(axis=0), points.max(axis=0)
    for panel in panels:
        panel.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]), xticks=[], yticks=[])
        panel.set_box_aspect(high - low, zoom=1.15)
        panel.view_init(**VIEW)
