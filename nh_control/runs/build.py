"""Builds experiments from a run's settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nh_control import scenarios
from nh_control.control.controller import ControllerLike
from nh_control.mechanics.system import System
from nh_control.runs.design import Design, names_of, require_known
from nh_control.runs.experiment import Experiment
from nh_control.runs.option_values import mpc_options, plant_options
from nh_control.runs.settings import RunSettings
from nh_control.scenarios import Scenario
from nh_control.scenarios.perturbation import default_perturbation


def build(
    settings: RunSettings,
    scenario: Scenario | None = None,
    controller: ControllerLike | None = None,
) -> Experiment:
    """Build the experiment with the given settings. If the scenario is already loaded, pass it as
    `scenario`. A `controller` in Python takes the place of the one in the settings. Initial errors
    that are not set are the scenario's.

    Raises the same errors as `scenarios.get` and `Experiment.make`.
    """
    if scenario is None:
        scenario = scenarios.of_origin(settings.to_dict())
    design = design_of(settings)
    scenario = design.of(scenario)
    experiment = Experiment.make(
        scenario,
        reference=settings.reference,
        integrator=settings.integrator,
        step_s=settings.step_s,
        options=plant_options(settings),
        perturbation=perturbation(settings, scenario, scenario.system),
        integral=settings.integral,
        duration_s=settings.duration_s,
        mpc=mpc_options(settings),
        estimate=settings.estimate,
        controller=settings.controller if controller is None else controller,
    )
    # the scenario is already changed, so the design is only recorded for the settings
    return replace(experiment, design=design) if design != Design() else experiment


def design_of(settings: RunSettings) -> Design:
    """Return the design of the tracker."""
    return Design(settings.model_parameters, settings.weight_factors)


def perturbation(settings: RunSettings, scenario: Scenario, system: System) -> Any:
    """Return the scenario's initial error for the system, with the values from the settings.
    Raises UnknownName and ValueError.
    """
    names = names_of(scenario.perturbation)
    require_known(scenario, "initial error", settings.perturb, names)
    return replace(default_perturbation(scenario.perturbation, system), **settings.perturb)
