"""The figures for every scenario: inputs, energy and residuals, tracking error, and the monitored
output.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from nh_control.figures import style
from nh_control.runs.experiment import Result
from nh_control.runs.intervals import intervals
from nh_control.scenarios import MonitoredOutput
from nh_control.scenarios.error_metrics import error_unit, input_units

ROUND_OFF = 1e-18
NEAR = 1.0
"""Maximum distance between a curve and a limit that is drawn, divided by the height of the curve.
"""


def inputs(result: Result, page: int = 0) -> Figure:
    """Draw the inputs on one of `input_pages`: each input with its limits, the reference input,
    and the saturated steps.
    """
    pages = input_pages(result)
    shown = pages[page]
    columns = 1 if len(shown) <= 3 else 2
    # Ceiling division.
    rows = -(-len(shown) // columns)
    figure = Figure(
        figsize=(style.WIDTH, (2.2 - 0.3 * columns) * rows + 0.6),
        layout=ConstrainedLayoutEngine(wspace=0.06),
    )
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False).T.ravel()
    for i, panel in zip(shown, panels):
        _input(result, i, panel)
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    # Panels are numbered down the columns, and the last panel in each column gets the label.
    for panel in panels[rows - 1 :: rows]:
        panel.set_xlabel("time (s)")
    show_intervals(result, *panels[: len(shown)])
    handles = style.handles(*panels[: len(shown)])
    style.head(figure, result, handles, style.page_note(page, len(pages)))
    return figure


def input_pages(result: Result) -> list[list[int]]:
    """Return the inputs on each page. Inputs with the largest range come first."""
    inputs = result.loop.trajectory.inputs
    return style.pages([[i] for i in range(inputs.shape[1])], np.ptp(inputs, axis=0))


def _input(result: Result, i: int, panel: Axes) -> None:
    trajectory, model = result.loop.trajectory, result.experiment.model
    times, met = trajectory.times[:-1], result.loop.saturated[:, i]
    unit = input_units(result.experiment.scenario, model.system)[i]
    panel.step(
        times,
        trajectory.inputs[:, i],
        where="post",
        color=style.RUN,
        label=style.run_label(result),
    )
    panel.plot(times, result.feedforward[:, i], **style.DASHED, label="reference")
    panel.plot(
        times[met],
        trajectory.inputs[met, i],
        ".",
        color=style.LIMIT,
        markersize=4,
        label="saturated" if met.any() else None,
    )
    label = model.inputs[i].replace("_", " ") + (f" ({unit})" if unit else "")
    panel.set_ylabel(style.wrapped(label, 20))
    panel.margins(y=0.08)
    style.keep_readable(panel)
    lower, upper = result.experiment.tracker.limits[i]
    notes = [f"{met.sum()} of {len(met)} steps at the limit"] * bool(met.any())
    notes += _limits(panel, lower, upper)
    panel.set_title(", ".join(notes), loc="right", fontsize=8, color=style.LIMIT)


def _limits(panel: Axes, lower: float, upper: float) -> list[str]:
    """Draw the limits if the input comes near one of them. Otherwise return a note for the title,
    because distant lines would flatten the curve.
    """
    if not np.isfinite([lower, upper]).any():
        return []
    low, high = panel.get_ylim()
    if max(high - upper, lower - low) < -NEAR * (high - low):
        return [f"limits {lower:g} ... {upper:g}"]
    for limit in filter(np.isfinite, (lower, upper)):
        panel.axhline(limit, color=style.LIMIT, linewidth=1.0, label="limit")
    return []


def energy(result: Result) -> Figure:
    """Draw the energy of the plant, the energy of the model along the reference, the plant's
    constraint residual, and the distance between the states and the manifold.
    """
    loop, residuals = result.loop, []
    # Residual panels are drawn only if there are constraints or manifolds.
    if result.experiment.plant.system.n_velocity_constraints:
        residuals.append(
            (
                "constraint residual (m)",
                loop.trajectory.times[1:],
                np.abs(loop.constraint).max(axis=1),
                1e-12,
            )
        )
    if result.manifold_residual is not None:
        residuals.append(
            ("distance from manifold", loop.trajectory.times, result.manifold_residual, 1e-14)
        )
    figure = Figure(figsize=(style.WIDTH, 2.2 * (1 + len(residuals)) + 0.6), layout="constrained")
    first, *others = figure.subplots(1 + len(residuals), 1, sharex=True, squeeze=False).ravel()
    first.plot(loop.trajectory.times, loop.energy, color=style.RUN, label=style.run_label(result))
    first.plot(loop.trajectory.times, result.target_energies, **style.DASHED, label="reference")
    first.set_ylabel("energy (J)")
    show_intervals(result, first, *others)
    for panel, (label, times, residual, limit) in zip(others, residuals):
        panel.plot(times, style.positive(residual), ".", color=style.RUN, markersize=2.5)
        panel.axhline(limit, color=style.LIMIT, linewidth=1.0)
        panel.annotate(
            f"accepted: {limit:.0e}",
            (1, limit),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom",
            color=style.LIMIT,
        )
        panel.set_ylabel(label)
        panel.set_yscale("log")
        # Residuals that are exactly zero have no logarithm, so the axis ends at the round-off
        # level.
        panel.set_ylim(ROUND_OFF, max(10 * limit, 10 * np.nanmax(residual, initial=0.0)))
    (others or [first])[-1].set_xlabel("time (s)")
    style.head(figure, result, style.handles(first))
    return figure


def error(result: Result) -> Figure:
    """Draw the tracking error of the whole configuration and of its parts. For comparison, also
    draw the error of a run without feedback that starts from the same state.
    """
    loop = result.loop
    figure = Figure(figsize=(style.WIDTH, 5.6), layout="constrained")
    whole, parts = figure.subplots(2, 1, sharex=True)
    total = result.configuration_error()
    whole.semilogy(
        loop.trajectory.times,
        style.positive(total),
        color=style.RUN,
        label=style.run_label(result),
    )
    if result.open_loop is not None and result.feedback:
        opened = result.open_loop
        whole.semilogy(
            opened.trajectory.times,
            style.positive(result.configuration_error(opened)),
            color=style.OPEN,
            label="open loop, same start" + " (fails)" * (opened.failure is not None),
        )
    e = result.experiment
    whole.set_ylabel(f"configuration error ({error_unit(e.scenario, e.model.system.space)})")
    # Local coordinates of the error: first the nv coordinates of the configuration, then the
    # momenta.
    momenta = np.linalg.norm(loop.errors[:, result.experiment.model.system.space.nv :], axis=1)
    curves = [(part.name, part.unit, part.values) for part in result.error_parts] + [
        ("momenta", "SI", momenta)
    ]
    for color, (name, unit, value) in zip(style.SERIES, curves):
        parts.semilogy(
            loop.trajectory.times,
            style.positive(value),
            color=color,
            linewidth=1.2,
            label=f"{name} ({unit})",
        )
    parts.set_ylabel("norm of each part")
    parts.set_xlabel("time (s)")
    parts.legend(
        loc="lower left",
        bbox_to_anchor=(0, 0.98),
        ncols=3 if len(curves) > 5 else len(curves),
        borderaxespad=0.0,
        fontsize=8,
    )
    show_intervals(result, whole, parts)
    end = result.experiment.tracker.reference.duration
    for panel in (whole, parts):
        # If the first or the last state is exact, its round-off would otherwise dominate the axis.
        panel.set_ylim(bottom=max(panel.get_ylim()[0], 1e-9 * total.max()))
        # The run may continue after the reference ends. The target is then its last state.
        if end < loop.trajectory.duration - loop.trajectory.h / 2:
            panel.axvline(end, color=style.TARGET, linewidth=1.0, linestyle=":")
            panel.annotate(
                " reference ends",
                (end, 0.03),
                xycoords=("data", "axes fraction"),
                color=style.TARGET,
            )
    style.head(figure, result, style.handles(whole))
    return figure


def show_intervals(result: Result, *panels: Axes) -> None:
    """Shade the intervals in which gusts and faults are active. The legend of the first panel
    names them.
    """
    named: set[str] = set()
    for shade in intervals(result.experiment.options, result.loop.trajectory.duration):
        for i, panel in enumerate(panels):
            label = shade.label if i == 0 and shade.label not in named else None
            panel.axvspan(
                shade.start, shade.stop, color=shade.color, linewidth=0, label=label, zorder=0
            )
        named.add(shade.label)


def outputs(result: Result, page: int = 0) -> Figure:
    """Draw the plant's declared outputs on one of `output_pages`, with one panel for each
    output.
    """
    table, pages = result.outputs, output_pages(result)
    shown = pages[page]
    figure = Figure(figsize=(style.WIDTH, 1.6 * len(shown) + 0.6), layout="constrained")
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False).ravel()
    for i, panel in zip(shown, panels):
        values, unit = table.values[:, i], table.units[i]
        label = style.run_label(result)
        panel.plot(result.loop.trajectory.times, values, color=style.RUN, label=label)
        name = table.names[i].replace("_", " ") + (f" ({unit})" if unit else "")
        panel.set_ylabel(style.wrapped(name, 20))
        style.keep_readable(panel)
    panels[-1].set_xlabel("time (s)")
    show_intervals(result, *panels)
    note = style.page_note(page, len(pages))
    style.head(figure, result, style.handles(*panels), note)
    return figure


def output_pages(result: Result) -> list[list[int]]:
    """Return the outputs on each page. Outputs with the largest range come first."""
    values = result.outputs.values
    return style.pages([[i] for i in range(values.shape[1])], np.ptp(values, axis=0))


def monitored(result: Result, monitor: MonitoredOutput) -> Figure:
    """Draw the scenario's monitored output with its lower limit."""
    times = result.loop.trajectory.times[:-1]
    figure = Figure(figsize=(style.WIDTH, 3.0), layout="constrained")
    panel = figure.subplots()
    for color, name, values in zip(style.SERIES, monitor.names, result.monitored.T):
        panel.plot(times, values, color=color, label=name)
    panel.axhline(
        monitor.minimum, color=style.LIMIT, linewidth=1.0, label=f"below: {monitor.warning}"
    )
    panel.set_ylabel(f"{monitor.title} ({monitor.unit})")
    panel.set_xlabel("time (s)")
    show_intervals(result, panel)
    style.head(figure, result, style.handles(panel))
    return figure
