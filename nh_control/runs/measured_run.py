"""Sensor measurements in a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nh_control.loop.faults import line_outputs
from nh_control.runs.experiment import Result


@dataclass(frozen=True)
class MeasuredRun:
    """The measured configurations q (n, nq), including sensor faults, at the steps (n) of a run,
    and the run's commands (N, nu).
    """

    steps: np.ndarray
    q: np.ndarray
    commands: np.ndarray


def of_simulation(result: Result) -> MeasuredRun:
    """Return the measurements in a run in one process, without lost measurements."""
    model, loop = result.experiment.model, result.loop
    states = loop.trajectory.states
    measured = np.hstack([model.configuration(states), model.velocity(states)])
    # faults are deterministic, so they can be applied again to the true states
    outputs = line_outputs(result.experiment.faults.measurements, measured[0], list(measured))
    arrived = [(k, output.value) for k, output in enumerate(outputs) if output.value is not None]
    nq = model.system.space.nq
    return MeasuredRun(
        np.array([k for k, _ in arrived], dtype=int),
        np.array([value[:nq] for _, value in arrived]).reshape(-1, nq),
        loop.trajectory.inputs if loop.commands is None else loop.commands,
    )
