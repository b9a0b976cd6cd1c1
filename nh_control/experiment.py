"""One closed-loop run of a scenario: what was asked for, built and validated, and what came out of it, in this process or over ROS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nh_control import scenarios
from nh_control.control import LqrTracker
from nh_control.discrete import DiscreteSystem
from nh_control.scenarios import Perturbation, PlantOptions, Scenario
from nh_control.simulation import ClosedLoop, closed_loop, convert

INITIAL_ERROR = Perturbation(position=0.1, heading=0.1, momentum=0.1)


@dataclass(frozen=True)
class Experiment:
    """A scenario's tracker about a reference on a plant that starts at `x0` (a state of the model), for `steps` steps of the model."""

    scenario: Scenario
    model: DiscreteSystem
    plant: DiscreteSystem
    tracker: LqrTracker
    integrator: str
    options: PlantOptions
    perturbation: Perturbation
    x0: np.ndarray
    steps: int

    @staticmethod
    def make(
        scenario: str,
        reference: str = "",
        integrator: str = "",
        step_s: float = 0.0,
        options: PlantOptions = PlantOptions(),
        perturbation: Perturbation = INITIAL_ERROR,
        integral: bool = False,
        duration_s: float = 0.0,
    ) -> Experiment:
        """Build what the names and numbers ask for ("" and 0: the scenario's defaults; 0 s: the reference's length).

        Raises UnknownName listing the valid names, ValueError, and StepFailed if the reference cannot be simulated.
        """
        chosen = scenarios.get(scenario)
        model = chosen.model(integrator, step_s)
        plant = chosen.plant(model, options)
        target = chosen.reference(model, reference)
        if not len(target) or 0 < duration_s <= model.h / 2:
            raise ValueError(f"{model}: the step is longer than the run; choose a smaller step")
        tracker = chosen.tracker(model, target, integral)
        x0 = chosen.perturb(model, target.states[0], perturbation)
        return Experiment(chosen, model, plant, tracker, integrator, options, perturbation, x0, tracker.steps(duration_s))

    @property
    def integral(self) -> bool:
        """Whether the tracker estimates a disturbance."""
        return self.tracker.disturbance_gain > 0

    def run(self, feedback: bool = True, progress: Callable[[int], None] | None = None) -> ClosedLoop:
        """Simulate in this process; `progress(k)` is called before every step."""
        tracker = self.tracker if progress is None else _Watched(self.tracker, progress)
        x0 = convert(self.x0, self.model, self.plant)
        return closed_loop(self.plant, tracker, x0, self.steps, self.options.substeps, feedback)


class _Watched:
    """A tracker that reports at which step it is."""

    def __init__(self, tracker: LqrTracker, progress: Callable[[int], None]):
        self.dsys, self.reference = tracker.dsys, tracker.reference
        self._tracker, self._progress = tracker, progress

    def command(self, k, x, memory=None):
        self._progress(k)
        return self._tracker.command(k, x, memory)


@dataclass(frozen=True)
class Result:
    """What a run produced: the `loop` that was asked for, the `open_loop` from the same start for comparison (or None), wall time `wall_s`,
    `stopped` saying why it ended early ("" if it did not), and `ros` with what only a run over ROS knows (None in this process)."""

    experiment: Experiment
    loop: ClosedLoop
    open_loop: ClosedLoop | None
    wall_s: float
    feedback: bool = True
    stopped: str = ""
    ros: dict | None = None

    @property
    def targets(self) -> np.ndarray:
        """Reference states (N + 1, nx) at the nodes of the run, the last one held past the reference's end."""
        return np.array([self.experiment.tracker.target(k) for k in range(len(self.loop.trajectory.states))])

    @property
    def feedforward(self) -> np.ndarray:
        """Reference inputs (N, nu), zero past the reference's end."""
        inputs, steps = self.experiment.tracker.reference.inputs, len(self.loop.trajectory)
        return np.vstack([inputs[:steps], np.zeros((max(0, steps - len(inputs)), inputs.shape[1]))])

    def configuration_error(self, loop: ClosedLoop | None = None) -> np.ndarray:
        """Norm (N + 1) of the configuration's part of the tracking error; lengths in m, angles in rad."""
        nv = self.experiment.model.system.space.nv
        return np.linalg.norm((loop or self.loop).errors[:, :nv], axis=1)

    def save(self, path) -> None:
        """Write the arrays as .npz: times, states, inputs, errors, saturated, energy, constraint, reference and open loop, with their names."""
        model, loop = self.experiment.model, self.loop
        opened = {} if self.open_loop is None else {"open_loop_states": self.open_loop.trajectory.states, "open_loop_errors": self.open_loop.errors}
        np.savez_compressed(
            path,
            times=loop.trajectory.times,
            states=loop.trajectory.states,
            inputs=loop.trajectory.inputs,
            errors=loop.errors,
            saturated=loop.saturated,
            energy=loop.energy,
            constraint=loop.constraint,
            reference_states=self.targets,
            reference_inputs=self.feedforward,
            state_names=np.array(model.state_names),
            error_names=np.array(model.state_space.tangent_names),
            input_names=np.array(model.inputs),
            **opened,
        )
