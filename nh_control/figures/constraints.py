"""The figure that shows the scenario's constraints during a run."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nh_control.figures import style
from nh_control.runs.experiment import Result
from nh_control.runs.kept_constraints import KeptConstraint

FORBIDDEN = "#f3d6d2"
MOST = 2
"""Maximum number of rows that are drawn separately if they only have lower bounds."""
MARGIN = 0.12
"""Margin above and below the values and the bounds, as a fraction of their range."""


def constraints(result: Result) -> Figure:
    """Draw the values of each constraint, shade the forbidden values, and note the smallest
    margin.
    """
    by_name = result.kept_constraints
    size = (style.WIDTH, 1.7 * max(1, len(by_name)) + 0.8)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(max(1, len(by_name)), 1, sharex=True, squeeze=False).ravel()
    for panel, (name, record) in zip(panels, by_name.items()):
        _draw(panel, name, record, result.loop.trajectory.times[:-1])
    panels[-1].set_xlabel("time (s)")
    style.head(figure, result, style.handles(panels[0]))
    return figure


def _draw(panel: Axes, name: str, record: KeptConstraint, times: np.ndarray) -> None:
    rows = record.values.shape[1]
    lower, upper = (float(bound) for bound in (record.bounds[0].min(), record.bounds[1].max()))
    shown, labels = record.values, record.constraint.row_names(rows) if rows > 1 else ["run"]
    if rows > MOST and not np.isfinite(upper):
        # If there are only lower bounds, the smallest value shows whether all of them are
        # satisfied.
        shown, labels = shown.min(axis=1, keepdims=True), ["least row"]
    for values, color, label in zip(shown.T, style.SERIES, labels):
        panel.plot(times, values, color=color, label=label)
    ends = [v for v in (shown.min(), shown.max(), lower, upper) if np.isfinite(v)]
    margin = MARGIN * (max(ends) - min(ends) or 1.0)
    panel.set_ylim(min(ends) - margin, max(ends) + margin)
    for near, far in zip((lower, upper), panel.get_ylim()):
        if np.isfinite(near):
            panel.axhspan(near, far, color=FORBIDDEN, linewidth=0, zorder=0)
            panel.axhline(near, color=style.LIMIT, linewidth=1.0, label="bound")
    label = name.replace("_", " ") + (f" ({record.unit})" if record.unit else "")
    panel.set_ylabel(style.wrapped(label, 20))
    least = float(record.margins.min())
    color = style.LIMIT if least < 0 else style.TARGET
    title = f"least margin {least:.3g} {record.unit}"
    panel.set_title(title, loc="right", fontsize=8, color=color)
