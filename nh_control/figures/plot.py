"""`nh.plot`: figures of trajectories, residuals and orders of convergence in new or existing
matplotlib axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes

from nh_control.control.identification import Identification
from nh_control.discrete.trajectory import Trajectory
from nh_control.figures import style
from nh_control.figures.convergence import plot_convergence as convergence
from nh_control.figures.trajectories import plot_trajectory as trajectory

__all__ = ["compare", "convergence", "phase", "residuals", "trajectory"]
Trajectories: TypeAlias = Trajectory | Sequence[Trajectory] | Mapping[str, Trajectory]
MOST_SHOWN = 6
"""Maximum number of coordinates in a comparison. Those with the largest differences are chosen."""
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (5, 1.5, 1, 1.5)))


def compare(trajectories: Trajectories, axes: Any = None, names: Sequence[str] = ()) -> np.ndarray:
    """Draw trajectories with the same coordinates together. There is a panel for each coordinate
    in `names` and a panel for the energy. The default for `names` is the MOST_SHOWN coordinates
    that differ most, in descending order.

    `axes` are matplotlib axes, one for each panel. Returns the axes. Raises ValueError for fewer
    than two trajectories, for different coordinates, for trajectories without a discrete system,
    for unknown names, and for a wrong number of axes.
    """
    by_name = _by_name(trajectories)
    if len(by_name) < 2:
        raise ValueError(f"compare needs two trajectories or more, got {len(by_name)}")
    first = next(iter(by_name.values()))
    known = first.state_map_for("compared").system.space.names
    for name, motion in by_name.items():
        coordinates = motion.state_map_for("compared").system.space.names
        if coordinates != known:
            raise ValueError(
                f"{name} has the coordinates {', '.join(coordinates)}, not {', '.join(known)}"
            )
    columns = [_index(name, known) for name in names] or _most_apart(by_name)
    labels = [*(known[i] for i in columns), "energy (J)"]
    # Each panel shows one coordinate of all trajectories.
    with style.panels(axes, labels, (style.WIDTH, 1.5 * len(labels) + 0.8)) as drawn:
        for k, (name, motion) in enumerate(by_name.items()):
            energies = motion.state_map_for("compared").energies(motion.states)
            look = {**_look(k), "label": name}
            for panel, values in zip(drawn, [*motion.states[:, columns].T, energies]):
                panel.plot(motion.times, values, **look)
        for panel, label in zip(drawn, labels):
            panel.set_ylabel(style.wrapped(label, 20))
        drawn[-1].set_xlabel("time (s)")
        drawn[0].legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, fontsize=8)
    return np.array(drawn)


def phase(
    trajectories: Trajectories, coordinate: str = "", axes: Axes | None = None, velocity: str = ""
) -> Axes:
    """Draw a velocity versus a coordinate (by default the first one), with a dot at each initial
    state.

    The default `velocity` is the component with the same index as the coordinate. Returns the
    axes. Raises ValueError for trajectories without a discrete system and for unknown names.
    """
    by_name = _by_name(trajectories)
    with style.panels(axes, ["phase"], (4.6, 4.0)) as (panel,):
        _draw_phases(panel, by_name, coordinate, velocity)
    return panel


def _draw_phases(
    panel: Axes, by_name: Mapping[str, Trajectory], coordinate: str, velocity: str
) -> None:
    for k, (name, motion) in enumerate(by_name.items()):
        dsys = motion.state_map_for("plotted")
        space = dsys.system.space
        i = _index(coordinate, space.names) if coordinate else 0
        # A coordinate has a corresponding velocity only if q' = v.
        if not velocity and space.nw != space.nq:
            raise ValueError(
                f"{dsys.system.name} has {space.nq} coordinates and {space.nw} velocities: name "
                f"one of {', '.join(space.velocity_names)} as velocity"
            )
        j = _index(velocity, space.velocity_names) if velocity else i
        x, y = motion.states[:, i], np.array([dsys.velocity(state)[j] for state in motion.states])
        panel.plot(x, y, **_look(k), label=name)
        panel.plot(x[:1], y[:1], "o", color=_look(k)["color"], markersize=4)
        panel.set_xlabel(space.names[i])
        panel.set_ylabel(space.velocity_names[j])
    if len(by_name) > 1:
        panel.legend(fontsize=8)


def residuals(identification: Identification, axes: Any = None) -> np.ndarray:
    """Draw the residuals of each measured quantity over time, with a band of two standard
    deviations of its noise. The curves are interrupted between pieces of the motion. If the model
    fits, the residuals look like noise.

    `axes` are matplotlib axes, one for each quantity. Returns the axes. Raises ValueError for a
    wrong number of axes.
    """
    shown = identification.residuals
    starts = shown.pieces[1:]
    # A NaN at the beginning of each piece interrupts the curve.
    times = np.insert(shown.times, starts, np.nan)
    size = style.WIDTH, 1.5 * len(shown.names) + 0.8
    with style.panels(axes, shown.names, size) as panels:
        for panel, name, column in zip(panels, shown.names, shown.values.T):
            noise = identification.noise[name]
            panel.axhspan(-2 * noise, 2 * noise, color="#e8e8e8", zorder=0)
            values = np.insert(column, starts, np.nan)
            panel.plot(times, values, ".-", color=style.SERIES[0], linewidth=0.8, markersize=3)
            panel.set_ylabel(style.wrapped(name, 20))
        panels[0].set_title("residuals, and two standard deviations", fontsize=9, loc="left")
        panels[-1].set_xlabel("time (s)")
    return np.array(panels)


def _by_name(trajectories: Trajectories) -> dict[str, Trajectory]:
    """Return the trajectories by name. Repeated names are numbered."""
    if isinstance(trajectories, Mapping):
        return dict(trajectories)
    if isinstance(trajectories, Trajectory):
        trajectories = [trajectories]
    by_name: dict[str, Trajectory] = {}
    for k, motion in enumerate(trajectories, 1):
        name = motion.name or f"h = {motion.h:g} s"
        by_name[name if name not in by_name else f"{name}, {k}"] = motion
    return by_name


def _index(name: str, known: Sequence[str]) -> int:
    if name not in known:
        raise ValueError(f"unknown {name!r}; choose one of: {', '.join(known)}")
    return list(known).index(name)


def _most_apart(by_name: Mapping[str, Trajectory]) -> list[int]:
    """Return the coordinates with the largest differences relative to their ranges, at the times
    of the first trajectory. If there are no differences, return the coordinates with the largest
    ranges.
    """
    first, *others = by_name.values()
    nq = first.state_map_for("compared").system.space.nq
    moves = np.ptp(first.states[:, :nq], axis=0)
    distances = np.zeros(nq)
    for other in others:
        for i in range(nq):
            # Trajectories may have different steps, so they are interpolated.
            there = np.interp(first.times, other.times, other.states[:, i])
            distances[i] = max(distances[i], np.abs(there - first.states[:, i]).max())
    size = np.where(moves > 0, moves, 1.0)
    ranks = distances / size if distances.any() else moves
    return [int(i) for i in np.argsort(-ranks, kind="stable")[:MOST_SHOWN]]


def _look(k: int) -> dict[str, Any]:
    color = style.SERIES[k % len(style.SERIES)]
    return {"color": color, "linestyle": DASHES[k % len(DASHES)], "linewidth": 1.4}
