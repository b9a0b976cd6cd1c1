"""Experiments from the settings of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nh_control import scenarios
from nh_control.mechanics.system import System
from nh_control.runs.design import Design, names_of, require_known
from nh_control.runs.experiment import Experiment
from nh_control.runs.option_values import mpc_options, plant_options
from nh_control.runs.settings import RunSettings
from nh_control.scenarios import Scenario
from nh_control.scenarios.perturbation import default_perturbation


def build(settings: RunSettings, scenario: Scenario | None = None) -> Experiment:
    """The experiment with these settings, of `scenario` where it is loaded already. Initial errors
    that are not set are the scenario's.

    Raises as `scenarios.get` and `Experiment.make` do.
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
        perturbation=perturbation(settings, scenario, scenario.make_system(scenario.parameters)),
        integral=settings.integral,
        duration_s=settings.duration_s,
        mpc=mpc_options(settings),
        estimate=settings.estimate,
    )
    return replace(experiment, design=design) if design != Design() else experiment


def design_of(settings: RunSettings) -> Design:
    """The design of the tracker."""
    return Design(settings.model_parameters, settings.weight_factors)


def perturbation(settings: RunSettings, scenario: Scenario, system: System) -> Any:
    """The initial error: the scenario's of the system, with the values of the settings; raises
    UnknownName, ValueError.
    """
    names = names_of(scenario.perturbation)
    require_known(scenario, "initial error", settings.perturb, names)
    return replace(default_perturbation(scenario.perturbation, system), **settings.perturb)
