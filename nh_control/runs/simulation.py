"""A plant and a tracker in one process: the closed loop that the ROS nodes run over topics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nh_control.control import Controller
from nh_control.control.closed_loop import ClosedLoopRunner, LoopRecord
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


@dataclass(frozen=True)
class ClosedLoop:
    """Result of a closed-loop run at the model's step: the trajectory (in the model's states),
    errors (N + 1, ndx), saturated (N, nu) and, if the plant failed, the failure that ended the
    run. `commands` (N, nu) are the commands before faults of actuators changed them to the
    trajectory's inputs.
    """

    trajectory: Trajectory
    errors: np.ndarray
    saturated: np.ndarray
    energy: np.ndarray
    constraint: np.ndarray
    failure: StepFailed | None = None
    commands: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"ClosedLoop({self.trajectory}, failure={self.failure})"


def closed_loop(
    plant: DiscreteSystem,
    tracker: Controller,
    x0: np.ndarray,
    steps: int,
    substeps: int = 1,
    feedback: bool = True,
    disturbance: np.ndarray | None = None,
    watch: Callable[[int], bool] = lambda k: False,
) -> ClosedLoop:
    """Run the plant from its state x0 under the tracker (or under the reference's inputs alone)
    for `steps` steps of the tracker's model; under an `LqrTracker` or `MpcTracker` as a native
    loop.

    A plant with more inputs than the model gets them from `disturbance` (steps, plant.nu -
    model.nu), by default zero. The run ends early, with the steps so far, if a step fails or
    `watch(k)` returns True. `watch` is called before step k, in native loops at least every tenth
    of a second.
    """
    model, reference, n = tracker.dsys, tracker.reference, plant.nu - tracker.dsys.nu
    external = np.zeros((steps, n)) if disturbance is None else np.asarray(disturbance, float)
    if external.shape != (steps, n):
        raise ValueError(f"disturbance must have shape {(steps, n)}, got {external.shape}")
    record, failure = LoopRecord.empty(plant, model, steps), None
    loop = ClosedLoopRunner(plant, tracker, x0, record, external, substeps, feedback)
    try:
        loop.run(watch)
    except StepFailed as stopped:
        failure = stopped.at_step(loop.k)
    done = loop.k
    nodes, before = record.plant_states[: done + 1], record.before[:done]
    return ClosedLoop(
        Trajectory(
            model.h,
            record.states[: done + 1],
            record.inputs[:done],
            model.state_names,
            model.inputs,
            reference.name,
            model,
        ),
        record.errors[: done + 1],
        record.saturated[:done],
        plant.energies(nodes),
        plant.constraint_residuals(before, nodes[1:]),
        failure,
    )
