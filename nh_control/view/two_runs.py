"""Two runs of a scenario in a single page. The second run is drawn in place of the reference, and
the differences are plotted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nh_control.view.animation import Animation, Curves, Poses


def together(first: Animation, other: Animation) -> Animation:
    """The animation of a run, with the other run as its ghost. Each plot also contains the curves
    of the other run, and further plots show the differences. The other run is interpolated between
    its frames, and its curves stop when that run stops.

    Raises ValueError for runs with different frames.
    """
    if first.run.names != other.run.names:
        raise ValueError(
            f"two runs in one page must have the same frames, got {', '.join(first.run.names)} of "
            f"{first.title} and {', '.join(other.run.names)} of {other.title}"
        )
    pairs = [(c, match) for c in first.curves if (match := _like(c, other)) is not None]
    both, differences = [], []
    for curves, match in pairs:
        # The other run may have its curves in a different order.
        columns = [match.names.index(name) for name in curves.names]
        values = _at(first.times, other.times, match.values[:, columns])
        beside = tuple(f"{name}, other" for name in curves.names)
        order = (
            np.arange(2 * len(curves.names)).reshape(2, -1).T.ravel()
        )  # each curve before its counterpart
        stacked = np.hstack([curves.values, values])[:, order]
        names = (*curves.names, *beside)
        both.append(replace(curves, names=tuple(names[i] for i in order), values=stacked))
        title, difference = f"{curves.title}, difference", curves.values - values
        differences.append(Curves(title, curves.unit, curves.names, difference))
    return replace(
        first,
        title=f"{first.title} | other: {other.title}",
        reference=_poses_at(first.times, other),
        curves=(*both, *differences),
    )


def _like(sought: Curves, other: Animation) -> Curves | None:
    """The other run's curves with the same label and names, or None."""
    for curves in other.curves:
        if curves.label == sought.label and set(curves.names) == set(sought.names):
            return curves
    return None


def _at(times: np.ndarray, known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Interpolate values from `known` times to the times (N). The result is NaN after the last
    known time.
    """
    columns = [np.interp(times, known, column, right=np.nan) for column in values.T]
    return np.column_stack(columns)


def _poses_at(times: np.ndarray, other: Animation) -> Poses:
    """The poses of the other run at the times (N). After that run stops, its last poses are
    repeated.
    """
    after = np.searchsorted(other.times, times).clip(1, max(1, len(other.times) - 1))
    before = after - 1
    after = after.clip(max=len(other.times) - 1)
    span = np.maximum(other.times[after] - other.times[before], 1e-12)
    part = ((times - other.times[before]) / span).clip(0, 1)[:, None, None]
    run = other.run
    position = (1 - part) * run.position[before] + part * run.position[after]
    # Normalized linear interpolation is sufficient between close quaternions.
    wxyz = (1 - part) * run.wxyz[before] + part * run.wxyz[after]
    return Poses(run.names, position, wxyz / np.linalg.norm(wxyz, axis=2, keepdims=True))
