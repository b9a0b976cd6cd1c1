"""Repeats a recorded run: its commands are applied to the plant, and the resulting states are
compared with the recorded ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nh_control.discrete.plant_steps import advance, convert, with_external, without_external
from nh_control.discrete.results import StepFailed
from nh_control.loop.wire_format import MessageStates
from nh_control.runs.experiment import Experiment
from nh_control.runs.recording import Recording


@dataclass(frozen=True)
class Replay:
    """Absolute differences in the configurations (n, nq) and velocities (n, nw) at the recorded
    `steps` (n), and the reason why the replay stopped early, or "".
    """

    steps: np.ndarray
    configurations: np.ndarray
    velocities: np.ndarray
    stopped: str = ""

    @property
    def largest(self) -> float:
        """The largest difference."""
        return float(max(self.configurations.max(initial=0), self.velocities.max(initial=0)))

    @property
    def first(self) -> int | None:
        """The first step with a difference; None without differences."""
        # any difference counts, even a single bit
        differs = (self.configurations > 0).any(axis=1) | (self.velocities > 0).any(axis=1)
        return int(self.steps[differs.argmax()]) if differs.any() else None


def replay(experiment: Experiment, recording: Recording) -> Replay:
    """Apply the recorded commands to the plant, each in the step that its stamp identifies, and
    compare the plant's states with the recorded ones. After a run in lock-step, the differences
    are 0.
    """
    q, v, stopped = _states(experiment, recording.inputs)
    steps = np.array([k for k in recording.known if k < len(q)])
    return Replay(
        steps,
        np.abs(q[steps] - recording.q[steps]),
        np.abs(v[steps] - recording.v[steps]),
        stopped,
    )


def _states(experiment: Experiment, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the plant's configurations (N + 1, nq) and velocities (N + 1, nw) as messages carry
    them, up to the first step that fails.
    """
    model, plant, forces = experiment.model, experiment.plant, experiment.external
    states = MessageStates(experiment.scenario, model, plant, experiment.plant_parameters)
    lower, upper = without_external(plant, plant.system.input_bounds, forces.n).T
    x, carried, stopped = convert(experiment.x0, model, plant), [], ""
    for k in range(len(inputs) + 1):
        carried.append(states.carried(x))
        if k == len(inputs):
            break
        # the plant had clipped the commands before the external forces were added
        u = with_external(plant, np.clip(inputs[k], lower, upper), forces(k))
        try:
            _, x = advance(plant, x, u, experiment.options.substeps)
        except StepFailed as failure:
            stopped = str(failure.at_step(k))
            break
    q, v = (np.array(column) for column in zip(*carried))
    return q, v, stopped
