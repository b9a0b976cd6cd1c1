"""Functions shared by scenarios with joints: initial errors, and references that end at rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.scenarios.perturbation import (
    SeededPerturbation,
    error_seed,
    initial_error,
    momentum_error,
    perturb_state,
)


@dataclass(frozen=True)
class TurningPerturbation(SeededPerturbation):
    """The initial error of revolute joints."""

    angle: float = initial_error("rad", "rotation of every joint")
    momentum: float = momentum_error()
    seed: int = error_seed()


@dataclass(frozen=True)
class JointPerturbation(SeededPerturbation):
    """The initial error of prismatic and revolute joints."""

    position: float = initial_error("m", "displacement of every prismatic joint")
    angle: float = initial_error("rad", "rotation of every revolute joint")
    momentum: float = momentum_error()
    seed: int = error_seed()


def perturbed(
    model: DiscreteSystem,
    x: np.ndarray,
    perturbation: JointPerturbation | TurningPerturbation,
    sliding: tuple[str, ...] = (),
) -> np.ndarray:
    """The state x (nx) with each joint rotated by the perturbation's `angle`, or displaced by its
    `position` if the joint is in `sliding`, and with all momenta scaled.
    """
    position = getattr(perturbation, "position", 0.0)
    names = model.system.space.tangent_names
    change = np.array([position if name in sliding else perturbation.angle for name in names])
    return perturb_state(model, x, change, perturbation.momentum, perturbation.signs(model.ndx))


def ending_at_rest(trajectory: Trajectory, x: np.ndarray, u: np.ndarray) -> Trajectory:
    """Append a step at the equilibrium (x, u), which the trajectory reaches up to round-off."""
    states = np.vstack([trajectory.states[:-1], x, x])
    return Trajectory(
        trajectory.h,
        states,
        np.vstack([trajectory.inputs, u]),
        trajectory.state_names,
        trajectory.input_names,
        trajectory.name,
        trajectory.dsys,
    )
