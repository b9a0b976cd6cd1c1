"""Figures that show trajectories over time: configurations, velocities, inputs, energy and
constraint residuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from nh_control.discrete.trajectory import Trajectory
from nh_control.figures import style

MOST = len(style.SERIES)
"""Maximum number of curves in a panel that are named in the legend. Other curves are gray."""


@dataclass(frozen=True)
class Panel:
    """The curves of a panel at the times (N). If they are `piecewise_constant`, they jump at these
    times.
    """

    label: str
    names: tuple[str, ...]
    times: np.ndarray
    values: np.ndarray
    piecewise_constant: bool = False
    logarithmic: bool = False


def panels(trajectory: Trajectory) -> list[Panel]:
    """Return the panels of a trajectory. Raises ValueError if it has no discrete system."""
    dsys = trajectory.state_map_for("plotted")
    system, states, times = dsys.system, trajectory.states, trajectory.times
    space = system.space
    velocities = np.array([dsys.velocity(x) for x in states])
    drawn = [
        Panel("configuration", tuple(space.names), times, states[:, : space.nq]),
        Panel("velocity", tuple(space.velocity_names), times, velocities),
    ]
    if dsys.nu:
        drawn.append(
            Panel(
                "input", tuple(dsys.inputs), times[:-1], trajectory.inputs, piecewise_constant=True
            )
        )
    drawn.append(Panel("energy (J)", ("energy",), times, dsys.energies(states)[:, None]))
    residual = dsys.constraint_residuals(states[:-1], states[1:])
    if residual.shape[1] and len(residual):
        # A single curve for all constraints: the largest residual of each step.
        largest = np.abs(residual).max(axis=1, keepdims=True)
        drawn.append(
            Panel("constraint residual (m)", ("largest",), times[1:], largest, logarithmic=True)
        )
    return drawn


def plot_trajectory(trajectory: Trajectory, axes: Any = None) -> np.ndarray:
    """See `Trajectory.plot`."""
    shown = panels(trajectory)
    labels, size = [panel.label for panel in shown], (style.WIDTH, 1.7 * len(shown) + 0.6)
    with style.panels(axes, labels, size) as drawn:
        _draw(drawn, shown)
        if axes is None:
            drawn[0].figure.suptitle(trajectory.name, x=0.02, ha="left", fontsize=10)
    return np.array(drawn)


def _draw(axes: Sequence[Axes], shown: Sequence[Panel]) -> None:
    for axis, panel in zip(axes, shown):
        # The curves with the largest range get colors and names.
        order: np.ndarray = np.argsort(-np.ptp(panel.values, axis=0), kind="stable")
        for place, i in enumerate(order):
            named = place < MOST
            options: dict[str, Any] = {
                "color": style.SERIES[place] if named else "#cccccc",
                "label": panel.names[i] if named else None,
                "zorder": 3 if named else 1,
                "linewidth": 1.5 if named else 0.8,
            }
            values = panel.values[:, i]
            values = style.positive(values) if panel.logarithmic else values
            drawstyle = "steps-post" if panel.piecewise_constant else "default"
            axis.plot(panel.times, values, drawstyle=drawstyle, **options)
        axis.set_ylabel(style.wrapped(panel.label, 20))
        if panel.logarithmic:
            axis.set_yscale("log")
        if len(panel.names) > 1:
            axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    axes[-1].set_xlabel("time (s)")
