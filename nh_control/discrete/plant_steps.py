"""Functions for a plant and its model, which are two discrete systems. They convert states, add
external forces, and take several plant steps for one model step.
"""

from __future__ import annotations

import numpy as np

from nh_control.discrete.results import SolvedStep
from nh_control.discrete.system import DiscreteSystem


def advance(
    plant: DiscreteSystem, x: np.ndarray, u: np.ndarray, substeps: int
) -> tuple[np.ndarray, np.ndarray]:
    """The states before and after the `last_step`."""
    before, solved = last_step(plant, x, u, substeps)
    return before, solved.x1


def last_step(
    plant: DiscreteSystem, x: np.ndarray, u: np.ndarray, substeps: int
) -> tuple[np.ndarray, SolvedStep]:
    """Take `substeps` steps of the plant, and return the state before the last step, and the last
    step itself. Forces are constant; prescribed coordinates move uniformly to their values in u.
    Raises StepFailed.
    """
    before, forces = x, plant.system.nu
    if substeps > 1:
        start = plant.idle(x)[forces:]
        # s_i = s_0 + i/n (s_n - s_0) for prescribed coordinates s
        for part in np.arange(1, substeps) / substeps:
            before = plant.step(
                before, np.concatenate([u[:forces], start + part * (u[forces:] - start)])
            )
    return before, plant.solve(before, u)


def with_external(plant: DiscreteSystem, u: np.ndarray, external: np.ndarray) -> np.ndarray:
    """The inputs (nu) of a plant: the model's forces from u, then the external forces, then the
    prescribed coordinates from u.
    """
    n_model = plant.system.nu - len(external)
    return np.concatenate([u[:n_model], external, u[n_model:]])


def without_external(plant: DiscreteSystem, values: np.ndarray, n: int) -> np.ndarray:
    """The rows of a plant's `values` (nu, ...) that belong to the model's inputs, without the n
    external forces.
    """
    n_model = plant.system.nu - n
    return np.concatenate([values[:n_model], values[n_model + n :]]) if n else values


def same_steps(first: DiscreteSystem, second: DiscreteSystem) -> bool:
    """Whether both take the same steps, so that equal numbers mean equal states."""
    same_method = first.method.name == second.method.name and first.h == second.h
    return first.system is second.system and same_method


def convert(x: np.ndarray, source: DiscreteSystem, target: DiscreteSystem) -> np.ndarray:
    """The state of `target` with the configuration and velocity of the state x of `source`; x
    itself if both take the same steps.
    """
    if same_steps(source, target):
        return x
    return target.measured_state(source.configuration(x), source.velocity(x))
