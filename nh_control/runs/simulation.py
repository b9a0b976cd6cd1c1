"""A plant and a tracker in one process: the closed loop that the ROS nodes run over topics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nh_control.control import Controller
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


@dataclass(frozen=True)
class ClosedLoop:
    """What a closed-loop run produced at the model's step: the trajectory (in the model's states),
    errors (N + 1, ndx), saturated (N, nu) and, if the plant failed, the failure after which the
    run ends."""

    trajectory: Trajectory
    errors: np.ndarray
    saturated: np.ndarray
    energy: np.ndarray
    constraint: np.ndarray
    failure: StepFailed | None = None

    def __repr__(self) -> str:
        return f"ClosedLoop({self.trajectory}, failure={self.failure})"


def advance(
    plant: DiscreteSystem, x: np.ndarray, u: np.ndarray, substeps: int
) -> tuple[np.ndarray, np.ndarray]:
    """States before and after the last of `substeps` steps of the plant, in which forces are held
    and prescribed coordinates move evenly to their values in u; raises StepFailed."""
    before, forces = x, plant.system.nu
    if substeps > 1:
        start = plant.idle(x)[forces:]
        for part in np.arange(1, substeps) / substeps:
            before = plant.step(
                before, np.concatenate([u[:forces], start + part * (u[forces:] - start)])
            )
    return before, plant.step(before, u)


def with_external(plant: DiscreteSystem, u: np.ndarray, external: np.ndarray) -> np.ndarray:
    """Inputs of a plant (nu) from those of its model, u, and external forces: these follow the
    model's forces, the values of prescribed coordinates come last.
    """
    own = plant.system.nu - len(external)
    return np.concatenate([u[:own], external, u[own:]])


def without_external(plant: DiscreteSystem, values: np.ndarray, n: int) -> np.ndarray:
    """What belongs to the model's inputs of a plant's `values` (nu, ...), which has n external
    forces.
    """
    own = plant.system.nu - n
    return np.concatenate([values[:own], values[own + n :]])


def convert(x: np.ndarray, source: DiscreteSystem, target: DiscreteSystem) -> np.ndarray:
    """The state of `target` with the same configuration and velocity as state x of `source`; the
    same numbers where both make the same steps.
    """
    same = source.system is target.system and (source.method.name, source.h) == (
        target.method.name,
        target.h,
    )
    return x if same else target.measured_state(source.configuration(x), source.velocity(x))


def closed_loop(
    plant: DiscreteSystem,
    tracker: Controller,
    x0: np.ndarray,
    steps: int,
    substeps: int = 1,
    feedback: bool = True,
    disturbance: np.ndarray | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> ClosedLoop:
    """Run the plant from its state x0 under the tracker (or under the reference's inputs alone)
    for `steps` steps of the tracker's model.

    A plant with more inputs than the model gets them from `disturbance` (steps, plant.nu -
    model.nu), zero if it is not given. It ends early, with what there is, where a step fails and
    as soon as `stop()`, which is asked before every step.
    """
    model, reference = tracker.dsys, tracker.reference
    disturbance = (
        np.zeros((steps, plant.nu - model.nu))
        if disturbance is None
        else np.asarray(disturbance, dtype=float)
    )
    if disturbance.shape != (steps, plant.nu - model.nu):
        raise ValueError(
            f"disturbance must have shape {(steps, plant.nu - model.nu)}, got {disturbance.shape}"
        )
    states, inputs = np.empty((steps + 1, model.nx)), np.empty((steps, model.nu))
    errors, saturated = np.empty((steps + 1, model.ndx)), np.zeros((steps, model.nu), dtype=bool)
    energy, constraint = np.empty(steps + 1), np.zeros((steps, plant.system.m))
    x, memory, failure, done = np.asarray(x0, dtype=float), None, None, steps
    for k in range(steps + 1):
        states[k], energy[k] = convert(x, plant, model), plant.energy(x)
        command = tracker.command(k, states[k], memory)
        errors[k], memory = command.error, command.memory
        if k == steps or stop():
            done = k
            break
        if feedback:
            inputs[k], saturated[k] = command.u, command.saturated
        else:
            inputs[k] = reference.inputs[k] if k < len(reference) else model.idle(states[k])
        try:
            u = with_external(plant, inputs[k], disturbance[k])
            previous, x = advance(plant, x, u, substeps)
        except StepFailed as stopped:
            failure, done = stopped.at(k), k
            break
        constraint[k] = plant.constraint_residual(previous, x)
    trajectory = Trajectory(
        model.h, states[: done + 1], inputs[:done], model.state_names, model.inputs, reference.name
    )
    return ClosedLoop(
        trajectory,
        errors[: done + 1],
        saturated[:done],
        energy[: done + 1],
        constraint[:done],
        failure,
    )
