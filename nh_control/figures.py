"""Figures of a run: path, states, inputs, energy and constraint, tracking error; PNG files through matplotlib's Agg."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from nh_control.compiled import cache_directory
from nh_control.experiment import Result
from nh_control.sketches import Shape, sketch

os.environ.setdefault("MPLCONFIGDIR", str(cache_directory() / "matplotlib"))
import matplotlib  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.cm import ScalarMappable  # noqa: E402
from matplotlib.colors import Normalize  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import MaxNLocator  # noqa: E402

RUN, TARGET, OPEN, LIMIT = "#1f6fb4", "#333333", "#e08214", "#c0392b"
WIDTH = 7.4
SYMBOLS = {"psi": "ψ", "phi": "φ", "theta": "θ", "rho_1": "ρ₁", "rho_2": "ρ₂", "rho_3": "ρ₃"}
UNITS = {"psi": "rad", "phi": "rad", "theta": "rad", "x": "m", "y": "m", "rho_1": "kg m²/s", "rho_2": "kg m²/s", "rho_3": "kg m²/s"}
STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.xmargin": 0.01,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "savefig.dpi": 130,
    "savefig.bbox": "tight",
}


def save_all(result: Result, folder: Path, progress: Callable[[str], None] = lambda name: None) -> dict[str, str]:
    """Draw every figure into `folder`; returns {name: file}. `progress(name)` is called before each."""
    files = {}
    with matplotlib.rc_context(STYLE):
        for name, draw in FIGURES.items():
            progress(name)
            figure = draw(result)
            FigureCanvasAgg(figure)
            files[name] = str(folder / f"{name}.png")
            figure.savefig(files[name])
    return files


def path(result: Result) -> Figure:
    """The body's path over the reference's, cusps marked, and the system drawn at equal intervals of time: coloured by time, its ghost on the reference dashed."""
    trajectory, targets, model = result.loop.trajectory, result.targets, result.experiment.model
    theta, x, y = (model.state_names.index(c) for c in result.experiment.scenario.body.coordinates)
    xy, target_xy = trajectory.states[:, [x, y]], targets[:, [x, y]]
    times, colors = Normalize(0, max(trajectory.duration, trajectory.h)), matplotlib.colormaps["viridis"]
    shown = np.unique(np.linspace(0, len(trajectory), 9).round().astype(int))
    drawn = [(k, sketch(result.experiment, trajectory.states[k]), sketch(result.experiment, targets[k])) for k in shown]
    low, high = _bounds(np.vstack([xy, target_xy, *(s.points for _, shapes, ghost in drawn for s in shapes + ghost)]))
    ratio = (high[1] - low[1]) / (high[0] - low[0])
    width = WIDTH if ratio > 0.4 else 1.4 * WIDTH
    figure = Figure(figsize=(width, 0.86 * width * ratio + 0.6))
    axes = figure.add_subplot(aspect="equal", xlabel="x (m)", ylabel="y (m)", title=_title(result))
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    for k, shapes, ghost in drawn:
        axes.fill(*ghost[0].points.T, facecolor="none", edgecolor=TARGET, linewidth=0.7, linestyle=(0, (2, 2)), zorder=1)
        _draw(axes, shapes, colors(0.92 * times(trajectory.times[k])))
    axes.plot(*xy.T, color=RUN, linewidth=2.2, label=_run_label(result), zorder=4)
    axes.plot(*target_xy.T, color=TARGET, linestyle=(0, (4, 3)), linewidth=1.1, label="reference", zorder=5)
    cusps = _cusps(xy, trajectory.states[:, theta])
    if len(cusps):
        axes.plot(*xy[cusps].T, "o", color="white", markeredgecolor=RUN, markersize=5, label="cusps", zorder=6)
    bar = figure.colorbar(ScalarMappable(times, colors), cax=axes.inset_axes([1.015, 0, 0.018, 1]), label="time (s)")
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_locator(MaxNLocator(7 if ratio > 0.4 else 3, steps=[1, 2, 5, 10]))
    axes.legend(loc="lower left", bbox_to_anchor=(0.45, 1.0), ncols=3, borderaxespad=0.2)
    return figure


def states(result: Result) -> Figure:
    """Every state against the reference."""
    trajectory, targets, model = result.loop.trajectory, result.targets, result.experiment.model
    rows = -(-model.nx // 2)
    figure = Figure(figsize=(WIDTH, 1.35 * rows + 0.6), layout="constrained")
    panels = figure.subplots(rows, 2, sharex=True, squeeze=False).T.ravel()
    for panel, name, value, target in zip(panels, model.state_names, trajectory.states.T, targets.T):
        panel.plot(trajectory.times, value, color=RUN, label=_run_label(result))
        panel.plot(trajectory.times, target, color=TARGET, linewidth=1.1, linestyle=(0, (4, 3)), label="reference")
        panel.set_ylabel(_quantity(name))
        _keep_readable(panel)
    for panel in panels[model.nx :]:
        panel.set_visible(False)
    for panel in panels[[rows - 1, model.nx - 1]]:
        panel.set_xlabel("time (s)")
        panel.tick_params(labelbottom=True)
    _head(figure, result, panels[0])
    return figure


def inputs(result: Result) -> Figure:
    """Every input with its limits, the reference's input, and where the limits were met."""
    trajectory, model, feedforward = result.loop.trajectory, result.experiment.model, result.feedforward
    figure = Figure(figsize=(WIDTH, 1.9 * model.nu + 0.6), layout="constrained")
    panels = figure.subplots(model.nu, 1, sharex=True, squeeze=False).ravel()
    times = trajectory.times[:-1]
    units = model.system.input_units or ("",) * model.nu
    for i, (panel, name, unit) in enumerate(zip(panels, model.inputs, units)):
        lower, upper = result.experiment.tracker.limits[i]
        panel.step(times, trajectory.inputs[:, i], where="post", color=RUN, label=_run_label(result))
        panel.plot(times, feedforward[:, i], color=TARGET, linewidth=1.1, linestyle=(0, (4, 3)), label="reference")
        for label, limit in (("limit", lower), (None, upper)):
            if np.isfinite(limit):
                panel.axhline(limit, color=LIMIT, linewidth=1.0, label=label)
        met = result.loop.saturated[:, i]
        panel.plot(times[met], trajectory.inputs[met, i], ".", color=LIMIT, markersize=4, label="saturated" if met.any() else None)
        panel.set_ylabel(f"{name.replace('_', ' ')}" + (f" ({unit})" if unit else ""))
        panel.margins(y=0.08)
        if met.any():
            panel.set_title(f"{met.sum()} of {len(met)} steps at the limit", loc="right", fontsize=9, color=LIMIT)
    panels[-1].set_xlabel("time (s)")
    _head(figure, result, panels[int(np.argmax(result.loop.saturated.any(axis=0)))])
    return figure


def energy(result: Result) -> Figure:
    """The plant's energy beside that of the reference on the model, and the plant's constraint residual."""
    loop, model, plant = result.loop, result.experiment.model, result.experiment.plant
    constrained = plant.system.m > 0
    figure = Figure(figsize=(WIDTH, 2.2 * (1 + constrained) + 0.6), layout="constrained")
    panels = figure.subplots(1 + constrained, 1, sharex=True, squeeze=False).ravel()
    panels[0].plot(loop.trajectory.times, loop.energy, color=RUN, label=_run_label(result))
    panels[0].plot(loop.trajectory.times, [model.energy(x) for x in result.targets], color=TARGET, linewidth=1.1, linestyle=(0, (4, 3)), label="reference")
    panels[0].set_ylabel("energy (J)")
    if constrained:
        residual = np.abs(loop.constraint).max(axis=1)
        panels[1].semilogy(loop.trajectory.times[1:], np.where(residual > 0, residual, np.nan), ".", color=RUN, markersize=2.5)
        panels[1].axhline(1e-12, color=LIMIT, linewidth=1.0)
        panels[1].annotate("1e-12", (1, 1e-12), xycoords=("axes fraction", "data"), ha="right", va="bottom", color=LIMIT)
        panels[1].set_ylabel("constraint residual (m)")
        panels[1].set_ylim(1e-18, max(1e-11, 10 * np.nanmax(residual, initial=0.0)))
    panels[-1].set_xlabel("time (s)")
    _head(figure, result, panels[0])
    return figure


def error(result: Result) -> Figure:
    """The tracking error, of the whole configuration with that of the open loop from the same start, and by its parts."""
    loop, model = result.loop, result.experiment.model
    figure = Figure(figsize=(WIDTH, 5.2), layout="constrained")
    whole, parts = figure.subplots(2, 1, sharex=True)
    total = result.configuration_error()
    whole.semilogy(loop.trajectory.times, _positive(total), color=RUN, label=_run_label(result))
    if result.open_loop is not None and result.feedback:
        opened = result.open_loop
        whole.semilogy(opened.trajectory.times, _positive(result.configuration_error(opened)), color=OPEN, label="open loop, same start")
    whole.set_ylabel("configuration error (m, rad)")
    for label, value, style in _error_parts(result):
        parts.semilogy(loop.trajectory.times, _positive(value), label=label, **style)
    parts.set_ylabel("norm of each part")
    parts.set_xlabel("time (s)")
    parts.legend(loc="lower left", bbox_to_anchor=(0, 0.98), ncols=4, borderaxespad=0.0)
    end = result.experiment.tracker.reference.duration
    for panel in (whole, parts):
        panel.set_ylim(bottom=max(panel.get_ylim()[0], 1e-9 * total.max()))
        if end < loop.trajectory.duration - loop.trajectory.h / 2:
            panel.axvline(end, color=TARGET, linewidth=1.0, linestyle=":")
            panel.annotate(" reference ends", (end, 0.03), xycoords=("data", "axes fraction"), color=TARGET)
    _head(figure, result, whole)
    return figure


FIGURES: dict[str, Callable[[Result], Figure]] = {"path": path, "states": states, "inputs": inputs, "energy": energy, "error": error}


def _error_parts(result: Result) -> list[tuple[str, np.ndarray, dict]]:
    model, body = result.experiment.model, result.experiment.scenario.body
    nv, i = model.system.space.nv, model.state_space.tangent_names.index(body.coordinates[0])
    e, unit = result.loop.errors, UNITS.get(model.state_space.tangent_names[-1], "SI")
    shape = np.delete(e[:, :nv], slice(i, i + 3), axis=1)
    parts = [("position (m)", e[:, i + 1 : i + 3], RUN), ("heading (rad)", e[:, i : i + 1], "#2a9d6f"), (f"momenta ({unit})", e[:, nv:], "#8e63b5")]
    if shape.shape[1]:
        parts.insert(2, ("shape (rad)", shape, "#888888"))
    return [(label, np.linalg.norm(value, axis=1), {"color": color, "linewidth": 1.2}) for label, value, color in parts]


def _positive(value: np.ndarray) -> np.ndarray:
    return np.where(value > 0, value, np.nan)


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


def _quantity(name: str) -> str:
    unit = UNITS.get(name)
    return SYMBOLS.get(name, name) + (f" ({unit})" if unit else "")


def _keep_readable(panel: Axes) -> None:
    """Show a constant as a line, not as magnified round-off."""
    low, high = panel.get_ylim()
    if high - low < 1e-6:
        panel.set_ylim(low - 0.5, high + 0.5)


def _run_label(result: Result) -> str:
    return "tracked" if result.feedback else "open loop"


def _title(result: Result) -> str:
    return f"{result.experiment.scenario.name}, {result.experiment.tracker.reference.name}" + " (stopped early)" * bool(result.stopped)


def _head(figure: Figure, result: Result, panel: Axes) -> None:
    """Title at the left and the legend of `panel` at the right of the figure's head."""
    figure.align_ylabels()
    figure.suptitle(_title(result), x=0.02, ha="left", fontsize=10)
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels))
