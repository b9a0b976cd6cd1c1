"""The style of all figures: colors, sizes, titles and legends."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from matplotlib.image import imsave
from matplotlib.ticker import (
    LogFormatterSciNotation,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
    ScalarFormatter,
)

from nh_control.figures import paper
from nh_control.figures.tick_memo import ticks_computed_once
from nh_control.runs.experiment import Result
from nh_control.runs.output import SOFTWARE

RUN, TARGET, OPEN, LIMIT = "#1f6fb4", "#333333", "#e08214", "#c0392b"
SERIES: tuple[str, ...] = (RUN, "#2a9d6f", "#8e63b5", "#b8860b", "#17a2b8", "#888888", "#d1495b")
AXES = ("#d1495b", "#2a9d6f", RUN)
"""Colors of the x, y and z axes."""
DASHED: dict[str, Any] = {"color": TARGET, "linewidth": 1.1, "linestyle": (0, (4, 3))}
"""Line style of the reference."""
WIDTH, SCREEN = 7.4, "screen"
PROGRAM_KEY = {".png": "Software", ".svg": "Creator", ".pdf": "Creator"}
"""Figure formats, with the metadata key for the program that created the file."""
SYMBOL, LETTERS_PER_IN = 7, 13
"""Width of a legend symbol in letters, and number of letters per inch."""
PANELS, PAPER_DPI = 20, 300
"""Maximum number of panels in a figure, and dots per inch in figures for papers."""
MANY = 1e4
"""A logarithmic axis has no minor ticks if the ratio between its limits exceeds this value."""
TEX = re.compile(r"\$\\mathdefault\{(.*)10\^\{(-?\d+)\}\}\$")
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
"""Pattern of a label on a logarithmic axis, with its factor and exponent, and superscript digits.
"""
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
    "pdf.fonttype": 42,  # text remains editable
    "svg.fonttype": "none",
}


def save(draw: Callable[[], Figure], file: Path, style: str = SCREEN) -> None:
    """Draw a figure with Agg and save it. For a paper it has the width of `style`."""
    with matplotlib.rc_context(STYLE):
        figure = draw()
        canvas = FigureCanvasAgg(figure)
        if style != SCREEN:
            paper.fit(figure, style)
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                _thin_labels(axis)
        dpi = STYLE["savefig.dpi"] if style == SCREEN else PAPER_DPI
        metadata = {PROGRAM_KEY[file.suffix]: SOFTWARE}
        if file.suffix != ".png":
            figure.savefig(file, metadata=metadata, dpi=dpi)
            return
        figure.set_dpi(dpi)
        with ticks_computed_once(figure):
            canvas.draw()  # draws once, whereas `savefig` draws twice, first for the layout
        imsave(file, np.asarray(canvas.buffer_rgba()), dpi=dpi, metadata=metadata)


@contextmanager
def panels(
    axes: Any, labels: Sequence[str], size: tuple[float, float], columns: int = 1
) -> Iterator[list[Axes]]:
    """Yield the matplotlib `axes` to draw in, one for each label. Without `axes`, yield the axes
    of a new pyplot figure in the style of this package.

    Raises ValueError for a wrong number of axes.
    """
    if axes is not None:
        existing: list[Axes] = list(np.atleast_1d(np.asarray(axes, dtype=object)).ravel())
        if len(existing) != len(labels):
            expected = ", ".join(labels)
            raise ValueError(f"plot needs {len(labels)} axes, for {expected}; got {len(existing)}")
        yield existing
        return
    from matplotlib import pyplot

    with matplotlib.rc_context(STYLE):
        figure, grid = pyplot.subplots(
            len(labels) // columns, columns, sharex=columns == 1, squeeze=False, figsize=size,
            layout="constrained",
        )  # fmt: skip
        interactive = matplotlib.is_interactive()
        try:
            yield list(grid.ravel())
        except Exception:
            pyplot.close(figure)
            raise
    # The first figure in a notebook makes matplotlib interactive, so that figures are shown. The
    # context above would undo this change.
    matplotlib.interactive(interactive)


class Powers(LogFormatterSciNotation):
    """Formats powers of ten as plain text, such as 10⁻³. Matplotlib parses its default labels as
    TeX, which takes as long as drawing the rest of a figure.
    """

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of a tick."""
        return TEX.sub(
            lambda match: f"{match[1]}10{match[2].translate(RAISED)}", super().__call__(x, pos)
        ).replace(r"\times", "×")


def _thin_labels(axis: Axis) -> None:
    """Give a logarithmic axis plain labels. If the axis spans less than two powers of ten, it gets
    only a few labels, because matplotlib's default labels would overlap. An axis that spans more
    than MANY has no minor ticks. Each tick consists of five artists, and drawing them would take
    longer than drawing the rest of the figure.
    """
    if axis.get_scale() != "log":
        return
    axis.set_major_formatter(Powers())
    axis.set_minor_formatter(Powers())
    low, high = sorted(axis.get_view_interval())
    if high > MANY * low:
        axis.set_minor_locator(NullLocator())
    # Two labeled powers of ten are enough.
    if np.floor(np.log10(high)) > np.ceil(np.log10(low)):
        return
    axis.set_minor_formatter(NullFormatter())
    if high < 5 * low:
        axis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(ScalarFormatter())
    else:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 10 * low else (1.0, 3.0)))
        axis.set_major_formatter(Powers(minor_thresholds=(np.inf, np.inf)))


def run_label(result: Result) -> str:
    """Return the label of the run's curve."""
    without = "open loop" if result.experiment.model.nu else "free motion"
    return "tracked" if result.feedback else without


def title(result: Result) -> str:
    """Return the names of the scenario and the reference, with a note if the run stopped early."""
    return ", ".join(result.experiment.labels) + " (stopped early)" * bool(result.stopped)


def head(figure: Figure, result: Result, handles: Sequence[Artist], note: str = "") -> None:
    """Draw the title at the top left with a note below it. A legend of the handles is at the top
    right, or at the bottom if the legend is long.
    """
    figure.align_ylabels()
    figure.suptitle(f"{title(result)}\n{note}".rstrip(), x=0.02, ha="left", fontsize=10)
    # Estimate the width of the legend from its number of letters.
    letters = [len(str(handle.get_label())) + SYMBOL for handle in handles]
    available = figure.get_figwidth() * LETTERS_PER_IN
    if sum(letters) + len(title(result)) < available:
        figure.legend(handles=handles, loc="outside upper right", ncols=len(handles))
    else:
        columns = max(1, min(4, int(available / max(letters))))
        figure.legend(handles=handles, loc="outside lower center", ncols=columns)


def handles(*panels: Axes) -> list[Artist]:
    """Return the labeled handles of the panels, one for each label."""
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
    """Distribute groups of panels over pages with at most PANELS panels each. Groups are not
    split. Groups with the largest range are on the first pages, and each page keeps the original
    order.
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
    """Break a label into lines of about `width` letters, without breaking the unit."""
    name, bracket, unit = label.partition("(")
    # Non-breaking spaces protect the unit while the text is wrapped.
    whole = name + bracket + unit.replace(" ", "\xa0")
    lines = textwrap.wrap(whole, width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\xa0", " ")


def keep_readable(panel: Axes) -> None:
    """Widen the range of a constant curve. Otherwise the panel would show magnified round-off."""
    low, high = panel.get_ylim()
    if high - low < 1e-6:
        panel.set_ylim(low - 0.5, high + 0.5)


def positive(value: np.ndarray) -> np.ndarray:
    """Prepare values for a logarithmic axis: values <= 0 become NaN, which leaves a gap."""
    return np.where(value > 0, value, np.nan)


class Clock:
    """The colors that represent the times in a run, and the nodes at which the run is drawn."""

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
        """Draw the color bar. `place` contains arguments of `Figure.colorbar`."""
        bar = figure.colorbar(
            ScalarMappable(self._normalize, self._map), label="time (s)", **place
        )
        bar.outline.set_visible(False)
        return bar.ax
