"""One study's runs in one process: what is built once, and what a run comes down to."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics.parameters import declarations
from nh_control.runs.experiment import Experiment, Result
from nh_control.scenarios import PlantOptions
from nh_control.studies.settings import MODEL, OPTIONS, PERTURB, WEIGHT, Values
from nh_control.studies.study import Study
from nh_control.studies.variation import Value

FAILED = float("nan")
"""Every metric of a run that failed."""
DESIGNS = 16
"""How many trackers, and plants of each, are kept."""


@dataclass(frozen=True)
class Metric:
    """A number that a run comes down to, in `unit`, "" for none."""

    unit: str
    meaning: str
    of: Callable[[Result], float]


def _largest_constraint(result: Result) -> float:
    return float(np.abs(result.loop.constraint).max(initial=0.0))


def _energy_error(result: Result) -> float:
    e = result.experiment
    return float(result.loop.energy[-1] - e.model.energy(e.tracker.target(e.steps)))


ERROR = "final_error"
METRICS: Mapping[str, Metric] = {
    ERROR: Metric(
        "m, rad",
        "norm of the configuration's tracking error at the end",
        lambda result: float(result.configuration_error()[-1]),
    ),
    "largest_error": Metric(
        "m, rad",
        "the largest of that norm",
        lambda result: float(result.configuration_error().max()),
    ),
    "rms_error": Metric(
        "m, rad",
        "root of the mean of its square",
        lambda result: float(np.sqrt(np.mean(result.configuration_error() ** 2))),
    ),
    "saturated": Metric(
        "",
        "share of the inputs at their limits",
        lambda result: float(result.loop.saturated.mean()),
    ),
    "constraint": Metric("m", "largest residual of the plant's constraints", _largest_constraint),
    "energy_error": Metric(
        "J", "energy of the plant at the end less that of the reference", _energy_error
    ),
}


def metrics_of(study: Study) -> Mapping[str, Metric]:
    """The METRICS and, where the study asks for it, the least value of what the scenario monitors,
    which is often more work than the run.
    """
    monitor = study.settings.scenario.monitor
    if not study.monitor or monitor is None:
        return METRICS
    name = f"least_{monitor.title.replace(' ', '_')}"
    meaning = f"the least {monitor.title} of all; {monitor.warning} at {monitor.minimum:g}"
    return {
        **METRICS,
        name: Metric(monitor.unit, meaning, lambda result: float(result.monitored.min())),
    }


@dataclass(frozen=True)
class Run:
    """What came out of the run of that `index`: the `values` that varied, its `seed`, the metrics
    (NaN where it failed), whether it is a success, how many steps it took in what time, and why
    it failed ("" if it did not).
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
    """The runs of these indices, in their order: what every worker does, in any process and on any
    machine. One that fails says why; raises only what keeps all runs from being made.
    """
    with _one_at_a_time:  # compiled functions share buffers, and a Dask worker may have threads
        bench = _worker(study)
        return [bench.run(index) for index in indices]


_one_at_a_time = threading.Lock()


class Worker:
    """A study's scenario, with the trackers and plants of the last runs: another run with other
    parameters, errors, disturbances and seeds builds and compiles nothing.
    """

    def __init__(self, study: Study):
        self.study, self.settings, self._metrics = study, study.settings, metrics_of(study)
        self._tracker = lru_cache(DESIGNS)(self._built)
        self._plant = lru_cache(DESIGNS**2)(self._built_plant)

    def experiment(self, values: Values) -> Experiment:
        """The run with these settings."""
        for name, value in values.items():
            self.settings.checked(name, value)
        design = self.settings.design(values)
        base = self._tracker(design)
        options = self.settings.plant_options(values, base.scenario)
        shape = (options.integrator, options.substeps)
        plant = self._plant(design, *shape, tuple(d.target for d in options.disturbances))
        if options.parameters:
            plant = self._with_parameters(base, plant, options)
        perturbation = self.settings.perturbation(values)
        x0 = base.scenario.perturb(base.model, base.tracker.reference.states[0], perturbation)
        return replace(base, plant=plant, options=options, perturbation=perturbation, x0=x0)

    def run(self, index: int) -> Run:
        """The run of that index; one that fails in any way says why."""
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
                    failure, metrics = "its numbers are not finite", (FAILED,) * len(metrics)
        except Exception as error:  # whatever it is, it is this run's result
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
        values = dict(design)
        option = self.settings.option
        return Experiment.make(
            self.settings.with_design(values),
            option(values, "reference"),
            option(values, "integrator"),
            option(values, "step"),
            integral=option(values, "integral"),
            duration_s=option(values, "duration"),
        )

    def _built_plant(
        self,
        design: tuple[tuple[str, Value], ...],
        integrator: str,
        substeps: int,
        targets: tuple[str, ...],
    ) -> DiscreteSystem:
        """The plant with the model's parameters; of the disturbances only the targets matter."""
        base = self._tracker(design)
        pushed = tuple(d for d in self.settings.disturbances if d.target in targets)
        return base.scenario.plant(
            base.model, PlantOptions(integrator, substeps, disturbances=pushed)
        )

    @staticmethod
    def _with_parameters(
        base: Experiment, plant: DiscreteSystem, options: PlantOptions
    ) -> DiscreteSystem:
        """The plant with its own parameters; built anew where these are no arguments of it."""
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
    """The `nh_control simulate` that is the run of that index.

    Raises ValueError where something is set that `simulate` has no option for.
    """
    values, settings, origin = study.values(index), study.settings, dict(study.scenario)
    words = ["nh_control", "simulate", origin.pop("scenario")]
    for name, text in origin.items():
        words += [f"--{name}", text]
    for name, value in values.items():
        if name in OPTIONS:
            option = [f"--{name.replace('_', '-')}"]
            words += (
                (option if value else []) if isinstance(value, bool) else [*option, str(value)]
            )
        elif name.startswith((f"{MODEL}.", f"{WEIGHT}.")):
            raise ValueError(
                f"run {index} sets {name}, for which simulate has no option; run_indices(study, "
                f"[{index}]) of nh_control.studies runs it alone"
            )
    for d in declarations(settings.perturbation(values)):
        if f"{PERTURB}.{d.name}" in values:
            words += [f"--perturb-{d.name.replace('_', '-')}={d.value!r}"]
    options = settings.plant_options(values, settings.scenario)
    for name, parameter in options.parameters.items():
        numbers = parameter if isinstance(parameter, tuple) else (parameter,)
        words += ["--plant-parameter", f"{name}={','.join(map(repr, numbers))}"]
    for disturbance in options.disturbances:
        words += ["--disturb", str(disturbance)]
    for fault in options.faults:
        words += ["--fault", str(fault)]
    return shlex.join(words)
