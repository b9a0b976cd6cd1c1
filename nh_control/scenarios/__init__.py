"""Launchable scenarios: each declares once, for nodes, command and tests, its system, integrators,
references, weights, initial errors and visual model.
"""

from collections.abc import Mapping
from typing import Any

from nh_control.mechanics.external_forces import (
    ForceTarget,
    on_body,
    on_coordinates,
    on_planar_body,
    on_point,
)
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.scenarios import discovery
from nh_control.scenarios.acrobot import ACROBOT
from nh_control.scenarios.ballbot import BALLBOT
from nh_control.scenarios.bicycle import BICYCLE
from nh_control.scenarios.car import CAR
from nh_control.scenarios.cart_pole import CART_POLE
from nh_control.scenarios.chaplygin_sleigh import CHAPLYGIN_SLEIGH
from nh_control.scenarios.constraints import MpcOptions, ScenarioConstraint
from nh_control.scenarios.differential_drive import DIFFERENTIAL_DRIVE
from nh_control.scenarios.discovery import AmbiguousName
from nh_control.scenarios.disturbance import Constant, Disturbance, Gust, Noise, Sine
from nh_control.scenarios.frames import on_frames
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.marionette import MARIONETTE
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.pendulum_swing_up import PENDULUM_SWING_UP
from nh_control.scenarios.perturbation import (
    Displacement,
    PlanarPerturbation,
    error_seed,
    initial_error,
    momentum_error,
)
from nh_control.scenarios.predictive import constraints_along, mpc_tracker
from nh_control.scenarios.quadrotor import QUADROTOR
from nh_control.scenarios.quadrotor_payload import QUADROTOR_PAYLOAD
from nh_control.scenarios.rolling_disk import ROLLING_DISK
from nh_control.scenarios.satellite import SATELLITE
from nh_control.scenarios.scenario import (
    Body,
    BodyState,
    Joint,
    MonitoredOutput,
    PlantOptions,
    Scenario,
)
from nh_control.scenarios.sensor import SensingOptions, Sensor
from nh_control.scenarios.snake import SNAKE, SNAKE_KINEMATIC
from nh_control.scenarios.snakeboard import SNAKEBOARD
from nh_control.scenarios.urdf import urdf as from_urdf
from nh_control.scenarios.user_code import UserCodeError
from nh_control.scenarios.wet_ground import WET_CAR, WET_SNAKEBOARD

_SCENARIOS = {
    s.name: s
    for s in (
        SNAKEBOARD,
        SNAKE,
        SNAKE_KINEMATIC,
        QUADROTOR_PAYLOAD,
        QUADROTOR,
        MARIONETTE,
        PENDULUM_SWING_UP,
        CART_POLE,
        ACROBOT,
        DIFFERENTIAL_DRIVE,
        CAR,
        CHAPLYGIN_SLEIGH,
        ROLLING_DISK,
        SATELLITE,
        BICYCLE,
        BALLBOT,
        WET_SNAKEBOARD,
        WET_CAR,
        from_urdf(),
    )
}


def names() -> tuple[str, ...]:
    """Names of all scenarios: those of this package, then those that installed packages declare as
    entry points of the group `nh_control.scenarios`.
    """
    return tuple(dict.fromkeys((*_SCENARIOS, *discovery.installed())))


def built_in() -> tuple[str, ...]:
    """Names of the scenarios of this package."""
    return tuple(_SCENARIOS)


def get(
    name: str,
    urdf: str = "",
    base: str = "fixed",
    accept_any_inertia: bool = False,
    wheels: str = "",
) -> Scenario:
    """The scenario of that name, `path/to/file.py:NAME` or `module:NAME`; "urdf" with the robot of
    a file, its base, whether inertias that no body has are accepted, and its wheels, links between
    commas, see `load_urdf`.

    Loads and runs the user's code. Raises UnknownName listing the valid names, AmbiguousName for
    one that several packages use, UserCodeError with file and line of an error in the user's code,
    OSError for a file that cannot be read, ValueError for a robot of another scenario.
    """
    given = urdf or base != "fixed" or accept_any_inertia or wheels
    if name == "urdf" and given:
        return from_urdf(urdf, base, accept_any_inertia, wheels)
    if given:
        raise ValueError(
            f"the scenario {name!r} takes no robot; use the scenario 'urdf' for the file "
            f"{urdf!r} on a {base} base"
        )
    return discovery.find(name, _SCENARIOS)


def of_origin(origin: Mapping[str, Any]) -> Scenario:
    """The scenario with this `origin`, among other entries, whose truth values may be texts;
    raises as `get` does.
    """
    return get(
        origin["scenario"],
        origin.get("urdf", ""),
        origin.get("base", "fixed"),
        str(origin.get("accept_any_inertia", False)).lower() == "true",
        origin.get("wheels", ""),
    )


__all__ = [
    "AmbiguousName",
    "Body",
    "BodyState",
    "Constant",
    "Displacement",
    "Disturbance",
    "ForceTarget",
    "Gust",
    "Joint",
    "MonitoredOutput",
    "MpcOptions",
    "Noise",
    "Parameters",
    "PlanarPerturbation",
    "PlantOptions",
    "SafetyLimits",
    "Scenario",
    "ScenarioConstraint",
    "SensingOptions",
    "Sensor",
    "Sine",
    "UnknownName",
    "UserCodeError",
    "built_in",
    "constraints_along",
    "initial_error",
    "error_seed",
    "from_urdf",
    "get",
    "momentum_error",
    "mpc_tracker",
    "names",
    "of_origin",
    "on_body",
    "on_coordinates",
    "on_frames",
    "on_planar_body",
    "on_point",
    "parameter",
]
