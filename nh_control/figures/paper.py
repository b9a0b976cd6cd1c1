"""Figures as wide as one or two columns of a paper. Titles are removed, because papers have
captions. Text, lines and legends are scaled.
"""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

COLUMNS_IN = {"paper": 3.5, "paper-wide": 7.16}
"""Widths (in) of one column and of two columns in IEEE publications."""
LEAST_PT = 6.0
LEGEND_COLUMNS = {"paper": 2, "paper-wide": 5}


def fit(figure: Figure, style: str) -> None:
    """Scale a figure made for the screen to the width of `style`, which is "paper" or
    "paper-wide".

    If the width changes by a factor a, the height changes by sqrt(a), and text and lines change by
    a^0.4.
    """
    width, height = figure.get_size_inches()
    part = COLUMNS_IN[style] / width
    figure.set_size_inches(COLUMNS_IN[style], height * part**0.5)
    figure.suptitle("")
    for legend in list(figure.legends):
        labels = [text.get_text() for text in legend.get_texts()]
        legend.remove()
        columns = min(len(labels), LEGEND_COLUMNS[style])
        # A legend cannot rearrange its columns, so it is replaced by a narrower one.
        handles = [h for h in legend.legend_handles if h is not None]
        figure.legend(handles, labels, loc="outside upper center", ncols=columns)
    for axes in figure.axes:
        if axes.get_aspect() != "auto":  # a picture, whose title is also the title of the figure
            axes.set_title("")
        if style == "paper" and (inner := axes.get_legend()) is not None:
            labels = [text.get_text() for text in inner.get_texts()]
            axes.legend([h for h in inner.legend_handles if h is not None], labels, loc="best")
    small = part**0.4
    for text in figure.findobj(Text):
        text.set_fontsize(max(LEAST_PT, small * text.get_fontsize()))
    for line in figure.findobj(Line2D):
        line.set_linewidth(small * line.get_linewidth())
        line.set_markersize(small * line.get_markersize())
