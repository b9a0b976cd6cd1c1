"""Figures of bodies that only rotate. The snapshots are drawn side by side, because they would
cover each other in a single picture.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from mpl_toolkits.mplot3d import Axes3D
from mpl_toolkits.mplot3d.art3d import Line3DCollection

from nh_control.figures import style
from nh_control.figures.scene import Scene, scene
from nh_control.figures.spatial import draw_scene
from nh_control.runs.experiment import Result

SHOWN, COLUMNS = 8, 4
VIEW = {"elev": 22, "azim": -55}


def only_rotates(run: dict[str, np.ndarray], target: dict[str, np.ndarray]) -> bool:
    """Return whether all tracks (N + 1, 3) of the run and the reference stay in place."""
    return not any(np.ptp(track, axis=0).any() for track in (*run.values(), *target.values()))


def path(result: Result) -> Figure:
    """Draw the system at equal time intervals. Dashed lines show its configuration on the
    reference.
    """
    experiment, trajectory = result.experiment, result.loop.trajectory
    nodes = style.Clock(result, SHOWN).nodes
    drawn = [
        (scene(experiment, trajectory.states[k]), scene(experiment, result.targets[k]))
        for k in nodes
    ]
    # All panels have the same limits, so sizes are comparable.
    low, high = _bounds(np.vstack([shapes.points for both in drawn for shapes in both]))
    # Ceiling division.
    rows = -(-len(nodes) // COLUMNS)
    figure = Figure(figsize=(style.WIDTH, 1.95 * rows + 0.35), layout="constrained")
    for place, (k, (shapes, ghost)) in enumerate(zip(nodes, drawn), 1):
        axes: Axes3D = figure.add_subplot(
            rows, COLUMNS, place, projection="3d", computed_zorder=False
        )
        axes.set_title(f"{trajectory.times[k]:.1f} s", loc="center", fontsize=9, y=1.0)
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
        axes.set_box_aspect(high - low, zoom=1.35)
        axes.view_init(**VIEW)
        axes.set_axis_off()
        _draw_ghost(axes, ghost)
        draw_scene(axes, shapes, style.RUN)
    legend = [
        Line2D([], [], color=style.RUN, label=style.run_label(result)),
        Line2D([], [], **style.DASHED, label="reference"),
    ]
    style.head(figure, result, legend)
    return figure


def _draw_ghost(axes: Axes3D, ghost: Scene) -> None:
    edges = [
        np.vstack([face, face[:1]]) for solid in ghost.solids for face in solid.faces
    ] + ghost.outlines
    if edges:
        dashed = {"colors": style.TARGET, "linewidths": 0.5, "linestyles": [(0, (3, 2))]}
        axes.add_collection3d(Line3DCollection(edges, **dashed, zorder=5))


def _bounds(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper corners of a cube around the points."""
    low, high = points.min(axis=0), points.max(axis=0)
    center, half = (low + high) / 2, (high - low).max() / 2
    return center - half, center + half
