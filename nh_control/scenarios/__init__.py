"""Launchable scenarios: each declares its system, integrators, references, weights and what to
show, once, for nodes, CLI and tests.
"""

from nh_control.scenarios.cart_pole import CART_POLE
from nh_control.scenarios.marionette import MARIONETTE
from nh_control.scenarios.pendulum_swing_up import PENDULUM_SWING_UP
from nh_control.scenarios.quadrotor_payload import QUADROTOR_PAYLOAD
from nh_control.scenarios.scenario import (
    Body,
    BodyState,
    Gust,
    Joint,
    MonitoredOutput,
    Perturbation,
    PlantOptions,
    Scenario,
    UnknownName,
)
from nh_control.scenarios.snakeboard import SNAKEBOARD
from nh_control.scenarios.urdf import urdf as from_urdf

_SCENARIOS = {
    s.name: s
    for s in (SNAKEBOARD, QUADROTOR_PAYLOAD, MARIONETTE, PENDULUM_SWING_UP, CART_POLE, from_urdf())
}


def names() -> tuple[str, ...]:
    """Names of all scenarios."""
    return tuple(_SCENARIOS)


def get(name: str, urdf: str = "", base: str = "fixed") -> Scenario:
    """The scenario of that name, "urdf" with the robot of a file and its base; raises UnknownName
    listing the valid ones, ValueError for a file of another scenario.
    """
    if name not in _SCENARIOS:
        raise UnknownName("scenario", name, _SCENARIOS)
    if not urdf and base == "fixed":
        return _SCENARIOS[name]
    if name != "urdf":
        raise ValueError(
            f"the scenario {name!r} takes no robot; use the scenario 'urdf' for the file "
            f"{urdf!r} on a {base} base"
        )
    return from_urdf(urdf, base)


__all__ = [
    "Body",
    "BodyState",
    "Gust",
    "Joint",
    "MonitoredOutput",
    "Perturbation",
    "PlantOptions",
    "Scenario",
    "UnknownName",
    "from_urdf",
    "get",
    "names",
]
