"""Figures of trajectories over time: configurations, velocities, inputs, energy and constraint
residual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from nh_control.discrete.trajectory import Trajectory
from nh_control.figures import style

MOST = len(style.SERIES)
"""Most curves of one panel that a legend names; the others are gray."""


@dataclass(frozen=True)
class Panel:
    """Curves of the times (N) in one panel; `held` ones are constant from one time to the next."""

    label: str
    names: tuple[str, ...]
    times: np.ndarray
    values: np.ndarray
    piecewise_constant: bool = False
    logarithmic: bool = False


def panels(trajectory: Trajectory) -> list[Panel]:
    """The panels of a trajectory; raises ValueError without its discrete system."""
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
        largest = np.abs(residual).max(axis=1, keepdims=True)
        drawn.append(
            Panel("constraint residual (m)", ("largest",), times[1:], largest, logarithmic=True)
        )
    return drawn


def plot_trajectory(trajectory: Trajectory, axes: Any = None) -> np.ndarray:
    """See `Trajectory.plot`."""
    from matplotlib import pyplot

    shown = panels(trajectory)
    if axes is not None:
        drawn: list[Axes] = list(np.atleast_1d(np.asarray(axes, dtype=object)).ravel())
        if len(drawn) != len(shown):
            raise ValueError(
                f"plot needs {len(shown)} axes, for {', '.join(p.label for p in shown)}; "
                f"got {len(drawn)}"
            )
        _draw(drawn, shown)
        return np.array(drawn)
    with matplotlib.rc_context(style.STYLE):
        size = (style.WIDTH, 1.7 * len(shown) + 0.6)
        figure, grid = pyplot.subplots(
            len(shown), 1, sharex=True, squeeze=False, figsize=size, layout="constrained"
        )
        drawn = list(grid.ravel())
        _draw(drawn, shown)
        figure.suptitle(trajectory.name, x=0.02, ha="left", fontsize=10)
    return np.array(drawn)


def _draw(axes: Sequence[Axes], shown: Sequence[Panel]) -> None:
    for panel, one in zip(axes, shown):
        order: np.ndarray = np.argsort(-np.ptp(one.values, axis=0), kind="stable")
        for place, i in enumerate(order):
            named = place < MOST
            options: dict[str, Any] = {
                "color": style.SERIES[place] if named else "#cccccc",
                "label": one.names[i] if named else None,
                "zorder": 3 if named else 1,
                "linewidth": 1.5 if named else 0.8,
            }
            values = style.positive(one.values[:, i]) if one.logarithmic else one.values[:, i]
            piecewise_constant = "steps-post" if one.piecewise_constant else "default"
            panel.plot(one.times, values, drawstyle=piecewise_constant, **options)
        panel.set_ylabel(style.wrapped(one.label, 20))
        if one.logarithmic:
            panel.set_yscale("log")
        if len(one.names) > 1:
            panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    axes[-1].set_xlabel("time (s)")
