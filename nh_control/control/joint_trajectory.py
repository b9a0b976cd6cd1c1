"""Waypoints of joints over time, and the splines through them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control import joint_trajectory_files

SPLINES = ("quintic", "cubic")


@dataclass(frozen=True)
class JointTrajectory:
    """Positions (n, k) of the joints `names` (k), in rad or m, at the increasing `times` (n) in s,
    0 or later, optionally with velocities (n, k), and then with accelerations (n, k).

    Positions alone are interpolated by a `spline` that rests at both ends: "quintic", with four
    continuous derivatives and no acceleration at the ends, or "cubic", with two. With velocities
    there is a cubic polynomial between neighbors, with accelerations a quintic one, as in
    ros2_control's joint_trajectory_controller. Raises ValueError for other shapes, numbers that
    are not finite, an unknown spline, and an end in motion.
    """

    names: Sequence[str]
    times: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray | None = None
    accelerations: np.ndarray | None = None
    spline: str = SPLINES[0]
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        for field in ("times", "positions", "velocities", "accelerations"):
            if (value := getattr(self, field)) is not None:
                value = np.array(value, dtype=float)
                value.setflags(write=False)
                object.__setattr__(self, field, value)
        self._check()

    def __repr__(self) -> str:
        return (
            f"JointTrajectory({self.name!r}, {len(self.times)} points of {len(self.names)} joints "
            f"in {self.duration:g} s)"
        )

    @classmethod
    def load(cls, path: str | Path) -> JointTrajectory:
        """The trajectory in a file: `.csv` with the header `time_s,shoulder,elbow` and, if there
        are any, `shoulder_velocity`, `shoulder_acceleration` ...; or `.yaml` in the form of
        trajectory_msgs/JointTrajectory (`joint_names`, `points` with `positions` and
        `time_from_start`, a number or sec and nanosec). Raises OSError, and ValueError that names
        the place.
        """
        return cls(**joint_trajectory_files.read(Path(path)), name=Path(path).stem)

    @classmethod
    def from_message(cls, message: Any) -> JointTrajectory:
        """The trajectory of a trajectory_msgs/JointTrajectory, or of a dictionary of its form;
        its header is not read. Raises ValueError that names the point.
        """
        return cls(**joint_trajectory_files.from_message(message))

    def save(self, path: str | Path) -> None:
        """Write the file that `load` reads, `.csv` or `.yaml`; raises OSError and ValueError."""
        tables = self.times, self.positions, self.velocities, self.accelerations
        joint_trajectory_files.write(Path(path), self.names, *tables)

    @property
    def duration(self) -> float:
        """Time of the last point in s."""
        return float(self.times[-1])

    def of(self, names: Sequence[str]) -> JointTrajectory:
        """The same trajectory with the joints in this order; raises ValueError for others."""
        if sorted(names) != sorted(self.names):
            raise ValueError(
                f"{self!r} has the joints {list(self.names)}, expected {list(names)}, each once"
            )
        order = [list(self.names).index(name) for name in names]
        columns: dict[str, Any] = {
            field: None if (table := getattr(self, field)) is None else table[:, order]
            for field in ("positions", "velocities", "accelerations")
        }
        return replace(self, names=tuple(names), **columns)

    def stretched(self, factor: float) -> JointTrajectory:
        """The same path, `factor` times as long; raises ValueError unless it is positive."""
        if not (np.isfinite(factor) and factor > 0):
            raise ValueError(f"{self!r}: a time factor must be positive, got {factor}")
        velocities, accelerations = self.velocities, self.accelerations
        return replace(
            self,
            times=self.times * factor,
            velocities=None if velocities is None else velocities / factor,
            accelerations=None if accelerations is None else accelerations / factor**2,
        )

    def starting_at(
        self, position: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike
    ) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """`curve(t)`: positions and velocities (m, k) at times t (m) of the spline that begins at
        time 0 with a position, velocity and acceleration (k) and goes through the points after
        0. Past the end it rests there.
        """
        begin = [np.asarray(value, dtype=float) for value in (position, velocity, acceleration)]
        first = int(self.times[0] <= 0)
        times = np.r_[0.0, self.times[first:]]
        tables = [
            None if table is None else np.vstack([start, table[first:]])
            for start, table in zip(begin, (self.positions, self.velocities, self.accelerations))
        ]
        return self._sampler(times, tables, begin)

    def curve(self) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """`curve(t)`: positions and velocities (m, k) at times t (m). It rests at the first point
        until its time, and past the end.
        """
        tables = [self.positions, self.velocities, self.accelerations]
        rest = np.zeros(len(self.names))
        return self._sampler(self.times, tables, [rest, rest, rest])

    def _sampler(
        self, times: np.ndarray, tables: list[np.ndarray | None], start: list[np.ndarray]
    ) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
        spline = self._spline(times, tables, start)
        rate = spline.derivative()

        def sample(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            inside = np.clip(t, times[0], times[-1])
            moves = ((t >= times[0]) & (t < times[-1]))[:, None]
            return spline(inside), np.where(moves, rate(inside), 0.0)

        return sample

    def _spline(self, times: np.ndarray, tables: list[Any], start: list[np.ndarray]) -> Any:
        """The interpolant of scipy."""
        from scipy.interpolate import (  # takes long to import
            BPoly,
            CubicHermiteSpline,
            CubicSpline,
            make_interp_spline,
        )

        positions, velocities, accelerations = tables
        if velocities is not None and accelerations is not None:
            jets = np.stack([positions, velocities, accelerations], axis=1)
            return BPoly.from_derivatives(times, jets)
        if velocities is not None:
            return CubicHermiteSpline(times, positions, velocities)
        rest = np.zeros(len(self.names))
        if self.spline == "cubic":
            return CubicSpline(times, positions, bc_type=((1, start[1]), (1, rest)))
        ends = [(1, start[1]), (2, start[2])], [(1, rest), (2, rest)]
        return make_interp_spline(times, positions, k=5, bc_type=ends)

    def _check(self) -> None:
        n, k = len(self.times) if self.times.ndim == 1 else 0, len(self.names)
        if len(set(self.names)) < k or not k:
            raise ValueError(f"a joint trajectory needs different joints, got {list(self.names)}")
        if self.spline not in SPLINES:
            raise ValueError(f"spline must be one of {SPLINES}, got {self.spline!r}")
        for field in ("times", "positions", "velocities", "accelerations"):
            value, shape = getattr(self, field), (n,) if field == "times" else (n, k)
            if value is None:
                continue
            if not n or value.shape != shape or not np.isfinite(value).all():
                raise ValueError(
                    f"a joint trajectory needs finite {field} of shape {shape}, n points of k "
                    f"joints, got shape {value.shape}"
                )
        if self.accelerations is not None and self.velocities is None:
            raise ValueError("a joint trajectory with accelerations needs velocities")
        if self.times[0] < 0 or (np.diff(self.times) <= 0).any() or self.times[-1] <= 0:
            raise ValueError(
                f"times of a joint trajectory must increase from 0 s or later, got "
                f"{self.times.tolist()}"
            )
        if self.velocities is not None and self.velocities[-1].any():
            raise ValueError(
                f"a joint trajectory ends at rest, its last velocities are "
                f"{self.velocities[-1].tolist()}"
            )
