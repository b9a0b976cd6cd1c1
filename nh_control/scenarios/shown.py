"""Parts of a scenario's state in messages and figures: joints, bodies, monitored outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nh_control.geometry.spaces import SE2, Product, Rn, Space
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.visual_model import Pose


def frame_id(name: str) -> str:
    """The name of a frame in messages, without spaces."""
    return name.replace(" ", "_")


@dataclass(frozen=True)
class Joint:
    """A one-dof joint in ROS: its `name`, its `coordinate`, the sign with which it shows it, and
    its `unit`, m for a sliding one. A first-order coordinate is shown in the same way: its value
    as the position, in its own unit (A), and the velocity 0.
    """

    name: str
    coordinate: str
    sign: float = 1.0
    unit: str = "rad"

    def place(self, space: Space) -> tuple[int, int]:
        """Indices of its coordinate in configurations (nq) and of its rate in velocities (nw);
        raises UnknownName unless it is a coordinate of an Rn.
        """
        places = {
            name: (i + n, j + n)
            for part, i, j in factors(space)
            if isinstance(part, Rn)
            for n, name in enumerate(part.names)
        }
        if self.coordinate not in places:
            what = f"coordinate of the joint {self.name!r},"
            hint = "; others are shown by bodies" if self.coordinate in space.names else ""
            raise UnknownName(what, self.coordinate, places, hint)
        return places[self.coordinate]


@dataclass(frozen=True)
class Body:
    """A planar body in ROS: `frame` in `parent`, with the names of its SE(2) coordinates (theta,
    x, y), at a constant height `z` (m).
    """

    frame: str
    parent: str
    coordinates: tuple[str, str, str] = ("theta", "x", "y")
    z: float = 0.0

    def pose(self, theta: float, x: float, y: float) -> Pose:
        """The pose of the frame in its parent."""
        placed = Pose.planar(theta, x, y)
        return Pose(placed.position + [0.0, 0.0, self.z], placed.rotation)

    def place(self, space: Space) -> tuple[int, int]:
        """First indices of its coordinates in configurations (nq) and of its rates in velocities
        (nw); raises ValueError unless they are those of an SE2.
        """
        places = {part.names: (i, j) for part, i, j in factors(space) if isinstance(part, SE2)}
        if tuple(self.coordinates) not in places:
            known = " or ".join(map(str, places)) or "there is none"
            raise ValueError(
                f"the body {self.frame!r} needs the coordinates of an SE2, in their order, got "
                f"{tuple(self.coordinates)}; in {space!r}: {known}"
            )
        return places[tuple(self.coordinates)]


@dataclass(frozen=True)
class BodyState:
    """A body in space in ROS: `frame` in `parent`, `position` (3) in m and `linear_velocity` (3)
    in m/s in the parent's axes, unit `quaternion_wxyz` (4), `angular_velocity_body` (3) in rad/s
    in the body's axes.
    """

    frame: str
    parent: str
    position: np.ndarray
    quaternion_wxyz: np.ndarray
    linear_velocity: np.ndarray
    angular_velocity_body: np.ndarray


@dataclass(frozen=True)
class MonitoredOutput:
    """A monitored output with one value for each of `names`, in `unit`:
    `values(parameters, q, v, u, external)`, with external forces by the names of their targets.
    A value at or below `minimum` raises the `warning`.
    """

    title: str
    names: tuple[str, ...]
    unit: str
    values: Callable[
        [Any, np.ndarray, np.ndarray, np.ndarray, Mapping[str, np.ndarray]], np.ndarray
    ]
    minimum: float
    warning: str

    def known_values(
        self, parameters: Any, q: np.ndarray, v: np.ndarray | None, u: Sequence[float | None]
    ) -> np.ndarray:
        """Values without external forces, which only the plant knows; NaN unless the velocity v
        (nw) and all inputs u (nu) are known.
        """
        if v is None or None in u:
            return np.full(len(self.names), np.nan)
        return np.asarray(self.values(parameters, q, v, np.array(u), {}))

    def low(self, values: np.ndarray) -> list[str]:
        """Names of the values that are too low."""
        return [name for name, value in zip(self.names, values) if value <= self.minimum]


def factors(space: Space, i: int = 0, j: int = 0) -> Iterator[tuple[Space, int, int]]:
    """The factors of a space, also of products in products, with the indices of their first
    numbers in configurations and in velocities.
    """
    if not isinstance(space, Product):
        yield space, i, j
        return
    for factor in space.factors:
        yield from factors(factor, i, j)
        i, j = i + factor.nq, j + factor.nw
