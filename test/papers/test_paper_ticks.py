"""Tick labels in figures of papers exist and do not overlap."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from nh_control.figures import style
from nh_control.papers import measure


def boxes(axis):
    """Places of an axis's labels in pixels, from left to right, those outside the panel left out;
    its figure must be drawn.
    """
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    shown = [t.label1 for t in ticks if t.label1.get_text() and low <= t.get_loc() <= high]
    return sorted((b.x0, b.x1) for b in (label.get_window_extent() for label in shown))


@pytest.mark.parametrize("width", [5.2, 3.2])
@pytest.mark.parametrize("h", [0.02 / 2.0 ** np.arange(n) for n in (4, 5, 7)])
@pytest.mark.parametrize(
    "plot",
    [measure.plot_order, lambda *given: measure.plot_orders(*given, (1, 2))],
    ids=["one line", "lines"],
)
def test_tick_labels_of_short_axes_do_not_overlap(plot, h, width, tmp_path):
    figure = Figure(figsize=(width, 3.4), layout="constrained")

    def draw():
        plot(figure.add_subplot(), h, {"first": 3 * h, "second": 0.5 * h**2})
        return figure

    style.save(draw, tmp_path / "orders.png")
    found = boxes(figure.axes[0].xaxis)
    assert len(found) >= 2
    assert all(right + 2 < left for (_, right), (left, _) in zip(found, found[1:])), found
