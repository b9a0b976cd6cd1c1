"""Mechanical systems, one a file, each a function of a frozen dataclass of parameters."""

from nh_control.systems.cart_pole import CartPoleParameters, cart_pole
from nh_control.systems.chaplygin_sleigh import ChaplyginSleighParameters, chaplygin_sleigh
from nh_control.systems.pendulum import PendulumParameters, pendulum
from nh_control.systems.quadrotor_payload import (
    Formation,
    QuadrotorPayloadParameters,
    quadrotor_payload,
)
from nh_control.systems.quadrotor_payload_continuous import link_tensions
from nh_control.systems.rotor_mixing import RotorMixing
from nh_control.systems.snakeboard import SnakeboardParameters, snakeboard

__all__ = [
    "CartPoleParameters",
    "ChaplyginSleighParameters",
    "Formation",
    "PendulumParameters",
    "QuadrotorPayloadParameters",
    "RotorMixing",
    "SnakeboardParameters",
    "cart_pole",
    "chaplygin_sleigh",
    "link_tensions",
    "pendulum",
    "quadrotor_payload",
    "snakeboard",
]
