"""Metrics of a run: numbers that a study computes from its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from nh_control.runs.experiment import Result
from nh_control.studies.settings import Settings


class HasMetrics(Protocol):
    """The parts of a study that determine its metrics."""

    @property
    def monitor(self) -> bool:
        """Whether the monitored and the declared outputs are metrics."""

    @property
    def settings(self) -> Settings:
        """The settings, which include the scenario."""


@dataclass(frozen=True)
class Metric:
    """A number computed from a run's result, in `unit` ("" if it has none)."""

    unit: str
    meaning: str
    of: Callable[[Result], float]


def _largest_constraint(result: Result) -> float:
    return float(np.abs(result.loop.constraint).max(initial=0.0))


def _energy_error(result: Result) -> float:
    # After the reference ends, target(k) is its last state.
    e = result.experiment
    return float(result.loop.energy[-1] - e.model.energy(e.tracker.target(e.steps)))


def _largest_output(i: int, result: Result) -> float:
    return float(np.abs(result.outputs.values[:, i]).max(initial=0.0))


ERROR = "final_error"
METRICS: Mapping[str, Metric] = {
    ERROR: Metric(
        "m, rad",
        "norm of the configuration's tracking error at the end",
        lambda result: float(result.configuration_error()[-1]),
    ),
    "largest_error": Metric(
        "m, rad",
        "the largest value of this norm",
        lambda result: float(result.configuration_error().max()),
    ),
    "rms_error": Metric(
        "m, rad",
        "root of the mean of the squared norm",
        lambda result: float(np.sqrt(np.mean(result.configuration_error() ** 2))),
    ),
    "saturated": Metric(
        "",
        "share of the inputs at their limits",
        lambda result: float(result.loop.saturated.mean()),
    ),
    "constraint": Metric(
        "m", "largest absolute residual of the plant's constraints", _largest_constraint
    ),
    "energy_error": Metric(
        "J", "final energy of the plant minus the reference's final energy", _energy_error
    ),
}


def metrics_of(study: HasMetrics) -> Mapping[str, Metric]:
    """Return the METRICS and, if the study monitors outputs, the minimum of the scenario's
    monitored output and the maximum absolute values of the system's declared outputs.

    Computing the outputs often takes longer than the run itself.
    """
    if not study.monitor:
        return METRICS
    scenario = study.settings.scenario
    outputs = scenario.system.outputs
    declared = [pair for o in outputs for pair in zip(o.names, o.number_units)]
    metrics = {**METRICS}
    for i, (name, unit) in enumerate(declared):
        largest = partial(_largest_output, i)
        meaning = f"the largest absolute value of {name}"
        metrics[f"largest_{name}"] = Metric(unit, meaning, largest)
    monitor = scenario.monitor
    if monitor is None:
        return metrics
    name = f"least_{monitor.title.replace(' ', '_')}"
    meaning = f"the least {monitor.title}; {monitor.warning} at {monitor.minimum:g}"
    return {
        **metrics,
        name: Metric(monitor.unit, meaning, lambda result: float(result.monitored.min())),
    }
