"""A motion prepared for drawing: the poses of all frames over time, and the curves beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from nh_control.runs.intervals import Interval
from nh_control.scenarios.visual_model import VisualModel

RATE_HZ = 50.0
"""Frames per second of a page; screens do not show more."""


@dataclass(frozen=True)
class Poses:
    """Poses over time of the frames `names`: `position` (N, F, 3) in m, unit quaternions `wxyz`
    (N, F, 4) without jumps of sign.
    """

    names: tuple[str, ...]
    position: np.ndarray
    wxyz: np.ndarray

    @staticmethod
    def of(visual: VisualModel, parameters: Any, configurations: np.ndarray) -> Poses:
        """The poses of the frames that the visual model draws, at configurations (N, nq)."""
        names = _drawn_frames(visual)
        rows = [visual.poses(parameters, q) for q in configurations]
        shape = len(rows), len(names)
        position = np.array([[one[n].position for n in names] for one in rows], dtype=float)
        matrices = np.array([[one[n].rotation for n in names] for one in rows], dtype=float)
        wxyz = np.empty((*shape, 4))
        if wxyz.size:
            xyzw = Rotation.from_matrix(matrices.reshape(-1, 3, 3)).as_quat().reshape(*shape, 4)
            wxyz = np.roll(xyzw, 1, axis=2)
            turned = (wxyz[1:] * wxyz[:-1]).sum(axis=2) < 0
            wxyz[1:] *= np.where(np.cumsum(turned, axis=0) % 2, -1.0, 1.0)[..., None]
        return Poses(names, position.reshape(*shape, 3), wxyz)

    def track(self, name: str) -> np.ndarray:
        """Positions of one frame, (N, 3)."""
        return self.position[:, self.names.index(name)]


@dataclass(frozen=True)
class Curves:
    """Curves `values` (N, n) over time that share a unit, drawn in one plot."""

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
    """A motion prepared for drawing at the times (N) in s: the run's poses, the poses of the
    `reference` or None, curves, `loads` (N, cables) of the cables, NaN if unknown, and the lengths
    `arrows` (N, arrows) in m of the visual model's arrows.
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
        """Loads of the cables that have the first and the last color, None without loads."""
        known = self.loads[np.isfinite(self.loads)]
        if not len(known):
            return None
        low, high = np.percentile(known, (1, 99))
        return float(low), float(high)

    @property
    def differs(self) -> bool:
        """Whether the reference differs from the run anywhere."""
        if self.reference is None:
            return False
        distance = np.abs(self.run.position - self.reference.position).max(initial=0.0)
        turned = np.abs(self.run.wxyz - self.reference.wxyz).max(initial=0.0)
        return bool(max(distance, turned) > 1e-9)


def chosen_rows(times: np.ndarray, rate_hz: float) -> np.ndarray:
    """Indices of times (N) at about a given rate, with the first and the last one."""
    if len(times) < 2:
        return np.arange(len(times))
    stride = max(1, round((len(times) - 1) / max(rate_hz * (times[-1] - times[0]), 1.0)))
    return np.unique(np.r_[0 : len(times) : stride, len(times) - 1])


def largest_first(curves: Curves) -> Curves:
    """The curves in the order of their ranges, the largest one first."""
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
    """Curves in a plot for every unit."""
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
    """Names of the frames with something to draw."""
    names = [shape.frame for shape in visual.shapes]
    names += [end for cable in visual.cables for end in (cable.start, cable.end)]
    names += [arrow.frame for arrow in visual.arrows]
    names += [visual.trail] if visual.trail else []
    return tuple(dict.fromkeys(names))
