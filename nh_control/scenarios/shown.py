"""The parts of a scenario's state that messages and figures show: joints, bodies and monitored
outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nh_control.geometry.spaces import SE2, Product, Rn, Space
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.visual_model import Pose


def frame_id(name: str) -> str:
    """The name of a frame in messages, with underscores instead of spaces."""
    return name.replace(" ", "_")


@dataclass(frozen=True)
class Joint:
    """A joint with one coordinate in ROS. Its position is `sign` times the `coordinate`, in
    `unit`, which is m for a prismatic joint. A joint can also show a first-order coordinate. Its
    position is then the value of the coordinate in the coordinate's unit (such as A), and its
    velocity is 0.
    """

    name: str
    coordinate: str
    sign: float = 1.0
    unit: str = "rad"

    def place(self, space: Space) -> tuple[int, int]:
        """The indices of the coordinate in configurations (nq) and of its rate in velocities (nw).
        Raises UnknownName unless the coordinate belongs to an Rn.
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
class PlanarBody:
    """A planar body in ROS: the `frame` in its `parent`, the names of its SE(2) coordinates
    (theta, x, y), and its constant height `z` (m).
    """

    frame: str
    parent: str
    coordinates: tuple[str, str, str] = ("theta", "x", "y")
    z: float = 0.0

    def pose(self, theta: float, x: float, y: float) -> Pose:
        """The pose of the frame in its parent."""
        # The height is constant, because it is not a coordinate.
        placed = Pose.planar(theta, x, y)
        return Pose(placed.position + [0.0, 0.0, self.z], placed.rotation)

    def place(self, space: Space) -> tuple[int, int]:
        """The first indices of the coordinates in configurations (nq) and of their rates in
        velocities (nw). Raises ValueError unless the coordinates are those of an SE2.
        """
        places = {part.names: (i, j) for part, i, j in factors(space) if isinstance(part, SE2)}
        if tuple(self.coordinates) not in places:
            known = " or ".join(map(str, places)) or "there is none"
            raise ValueError(
                f"the body {self.frame!r} needs the coordinates of an SE2 in their order, got "
                f"{tuple(self.coordinates)}; in {space!r}: {known}"
            )
        return places[tuple(self.coordinates)]


@dataclass(frozen=True)
class BodyState:
    """The state of a spatial body in ROS: the `frame` in its `parent`, `position` (3) in m and
    `linear_velocity` (3) in m/s in parent axes, the unit quaternion `quaternion_wxyz` (4), and
    `angular_velocity_body` (3) in rad/s in body axes.
    """

    frame: str
    parent: str
    position: np.ndarray
    quaternion_wxyz: np.ndarray
    linear_velocity: np.ndarray
    angular_velocity_body: np.ndarray


@dataclass(frozen=True)
class MonitoredOutput:
    """A monitored output with a value in `unit` for each of the `names`.

    `values(parameters, q, v, u, external)` returns the values, where `external` contains the
    external forces by target name. A value at or below `minimum` triggers the `warning`. A
    function that `takes_tables` also accepts tables (N, nq), (N, nw), (N, nu) and external forces
    (N, k), and then returns a table (N, values).
    """

    title: str
    names: tuple[str, ...]
    unit: str
    values: Callable[
        [Any, np.ndarray, np.ndarray, np.ndarray, Mapping[str, np.ndarray]], np.ndarray
    ]
    minimum: float
    warning: str
    takes_tables: bool = False

    def known_values(
        self, parameters: Any, q: np.ndarray, v: np.ndarray | None, u: Sequence[float | None]
    ) -> np.ndarray:
        """The values without external forces, which only the plant knows. The values are NaN
        unless the velocity v (nw) and all inputs u (nu) are known.
        """
        # A value computed from a partial state would be misleading.
        if v is None or None in u:
            return np.full(len(self.names), np.nan)
        return np.asarray(self.values(parameters, q, v, np.array(u), {}))

    def low(self, values: np.ndarray) -> list[str]:
        """The names of the values that are too low."""
        return [name for name, value in zip(self.names, values) if value <= self.minimum]


def factors(space: Space, i: int = 0, j: int = 0) -> Iterator[tuple[Space, int, int]]:
    """The factors of a space, including those of nested products, with their first indices in
    configurations and in velocities.
    """
    if not isinstance(space, Product):
        yield space, i, j
        return
    for factor in space.factors:
        yield from factors(factor, i, j)
        # Quaternions have four entries but three velocities.
        i, j = i + factor.nq, j + factor.nw
