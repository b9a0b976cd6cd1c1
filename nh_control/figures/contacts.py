"""The figure that shows the contacts in a run: forces, gaps, and margins of the friction cones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from nh_control.discrete.contact_forces import ContactTable
from nh_control.figures import style
from nh_control.figures.common import show_intervals
from nh_control.runs.experiment import Result

MOST = len(style.SERIES)
"""Maximum number of contacts that are drawn. The contacts with the largest forces are chosen."""


class _Panel(NamedTuple):
    label: str
    values: np.ndarray
    logarithmic: bool = False
    has_limit: bool = False


def contacts(result: Result) -> Figure:
    """Draw the normal forces, gaps, friction forces and friction margins of the contacts in a run.
    Raises ValueError for a system without contacts.
    """
    table = result.contacts
    if table is None:
        raise ValueError(f"{result.experiment.plant}: the system has no contacts and no grips")
    shown = np.argsort(-np.abs(_friction(table) + table.normal).max(axis=0, initial=0.0))[:MOST]
    # Restore the order of the contacts, so that their colors do not depend on the forces.
    shown.sort()
    panels = list(_panels(table))
    figure = Figure(figsize=(style.WIDTH, 1.7 * len(panels) + 0.8), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False).ravel()
    times = result.loop.trajectory.times[:-1]
    for axis, panel in zip(axes, panels):
        for i, color in zip(shown, style.SERIES):
            axis.plot(times, panel.values[:, i], color=color, label=table.names[i])
        if panel.logarithmic:
            axis.set_yscale("log")
        if panel.has_limit:
            axis.axhline(0.0, color=style.LIMIT, linewidth=1.0, label="slides")
        axis.set_ylabel(style.wrapped(panel.label, 20))
    axes[-1].set_xlabel("time (s)")
    show_intervals(result, *axes)
    left_out = len(table.names) - len(shown)
    note = f"{left_out} contacts with smaller forces are not shown" if left_out else ""
    style.head(figure, result, style.handles(axes[-1]), note)
    return figure


def _friction(table: ContactTable) -> np.ndarray:
    return np.linalg.norm(table.friction, axis=2)


def _panels(table: ContactTable) -> Iterator[_Panel]:
    """Return the panels to draw. Grips have no normal forces and no gaps."""
    if np.isfinite(table.gap).any():
        yield _Panel("normal force (N)", table.normal)
        yield _Panel("gap (m)", np.maximum(table.gap, 1e-12), logarithmic=True)
    if np.isfinite(table.margin).any():
        yield _Panel("friction (N)", _friction(table))
        yield _Panel("margin of friction", table.margin, has_limit=True)
