"""Mechanical systems, one per file. Each system is a function of a frozen dataclass of
parameters. It is imported when it is first used.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nh_control import _homes_of, _on_demand

if TYPE_CHECKING:  # declares the names for editors, type checkers, and `_HOMES`
    from nh_control.systems.acrobot import AcrobotParameters as AcrobotParameters
    from nh_control.systems.acrobot import acrobot as acrobot
    from nh_control.systems.car import CarParameters as CarParameters
    from nh_control.systems.car import car as car
    from nh_control.systems.cart_pole import CartPoleParameters as CartPoleParameters
    from nh_control.systems.cart_pole import cart_pole as cart_pole
    from nh_control.systems.chaotic_quartic import (
        ChaoticQuarticParameters as ChaoticQuarticParameters,
    )
    from nh_control.systems.chaotic_quartic import chaotic_quartic as chaotic_quartic
    from nh_control.systems.chaplygin_sleigh import (
        ChaplyginSleighParameters as ChaplyginSleighParameters,
    )
    from nh_control.systems.chaplygin_sleigh import chaplygin_sleigh as chaplygin_sleigh
    from nh_control.systems.chaplygin_sleigh import (
        chaplygin_sleigh_contact as chaplygin_sleigh_contact,
    )
    from nh_control.systems.differential_drive import (
        DifferentialDriveParameters as DifferentialDriveParameters,
    )
    from nh_control.systems.differential_drive import differential_drive as differential_drive
    from nh_control.systems.gearbox import GearboxParameters as GearboxParameters
    from nh_control.systems.gearbox import gearbox as gearbox
    from nh_control.systems.pendulum import PendulumParameters as PendulumParameters
    from nh_control.systems.pendulum import pendulum as pendulum
    from nh_control.systems.quadrotor import QuadrotorParameters as QuadrotorParameters
    from nh_control.systems.quadrotor import quadrotor as quadrotor
    from nh_control.systems.quadrotor_payload import Formation as Formation
    from nh_control.systems.quadrotor_payload import (
        QuadrotorPayloadParameters as QuadrotorPayloadParameters,
    )
    from nh_control.systems.quadrotor_payload import quadrotor_payload as quadrotor_payload
    from nh_control.systems.quadrotor_payload_continuous import link_tensions as link_tensions
    from nh_control.systems.roller_racer import RollerRacerParameters as RollerRacerParameters
    from nh_control.systems.roller_racer import roller_racer as roller_racer
    from nh_control.systems.rolling_ball import RollingBallParameters as RollingBallParameters
    from nh_control.systems.rolling_ball import rolling_ball as rolling_ball
    from nh_control.systems.rolling_disk import RollingDiskParameters as RollingDiskParameters
    from nh_control.systems.rolling_disk import rolling_disk as rolling_disk
    from nh_control.systems.rotor_mixing import RotorMixing as RotorMixing
    from nh_control.systems.rotors import Airframe as Airframe
    from nh_control.systems.rotors import with_rotors as with_rotors
    from nh_control.systems.satellite import SatelliteParameters as SatelliteParameters
    from nh_control.systems.satellite import satellite as satellite
    from nh_control.systems.snakeboard import SnakeboardParameters as SnakeboardParameters
    from nh_control.systems.snakeboard import snakeboard as snakeboard
    from nh_control.systems.suslov import SuslovParameters as SuslovParameters
    from nh_control.systems.suslov import suslov as suslov
    from nh_control.systems.wet_ground import WetCarParameters as WetCarParameters
    from nh_control.systems.wet_ground import WetSnakeboardParameters as WetSnakeboardParameters
    from nh_control.systems.wet_ground import wet_car as wet_car
    from nh_control.systems.wet_ground import wet_snakeboard as wet_snakeboard

_HOMES = _homes_of(__file__)
"""Public names and the modules that define them."""

__all__ = [*_HOMES]

__getattr__, __dir__ = _on_demand(__name__, _HOMES)


class _Package(ModuleType):
    """A package in which the name of a system and of its file means the system."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Python sets the attribute of an imported file when it has run the file
        named = name in _HOMES and isinstance(value, ModuleType)
        super().__setattr__(name, getattr(value, name) if named else value)


sys.modules[__name__].__class__ = _Package
