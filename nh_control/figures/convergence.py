"""Figures of orders of convergence: errors over steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from nh_control.figures import style
from nh_control.figures.comparison import line_style
from nh_control.studies.convergence import PARTS, Convergence


def plot_convergence(convergence: Convergence, axes: Any = None) -> np.ndarray:
    """See `Convergence.plot`."""
    from matplotlib import pyplot

    if axes is not None:
        drawn: list[Axes] = list(np.atleast_1d(np.asarray(axes, dtype=object)).ravel())
        if len(drawn) != len(PARTS):
            raise ValueError(f"plot needs 2 axes, for {' and '.join(PARTS)}; got {len(drawn)}")
        _draw(drawn, convergence)
        return np.array(drawn)
    with matplotlib.rc_context(style.STYLE):
        size = (style.WIDTH, 4.2)
        figure, grid = pyplot.subplots(1, len(PARTS), figsize=size, layout="constrained")
        drawn = list(grid)
        _draw(drawn, convergence)
        motion = convergence.motion
        title = f"{motion.system.name}, {motion.duration:g} s"
        figure.suptitle(title, x=0.02, ha="left", fontsize=10)
    return np.array(drawn)


def _draw(axes: Sequence[Axes], convergence: Convergence) -> None:
    """Draw the errors over h, and the line below which none is fitted."""
    for panel, part, floor in zip(axes, PARTS, convergence.floor):
        for i, (name, errors) in enumerate(convergence.errors.items()):
            order = getattr(errors, f"{part}_order")
            panel.loglog(
                convergence.h,
                style.positive(getattr(errors, part)),
                label=name if np.isnan(order) else f"{name}, {order:.2f}",
                **line_style(name, i, markers=True),
            )
        panel.axhline(floor, color=style.LIMIT, linewidth=1.0, label="not fitted below")
        panel.set_xlabel("h (s)")
        panel.set_ylabel(f"error of the {part}")
        panel.legend(fontsize=8, title="fitted orders", title_fontsize=8)
