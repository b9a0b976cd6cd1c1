"""A motion prepared for drawing: the poses of all frames over time, and the curves to plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from nh_control.runs.intervals import Interval
from nh_control.scenarios.visual_model import VisualModel

RATE_HZ = 50.0
"""Number of frames per second in a page. Faster rates would not be visible on a screen."""


@dataclass(frozen=True)
class Poses:
    """The poses over time of the frames with the given `names`: `position` (N, F, 3) in m, and
    unit quaternions `wxyz` (N, F, 4) with signs that do not jump.
    """

    names: tuple[str, ...]
    position: np.ndarray
    wxyz: np.ndarray

    @staticmethod
    def of(visual: VisualModel, parameters: Any, configurations: np.ndarray) -> Poses:
        """Return the poses of the frames that the visual model draws at configurations (N, nq)."""
        names = _drawn_frames(visual)
        rows = [visual.poses(parameters, q) for q in configurations]
        shape = len(rows), len(names)
        position = np.array([[poses[n].position for n in names] for poses in rows], dtype=float)
        matrices = np.array([[poses[n].rotation for n in names] for poses in rows], dtype=float)
        wxyz = np.empty((*shape, 4))
        if wxyz.size:
            xyzw = Rotation.from_matrix(matrices.reshape(-1, 3, 3)).as_quat().reshape(*shape, 4)
            wxyz = np.roll(xyzw, 1, axis=2)
            # q and -q are the same rotation. Flip the sign after an odd number of jumps.
            turned = (wxyz[1:] * wxyz[:-1]).sum(axis=2) < 0
            wxyz[1:] *= np.where(np.cumsum(turned, axis=0) % 2, -1.0, 1.0)[..., None]
        return Poses(names, position.reshape(*shape, 3), wxyz)

    def track(self, name: str) -> np.ndarray:
        """The positions (N, 3) of a single frame."""
        return self.position[:, self.names.index(name)]


@dataclass(frozen=True)
class Curves:
    """Curves that are drawn in the same plot. Their `values` (N, n) over time have the same
    unit.
    """

    title: str
    unit: str
    names: tuple[str, ...]
    values: np.ndarray
    logarithmic: bool = False

    @property
    def label(self) -> str:
        """The title with its unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True)
class Animation:
    """A motion prepared for drawing at the times (N) in s. It contains the poses of the run, the
    poses of the `reference` (or None), curves, the `loads` (N, cables) on the cables (NaN if
    unknown), and the lengths `arrows` (N, arrows) in m of the visual model's arrows.
    """

    title: str
    visual: VisualModel
    times: np.ndarray
    run: Poses
    reference: Poses | None
    curves: tuple[Curves, ...]
    loads: np.ndarray
    arrows: np.ndarray
    intervals: tuple[Interval, ...] = ()

    @property
    def load_range(self) -> tuple[float, float] | None:
        """The cable loads at the ends of the color scale, or None if there are no loads."""
        known = self.loads[np.isfinite(self.loads)]
        if not len(known):
            return None
        # Percentiles ignore rare peaks, which would use up the color scale.
        low, high = np.percentile(known, (1, 99))
        return float(low), float(high)

    @property
    def differs(self) -> bool:
        """Whether the reference differs from the run at any time."""
        if self.reference is None:
            return False
        distance = np.abs(self.run.position - self.reference.position).max(initial=0.0)
        turned = np.abs(self.run.wxyz - self.reference.wxyz).max(initial=0.0)
        return bool(max(distance, turned) > 1e-9)


def chosen_rows(times: np.ndarray, rate_hz: float) -> np.ndarray:
    """The indices of times (N) at approximately the given rate, including the first and the
    last.
    """
    if len(times) < 2:
        return np.arange(len(times))
    # Keep every n-th time, with the n that brings the rate closest to `rate_hz`.
    stride = max(1, round((len(times) - 1) / max(rate_hz * (times[-1] - times[0]), 1.0)))
    return np.unique(np.r_[0 : len(times) : stride, len(times) - 1])


def largest_first(curves: Curves) -> Curves:
    """The curves sorted by their ranges, in descending order."""
    values = np.where(np.isfinite(curves.values), curves.values, 0.0)
    order = np.argsort(-np.ptp(values, axis=0), kind="stable")
    return Curves(
        curves.title,
        curves.unit,
        tuple(curves.names[i] for i in order),
        curves.values[:, order],
        curves.logarithmic,
    )


def by_unit(
    title: str, names: Sequence[str], units: Sequence[str], values: np.ndarray, **options: Any
) -> list[Curves]:
    """The curves, with one plot for each unit."""
    return [
        largest_first(
            Curves(
                title,
                unit,
                tuple(n for n, u in zip(names, units) if u == unit),
                values[:, [u == unit for u in units]],
                **options,
            )
        )
        for unit in dict.fromkeys(units)
    ]


def _drawn_frames(visual: VisualModel) -> tuple[str, ...]:
    """The names of the frames that have something to draw."""
    names = [shape.frame for shape in visual.shapes]
    names += [end for cable in visual.cables for end in (cable.start, cable.end)]
    names += [arrow.frame for arrow in visual.arrows]
    names += [visual.trail] if visual.trail else []
    return tuple(dict.fromkeys(names))
