"""Figures that show planar motions and joints: the path, and every state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType

from nh_control.figures import style
from nh_control.figures.common import show_intervals
from nh_control.figures.scene import Scene, Solid, distinct_scenes, scene
from nh_control.runs.experiment import Result
from nh_control.scenarios.error_metrics import coordinate_units, state_label

FILL = 0.2
"""Opacity of solids, relative to the opacity of their shapes."""
TALLEST = 1.2
"""Maximum ratio of height to width for the axes of a path."""
LONG = 18
"""Maximum length of a label that keeps its underscores. In longer labels they become spaces, where
the label can be wrapped.
"""


def path(
    result: Result,
    run: dict[str, np.ndarray],
    target: dict[str, np.ndarray],
    plane: tuple[int, int],
) -> Figure:
    """Draw the path with its cusps, the path of the reference, and the system at equal time
    intervals. The color of the edges shows the time. Dashed lines show the configuration of the
    reference.

    `run` and `target` contain a track (N + 1, 3), which is projected onto the coordinate `plane`.
    """
    experiment, states = result.experiment, result.loop.trajectory.states
    (track,), (expected,), clock = run.values(), target.values(), style.Clock(result)
    # The coordinates of the points that are visible in this view.
    seen = list(plane)
    xy, target_xy = track[:, seen], expected[:, seen]
    run_scenes = [scene(experiment, states[k]) for k in clock.nodes]
    drawn = [
        (run_scenes[i], scene(experiment, result.targets[k]), clock.color(k))
        for i, k in ((i, clock.nodes[i]) for i in distinct_scenes(run_scenes))
    ]
    low, high = _bounds(
        np.vstack(
            [
                xy,
                target_xy,
                *(s.points[:, seen] for shapes, ghost, _ in drawn for s in (shapes, ghost)),
            ]
        )
    )
    # Widen the axes of a tall path so that height / width <= TALLEST.
    margin = np.array([max(0.0, (high[1] - low[1]) / TALLEST - (high[0] - low[0])) / 2, 0.0])
    low, high = low - margin, high + margin
    ratio = (high[1] - low[1]) / (high[0] - low[0])
    width = style.WIDTH if ratio > 0.4 else 1.4 * style.WIDTH
    figure = Figure(figsize=(width, 0.82 * width * ratio + 0.8), layout="compressed")
    labels = {f"{axis}label": f"{'xyz'[i]} (m)" for axis, i in zip("xy", plane)}
    axes = figure.add_subplot(
        aspect="equal",
        title=style.title(result),
        xlim=(low[0], high[0]),
        ylim=(low[1], high[1]),
        **labels,
    )
    for shapes, ghost, color in drawn:
        _draw(axes, shapes, ghost, color, seen)
    axes.plot(*xy.T, color=style.RUN, linewidth=2.2, label=style.run_label(result), zorder=4)
    axes.plot(*target_xy.T, **style.DASHED, label="reference", zorder=5)
    body = experiment.scenario.body
    if body is not None:
        heading = states[:, experiment.model.state_names.index(body.coordinates[0])]
        mark_cusps(axes, xy[cusps(xy, heading)])
    bar = clock.bar(figure, ax=axes, fraction=0.03, pad=0.01, aspect=50 * ratio)
    bar.yaxis.set_major_locator(MaxNLocator(7 if ratio > 0.4 else 3, steps=[1, 2, 5, 10]))
    axes.legend(loc="lower left", bbox_to_anchor=(0.45, 1.0), ncols=3, borderaxespad=0.2)
    return figure


def states(result: Result, page: int = 0) -> Figure:
    """Draw the states on one of `state_pages` against the reference."""
    return _curves(result, state_pages(result), page)


def state_pages(result: Result) -> list[list[int]]:
    """Return the states on each page. Each coordinate is followed by its momentum, and the
    coordinates with the largest range come first.
    """
    return _pages(result, result.experiment.model.state_names)


def joints(result: Result, page: int = 0) -> Figure:
    """Draw the coordinates and momenta of the joints on one of `joint_pages` against the
    reference.
    """
    return _curves(result, joint_pages(result), page)


def joint_pages(result: Result) -> list[list[int]]:
    """Return the joint states on each page."""
    shown = {joint.coordinate for joint in result.experiment.scenario.joints}
    names = result.experiment.model.state_names
    return _pages(result, [name for name in names if _coordinate(name, names) in shown])


def _coordinate(state: str, names: Sequence[str]) -> str:
    """Return the coordinate that belongs to a momentum, or the state itself."""
    coordinate = state.removeprefix("p_")
    return coordinate if coordinate in names else state


def _pages(result: Result, shown: Sequence[str]) -> list[list[int]]:
    names = result.experiment.model.state_names
    # Pages are ordered by the range of the coordinates.
    moves = dict(zip(names, np.ptp(result.loop.trajectory.states, axis=0)))
    groups: dict[str, list[int]] = {}
    for name in shown:
        groups.setdefault(_coordinate(name, names), []).append(names.index(name))
    return style.pages(list(groups.values()), [moves[coordinate] for coordinate in groups])


def _curves(result: Result, pages: list[list[int]], page: int) -> Figure:
    """Draw the states on a page against the reference, in two columns of panels."""
    trajectory, shown, model = result.loop.trajectory, pages[page], result.experiment.model
    units = coordinate_units(result.experiment.scenario, model.system.space)
    rows = -(-len(shown) // 2)
    figure = Figure(figsize=(style.WIDTH, 1.35 * rows + 0.6), layout="constrained")
    panels = figure.subplots(rows, 2, sharex=True, squeeze=False).T.ravel()
    for panel, i in zip(panels, shown):
        value, target = trajectory.states[:, i], result.targets[:, i]
        panel.plot(trajectory.times, value, color=style.RUN, label=style.run_label(result))
        panel.plot(trajectory.times, target, **style.DASHED, label="reference")
        label = state_label(model.state_names[i], units)
        plain = label if len(label) < LONG else label.replace("_", " ")
        panel.set_ylabel(style.wrapped(plain, 20))
        style.keep_readable(panel)
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    for panel in {*panels[rows - 1 : len(shown) : rows], panels[len(shown) - 1]}:
        panel.set_xlabel("time (s)")
        panel.tick_params(labelbottom=True)
    show_intervals(result, *panels[: len(shown)])
    style.head(figure, result, style.handles(panels[0]), style.page_note(page, len(pages)))
    return figure


def mark_cusps(axes: Axes, xy: np.ndarray) -> None:
    """Draw cusps (N, 2) as dots with a label, if there are any."""
    if len(xy):
        axes.plot(
            *xy.T,
            "o",
            color="white",
            markeredgecolor=style.RUN,
            markersize=5,
            label="cusps",
            zorder=6,
        )


def cusps(xy: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Return the indices of the nodes where the motion along a path (N, 2) with the heading theta
    (N) changes between forward and backward. Speeds below 2 % of the largest speed are ignored.
    """
    # Forward displacement of each step: (x_k+1 - x_k) . (cos theta_k, sin theta_k).
    forward = np.einsum(
        "ki,ki->k", np.diff(xy, axis=0), np.column_stack([np.cos(theta), np.sin(theta)])[:-1]
    )
    moving = np.flatnonzero(np.abs(forward) > 0.02 * np.abs(forward).max(initial=0))
    reversals = np.flatnonzero(np.diff(np.sign(forward[moving])))
    return (moving[reversals] + moving[reversals + 1] + 1) // 2


def _bounds(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, high = points.min(axis=0), points.max(axis=0)
    center, size = (low + high) / 2, (high - low) * 1.04 + 0.1
    # Even a straight path gets axes with some height.
    size[1] = max(size[1], 0.2 * size[0])
    return center - size / 2, center + size / 2


def _draw(axes: Axes, shapes: Scene, ghost: Scene, color: ColorType, plane: list[int]) -> None:
    """Draw the silhouettes of solids, the cables, the outlines and the body axes. Dashed lines
    show the first solid of the reference.
    """
    for solid in ghost.solids[:1]:
        axes.fill(
            *_silhouette(solid, plane).T,
            facecolor="none",
            edgecolor=style.TARGET,
            linewidth=0.7,
            linestyle=(0, (2, 2)),
            zorder=1,
        )
    for solid in shapes.solids:
        axes.fill(
            *_silhouette(solid, plane).T,
            facecolor=(*solid.color, FILL * solid.opacity),
            edgecolor=color,
            linewidth=0.9,
            zorder=2,
        )
    for line in (*shapes.cables, *shapes.outlines):
        axes.plot(*line[:, plane].T, color=color, linewidth=1.2, zorder=3)
    for line, axis_color in shapes.axes:
        axes.plot(*line[:, plane].T, color=axis_color, linewidth=1.2, zorder=6)


def _silhouette(solid: Solid, plane: list[int]) -> np.ndarray:
    """Return the corners (n, 2) of the convex hull of a solid's points, counterclockwise."""
    points = np.unique(np.vstack(solid.faces)[:, plane], axis=0)  # sorted by x, then y
    return np.array([*_lower_hull(points), *_lower_hull(points[::-1])])


def _lower_hull(points: np.ndarray) -> list[np.ndarray]:
    """Return the lower hull of sorted points, without its last corner (Andrew's monotone
    chain).
    """
    hull: list[np.ndarray] = []
    for point in points:
        # Remove the corners where the chain does not turn left.
        while len(hull) > 1 and _turn(hull[-2], hull[-1], point) <= 0:
            hull.pop()
        hull.append(point)
    return hull[:-1]


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """Return a positive number if the path through the points a, b and c (2) turns left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
