"""The experiment of a run in a folder of `nh_control run`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nh_control import scenarios
from nh_control.runs.decoding import RecordingError
from nh_control.runs.experiment import Experiment
from nh_control.runs.output import PARAMETERS, RECORDING
from nh_control.scenarios import MpcOptions, PlantOptions, disturbance
from nh_control.scenarios.sensor import STATE


@dataclass(frozen=True)
class Run:
    """A run of plant and tracker: its experiment, without its injected `faults`, and whether it
    was in lock-step.
    """

    experiment: Experiment
    lockstep: bool
    faults: tuple[str, ...] = ()


def is_run(folder: Path) -> bool:
    """Whether the folder is one that `nh_control run` has made."""
    return (folder / PARAMETERS).is_file()


def recording(folder: Path) -> Path:
    """The recording in the folder of a run, or else the folder itself."""
    inner = folder / RECORDING
    return inner if inner.is_dir() else folder


def load(folder: Path) -> Run:
    """The run in a folder, from the parameters of its nodes; raises RecordingError if
    `nh_control run` did not write them, and as `Experiment.make` does.
    """
    file = folder / PARAMETERS
    try:
        p = yaml.safe_load(file.read_text())["/**"]["ros__parameters"]
        scenario = scenarios.of_origin(p)
        plant = p["plant"]
        options = PlantOptions(
            plant["integrator"],
            plant["substeps"],
            _tuples(plant.get("parameters", {})),
            tuple(disturbance.parse(text) for text in p.get("disturb", ())),
        )
        perturbation = type(scenario.perturbation)(**_tuples(p.get("perturb", {})))
        experiment = Experiment.make(
            scenario,
            p["reference"],
            p["integrator"],
            p["step_s"],
            options,
            perturbation,
            p["integral"],
            p["duration_s"],
            MpcOptions.of(p["mpc"]) if p.get("controller") == "mpc" else None,
            p.get("estimate", STATE),
        )
        return Run(experiment, p["lockstep"], tuple(p.get("fault", ())))
    except (KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise RecordingError(f"{file} is not of a run by `nh_control run`: {error!r}") from error


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """YAML's lists as the tuples of the dataclasses."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
