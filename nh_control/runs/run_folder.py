"""The experiment of a run in a folder of `nh_control run`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from nh_control.runs.build import build
from nh_control.runs.decoding import RecordingError
from nh_control.runs.experiment import Experiment
from nh_control.runs.output import PARAMETERS, RECORDING
from nh_control.runs.settings import RunSettings

WRITTEN = ("scenario", "reference", "step_s", "lockstep", "duration_s")
"""Parameters that `nh_control run` writes for every run."""


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
        if missing := [name for name in WRITTEN if name not in p]:
            raise KeyError(*missing)
        settings = RunSettings.of(p)
    except (KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise RecordingError(f"{file} is not of a run by `nh_control run`: {error!r}") from error
    experiment = build(replace(settings, fault=[]))
    return Run(experiment, settings.lockstep, tuple(settings.fault))
