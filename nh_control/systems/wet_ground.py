"""Vehicles whose wheels skid: snakeboard and car on ground with a limited friction."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    grips = tuple(
        Grip((row,), lambda p: p.m * p.gravity / 2, lambda p: p.friction) for row in (0, 1)
    )
    return replace(board, name="wet_snakeboard", grips=grips, smoothing=SMOOTHING)


def wet_car(parameters: WetCarParameters = WetCarParameters()) -> System:
    """The `car` with tires that hold as long as their force is within Coulomb's cone.

    The rear axle, which drives, has one bound for its force forward and sideways together,
    `friction m gravity (l - b) / l`, the front axle one for its force sideways, `friction m
    gravity b / l`. Loads are those at rest, as in the single-track model, Rajamani (2012) 2.3.
    """
    rear = Grip((0, 2), lambda p: p.m * p.gravity * (p.l - p.b) / p.l, lambda p: p.friction)
    front = Grip((1,), lambda p: p.m * p.gravity * p.b / p.l, lambda p: p.friction)
    return replace(car(parameters), name="wet_car", grips=(rear, front), smoothing=SMOOTHING)
