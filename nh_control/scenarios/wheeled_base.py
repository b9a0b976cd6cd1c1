"""The wheels of a vehicle and their joints, as ros2_control controllers describe them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class DifferentialBase:
    """A vehicle with a driven wheel on each side. The wheels have the joints `left` and `right`, a
    `radius` (m), and a `separation` (m).
    """

    left: str
    right: str
    radius: float
    separation: float


@dataclass(frozen=True)
class SteeredBase:
    """A vehicle with a `driven` axle and a `steered` joint. The driven wheels have a `radius` (m),
    and the steered joint is at a distance `wheelbase` (m) in front of the axle.
    """

    driven: str
    steered: str
    radius: float
    wheelbase: float


@dataclass(frozen=True)
class AckermannBase:
    """A vehicle with two `driven` wheels and two `steered` joints, left first. The driven wheels
    have a `radius` (m), and the steered joints are at a distance `wheelbase` (m) in front of them.
    The track widths are `driven_width` and `steered_width` (m).
    """

    driven: tuple[str, ...]
    steered: tuple[str, ...]
    radius: float
    wheelbase: float
    driven_width: float
    steered_width: float


WheeledBase: TypeAlias = DifferentialBase | SteeredBase | AckermannBase
