"""Ticks of axes that are computed once for each size of the axes while a figure is drawn, and only
where they are visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axis import Axis
from matplotlib.figure import Figure

TICKS, LABEL_BOXES = "_update_ticks", "_get_ticklabel_bboxes"
"""Matplotlib's private methods of an axis that place its ticks, and that measure their labels."""
LOCATIONS = "get_majorticklocs"
"""Matplotlib's method that returns the locations of the ticks."""
ROUND_OFF = 1e-10
"""Distance of a tick from the ends of its axis, relative to the length, that is round-off."""


@contextmanager
def ticks_computed_once(figure: Figure) -> Iterator[None]:
    """While the figure is drawn in this context, compute the ticks of its axes once for each size.

    To lay out a figure, matplotlib asks every axis about twenty times for its ticks and for the
    boxes of their labels, and in addition once for each axis with an aligned label. The ticks
    depend only on the limits of the axis and on the space for ticks; the boxes also depend on the
    position of the axes. Nothing else may change the figure in this context.

    Locators return a location beyond each end of an axis. Their ticks are not made, because a tick
    consists of five artists.
    """
    panels = (axes for axes in figure.axes if axes.name == "rectilinear")
    flat = [axis for axes in panels for axis in (axes.xaxis, axes.yaxis)]
    for axis in flat:
        _compute_once(axis, TICKS, lambda axis: axis.get_tick_space())
        _compute_once(axis, LABEL_BOXES, lambda axis: axis.axes.bbox.bounds)
        axis.__dict__[LOCATIONS] = partial(_visible_locations, axis)
    try:
        yield
    finally:
        for axis in flat:
            del axis.__dict__[TICKS], axis.__dict__[LABEL_BOXES], axis.__dict__[LOCATIONS]


def _visible_locations(axis: Axis) -> np.ndarray:
    """The locations of major ticks between the ends of the axis."""
    locations = np.asarray(getattr(type(axis), LOCATIONS)(axis))
    low, high = sorted(axis.get_view_interval())
    allowed = ROUND_OFF * (high - low)
    return locations[(low - allowed <= locations) & (locations <= high + allowed)]


def _compute_once(axis: Axis, name: str, place: Callable[[Axis], Any]) -> None:
    """Let a method of this axis return its last result until the limits or the place change."""
    compute = getattr(axis, name)
    last: tuple[Any, Any] = None, None

    def remembered(*args: Any) -> Any:
        nonlocal last
        key = *axis.get_view_interval(), place(axis)
        if last[0] != key:
            last = key, compute(*args)
        return last[1]

    axis.__dict__[name] = remembered
