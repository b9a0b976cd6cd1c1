"""A plant and a tracker in one process: the closed loop that the ROS nodes run over topics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nh_control.control.closed_loop import ClosedLoopRunner, LoopRecord
from nh_control.control.controller import ControllerFailed, ControllerLike
from nh_control.control.trackers import Tracker, as_tracker
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


@dataclass(frozen=True)
class ClosedLoop:
    """The result of a closed-loop run at the model's step: the `trajectory` (in the model's
    states), the `errors` (N + 1, ndx), whether inputs were `saturated` (N, nu) and, if the plant
    or a controller's file failed, the `failure` that ended the run. `commands` (N, nu) are the
    commands before actuator faults changed them to the trajectory's inputs. With flight
    controllers, `motors` (N, n) are their last motor commands in each step, `forces` (N, nu) are
    the plant's last inputs in each step, and `link` is a line of text about the links.
    """

    trajectory: Trajectory
    errors: np.ndarray
    saturated: np.ndarray
    energy: np.ndarray
    constraint: np.ndarray
    failure: StepFailed | ControllerFailed | None = None
    commands: np.ndarray | None = None
    motors: np.ndarray | None = None
    forces: np.ndarray | None = None
    link: str = ""

    @property
    def acting(self) -> np.ndarray:
        """The plant's inputs (N, nu). Without flight controllers, they are the trajectory's
        inputs.
        """
        return self.trajectory.inputs if self.forces is None else self.forces

    def __repr__(self) -> str:
        return f"ClosedLoop({self.trajectory}, failure={self.failure})"


def closed_loop(
    plant: DiscreteSystem,
    controller: Tracker | ControllerLike,
    x0: np.ndarray,
    steps: int | None = None,
    substeps: int = 1,
    feedback: bool = True,
    disturbance: np.ndarray | None = None,
    watch: Callable[[int], bool] = lambda k: False,
    model: DiscreteSystem | None = None,
) -> ClosedLoop:
    """Run the plant from its state x0 with a tracker (or with the reference's inputs alone) for
    `steps` steps of the tracker's model (default: the length of the reference). An `LqrTracker` or
    `MpcTracker` runs in a native loop. A user's `Controller` is called with states of the `model`
    (default: the plant), whose step consists of `substeps` plant steps. Without `targets`, `steps`
    must be given, and the errors are NaN.

    If the plant has more inputs than the model, the additional inputs are `disturbance` (steps,
    plant.nu - model.nu), by default zero. The run ends early, and returns the steps so far, if a
    step fails or `watch(k)` returns True. `watch` is called before step k, in native loops at
    least ten times per second.
    """
    tracker = as_tracker(controller, model or plant, steps)
    model, reference, n = tracker.dsys, tracker.reference, plant.nu - tracker.dsys.nu
    steps = tracker.steps() if steps is None else steps
    x0 = np.array(x0, dtype=float)
    if x0.shape != (plant.nx,):
        raise ValueError(
            f"{plant}: the initial state must have {plant.nx} numbers "
            f"({', '.join(plant.state_names)}), got shape {x0.shape}; the plant's `state(q, v)` "
            "returns one"
        )
    external = np.zeros((steps, n)) if disturbance is None else np.asarray(disturbance, float)
    if external.shape != (steps, n):
        raise ValueError(f"disturbance must have shape {(steps, n)}, got {external.shape}")
    # the native or the Python loop writes every step into the record
    record, failure = LoopRecord.empty(plant, model, steps), None
    loop = ClosedLoopRunner(plant, tracker, x0, record, external, substeps, feedback)
    try:
        loop.run(watch)
    except (StepFailed, ControllerFailed) as stopped:
        failure = stopped.at_step(loop.k)
    # the record has space for all steps: cut it to those that were taken
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
