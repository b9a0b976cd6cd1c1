"""One worker of a study: it builds models once per process, makes runs, and computes their
metrics.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.faults import FaultLines
from nh_control.mechanics.parameters import Declaration
from nh_control.runs.build import build, perturbation
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.experiment_checks import require_estimate
from nh_control.runs.option_values import plant_options
from nh_control.runs.settings import OPTIONS, SETTINGS, short_name
from nh_control.scenarios import PlantOptions
from nh_control.studies.settings import Values
from nh_control.studies.study import Study
from nh_control.studies.variation import Value

FAILED = float("nan")
"""The value of every metric of a failed run."""
DESIGNS = 16
"""Number of trackers kept in memory; DESIGNS**2 plants are kept."""


@dataclass(frozen=True)
class Metric:
    """A number computed from a run's result, in `unit` ("" for none)."""

    unit: str
    meaning: str
    of: Callable[[Result], float]


def _largest_constraint(result: Result) -> float:
    return float(np.abs(result.loop.constraint).max(initial=0.0))


def _energy_error(result: Result) -> float:
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


def metrics_of(study: Study) -> Mapping[str, Metric]:
    """Return the METRICS and, if the study asks for it, the least value of the scenario's
    monitored output, and the largest sizes of the system's declared outputs.

    Computing them often takes longer than the run.
    """
    if not study.monitor:
        return METRICS
    scenario = study.settings.scenario
    outputs = scenario.make_system(scenario.parameters).outputs
    declared = [pair for o in outputs for pair in zip(o.names, o.number_units)]
    metrics = {**METRICS}
    for i, (name, unit) in enumerate(declared):
        largest = partial(_largest_output, i)
        metrics[f"largest_{name}"] = Metric(unit, f"the largest size of {name}", largest)
    monitor = scenario.monitor
    if monitor is None:
        return metrics
    name = f"least_{monitor.title.replace(' ', '_')}"
    meaning = f"the least {monitor.title}; {monitor.warning} at {monitor.minimum:g}"
    return {
        **metrics,
        name: Metric(monitor.unit, meaning, lambda result: float(result.monitored.min())),
    }


@dataclass(frozen=True)
class Run:
    """The outcome of run `index`: the varied `values`, the `seed`, the metrics (NaN if it failed),
    its success, the number of steps, the wall time, and the reason of a failure ("" if there is
    none).
    """

    index: int
    values: tuple[Value, ...]
    seed: int | None
    metrics: tuple[float, ...]
    success: bool
    steps: int
    wall_s: float
    failure: str = ""


def run_indices(study: Study, indices: Sequence[int]) -> list[Run]:
    """Make the runs of these indices in order. Every worker calls this function, in any process
    and on any machine.

    A failed run says why; the function raises only errors that prevent all runs.
    """
    with _one_at_a_time:  # compiled functions share buffers; a Dask worker may have threads
        worker = _worker(study)
        return [worker.run(index) for index in indices]


_one_at_a_time = threading.Lock()


class Worker:
    """Makes the runs of a study and keeps the last trackers and plants, so that a run with other
    parameters, errors, disturbances and seeds builds and compiles nothing.
    """

    def __init__(self, study: Study):
        self.study, self.settings, self._metrics = study, study.settings, metrics_of(study)
        self._tracker = lru_cache(DESIGNS)(self._built)
        self._plant = lru_cache(DESIGNS**2)(self._built_plant)

    def experiment(self, values: Values) -> Experiment:
        """Return the experiment with these settings."""
        for name, value in values.items():
            self.settings.checked(name, value)
        settings, design = self.settings.run(values), self.settings.design(values)
        base, options = self._tracker(design), plant_options(settings)
        require_estimate(base.scenario, base.estimate, FaultLines.of(options.faults, base.model))
        shape = (options.integrator, options.substeps)
        plant = self._plant(design, *shape, tuple(d.target for d in options.disturbances))
        if options.parameters:
            plant = self._with_parameters(base, plant, options)
        error = perturbation(settings, base.scenario, base.model.system)
        x0 = base.scenario.perturb(base.model, base.tracker.reference.states[0], error)
        return replace(base, plant=plant, options=options, perturbation=error, x0=x0)

    def run(self, index: int) -> Run:
        """Make the run of this index; a failed run says why."""
        start = time.perf_counter()
        values, steps, failure = self.study.values(index), 0, ""
        metrics = (FAILED,) * len(self._metrics)
        try:
            experiment = self.experiment(values)
            loop = experiment.run(not self.settings.option(values, "open_loop"))
            steps = len(loop.trajectory)
            if loop.failure is not None:
                failure = str(loop.failure)
            else:
                result = Result(experiment, loop, None, 0.0)
                metrics = tuple(metric.of(result) for metric in self._metrics.values())
                if not np.isfinite(metrics).all():
                    failure, metrics = "its metrics are not finite", (FAILED,) * len(metrics)
        except Exception as error:  # any error is the result of this run alone
            failure = f"{type(error).__name__}: {error}"
        success = not failure and metrics[list(self._metrics).index(ERROR)] <= self.study.success
        return Run(
            index,
            self.study.point(index),
            self.study.run_seed(index),
            metrics,
            bool(success),
            steps,
            time.perf_counter() - start,
            failure,
        )

    def _built(self, design: tuple[tuple[str, Value], ...]) -> Experiment:
        settings = replace(self.settings.run(dict(design)), disturb=[], fault=[])
        return build(settings, self.settings.scenario)

    def _built_plant(
        self,
        design: tuple[tuple[str, Value], ...],
        integrator: str,
        substeps: int,
        targets: tuple[str, ...],
    ) -> DiscreteSystem:
        """Build the plant with the model's parameters; only the targets of the disturbances
        matter.
        """
        base = self._tracker(design)
        pushed = tuple(d for d in self.settings.disturbances if d.target in targets)
        return base.scenario.plant(
            base.model, PlantOptions(integrator, substeps, disturbances=pushed)
        )

    @staticmethod
    def _with_parameters(
        base: Experiment, plant: DiscreteSystem, options: PlantOptions
    ) -> DiscreteSystem:
        """Return the plant with its own parameters. If its compiled functions do not take these
        parameters as arguments, build it again.
        """
        shared = type(plant.system.parameters) is type(base.scenario.parameters)
        return (
            plant.with_parameters(**options.parameters)
            if shared
            else base.scenario.plant(base.model, options)
        )


@lru_cache(maxsize=2)
def _worker(study: Study) -> Worker:
    return Worker(study)


def command(study: Study, index: int) -> str:
    """Return the `nh_control simulate` command that repeats the run of this index."""
    values, origin = study.values(index), dict(study.scenario)
    settings = study.settings.run(values)
    words = ["nh_control", "simulate", str(origin.pop("scenario"))]
    for name, value in origin.items():
        words += _option(SETTINGS[name], value)
    for name, entry in OPTIONS.items():
        if name in values:
            words += _option(entry, settings[entry.name])
    for name, value in settings.perturb.items():
        words += [f"--perturb-{name.replace('_', '-')}={value!r}"]
    for name in ("model_parameters", "weight_factors", "plant.parameters", "disturb", "fault"):
        words += _option(SETTINGS[name], settings[name])
    return shlex.join(words)


def _option(entry: Declaration, value: Any) -> list[str]:
    """Return the words of the option of a setting."""
    option = f"--{short_name(entry).replace('_', '-')}"
    if isinstance(value, bool):
        return [option] if value else []
    if isinstance(value, Mapping):
        value = [
            f"{name}={','.join(map(repr, v)) if isinstance(v, tuple) else repr(v)}"
            for name, v in value.items()
        ]
    several = value if isinstance(value, list) else [str(value)]
    return [word for one in several for word in (option, one)]
