"""Measurements of the sensors of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nh_control.loop.faults import line_outputs
from nh_control.runs.experiment import Result


@dataclass(frozen=True)
class MeasuredRun:
    """The measured configurations q (n, nq), with faults of sensors, at the steps (n) of a run,
    and its commands (N, nu).
    """

    steps: np.ndarray
    q: np.ndarray
    commands: np.ndarray


def of_simulation(result: Result) -> MeasuredRun:
    """The measurements of a run in one process, without lost ones: faults repeat exactly."""
    model, loop = result.experiment.model, result.loop
    states = loop.trajectory.states
    seen = np.hstack([model.configuration(states), model.velocity(states)])
    outputs = line_outputs(result.experiment.faults.measurements, seen[0], list(seen))
    there = [(k, output.value) for k, output in enumerate(outputs) if output.value is not None]
    nq = model.system.space.nq
    return MeasuredRun(
        np.array([k for k, _ in there], dtype=int),
        np.array([value[:nq] for _, value in there]).reshape(-1, nq),
        loop.trajectory.inputs if loop.commands is None else loop.commands,
    )
