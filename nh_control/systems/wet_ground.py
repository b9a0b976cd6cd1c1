"""Vehicles whose wheels may skid, namely a snakeboard and a car on ground with limited
friction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import casadi as ca

from nh_control.mechanics.contacts import Grip
from nh_control.mechanics.parameters import parameter
from nh_control.mechanics.system import System
from nh_control.systems.car import CarParameters, car
from nh_control.systems.snakeboard import SnakeboardParameters, snakeboard

SMOOTHING = 1e-6
"""Height (J) of the barrier for the wheels' friction. The wheels creep at about 1e-5 m/s."""


@dataclass(frozen=True)
class WetSnakeboardParameters(SnakeboardParameters):
    """A snakeboard. Each axle carries half of the weight."""

    friction: float = parameter(0.8, "", "friction of the wheels on the ground")
    gravity: float = parameter(9.81, "m/s^2", "gravity")


@dataclass(frozen=True)
class WetCarParameters(CarParameters):
    """A compact car. The axle loads are those at rest."""

    friction: float = parameter(0.6, "", "friction of the tires on the ground")
    gravity: float = parameter(9.81, "m/s^2", "gravity")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.b >= self.l:
            raise ValueError(
                f"WetCarParameters: the center of mass, b = {self.b:g} m in front of the rear "
                f"axle, must be between the axles, l = {self.l:g} m apart, so that both carry "
                "weight"
            )


def wet_snakeboard(parameters: WetSnakeboardParameters = WetSnakeboardParameters()) -> System:
    """The `snakeboard` with wheels that roll while the sideways force on each axle is at most
    `friction m gravity / 2`, and skid beyond this bound. Friction acts at the middles of the
    axles. The rows of the snakeboard's constraint are the sliding velocities at these points.
    """
    board = snakeboard(parameters)

    def axle(row: int, name: str, side: float) -> Grip:
        def place(q: ca.SX, params: WetSnakeboardParameters) -> ca.SX:
            # the front truck is at +l with -phi, and the rear truck is at -l with +phi
            return _axle(q[2:], side * params.l, -side * q[1])

        return Grip((row,), lambda params: params.m * params.gravity / 2, _friction, place, name)

    grips = axle(0, "rear_wheels", -1.0), axle(1, "front_wheels", 1.0)
    return replace(board, name="wet_snakeboard", grips=grips, smoothing=SMOOTHING)


def wet_car(parameters: WetCarParameters = WetCarParameters()) -> System:
    """The `car` with tires that grip as long as their force is within the Coulomb cone.

    The driven rear axle has a single bound for its combined forward and sideways force,
    `friction m gravity (l - b) / l`. The front axle has a bound for its sideways force,
    `friction m gravity b / l`. The loads are those at rest, as in the single-track model in
    Rajamani (2012) 2.3.
    """

    def at_rear(q: ca.SX, params: WetCarParameters) -> ca.SX:
        return _axle(q[2:], 0.0, 0.0, both=True)

    def at_front(q: ca.SX, params: WetCarParameters) -> ca.SX:
        return _axle(q[2:], params.l, q[1])

    def rear_load(params: WetCarParameters) -> Any:
        return params.m * params.gravity * (params.l - params.b) / params.l

    def front_load(params: WetCarParameters) -> Any:
        return params.m * params.gravity * params.b / params.l

    # rows of the car's constraint: 0 rear axle sideways, 1 front axle, 2 rolling
    rear = Grip((0, 2), rear_load, _friction, at_rear, "rear_wheels")
    front = Grip((1,), front_load, _friction, at_front, "front_wheels")
    return replace(car(parameters), name="wet_car", grips=(rear, front), smoothing=SMOOTHING)


def _friction(params: WetSnakeboardParameters | WetCarParameters) -> Any:
    return params.friction


def _axle(pose: ca.SX, ahead: Any, steering: Any, both: bool = False) -> ca.SX:
    """The middle of an axle that is `ahead` (m) of the point of a pose (theta, x, y), and the unit
    vector along the axle, to the left. If `both` is true, also the unit vector along its wheels.
    """
    theta, wheels = pose[0], pose[0] + steering
    contact_point = ca.vertcat(pose[1:3] + ahead * ca.vertcat(ca.cos(theta), ca.sin(theta)), 0)
    left = ca.vertcat(-ca.sin(wheels), ca.cos(wheels), 0)
    along = ca.vertcat(ca.cos(wheels), ca.sin(wheels), 0)
    return ca.horzcat(contact_point, left, along) if both else ca.horzcat(contact_point, left)
