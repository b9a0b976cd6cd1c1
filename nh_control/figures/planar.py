"""Figures of what moves in the plane or by joints: the path seen from above, and every state."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nh_control.experiment import Result
from nh_control.figures import style
from nh_control.quantities import coordinate_units, state_label
from nh_control.sketches import Shape, sketch


def path(result: Result) -> Figure:
    """The body's path over the reference's, cusps marked, and the system at equal intervals of time: coloured by time, its ghost on the reference dashed."""
    trajectory, targets, model = result.loop.trajectory, result.targets, result.experiment.model
    theta, x, y = (model.state_names.index(c) for c in result.experiment.scenario.body.coordinates)
    xy, target_xy, clock = trajectory.states[:, [x, y]], targets[:, [x, y]], style.Clock(result)
    drawn = [(k, sketch(result.experiment, trajectory.states[k]), sketch(result.experiment, targets[k])) for k in clock.nodes]
    low, high = _bounds(np.vstack([xy, target_xy, *(s.points for _, shapes, ghost in drawn for s in shapes + ghost)]))
    ratio = (high[1] - low[1]) / (high[0] - low[0])
    width = style.WIDTH if ratio > 0.4 else 1.4 * style.WIDTH
    figure = Figure(figsize=(width, 0.82 * width * ratio + 0.8), layout="compressed")
    axes = figure.add_subplot(aspect="equal", xlabel="x (m)", ylabel="y (m)", title=style.title(result))
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    for k, shapes, ghost in drawn:
        axes.fill(*ghost[0].points.T, facecolor="none", edgecolor=style.TARGET, linewidth=0.7, linestyle=(0, (2, 2)), zorder=1)
        _draw(axes, shapes, clock.color(k))
    axes.plot(*xy.T, color=style.RUN, linewidth=2.2, label=style.run_label(result), zorder=4)
    axes.plot(*target_xy.T, **style.DASHED, label="reference", zorder=5)
    cusps = _cusps(xy, trajectory.states[:, theta])
    if len(cusps):
        axes.plot(*xy[cusps].T, "o", color="white", markeredgecolor=style.RUN, markersize=5, label="cusps", zorder=6)
    bar = clock.bar(figure, ax=axes, fraction=0.03, pad=0.01, aspect=50 * ratio)
    bar.yaxis.set_major_locator(MaxNLocator(7 if ratio > 0.4 else 3, steps=[1, 2, 5, 10]))
    axes.legend(loc="lower left", bbox_to_anchor=(0.45, 1.0), ncols=3, borderaxespad=0.2)
    return figure


def states(result: Result) -> Figure:
    """Every state against the reference."""
    trajectory, targets, model = result.loop.trajectory, result.targets, result.experiment.model
    units = coordinate_units(result.experiment.scenario, model.system.space)
    rows = -(-model.nx // 2)
    figure = Figure(figsize=(style.WIDTH, 1.35 * rows + 0.6), layout="constrained")
    panels = figure.subplots(rows, 2, sharex=True, squeeze=False).T.ravel()
    for panel, name, value, target in zip(panels, model.state_names, trajectory.states.T, targets.T):
        panel.plot(trajectory.times, value, color=style.RUN, label=style.run_label(result))
        panel.plot(trajectory.times, target, **style.DASHED, label="reference")
        panel.set_ylabel(state_label(name, units))
        style.keep_readable(panel)
    for panel in panels[model.nx :]:
        panel.set_visible(False)
    for panel in panels[[rows - 1, model.nx - 1]]:
        panel.set_xlabel("time (s)")
        panel.tick_params(labelbottom=True)
    style.head(figure, result, style.handles(panels[0]))
    return figure


def _cusps(xy: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Nodes at which the body starts to move backwards along its heading, or forwards again."""
    forward = np.einsum("ki,ki->k", np.diff(xy, axis=0), np.column_stack([np.cos(theta), np.sin(theta)])[:-1])
    moving = np.flatnonzero(np.abs(forward) > 0.02 * np.abs(forward).max(initial=0))
    turned = np.flatnonzero(np.diff(np.sign(forward[moving])))
    return (moving[turned] + moving[turned + 1] + 1) // 2


def _bounds(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, high = points.min(axis=0), points.max(axis=0)
    center, size = (low + high) / 2, (high - low) * 1.04 + 0.1
    size[1] = max(size[1], 0.2 * size[0])
    return center - size / 2, center + size / 2


def _draw(axes: Axes, shapes: list[Shape], color) -> None:
    for shape in shapes:
        if shape.closed:
            axes.fill(*shape.points.T, facecolor=(*color[:3], shape.fill), edgecolor=color, linewidth=0.9, zorder=2)
        else:
            axes.plot(*shape.points.T, color=color, linewidth=shape.width, solid_capstyle="round", zorder=3)
