"""`nh.plot`: figures of trajectories and of orders in matplotlib's axes, of one's own or given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import matplotlib
import numpy as np
from matplotlib.axes import Axes

from nh_control.discrete.trajectory import Trajectory
from nh_control.figures import style
from nh_control.figures.convergence import plot_convergence as convergence
from nh_control.figures.trajectories import plot_trajectory as trajectory

__all__ = ["compare", "convergence", "phase", "trajectory"]
Trajectories: TypeAlias = Trajectory | Sequence[Trajectory] | Mapping[str, Trajectory]
MOST_SHOWN = 6
"""Largest number of coordinates of a comparison, the ones with the largest differences."""
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (5, 1.5, 1, 1.5)))


def compare(trajectories: Trajectories, axes: Any = None, names: Sequence[str] = ()) -> np.ndarray:
    """Draw trajectories of one configuration space over each other: a panel for each coordinate
    in `names`, by default the MOST_SHOWN that differ most, worst first, and one for the energy.

    `axes` are matplotlib's, one for each panel; returns the axes. Raises ValueError for less than
    two trajectories, trajectories of other coordinates, without a discrete system, unknown names
    and another number of axes.
    """
    by_name = _by_name(trajectories)
    if len(by_name) < 2:
        raise ValueError(f"compare needs two trajectories or more, got {len(by_name)}")
    first = next(iter(by_name.values()))
    known = first.state_map_for("compared").system.space.names
    for name, one in by_name.items():
        own = one.state_map_for("compared").system.space.names
        if own != known:
            raise ValueError(
                f"{name} has the coordinates {', '.join(own)}, not {', '.join(known)}"
            )
    columns = [_index(name, known) for name in names] or _most_apart(by_name)
    labels = [*(known[i] for i in columns), "energy (J)"]
    drawn = _axes(axes, labels, (style.WIDTH, 1.5 * len(labels) + 0.8))
    for k, (name, one) in enumerate(by_name.items()):
        energies = one.state_map_for("compared").energies(one.states)
        look = {**_look(k), "label": name}
        for panel, values in zip(drawn, [*one.states[:, columns].T, energies]):
            panel.plot(one.times, values, **look)
    for panel, label in zip(drawn, labels):
        panel.set_ylabel(style.wrapped(label, 20))
    drawn[-1].set_xlabel("time (s)")
    drawn[0].legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, fontsize=8)
    return np.array(drawn)


def phase(
    trajectories: Trajectories, coordinate: str = "", axes: Axes | None = None, velocity: str = ""
) -> Axes:
    """Draw velocity over coordinate, the first one by default, with a ball at each start.

    `velocity` is by default the velocity's component at the coordinate's place. Returns the axes.
    Raises ValueError without a discrete system, and for unknown names.
    """
    by_name = _by_name(trajectories)
    panel = axes if axes is not None else _axes(None, [""], (4.6, 4.0))[0]
    for k, (name, one) in enumerate(by_name.items()):
        dsys = one.state_map_for("plotted")
        space = dsys.system.space
        i = _index(coordinate, space.names) if coordinate else 0
        if not velocity and space.nw != space.nq:
            raise ValueError(
                f"{dsys.system.name} has {space.nq} coordinates and {space.nw} velocities: name "
                f"one of {', '.join(space.velocity_names)} as velocity"
            )
        j = _index(velocity, space.velocity_names) if velocity else i
        x, y = one.states[:, i], np.array([dsys.velocity(state)[j] for state in one.states])
        panel.plot(x, y, **_look(k), label=name)
        panel.plot(x[:1], y[:1], "o", color=_look(k)["color"], markersize=4)
        panel.set_xlabel(space.names[i])
        panel.set_ylabel(space.velocity_names[j])
    if len(by_name) > 1:
        panel.legend(fontsize=8)
    return panel


def _by_name(given: Trajectories) -> dict[str, Trajectory]:
    """Trajectories by their names; equal names get numbers."""
    if isinstance(given, Mapping):
        return dict(given)
    by_name: dict[str, Trajectory] = {}
    for k, one in enumerate([given] if isinstance(given, Trajectory) else given, 1):
        name = one.name or f"h = {one.h:g} s"
        by_name[name if name not in by_name else f"{name}, {k}"] = one
    return by_name


def _index(name: str, known: Sequence[str]) -> int:
    if name not in known:
        raise ValueError(f"unknown {name!r}; choose one of: {', '.join(known)}")
    return list(known).index(name)


def _most_apart(by_name: Mapping[str, Trajectory]) -> list[int]:
    """The coordinates with the largest differences, as fractions of their ranges, at the times of
    the first trajectory; without differences, the coordinates with the largest ranges.
    """
    first, *others = by_name.values()
    nq = first.state_map_for("compared").system.space.nq
    moves = np.ptp(first.states[:, :nq], axis=0)
    distances = np.zeros(nq)
    for one in others:
        for i in range(nq):
            there = np.interp(first.times, one.times, one.states[:, i])
            distances[i] = max(distances[i], np.abs(there - first.states[:, i]).max())
    size = np.where(moves > 0, moves, 1.0)
    ranks = distances / size if distances.any() else moves
    return [int(i) for i in np.argsort(-ranks, kind="stable")[:MOST_SHOWN]]


def _look(k: int) -> dict[str, Any]:
    color = style.SERIES[k % len(style.SERIES)]
    return {"color": color, "linestyle": DASHES[k % len(DASHES)], "linewidth": 1.4}


def _axes(axes: Any, labels: Sequence[str], size: tuple[float, float]) -> list[Axes]:
    """The given axes, one for each label, or those of a new figure."""
    if axes is not None:
        given: list[Axes] = list(np.atleast_1d(np.asarray(axes, dtype=object)).ravel())
        if len(given) != len(labels):
            wanted = ", ".join(labels)
            raise ValueError(f"plot needs {len(labels)} axes, for {wanted}; got {len(given)}")
        return given
    from matplotlib import pyplot

    with matplotlib.rc_context(style.STYLE):
        _, grid = pyplot.subplots(
            len(labels), 1, sharex=True, squeeze=False, figsize=size, layout="constrained"
        )
    return list(grid.ravel())
