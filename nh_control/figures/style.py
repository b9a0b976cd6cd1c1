"""Style of all figures: colors, sizes, titles and legends."""

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

from nh_control.figures import paper
from nh_control.runs.experiment import Result
from nh_control.runs.output import SOFTWARE

RUN, TARGET, OPEN, LIMIT = "#1f6fb4", "#333333", "#e08214", "#c0392b"
SERIES = (RUN, "#2a9d6f", "#8e63b5", "#b8860b", "#17a2b8", "#888888", "#d1495b")
AXES = ("#d1495b", "#2a9d6f", RUN)
"""Colors of x, y and z."""
DASHED: dict[str, Any] = {"color": TARGET, "linewidth": 1.1, "linestyle": (0, (4, 3))}
"""Line style of the reference."""
WIDTH, SCREEN = 7.4, "screen"
PROGRAM_KEY = {".png": "Software", ".svg": "Creator", ".pdf": "Creator"}
"""Formats of figures, with what each calls the program that made it."""
SYMBOL, LETTERS_PER_IN = 7, 13
"""Letters that a legend's symbol is as wide as, and that an inch has."""
PANELS, PAPER_DPI = 20, 300
"""Largest number of panels of a figure, and dots per inch of one for a paper."""
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
    "pdf.fonttype": 42,  # text stays text
    "svg.fonttype": "none",
}


def save(draw: Callable[[], Figure], file: Path, style: str = SCREEN) -> None:
    """Draw a figure in this style, with Agg, and save it; for a paper in the width of `style`."""
    with matplotlib.rc_context(STYLE):
        figure = draw()
        FigureCanvasAgg(figure)
        if style != SCREEN:
            paper.fit(figure, style)
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                _thin_labels(axis)
        dpi = STYLE["savefig.dpi"] if style == SCREEN else PAPER_DPI
        figure.savefig(file, metadata={PROGRAM_KEY[file.suffix]: SOFTWARE}, dpi=dpi)


def _thin_labels(axis: Axis) -> None:
    """Give a logarithmic axis over less than two powers of ten few labels: matplotlib's default
    labels overlap.
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
    """Return the label of the run's curve."""
    without = "open loop" if result.experiment.model.nu else "free motion"
    return "tracked" if result.feedback else without


def title(result: Result) -> str:
    """Return the scenario and reference, and whether the run stopped early."""
    return ", ".join(result.experiment.labels) + " (stopped early)" * bool(result.stopped)


def head(figure: Figure, result: Result, handles: Sequence[Artist], note: str = "") -> None:
    """Draw the title with a note below it at the top left, and a legend of the handles at the top
    right, or at the bottom if it is long.
    """
    figure.align_ylabels()
    figure.suptitle(f"{title(result)}\n{note}".rstrip(), x=0.02, ha="left", fontsize=10)
    letters = [len(str(one.get_label())) + SYMBOL for one in handles]
    room = figure.get_figwidth() * LETTERS_PER_IN
    if sum(letters) + len(title(result)) < room:
        figure.legend(handles=handles, loc="outside upper right", ncols=len(handles))
    else:
        columns = max(1, min(4, int(room / max(letters))))
        figure.legend(handles=handles, loc="outside lower center", ncols=columns)


def handles(*panels: Axes) -> list[Artist]:
    """Return the labeled handles of the panels, each label once."""
    labeled = {
        label: handle
        for panel in panels
        for handle, label in zip(*panel.get_legend_handles_labels())
    }
    return list(labeled.values())


def legend_below(figure: Figure, columns: int, fontsize: float = 8) -> None:
    """Draw a legend of all labeled curves below the panels."""
    labeled = handles(*figure.axes)
    figure.legend(handles=labeled, loc="outside lower center", ncols=columns, fontsize=fontsize)


def pages(groups: Sequence[list[int]], moves: Sequence[float]) -> list[list[int]]:
    """Distribute groups of panels over pages of at most PANELS panels. Groups stay together; those
    with the largest range come first, and each page keeps the original order.
    """
    filled: list[list[int]] = [[]]
    for i in np.argsort(-np.asarray(moves), kind="stable"):
        if len(filled[-1]) + len(groups[i]) > PANELS:
            filled.append([])
        filled[-1] += groups[i]
    return [sorted(page) for page in filled]


def page_note(page: int, count: int) -> str:
    """Return the number of a page, or "" for a single page."""
    return f"page {page + 1} of {count}, largest motion first" if count > 1 else ""


def wrapped(label: str, width: int) -> str:
    """Return a label in lines of about `width` letters; the unit stays in one line."""
    name, bracket, unit = label.partition("(")
    whole = name + bracket + unit.replace(" ", "\xa0")
    lines = textwrap.wrap(whole, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\xa0", " ")


def keep_readable(panel: Axes) -> None:
    """Show a constant as a line instead of magnified round-off."""
    low, high = panel.get_ylim()
    if high - low < 1e-6:
        panel.set_ylim(low - 0.5, high + 0.5)


def positive(value: np.ndarray) -> np.ndarray:
    """Return values for a logarithmic axis: values <= 0 become NaN, which leaves a gap."""
    return np.where(value > 0, value, np.nan)


class Clock:
    """The colors of a run's times, and the nodes at which the run is drawn."""

    def __init__(self, result: Result, shown: int = 9):
        trajectory = result.loop.trajectory
        self._times = trajectory.times
        self._normalize = Normalize(0, max(trajectory.duration, trajectory.h))
        self._map = matplotlib.colormaps["viridis"]
        self.nodes = np.unique(np.linspace(0, len(trajectory), shown).round().astype(int))

    def color(self, k: int) -> tuple[float, float, float, float]:
        """Return the color of node k."""
        return self._map(0.92 * self._normalize(self._times[k]))

    def bar(self, figure: Figure, **place: Any) -> Axes:
        """Draw the color scale; `place` contains arguments of `Figure.colorbar`."""
        bar = figure.colorbar(
            ScalarMappable(self._normalize, self._map), label="time (s)", **place
        )
        bar.outline.set_visible(False)
        return bar.ax
