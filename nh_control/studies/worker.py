"""A study's worker. It builds models once per process, performs runs, and computes their
metrics.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from nh_control.control.controller import ControllerLike
from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.faults import FaultLines
from nh_control.runs.build import build, perturbation
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.experiment_checks import require_estimate
from nh_control.runs.external_run import Interrupted, NoController, external_run
from nh_control.runs.option_values import plant_options
from nh_control.runs.settings import EXTERNAL, OPTIONS, SETTINGS, option_words
from nh_control.scenarios import PlantOptions
from nh_control.studies import quantities
from nh_control.studies.metrics import ERROR as ERROR
from nh_control.studies.metrics import METRICS as METRICS
from nh_control.studies.metrics import metrics_of as metrics_of
from nh_control.studies.settings import Values
from nh_control.studies.study import Study
from nh_control.studies.variation import Value

FAILED = float("nan")
"""The value of every metric for a failed run."""
DESIGNS = 16
"""Maximum number of trackers in the cache. The plant cache contains up to DESIGNS**2 plants."""


@dataclass(frozen=True)
class StudyRun:
    """The result of run `index`: the varied `values`, the `seed`, the metrics (NaN if the run
    failed), whether it succeeded, the number of steps, the wall time and the reason for a failure
    ("" if there is none). For a run without failure, `missed` contains the requirements that it
    did not meet, with their numbers.
    """

    index: int
    values: tuple[Value, ...]
    seed: int | None
    metrics: tuple[float, ...]
    success: bool
    steps: int
    wall_s: float
    failure: str = ""
    missed: str = ""


def run_indices(study: Study, indices: Sequence[int]) -> list[StudyRun]:
    """Perform the runs with the given indices in order. Every worker calls this function, in any
    process and on any machine.

    A failed run contains the reason for its failure. Only errors that prevent all runs are raised.
    """
    with _one_at_a_time:  # compiled functions share buffers; a Dask worker may have threads
        worker = _worker(study)
        return [worker.run(index) for index in indices]


_one_at_a_time = threading.Lock()


class Worker:
    """Performs the runs of a study and caches the most recent trackers and plants, so that a run
    with different parameters, errors, disturbances and seeds builds and compiles nothing. A Python
    `controller` replaces the setting.
    """

    def __init__(self, study: Study, controller: ControllerLike | None = None):
        self.study, self.settings, self._metrics = study, study.settings, metrics_of(study)
        self._controller = controller
        self._tracker = lru_cache(DESIGNS)(self._built)
        self._plant = lru_cache(DESIGNS**2)(self._built_plant)

    def experiment(self, values: Values) -> Experiment:
        """Return the experiment with the given settings."""
        for name, value in values.items():
            self.settings.checked(name, value)
        settings, design = self.settings.run(values), self.settings.design(values)
        # The tracker depends only on the design. The plant also depends on its integrator and on
        # the disturbances' targets.
        base, options = self._tracker(design), plant_options(settings)
        require_estimate(base.scenario, base.estimate, FaultLines.of(options.faults, base.model))
        targets = tuple(d.target for d in options.disturbances)
        plant = self._plant(design, options.integrator, options.substeps, targets)
        if options.parameters:
            plant = self._with_parameters(base, plant, options)
        error = perturbation(settings, base.scenario, base.model.system)
        # The initial error is applied to the first state of the reference.
        x0 = base.scenario.perturb(base.model, base.tracker.reference.states[0], error)
        scenario = base.scenario
        if settings.autopilot:
            source = {**scenario.source, "autopilot": settings.autopilot}
            scenario = replace(scenario, source=source)
        changes = {"plant": plant, "options": options, "perturbation": error, "x0": x0}
        return replace(base, scenario=scenario, **changes)

    def run(self, index: int) -> StudyRun:
        """Perform the run with the given index. A failed run contains the reason for its failure.
        Raises NoController if no external controller answers, and Interrupted.
        """
        start = time.perf_counter()
        values, steps, failure, missed = self.study.values(index), 0, "", ""
        metrics = (FAILED,) * len(self._metrics)
        try:
            experiment = self.experiment(values)
            feedback = not self.settings.option(values, "open_loop")
            if feedback and experiment.controller == EXTERNAL:
                loop = external_run(experiment)
            else:
                loop = experiment.run(feedback)
            steps = len(loop.trajectory)
            if loop.failure is not None:
                failure = str(loop.failure)
            else:
                result = Result(experiment, loop, None, 0.0)
                metrics = tuple(metric.of(result) for metric in self._metrics.values())
                # One NaN would spoil the means of a whole study.
                if not np.isfinite(metrics).all():
                    failure, metrics = "its metrics are not finite", (FAILED,) * len(metrics)
                missed = self._missed(result)
        except (NoController, Interrupted):
            raise
        except Exception as error:  # any error affects only this run
            failure = f"{type(error).__name__}: {error}"
        return StudyRun(
            index,
            self.study.point(index),
            self.study.run_seed(index),
            metrics,
            not failure and self._succeeded(metrics, missed),
            steps,
            time.perf_counter() - start,
            failure,
            missed,
        )

    def _missed(self, result: Result) -> str:
        """Return the requirements that a run does not meet, with the run's numbers, or "" if it
        meets all of them.
        """
        if not self.study.run_requirements:
            return ""
        values = quantities.values(result, self._metrics)
        missed = []
        for requirement in self.study.run_requirements:
            outcome = requirement.outcome(values)
            if not outcome.met:
                missed.append(f"{requirement.text}: {outcome.reason}")
        return "; ".join(missed)

    def _succeeded(self, metrics: tuple[float, ...], missed: str) -> bool:
        """Return whether a run without failure is a success."""
        if self.study.run_requirements:
            return not missed
        return bool(metrics[list(self._metrics).index(ERROR)] <= self.study.success)

    def _built(self, design: tuple[tuple[str, Value], ...]) -> Experiment:
        settings = replace(self.settings.run(dict(design)), disturb=[], fault=[])
        return build(settings, self.settings.scenario, self._controller)

    def _built_plant(
        self,
        design: tuple[tuple[str, Value], ...],
        integrator: str,
        substeps: int,
        targets: tuple[str, ...],
    ) -> DiscreteSystem:
        """Build the plant with the model's parameters. Only the targets of the disturbances
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
        """Return the plant with the parameters in the options. If its compiled functions do not
        take these parameters as arguments, the plant is built again.
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
    """Return the command that repeats the run with the given index: `nh_control simulate`, or
    `nh_control run` for an external controller.
    """
    values, origin = study.values(index), dict(study.scenario)
    settings = study.settings.run(values)
    if settings.autopilot:
        origin["autopilot"] = settings.autopilot
    is_external = settings.controller == EXTERNAL
    words = ["nh_control", "run" if is_external else "simulate", str(origin.pop("scenario"))]
    words += ["--lockstep", "--speed-factor", "0"] * is_external
    for name, value in origin.items():
        words += option_words(SETTINGS[name], value)
    for name, entry in OPTIONS.items():
        if name in values:
            words += option_words(entry, settings[entry.name])
    for name, value in settings.perturb.items():
        words += [f"--perturb-{name.replace('_', '-')}={value!r}"]
    for name in ("model_parameters", "weight_factors", "plant.parameters", "disturb", "fault"):
        words += option_words(SETTINGS[name], settings[name])
    return shlex.join(words)
