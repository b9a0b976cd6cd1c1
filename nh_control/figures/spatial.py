"""Figures of spatial bodies: paths in three dimensions, and the components of the motions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType
from mpl_toolkits.mplot3d import Axes3D, proj3d
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from nh_control.figures import style
from nh_control.figures.common import show_intervals
from nh_control.figures.scene import Scene, distinct_scenes, scene
from nh_control.geometry import quaternion
from nh_control.runs.experiment import Result
from nh_control.scenarios import BodyState

VIEW = {"elev": 28, "azim": -62}
SHOWN = 8
FILL = 0.3
"""Opacity of solids, relative to the opacity of their shapes."""
BOX = 0.85
"""Fraction of the axes' width or height that the box fills. The labels need the rest."""
QUANTITIES = ("position (m)", "velocity (m/s)", "body z axis", "body rates (rad/s)")
"""The quantities that are drawn for each body."""
TICKS, LABEL_PAD = 6, 8.0
"""Maximum number of ticks on the longest side, and distance (pt) between labels and ticks."""
LABELS_IN, LEGEND_IN = 0.45, 0.55
"""Heights (in) of the labels at the bottom, and of the title and the legend at the top."""


def path(result: Result, run: dict[str, np.ndarray], target: dict[str, np.ndarray]) -> Figure:
    """Draw the tracks (N + 1, 3), the reference, the shadow of the first track, and the system at
    equal time intervals in colors that show the time. Dashed lines show the configuration of the
    reference.
    """
    experiment, states = result.experiment, result.loop.trajectory.states
    clock = style.Clock(result, SHOWN)
    run_scenes = [scene(experiment, states[k]) for k in clock.nodes]
    drawn = [
        (run_scenes[i], scene(experiment, result.targets[k]), clock.color(k))
        for i, k in ((i, clock.nodes[i]) for i in distinct_scenes(run_scenes))
    ]
    low, high = _bounds(
        np.vstack(
            [
                *run.values(),
                *target.values(),
                *(s.points for shapes, ghost, _ in drawn for s in (shapes, ghost)),
            ]
        )
    )
    figure = Figure(figsize=(style.WIDTH, style.WIDTH))
    axes = _axes(figure, low, high)
    # The first body, such as a payload, is emphasized and casts a shadow.
    first, *others = run
    axes.plot(
        *run[first].T,
        color=style.RUN,
        linewidth=2.2,
        label=f"{first}, {style.run_label(result)}",
        zorder=5,
    )
    axes.plot(*target[first].T, **style.DASHED, label="reference", zorder=6)
    for name, series in zip(others, style.SERIES[1:]):
        axes.plot(*run[name].T, color=series, linewidth=0.9, label=name, zorder=2)
    axes.plot(
        *run[first][:, :2].T, low[2], color="#cccccc", linewidth=1.5, label="shadow", zorder=1
    )
    for shapes, ghost, color in drawn:
        _draw_ghost(axes, ghost)
        draw_scene(axes, shapes, color)
    # The enlarged box may extend beyond the axes.
    for artist in (*axes.lines, *axes.collections):
        artist.set_clip_on(False)
    clock.bar(figure, cax=figure.add_axes((0.91, 0.2, 0.015, 0.55)))
    figure.suptitle(
        style.title(result),
        x=0.02,
        y=1 - 0.08 / figure.get_figheight(),
        va="top",
        ha="left",
        fontsize=10,
    )
    figure.legend(
        handles=style.handles(axes),
        loc="upper left",
        bbox_to_anchor=(0.005, 1 - 0.25 / figure.get_figheight()),
        ncols=5,
        columnspacing=1.4,
    )
    return figure


def states(result: Result) -> Figure:
    """Draw the components of each body's position, velocity, z axis and angular velocity against
    the reference.
    """
    trajectory = result.loop.trajectory
    run, target = _motions(result.bodies), _motions(result.target_bodies)
    # Quantities that remain constant are omitted.
    rows = _moving_rows(run) or range(len(QUANTITIES))
    size = (max(style.WIDTH, 3.2 * len(run)), 1.65 * len(rows) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(rows), len(run), sharex=True, sharey="row", squeeze=False)
    for column, (name, motion) in zip(panels.T, run.items()):
        for panel, row in zip(column, rows):
            values, expected = motion[row], target[name][row]
            panel.set_visible(bool(np.ptp(values, axis=0).any()))
            for color, value, reference in zip(style.AXES, values.T, expected.T):
                panel.plot(trajectory.times, value, color=color)
                panel.plot(trajectory.times, reference, **style.DASHED)
        for panel in _visible(column)[:1]:
            panel.set_title(name)
        for panel in _visible(column)[-1:]:
            panel.set_xlabel("time (s)")
            panel.tick_params(labelbottom=True)
    for row, label in zip(panels, [QUANTITIES[row] for row in rows]):
        for panel in _visible(row)[:1]:
            panel.set_ylabel(label)
            panel.tick_params(labelleft=True)
    components: list[Artist] = [
        Line2D([], [], color=color, label=f"{name}, {style.run_label(result)}")
        for name, color in zip("xyz", style.AXES)
    ]
    first, *others = _visible(panels.ravel())
    show_intervals(result, first, *others)
    components += style.handles(first)
    style.head(figure, result, [*components, Line2D([], [], **style.DASHED, label="reference")])
    return figure


def _moving_rows(run: dict[str, tuple[np.ndarray, ...]]) -> list[int]:
    """Return the indices of the `QUANTITIES` that change for at least one body."""
    return [
        row
        for row in range(len(QUANTITIES))
        if any(np.ptp(motion[row], axis=0).any() for motion in run.values())
    ]


def _visible(panels: Iterable[Axes]) -> list[Axes]:
    return [panel for panel in panels if panel.get_visible()]


def _motions(nodes: Sequence[Sequence[BodyState]]) -> dict[str, tuple[np.ndarray, ...]]:
    """Return positions, velocities, z axes and body rates, each (N, 3), by the names of the
    bodies.
    """
    out: dict[str, tuple[np.ndarray, ...]] = {}
    for column in zip(*nodes):
        wxyz = np.array([body.quaternion_wxyz for body in column])
        out[column[0].frame] = (
            np.array([body.position for body in column]),
            np.array([body.linear_velocity for body in column]),
            quaternion.z_axes(wxyz),
            np.array([body.angular_velocity_body for body in column]),
        )
    return out


def _bounds(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper corners of a box around the points. Each side is at least a third
    of the longest side.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    size = high - low
    size = np.maximum(size, size.max() / 3) + 0.1
    center = (low + high) / 2
    return center - size / 2, center + size / 2


def _axes(figure: Figure, low: np.ndarray, high: np.ndarray) -> Axes3D:
    """Return axes with equal scales in all directions. The height of the figure is adapted to the
    box of the axes.
    """
    axes: Axes3D = figure.add_axes(
        (0, 0, 1, 1),
        projection="3d",
        xlabel="x (m)",
        ylabel="y (m)",
        zlabel="z (m)",
        computed_zorder=False,
    )
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axes.set_box_aspect(high - low)
    axes.view_init(**VIEW)
    # Project the corners of the box, and zoom so that its larger extent fills the fraction BOX of
    # the axes.
    xs, ys, zs = np.array(list(product(*zip(low, high)))).T
    x, y, _ = proj3d.proj_transform(xs, ys, zs, axes.get_proj())
    size = np.ptp(axes.transLimits.transform(np.column_stack([x, y])), axis=0)
    axes.set_box_aspect(high - low, zoom=BOX / size.max())
    # Shorter sides get fewer ticks.
    sides = (high - low) / max(high - low)
    pad = LABEL_PAD / sides[:2].max()  # matplotlib multiplies this by the width of the box
    for axis, side in zip((axes.xaxis, axes.yaxis, axes.zaxis), sides):
        axis.set_major_locator(MaxNLocator(max(2, round(TICKS * side)), steps=[1, 2, 5, 10]))
    axes.yaxis.labelpad, axes.zaxis.labelpad = LABEL_PAD, pad
    axes.tick_params(axis="z", pad=pad / 2)
    side, empty = 0.9 * style.WIDTH, 1 - BOX * size[1] / size.max()
    # Matplotlib centers the box in a square. Cut off the empty part of the square's height.
    height = side * (1 - empty) + LABELS_IN + LEGEND_IN
    figure.set_size_inches(style.WIDTH, height)
    axes.set_position(
        (-0.03, (LABELS_IN - side * empty / 2) / height, side / style.WIDTH, side / height)
    )
    return axes


def _draw_ghost(axes: Axes3D, ghost: Scene) -> None:
    _add(
        axes,
        Line3DCollection,
        ghost.cables + ghost.outlines,
        colors=style.TARGET,
        linewidths=0.7,
        linestyles=[(0, (2, 2))],
        zorder=3,
    )


def draw_scene(axes: Axes3D, shapes: Scene, color: ColorType) -> None:
    """Draw solids, cables, outlines and body axes, with lines in the given color. The limits of
    the axes do not change.
    """
    axes.autoscale(False)  # matplotlib 3.11 would include padding rows in the limits
    faces = [
        (face, (*solid.color, FILL * solid.opacity))
        for solid in shapes.solids
        for face in solid.faces
    ]
    _add(
        axes,
        Poly3DCollection,
        [face for face, _ in faces],
        facecolors=[fill for _, fill in faces],
        edgecolors=[color],
        linewidths=0.5,
        zorder=3,
    )
    _add(axes, Line3DCollection, shapes.cables, colors=[color], linewidths=1.4, zorder=4)
    _add(axes, Line3DCollection, shapes.outlines, colors=[color], linewidths=0.7, zorder=4)
    _add(
        axes,
        Line3DCollection,
        [line for line, _ in shapes.axes],
        colors=[axis for _, axis in shapes.axes],
        linewidths=1.3,
        zorder=4,
    )


def _add(
    axes: Axes3D, collection: Callable[..., Any], parts: list[np.ndarray], **line_style: Any
) -> None:
    """Add a collection unless it is empty, because matplotlib does not accept empty
    collections.
    """
    if parts:
        axes.add_collection3d(collection(parts, **line_style))
