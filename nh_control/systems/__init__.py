"""Mechanical systems, one a file, each a function of a frozen dataclass of parameters."""

from nh_control.systems.chaplygin_sleigh import ChaplyginSleighParameters, chaplygin_sleigh
from nh_control.systems.pendulum import PendulumParameters, pendulum
from nh_control.systems.snakeboard import SnakeboardParameters, snakeboard

__all__ = [
    "ChaplyginSleighParameters",
    "PendulumParameters",
    "SnakeboardParameters",
    "chaplygin_sleigh",
    "pendulum",
    "snakeboard",
]
