"""Parts of a scenario's state in messages and figures: joints, bodies, monitored outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


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


@dataclass(frozen=True)
class Body:
    """A planar body in ROS: `frame` in `parent`, with the names of its SE(2) coordinates (theta,
    x, y).
    """

    frame: str
    parent: str
    coordinates: tuple[str, str, str] = ("theta", "x", "y")


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
