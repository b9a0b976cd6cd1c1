"""Mechanical systems, one per file. Each system is a function of a frozen dataclass of
parameters.
"""

from nh_control.systems.acrobot import AcrobotParameters, acrobot
from nh_control.systems.car import CarParameters, car
from nh_control.systems.cart_pole import CartPoleParameters, cart_pole
from nh_control.systems.chaotic_quartic import ChaoticQuarticParameters, chaotic_quartic
from nh_control.systems.chaplygin_sleigh import (
    ChaplyginSleighParameters,
    chaplygin_sleigh,
    chaplygin_sleigh_contact,
)
from nh_control.systems.differential_drive import DifferentialDriveParameters, differential_drive
from nh_control.systems.gearbox import GearboxParameters, gearbox
from nh_control.systems.pendulum import PendulumParameters, pendulum
from nh_control.systems.quadrotor import QuadrotorParameters, quadrotor
from nh_control.systems.quadrotor_payload import (
    Formation,
    QuadrotorPayloadParameters,
    quadrotor_payload,
)
from nh_control.systems.quadrotor_payload_continuous import link_tensions
from nh_control.systems.roller_racer import RollerRacerParameters, roller_racer
from nh_control.systems.rolling_ball import RollingBallParameters, rolling_ball
from nh_control.systems.rolling_disk import RollingDiskParameters, rolling_disk
from nh_control.systems.rotor_mixing import RotorMixing
from nh_control.systems.rotors import Airframe, with_rotors
from nh_control.systems.satellite import SatelliteParameters, satellite
from nh_control.systems.snakeboard import SnakeboardParameters, snakeboard
from nh_control.systems.suslov import SuslovParameters, suslov
from nh_control.systems.wet_ground import (
    WetCarParameters,
    WetSnakeboardParameters,
    wet_car,
    wet_snakeboard,
)

__all__ = [
    "Airframe",
    "AcrobotParameters",
    "CarParameters",
    "CartPoleParameters",
    "ChaoticQuarticParameters",
    "ChaplyginSleighParameters",
    "DifferentialDriveParameters",
    "Formation",
    "GearboxParameters",
    "PendulumParameters",
    "QuadrotorParameters",
    "QuadrotorPayloadParameters",
    "RollerRacerParameters",
    "RollingBallParameters",
    "RollingDiskParameters",
    "RotorMixing",
    "SatelliteParameters",
    "SnakeboardParameters",
    "SuslovParameters",
    "WetCarParameters",
    "WetSnakeboardParameters",
    "acrobot",
    "car",
    "cart_pole",
    "chaotic_quartic",
    "chaplygin_sleigh",
    "chaplygin_sleigh_contact",
    "differential_drive",
    "gearbox",
    "link_tensions",
    "pendulum",
    "quadrotor",
    "quadrotor_payload",
    "roller_racer",
    "rolling_ball",
    "rolling_disk",
    "satellite",
    "snakeboard",
    "suslov",
    "wet_car",
    "wet_snakeboard",
    "with_rotors",
]
