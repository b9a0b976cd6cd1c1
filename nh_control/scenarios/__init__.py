"""Launchable scenarios: each declares its system, integrators, references, weights and what to show, once, for nodes, CLI and tests."""

from nh_control.scenarios.cart_pole import CART_POLE
from nh_control.scenarios.marionette import MARIONETTE
from nh_control.scenarios.pendulum_swing_up import PENDULUM_SWING_UP
from nh_control.scenarios.quadrotor_payload import QUADROTOR_PAYLOAD
from nh_control.scenarios.scenario import (
    Body,
    BodyState,
    Gust,
    Joint,
    Monitor,
    Perturbation,
    PlantOptions,
    Scenario,
    UnknownName,
)
from nh_control.scenarios.snakeboard import SNAKEBOARD

_SCENARIOS = {s.name: s for s in (SNAKEBOARD, QUADROTOR_PAYLOAD, MARIONETTE, PENDULUM_SWING_UP, CART_POLE)}


def names() -> tuple[str, ...]:
    """Names of all scenarios."""
    return tuple(_SCENARIOS)


def get(name: str) -> Scenario:
    """The scenario of that name; raises UnknownName listing the valid ones."""
    if name not in _SCENARIOS:
        raise UnknownName("scenario", name, _SCENARIOS)
    return _SCENARIOS[name]


__all__ = ["Body", "BodyState", "Gust", "Joint", "Monitor", "Perturbation", "PlantOptions", "Scenario", "UnknownName", "get", "names"]
