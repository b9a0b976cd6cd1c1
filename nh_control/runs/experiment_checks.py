"""Checks of a run's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nh_control.loop.faults import FaultLines
from nh_control.mechanics.parameters import declarations
from nh_control.mechanics.system import System
from nh_control.scenarios import Scenario, UnknownName
from nh_control.scenarios.perturbation import default_perturbation
from nh_control.scenarios.sensor import ESTIMATES, SENSORS

FINEST = 1e-4
"""Minimum step of a run as a fraction of the scenario's step."""


def require_step(scenario: Scenario, h: float) -> None:
    """Raise ValueError for a step that is so short that a run of the scenario's length does not
    fit into memory.
    """
    # 0.999: a step of exactly FINEST is allowed despite round-off
    if h < 0.999 * FINEST * scenario.step_s:
        raise ValueError(
            f"{scenario.name}: the step {h:g} s is less than {FINEST:g} of the scenario's step, "
            f"{scenario.step_s:g} s; choose {FINEST * scenario.step_s:g} s or more"
        )


def require_sizes(scenario: Scenario, parameters: Mapping[str, Any]) -> None:
    """Raise ValueError unless each parameter has as many numbers as in the scenario. The scenario
    refuses unknown names.
    """
    for name, value in parameters.items():
        nominal = getattr(scenario.parameters, name, value)
        if np.shape(value) != np.shape(nominal):
            raise ValueError(
                f"{scenario.name} parameter {name} must be {np.size(nominal)} numbers as in "
                f"{nominal}, got {value}"
            )


def require_estimate(scenario: Scenario, estimate: str, lines: FaultLines) -> None:
    """Raise UnknownName for an unknown estimate. For an estimate from sensors, raise ValueError if
    there are no sensors, or if there are faults in the measured state, which this estimate does
    not use.
    """
    if estimate not in ESTIMATES:
        raise UnknownName("estimate", estimate, ESTIMATES)
    if estimate != SENSORS:
        return
    if not scenario.sensors:
        raise ValueError(
            f"{scenario.name} has no sensors to estimate states from; declare them, "
            f"Scenario(..., sensors=(Sensor(...),))"
        )
    if faults := [str(fault) for fault in lines.measurements.faults]:
        raise ValueError(
            f"{scenario.name}: faults of the measured state, {', '.join(faults)}, have no effect "
            "if states are estimated from sensors; give these noise, bias and delay instead"
        )


def checked_perturbation(scenario: Scenario, system: System, perturbation: Any) -> Any:
    """Return the perturbation, by default `default_perturbation`. Raises ValueError for a
    perturbation that belongs to another scenario.
    """
    expected = type(scenario.perturbation)
    if perturbation is None:
        return default_perturbation(scenario.perturbation, system)
    if not isinstance(perturbation, expected):
        names = ", ".join(declared.name for declared in declarations(scenario.perturbation))
        raise ValueError(
            f"{scenario.name}: the perturbation must be a {expected.__name__}({names}), got "
            f"{perturbation}"
        )
    return perturbation
