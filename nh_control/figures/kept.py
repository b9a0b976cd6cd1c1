"""Figure of how a run kept the scenario's constraints."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nh_control.figures import style
from nh_control.runs.experiment import Result
from nh_control.runs.kept_constraints import KeptConstraint, kept_constraints

FORBIDDEN = "#f3d6d2"
MOST = 2
"""Largest number of rows with a lower bound alone that are drawn apart."""
ROOM = 0.12
"""Least fraction of a panel that shows forbidden values."""


def constraints(result: Result) -> Figure:
    """Draw the values of every constraint with forbidden values shaded, and its least margin."""
    kept = kept_constraints(result)
    size = (style.WIDTH, 1.7 * max(1, len(kept)) + 0.8)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(max(1, len(kept)), 1, sharex=True, squeeze=False).ravel()
    for panel, (name, one) in zip(panels, kept.items()):
        _draw(panel, name, one, result.loop.trajectory.times[:-1])
    panels[-1].set_xlabel("time (s)")
    style.head(figure, result, style.handles(panels[0]))
    return figure


def _draw(panel: Axes, name: str, kept: KeptConstraint, times: np.ndarray) -> None:
    rows = kept.values.shape[1]
    lower, upper = (float(bound) for bound in (kept.bounds[0].min(), kept.bounds[1].max()))
    shown, labels = kept.values, kept.constraint.row_names(rows) if rows > 1 else ["run"]
    if rows > MOST and not np.isfinite(upper):
        shown, labels = shown.min(axis=1, keepdims=True), ["least row"]
    for values, color, label in zip(shown.T, style.SERIES, labels):
        panel.plot(times, values, color=color, label=label)
    ends = [v for v in (shown.min(), shown.max(), lower, upper) if np.isfinite(v)]
    room = ROOM * (max(ends) - min(ends) or 1.0)
    panel.set_ylim(min(ends) - room, max(ends) + room)
    for near, far in zip((lower, upper), panel.get_ylim()):
        if np.isfinite(near):
            panel.axhspan(near, far, color=FORBIDDEN, linewidth=0, zorder=0)
            panel.axhline(near, color=style.LIMIT, linewidth=1.0, label="bound")
    label = name.replace("_", " ") + (f" ({kept.unit})" if kept.unit else "")
    panel.set_ylabel(style.wrapped(label, 20))
    least = float(kept.margins.min())
    color = style.LIMIT if least < 0 else style.TARGET
    panel.set_title(f"least margin {least:.3g} {kept.unit}", loc="right", fontsize=8, color=color)
