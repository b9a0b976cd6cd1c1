"""Loads the experiment of a run from a folder that `nh_control run` wrote."""

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
    """A run of a plant and a tracker: its experiment without the injected `faults`, and whether
    the run was in lock-step.
    """

    experiment: Experiment
    lockstep: bool
    faults: tuple[str, ...] = ()


def is_run(folder: Path) -> bool:
    """Whether `nh_control run` wrote this folder."""
    return (folder / PARAMETERS).is_file()


def recording(folder: Path) -> Path:
    """Return the recording in the folder of a run, or the folder itself if it has none."""
    inner = folder / RECORDING
    return inner if inner.is_dir() else folder


def load(folder: Path) -> Run:
    """Load the run in a folder from the parameters of its nodes. Raises RecordingError if
    `nh_control run` did not write them, and the same errors as `Experiment.make`.
    """
    file = folder / PARAMETERS
    try:
        parameters = yaml.safe_load(file.read_text())["/**"]["ros__parameters"]
        if missing := [name for name in WRITTEN if name not in parameters]:
            raise KeyError(*missing)
        settings = RunSettings.of(parameters)
    except (KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise RecordingError(
            f"{file} does not belong to a run of `nh_control run`: {error!r}"
        ) from error
    # the recorded measurements already contain the effect of the faults
    experiment = build(replace(settings, fault=[]))
    return Run(experiment, settings.lockstep, tuple(settings.fault))
