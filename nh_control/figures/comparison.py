"""Figures that compare integrators: errors versus processor time, energy, and constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nh_control.figures import style
from nh_control.studies.comparison import SCIPY, Comparison

MARKERS = "osD^v<>Ph"


def work_precision(comparison: Comparison) -> Figure:
    """Draw the error of the final configuration versus the processor time for the whole motion."""
    figure = Figure(figsize=(style.WIDTH, 5.0), layout="constrained")
    panel = figure.subplots()
    for i, (name, points) in enumerate(comparison.work.items()):
        panel.loglog(
            [1e3 * point.seconds for point in points],
            style.positive(np.array([point.error for point in points])),
            label=name,
            **line_style(name, i, markers=True),
        )
    panel.axhline(comparison.uncertainty, color=style.LIMIT, linewidth=1.0)
    panel.annotate(
        "the reference's uncertainty",
        (0.01, comparison.uncertainty),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        xytext=(0, 3),
        color=style.LIMIT,
        fontsize=8,
    )
    # Motions that diverge have huge errors, which would compress the other curves.
    panel.set_ylim(top=10.0)
    panel.set_xlabel("processor time (ms)")
    panel.set_ylabel("error of the configuration (rad, m)")
    intervals = comparison.motion.intervals
    inputs = f" under {intervals} constant inputs in sequence" if intervals > 1 else ""
    _finish(figure, comparison, f"{comparison.motion.duration:g} s{inputs}")
    return figure


def energy(comparison: Comparison) -> Figure:
    """Draw the energy error, relative to the largest kinetic energy, and the constraint residual
    over time for a single step size. The SciPy solvers use a tolerance of 1e-6.
    """
    constrained = (
        comparison.motion.system.n_velocity_constraints
        or comparison.motion.system.n_holonomic_constraints
    )
    rows = 2 if constrained else 1
    figure = Figure(figsize=(style.WIDTH, 2.2 + 2.4 * rows), layout="constrained")
    panels = figure.subplots(rows, 1, sharex=True, squeeze=False).ravel()
    for i, (name, drift) in enumerate(comparison.drifts.items()):
        line = line_style(name, i, markers=False)
        panels[0].semilogy(drift.times, style.positive(np.abs(drift.energy)), label=name, **line)
        if constrained:
            panels[1].semilogy(drift.times, style.positive(drift.constraint), **line)
    panels[0].set_ylabel("energy error")
    if constrained:
        panels[1].set_ylabel("constraint at the nodes")
    panels[-1].set_xlabel("time (s)")
    _finish(figure, comparison, f"h = {comparison.step_s:g} s")
    return figure


def _finish(figure: Figure, comparison: Comparison, how: str) -> None:
    figure.suptitle(f"{comparison.motion.system.name}, {how}", x=0.02, ha="left", fontsize=10)
    style.legend_below(figure, 3, 7)


def line_style(name: str, i: int, markers: bool) -> dict[str, Any]:
    """Return the style of a method's curve. The curves of SciPy solvers are gray and dashed."""
    if name in SCIPY:
        # Gray, because the SciPy solvers are a baseline and do not belong to this package.
        place = SCIPY.index(name)
        color, dash = ("#222222", "#777777", "#aaaaaa")[place], "--"
    else:
        color = style.SERIES[i % len(style.SERIES)]
        dash = ("-", "-.", ":")[i // len(style.SERIES) % 3]
    line: dict[str, Any] = {"color": color, "linestyle": dash, "linewidth": 1.2}
    return line | ({"marker": MARKERS[i % len(MARKERS)], "markersize": 3} if markers else {})
