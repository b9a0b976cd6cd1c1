"""Vehicles whose wheels skid: snakeboard and car on ground with a limited friction."""

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
"""Height (J) of the barrier of the wheels' friction: they creep by about 1e-5 m/s."""


@dataclass(frozen=True)
class WetSnakeboardParameters(SnakeboardParameters):
    """A snakeboard whose axles carry half of its weight each."""

    friction: float = parameter(0.8, "", "friction of the wheels on the ground")
    gravity: float = parameter(9.81, "m/s^2", "gravity")


@dataclass(frozen=True)
class WetCarParameters(CarParameters):
    """A compact car whose axles carry its weight at rest."""

    friction: float = parameter(0.6, "", "friction of the tires on the ground")
    gravity: float = parameter(9.81, "m/s^2", "gravity")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.b >= self.l:
            raise ValueError(
                f"WetCarParameters: the center of mass, b = {self.b:g} m before the rear axle, "
                f"must be between the axles, l = {self.l:g} m apart, so that both carry weight"
            )


def wet_snakeboard(parameters: WetSnakeboardParameters = WetSnakeboardParameters()) -> System:
    """The `snakeboard` with wheels that roll as long as the sideways force on each axle is at most
    `friction m gravity / 2`, and skid beyond it. Friction acts at the axles' middles, whose
    sliding velocities are the rows of the snakeboard's constraint.
    """
    board = snakeboard(parameters)

    def axle(row: int, name: str, side: float) -> Grip:
        def place(q: ca.SX, p: WetSnakeboardParameters) -> ca.SX:
            return _axle(q[2:], side * p.l, -side * q[1])

        return Grip((row,), lambda p: p.m * p.gravity / 2, _friction, place, name)

    grips = axle(0, "rear_wheels", -1.0), axle(1, "front_wheels", 1.0)
    return replace(board, name="wet_snakeboard", grips=grips, smoothing=SMOOTHING)


def wet_car(parameters: WetCarParameters = WetCarParameters()) -> System:
    """The `car` with tires that hold as long as their force is within Coulomb's cone.

    The rear axle, which drives, has one bound for its force forward and sideways together,
    `friction m gravity (l - b) / l`, the front axle one for its force sideways, `friction m
    gravity b / l`. Loads are those at rest, as in the single-track model, Rajamani (2012) 2.3.
    """

    def at_rear(q: ca.SX, p: WetCarParameters) -> ca.SX:
        return _axle(q[2:], 0.0, 0.0, both=True)

    def at_front(q: ca.SX, p: WetCarParameters) -> ca.SX:
        return _axle(q[2:], p.l, q[1])

    def rear_load(p: WetCarParameters) -> Any:
        return p.m * p.gravity * (p.l - p.b) / p.l

    def front_load(p: WetCarParameters) -> Any:
        return p.m * p.gravity * p.b / p.l

    rear = Grip((0, 2), rear_load, _friction, at_rear, "rear_wheels")
    front = Grip((1,), front_load, _friction, at_front, "front_wheels")
    return replace(car(parameters), name="wet_car", grips=(rear, front), smoothing=SMOOTHING)


def _friction(p: WetSnakeboardParameters | WetCarParameters) -> Any:
    return p.friction


def _axle(pose: ca.SX, ahead: Any, steering: Any, both: bool = False) -> ca.SX:
    """The middle of an axle `ahead` (m) of the point of a pose (theta, x, y), and the unit vectors
    along the axle, to the left, and, for `both`, along its wheels.
    """
    theta, wheels = pose[0], pose[0] + steering
    contact_point = ca.vertcat(pose[1:3] + ahead * ca.vertcat(ca.cos(theta), ca.sin(theta)), 0)
    left = ca.vertcat(-ca.sin(wheels), ca.cos(wheels), 0)
    along = ca.vertcat(ca.cos(wheels), ca.sin(wheels), 0)
    return ca.horzcat(contact_point, left, along) if both else ca.horzcat(contact_point, left)
