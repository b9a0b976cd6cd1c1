"""Two runs of a scenario in one page: the other run is drawn instead of the reference, with plots
of the differences.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nh_control.view.animation import Animation, Curves, Poses


def together(one: Animation, other: Animation) -> Animation:
    """The animation of `one` with the other run as its ghost. Every plot also has the other's
    curves, and plots of the differences follow. Between its frames the other run is interpolated;
    its curves end with it.

    Raises ValueError for runs with different frames.
    """
    if one.run.names != other.run.names:
        raise ValueError(
            f"two runs in one page show the same frames, got {', '.join(one.run.names)} of "
            f"{one.title} and {', '.join(other.run.names)} of {other.title}"
        )
    pairs = [(mine, theirs) for mine in one.curves if (theirs := _like(mine, other)) is not None]
    both, differences = [], []
    for mine, theirs in pairs:
        columns = [theirs.names.index(name) for name in mine.names]
        values = _at(one.times, other.times, theirs.values[:, columns])
        beside = tuple(f"{name}, other" for name in mine.names)
        order = np.arange(2 * len(mine.names)).reshape(2, -1).T.ravel()  # each by its other
        stacked = np.hstack([mine.values, values])[:, order]
        names = (*mine.names, *beside)
        both.append(replace(mine, names=tuple(names[i] for i in order), values=stacked))
        title, difference = f"{mine.title}, difference", mine.values - values
        differences.append(Curves(title, mine.unit, mine.names, difference))
    return replace(
        one,
        title=f"{one.title} | other: {other.title}",
        reference=_poses_at(one.times, other),
        curves=(*both, *differences),
    )


def _like(mine: Curves, other: Animation) -> Curves | None:
    """The other run's curves of this label and these names, None where there are none."""
    for curves in other.curves:
        if curves.label == mine.label and set(curves.names) == set(mine.names):
            return curves
    return None


def _at(times: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values (N, n) at times (N), NaN after the last known time."""
    columns = [np.interp(times, known, column, right=np.nan) for column in values.T]
    return np.column_stack(columns)


def _poses_at(times: np.ndarray, other: Animation) -> Poses:
    """The other run's poses at times (N), after its end the last ones."""
    after = np.searchsorted(other.times, times).clip(1, max(1, len(other.times) - 1))
    before = after - 1
    after = after.clip(max=len(other.times) - 1)
    span = np.maximum(other.times[after] - other.times[before], 1e-12)
    part = ((times - other.times[before]) / span).clip(0, 1)[:, None, None]
    run = other.run
    position = (1 - part) * run.position[before] + part * run.position[after]
    wxyz = (1 - part) * run.wxyz[before] + part * run.wxyz[after]
    return Poses(run.names, position, wxyz / np.linalg.norm(wxyz, axis=2, keepdims=True))
