"""Joint waypoints over time, and splines through them."""

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
    """Positions (n, k) of the joints `names` (k), in rad or m, at the increasing, nonnegative
    `times` (n) in s. Velocities (n, k) are optional; with velocities, there may also be
    accelerations (n, k).

    If there are only positions, they are interpolated by a `spline` that is at rest at both ends:
    "quintic", with four continuous derivatives and zero acceleration at the ends, or "cubic", with
    two continuous derivatives. With velocities, the polynomials between neighboring points are
    cubic; with accelerations, they are quintic, as in the joint_trajectory_controller of
    ros2_control. Raises ValueError for wrong shapes, numbers that are not finite, an unknown
    spline, and a trajectory that does not end at rest.
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
        """Read a trajectory from a file.

        A `.csv` file has the header `time_s,shoulder,elbow`, optionally with the columns
        `shoulder_velocity`, `shoulder_acceleration` and so on. A `.yaml` file has the format of
        trajectory_msgs/JointTrajectory: `joint_names`, and `points` with `positions` and
        `time_from_start`, which is a number or has the entries sec and nanosec. Raises OSError,
        and ValueError with the position of the error.
        """
        return cls(**joint_trajectory_files.read(Path(path)), name=Path(path).stem)

    @classmethod
    def from_message(cls, message: Any) -> JointTrajectory:
        """The trajectory in a trajectory_msgs/JointTrajectory, or in a dictionary with the same
        entries. The header is ignored. Raises ValueError with the number of the invalid point.
        """
        return cls(**joint_trajectory_files.from_message(message))

    def save(self, path: str | Path) -> None:
        """Write a `.csv` or `.yaml` file that `load` can read. Raises OSError and ValueError."""
        joint_trajectory_files.write(
            Path(path),
            self.names,
            self.times,
            self.positions,
            self.velocities,
            self.accelerations,
        )

    @property
    def duration(self) -> float:
        """Time of the last point in s."""
        return float(self.times[-1])

    def of(self, names: Sequence[str]) -> JointTrajectory:
        """The same trajectory with the joints in the order of `names`. Raises ValueError if
        `names` contains different joints.
        """
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
        """The same path with `factor` times the duration. Raises ValueError unless the factor is
        positive.
        """
        if not (np.isfinite(factor) and factor > 0):
            raise ValueError(f"{self!r}: the time factor must be positive, got {factor}")
        velocities, accelerations = self.velocities, self.accelerations
        return replace(
            self,
            times=self.times * factor,
            # q(t / factor): q' / factor, q'' / factor^2
            velocities=None if velocities is None else velocities / factor,
            accelerations=None if accelerations is None else accelerations / factor**2,
        )

    def starting_at(
        self, position: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike
    ) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """A function `curve(t)` that returns positions and velocities (m, k) at times t (m). The
        curve is the spline that starts at time 0 with a given position, velocity and acceleration
        (k) and passes through all points after time 0. After the last point it is at rest.
        """
        # the point at time 0 is replaced by the current motion
        begin = [np.asarray(value, dtype=float) for value in (position, velocity, acceleration)]
        first = int(self.times[0] <= 0)
        times = np.r_[0.0, self.times[first:]]
        tables = [
            None if table is None else np.vstack([start, table[first:]])
            for start, table in zip(begin, (self.positions, self.velocities, self.accelerations))
        ]
        return self._sampler(times, tables, begin)

    def curve(self) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """A function `curve(t)` that returns positions and velocities (m, k) at times t (m). The
        curve is at rest before the first point and after the last point.
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
            # at rest outside the spline: constant position, zero velocity
            inside = np.clip(t, times[0], times[-1])
            moves = ((t >= times[0]) & (t < times[-1]))[:, None]
            return spline(inside), np.where(moves, rate(inside), 0.0)

        return sample

    def _spline(self, times: np.ndarray, tables: list[Any], start: list[np.ndarray]) -> Any:
        """The interpolant from SciPy."""
        from scipy.interpolate import (  # slow to import
            BPoly,
            CubicHermiteSpline,
            CubicSpline,
            make_interp_spline,
        )

        positions, velocities, accelerations = tables
        if velocities is not None and accelerations is not None:
            # piecewise quintic Hermite interpolation
            jets = np.stack([positions, velocities, accelerations], axis=1)
            return BPoly.from_derivatives(times, jets)
        if velocities is not None:
            # piecewise cubic Hermite interpolation
            return CubicHermiteSpline(times, positions, velocities)
        rest = np.zeros(len(self.names))
        # only positions: derivatives are prescribed only at the ends
        if self.spline == "cubic":
            return CubicSpline(times, positions, bc_type=((1, start[1]), (1, rest)))
        ends = [(1, start[1]), (2, start[2])], [(1, rest), (2, rest)]
        return make_interp_spline(times, positions, k=5, bc_type=ends)

    def _check(self) -> None:
        n, k = len(self.times) if self.times.ndim == 1 else 0, len(self.names)
        if len(set(self.names)) < k or not k:
            raise ValueError(
                f"a joint trajectory needs joints with different names, got {list(self.names)}"
            )
        if self.spline not in SPLINES:
            raise ValueError(f"spline must be one of {SPLINES}, got {self.spline!r}")
        for field in ("times", "positions", "velocities", "accelerations"):
            value, shape = getattr(self, field), (n,) if field == "times" else (n, k)
            if value is None:
                continue
            if not n or value.shape != shape or not np.isfinite(value).all():
                raise ValueError(
                    f"a joint trajectory needs finite {field} of shape {shape} (points, joints), "
                    f"got shape {value.shape}"
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
                f"a joint trajectory must end at rest, but its last velocities are "
                f"{self.velocities[-1].tolist()}"
            )
