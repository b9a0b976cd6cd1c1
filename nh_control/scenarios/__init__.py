"""Launchable scenarios. Each scenario declares its system, integrators, references, weights,
initial errors and visual model once. The nodes, the command and the tests all use this
declaration. The module of a scenario is imported when the scenario is first used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from nh_control import _homes_of, _on_demand
from nh_control.scenarios.names import UnknownName  # before the function with the same name

if TYPE_CHECKING:  # declares the names for editors, type checkers, and `_HOMES`
    from nh_control.mechanics.external_forces import ForceTarget as ForceTarget
    from nh_control.mechanics.external_forces import on_body as on_body
    from nh_control.mechanics.external_forces import on_coordinates as on_coordinates
    from nh_control.mechanics.external_forces import on_planar_body as on_planar_body
    from nh_control.mechanics.external_forces import on_point as on_point
    from nh_control.mechanics.parameters import Parameters as Parameters
    from nh_control.mechanics.parameters import parameter as parameter
    from nh_control.scenarios.acrobot import ACROBOT as ACROBOT
    from nh_control.scenarios.ballbot import BALLBOT as BALLBOT
    from nh_control.scenarios.bicycle import BICYCLE as BICYCLE
    from nh_control.scenarios.car import CAR as CAR
    from nh_control.scenarios.cart_pole import CART_POLE as CART_POLE
    from nh_control.scenarios.chaplygin_sleigh import CHAPLYGIN_SLEIGH as CHAPLYGIN_SLEIGH
    from nh_control.scenarios.constraints import MpcOptions as MpcOptions
    from nh_control.scenarios.constraints import ScenarioConstraint as ScenarioConstraint
    from nh_control.scenarios.differential_drive import DIFFERENTIAL_DRIVE as DIFFERENTIAL_DRIVE
    from nh_control.scenarios.discovery import AmbiguousName as AmbiguousName
    from nh_control.scenarios.disturbance import Constant as Constant
    from nh_control.scenarios.disturbance import Disturbance as Disturbance
    from nh_control.scenarios.disturbance import Gust as Gust
    from nh_control.scenarios.disturbance import Noise as Noise
    from nh_control.scenarios.disturbance import Sine as Sine
    from nh_control.scenarios.frames import on_frames as on_frames
    from nh_control.scenarios.limits import SafetyLimits as SafetyLimits
    from nh_control.scenarios.marionette import MARIONETTE as MARIONETTE
    from nh_control.scenarios.pendulum_swing_up import PENDULUM_SWING_UP as PENDULUM_SWING_UP
    from nh_control.scenarios.perturbation import Displacement as Displacement
    from nh_control.scenarios.perturbation import PlanarPerturbation as PlanarPerturbation
    from nh_control.scenarios.perturbation import error_seed as error_seed
    from nh_control.scenarios.perturbation import initial_error as initial_error
    from nh_control.scenarios.perturbation import momentum_error as momentum_error
    from nh_control.scenarios.predictive import constraints_along as constraints_along
    from nh_control.scenarios.predictive import mpc_tracker as mpc_tracker
    from nh_control.scenarios.quadrotor import QUADROTOR as QUADROTOR
    from nh_control.scenarios.quadrotor_payload import QUADROTOR_PAYLOAD as QUADROTOR_PAYLOAD
    from nh_control.scenarios.rolling_disk import ROLLING_DISK as ROLLING_DISK
    from nh_control.scenarios.satellite import SATELLITE as SATELLITE
    from nh_control.scenarios.scenario import BodyState as BodyState
    from nh_control.scenarios.scenario import Joint as Joint
    from nh_control.scenarios.scenario import MonitoredOutput as MonitoredOutput
    from nh_control.scenarios.scenario import PlanarBody as PlanarBody
    from nh_control.scenarios.scenario import PlantOptions as PlantOptions
    from nh_control.scenarios.scenario import Scenario as Scenario
    from nh_control.scenarios.sensor import SensingOptions as SensingOptions
    from nh_control.scenarios.sensor import Sensor as Sensor
    from nh_control.scenarios.snake import SNAKE as SNAKE
    from nh_control.scenarios.snake import SNAKE_KINEMATIC as SNAKE_KINEMATIC
    from nh_control.scenarios.snakeboard import SNAKEBOARD as SNAKEBOARD
    from nh_control.scenarios.urdf import urdf as from_urdf  # noqa: F401
    from nh_control.scenarios.user_code import UserCodeError as UserCodeError
    from nh_control.scenarios.wet_ground import WET_CAR as WET_CAR
    from nh_control.scenarios.wet_ground import WET_SNAKEBOARD as WET_SNAKEBOARD

_HOMES = _homes_of(__file__)
"""Public names and the modules that define them."""

_of_home, __dir__ = _on_demand(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    if name == "Body":
        message = "nh_control.scenarios.Body is deprecated; use PlanarBody"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        name = "PlanarBody"
    return _of_home(name)


def _built_in(attribute: str) -> Scenario:
    scenario: Scenario = __getattr__(attribute)
    return scenario


@cache
def _default_robot() -> Scenario:
    from nh_control.scenarios.urdf import urdf

    return urdf()


_SCENARIOS: dict[str, Callable[[], Scenario]] = {
    name: partial(_built_in, name.upper())
    for name in (
        "snakeboard",
        "snake",
        "snake_kinematic",
        "quadrotor_payload",
        "quadrotor",
        "marionette",
        "pendulum_swing_up",
        "cart_pole",
        "acrobot",
        "differential_drive",
        "car",
        "chaplygin_sleigh",
        "rolling_disk",
        "satellite",
        "bicycle",
        "ballbot",
        "wet_snakeboard",
        "wet_car",
    )
} | {"urdf": _default_robot}
"""The functions that build this package's scenarios, by name."""


def names() -> tuple[str, ...]:
    """The names of all scenarios: first those in this package, then those that installed packages
    declare as entry points in the group `nh_control.scenarios`.
    """
    from nh_control.scenarios import discovery

    return tuple(dict.fromkeys((*_SCENARIOS, *discovery.installed())))


def built_in() -> tuple[str, ...]:
    """The names of the scenarios in this package."""
    return tuple(_SCENARIOS)


def get(
    name: str,
    urdf: str = "",
    base: str = "fixed",
    accept_any_inertia: bool = False,
    wheels: str = "",
    autopilot: str = "",
) -> Scenario:
    """Return the scenario with the given name, which may also be `path/to/file.py:NAME` or
    `module:NAME`.

    For "urdf", the other arguments describe the robot (see `load_urdf`): its file, its base,
    whether inertias that no rigid body can have are accepted, and the links that are wheels,
    separated by commas. If there is an `autopilot`, it flies the scenario (see `flown`).

    This runs the user's code. Raises UnknownName, which lists the valid names; AmbiguousName for a
    name that several packages use; UserCodeError, with the file and line of an error in the user's
    code; OSError for a file that cannot be read; and ValueError if the arguments describe a robot
    but the scenario is not "urdf".
    """
    from nh_control.scenarios import discovery

    has_robot = urdf or base != "fixed" or accept_any_inertia or wheels
    # The options for a robot only apply to the scenario "urdf".
    if name == "urdf" and has_robot:
        from nh_control.scenarios.urdf import urdf as from_urdf  # noqa: F401

        return from_urdf(urdf, base, accept_any_inertia, wheels)
    if has_robot:
        raise ValueError(
            f"the scenario {name!r} takes no robot; use the scenario 'urdf' for the file "
            f"{urdf!r} on a {base} base"
        )
    scenario = discovery.find(name, _SCENARIOS)
    if not autopilot:
        return scenario
    from nh_control.scenarios.flown import flown

    return flown(scenario, autopilot)


def of_origin(origin: Mapping[str, Any]) -> Scenario:
    """Return the scenario that an `origin` describes. Boolean values in the origin may be strings,
    and unknown entries are ignored. Raises the same errors as `get`.
    """
    return get(
        origin["scenario"],
        origin.get("urdf", ""),
        origin.get("base", "fixed"),
        str(origin.get("accept_any_inertia", False)).lower() == "true",
        origin.get("wheels", ""),
        origin.get("autopilot", ""),
    )


__all__ = [*_HOMES, "UnknownName", "built_in", "get", "names", "of_origin"]
