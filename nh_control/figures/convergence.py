"""Figures that show orders of convergence: errors versus step sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from nh_control.figures import style
from nh_control.figures.comparison import line_style
from nh_control.studies.convergence import PARTS, Convergence


def plot_convergence(convergence: Convergence, axes: Any = None) -> np.ndarray:
    """See `Convergence.plot`."""
    with style.panels(axes, PARTS, (style.WIDTH, 4.2), len(PARTS)) as drawn:
        _draw(drawn, convergence)
        if axes is None:
            motion = convergence.motion
            title = f"{motion.system.name}, {motion.duration:g} s"
            drawn[0].figure.suptitle(title, x=0.02, ha="left", fontsize=10)
    return np.array(drawn)


def _draw(axes: Sequence[Axes], convergence: Convergence) -> None:
    """Draw the errors versus h, and a line below which errors are excluded from the fit."""
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
