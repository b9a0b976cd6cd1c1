"""A discrete system as the plant of another one, the model: conversion of states, external forces,
and several steps of the plant for one of the model.
"""

from __future__ import annotations

import numpy as np

from nh_control.discrete.results import SolvedStep
from nh_control.discrete.system import DiscreteSystem


def advance(
    plant: DiscreteSystem, x: np.ndarray, u: np.ndarray, substeps: int
) -> tuple[np.ndarray, np.ndarray]:
    """States before and after the `last_step`."""
    before, solved = last_step(plant, x, u, substeps)
    return before, solved.x1


def last_step(
    plant: DiscreteSystem, x: np.ndarray, u: np.ndarray, substeps: int
) -> tuple[np.ndarray, SolvedStep]:
    """The state before the last of `substeps` steps of the plant, and this step; forces are held
    and prescribed coordinates move evenly to their values in u. Raises StepFailed.
    """
    before, forces = x, plant.system.nu
    if substeps > 1:
        start = plant.idle(x)[forces:]
        for part in np.arange(1, substeps) / substeps:
            before = plant.step(
                before, np.concatenate([u[:forces], start + part * (u[forces:] - start)])
            )
    return before, plant.solve(before, u)


def with_external(plant: DiscreteSystem, u: np.ndarray, external: np.ndarray) -> np.ndarray:
    """Inputs of a plant (nu) from those of its model, u, and external forces: these follow the
    model's forces, the values of prescribed coordinates come last.
    """
    own = plant.system.nu - len(external)
    return np.concatenate([u[:own], external, u[own:]])


def without_external(plant: DiscreteSystem, values: np.ndarray, n: int) -> np.ndarray:
    """The part of a plant's `values` (nu, ...) that belongs to the inputs of its model; the plant
    has n external forces.
    """
    own = plant.system.nu - n
    return np.concatenate([values[:own], values[own + n :]])


def same_steps(one: DiscreteSystem, other: DiscreteSystem) -> bool:
    """Whether both make the same steps, so that the same numbers are the same state."""
    return one.system is other.system and (one.method.name, one.h) == (other.method.name, other.h)


def convert(x: np.ndarray, source: DiscreteSystem, target: DiscreteSystem) -> np.ndarray:
    """The state of `target` with the same configuration and velocity as state x of `source`; the
    same numbers where both make the same steps.
    """
    if same_steps(source, target):
        return x
    return target.measured_state(source.configuration(x), source.velocity(x))
