"""How figures look: colours, sizes, titles and legends that all of them share."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import (
    LogFormatterSciNotation,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    ScalarFormatter,
)

from nh_control.runs.experiment import Result
from nh_control.runs.output import SOFTWARE

RUN, TARGET, OPEN, LIMIT = "#1f6fb4", "#333333", "#e08214", "#c0392b"
SERIES = (RUN, "#2a9d6f", "#8e63b5", "#b8860b", "#17a2b8", "#888888", "#d1495b")
AXES = ("#d1495b", "#2a9d6f", RUN)
"""Colours of x, y and z."""
DASHED: dict[str, Any] = {"color": TARGET, "linewidth": 1.1, "linestyle": (0, (4, 3))}
"""The reference."""
WIDTH = 7.4
PANELS = 20
"""How many panels one figure has at most."""
STYLE: dict[Any, Any] = {
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
}


def save(draw: Callable[[], Figure], file: Path) -> None:
    """Draw a figure in this style, with Agg, into a file."""
    with matplotlib.rc_context(STYLE):
        figure = draw()
        FigureCanvasAgg(figure)
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                _thin_labels(axis)
        figure.savefig(file, metadata={"Software": SOFTWARE})


def _thin_labels(axis: Axis) -> None:
    """Give a logarithmic axis that shows less than two powers of ten few labels: all of
    matplotlib's overlap.
    """
    if axis.get_scale() != "log":
        return
    low, high = sorted(axis.get_view_interval())
    if np.floor(np.log10(high)) > np.ceil(np.log10(low)):
        return
    axis.set_minor_formatter(NullFormatter())
    if high < 5 * low:
        axis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(ScalarFormatter())
    else:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 10 * low else (1.0, 3.0)))
        axis.set_major_formatter(LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf)))


def run_label(result: Result) -> str:
    """What the run's curve is called."""
    return "tracked" if result.feedback else "open loop"


def title(result: Result) -> str:
    """Scenario and reference, and whether the run was cut short."""
    return (
        f"{result.experiment.scenario.name}, {result.experiment.tracker.reference.name}"
        + " (stopped early)" * bool(result.stopped)
    )


def head(figure: Figure, result: Result, handles: Sequence[Artist], note: str = "") -> None:
    """Title and a note below it at the left, and a legend of the handles at the right of the
    figure's head.
    """
    figure.align_ylabels()
    figure.suptitle(f"{title(result)}\n{note}".rstrip(), x=0.02, ha="left", fontsize=10)
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles))


def handles(*panels: Axes) -> list[Artist]:
    """Handles of what the panels have a label for, each label once."""
    labelled = {
        label: handle
        for panel in panels
        for handle, label in zip(*panel.get_legend_handles_labels())
    }
    return list(labelled.values())


def legend_below(figure: Figure, columns: int, fontsize: float = 8) -> None:
    """A legend of what all panels have a label for, below them."""
    labelled = handles(*figure.axes)
    figure.legend(handles=labelled, loc="outside lower center", ncols=columns, fontsize=fontsize)


def pages(groups: Sequence[list[int]], moves: Sequence[float]) -> list[list[int]]:
    """The groups' panels in pages of at most PANELS, groups together, those that move most first;
    within a page they are in their order.
    """
    found: list[list[int]] = [[]]
    for i in np.argsort(-np.asarray(moves), kind="stable"):
        if len(found[-1]) + len(groups[i]) > PANELS:
            found.append([])
        found[-1] += groups[i]
    return [sorted(page) for page in found]


def page_note(page: int, count: int) -> str:
    """Which page of how many, none if there is only one."""
    return f"page {page + 1} of {count}, what moves most first" if count > 1 else ""


def wrapped(label: str, width: int) -> str:
    """A label in lines of about `width` letters, its unit in one of them."""
    name, bracket, unit = label.partition("(")
    whole = name + bracket + unit.replace(" ", "\xa0")
    lines = textwrap.wrap(whole, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\xa0", " ")


def keep_readable(panel: Axes) -> None:
    """Show a constant as a line, not as magnified round-off."""
    low, high = panel.get_ylim()
    if high - low < 1e-6:
        panel.set_ylim(low - 0.5, high + 0.5)


def positive(value: np.ndarray) -> np.ndarray:
    """Values for a logarithmic axis: what is not positive leaves a gap."""
    return np.where(value > 0, value, np.nan)


class Clock:
    """Colours of the times of a run, and the nodes at which it is drawn."""

    def __init__(self, result: Result, shown: int = 9):
        trajectory = result.loop.trajectory
        self._times = trajectory.times
        self._normalize = Normalize(0, max(trajectory.duration, trajectory.h))
        self._map = matplotlib.colormaps["viridis"]
        self.nodes = np.unique(np.linspace(0, len(trajectory), shown).round().astype(int))

    def color(self, k: int) -> tuple[float, float, float, float]:
        """Colour of node k."""
        return self._map(0.92 * self._normalize(self._times[k]))

    def bar(self, figure: Figure, **place: Any) -> Axes:
        """Draw the scale, `place` is that of `Figure.colorbar`."""
        bar = figure.colorbar(
            ScalarMappable(self._normalize, self._map), label="time (s)", **place
        )
        bar.outline.set_visible(False)
        return bar.ax
