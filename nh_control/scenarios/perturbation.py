"""Perturbations for all scenarios. A perturbation is the initial error of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics.consistent_states import satisfy_constraints
from nh_control.mechanics.parameters import Parameters, parameter
from nh_control.mechanics.system import System


def initial_error(unit: str, description: str) -> Any:
    """A field of a perturbation: an initial error with any sign, 0 by default."""
    return parameter(0.0, unit, description, above=-math.inf)


def momentum_error() -> Any:
    """The field `momentum` of a perturbation."""
    return initial_error("", "change of every momentum as a fraction of its value")


def error_seed() -> Any:
    """The field `seed` of a perturbation."""
    return parameter(-1, "", "-1 = these errors, >= 0 = random directions and signs", at_least=-1)


class SeededPerturbation(Parameters):
    """Base class of perturbations with a `seed`."""

    seed: int

    def draw_direction_and_signs(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The horizontal direction (2) of a position error, and n signs. They are drawn from the
        seed. If the seed is negative, the direction is to the left and the signs are positive.
        """
        if self.seed < 0:
            return np.array([0.0, 1.0]), np.ones(n)
        draw = np.random.default_rng(self.seed)
        angle = draw.uniform(0, 2 * np.pi)
        return np.array([np.cos(angle), np.sin(angle)]), draw.choice([-1.0, 1.0], n)

    def signs(self, n: int) -> np.ndarray:
        """n signs. They are drawn from the seed, or positive if the seed is negative."""
        return (
            np.ones(n)
            if self.seed < 0
            else np.random.default_rng(self.seed).choice([-1.0, 1.0], n)
        )


@dataclass(frozen=True)
class Displacement(SeededPerturbation):
    """The initial error of scenarios that do not declare one."""

    displacement: float = initial_error(
        "m, rad", "change of every local coordinate of the configuration"
    )
    momentum: float = momentum_error()
    seed: int = error_seed()


@dataclass(frozen=True)
class PlanarPerturbation(SeededPerturbation):
    """The initial error of a planar body."""

    position: float = initial_error("m", "distance from the reference's position, to the left")
    heading: float = initial_error("rad", "turn to the left")
    momentum: float = momentum_error()
    seed: int = error_seed()


def default_perturbation(perturbation: Any, system: System) -> Any:
    """The initial error of runs that do not specify one: the scenario's `perturbation`, or no
    error if the system has no inputs that could correct it.
    """
    return perturbation if system.inputs or system.prescribed else type(perturbation)()


def displaced(model: DiscreteSystem, x: np.ndarray, perturbation: Displacement) -> np.ndarray:
    """The state x (nx) with each local coordinate of the configuration changed by `displacement`
    and all momenta scaled.
    """
    change = np.full(model.system.space.nv, perturbation.displacement)
    return perturb_state(model, x, change, perturbation.momentum, perturbation.signs(model.ndx))


def perturb_state(
    model: DiscreteSystem, x: np.ndarray, change: np.ndarray, momentum: float, signs: np.ndarray
) -> np.ndarray:
    """The state x (nx) with the configuration changed by `change` (nv) and each momentum changed
    by the fraction `momentum` of its value. Both changes are multiplied by `signs` (ndx).

    Prescribed and first-order coordinates do not change. A least-norm correction restores the
    holonomic constraints. Raises NotConsistent if the correction fails.
    """
    system = model.system
    nq, nv, n = system.space.nq, system.space.nv, system.nrho
    dx = np.zeros(model.ndx)
    moving = nv - len(system.first_order) - len(system.prescribed)
    dx[:moving] = change[:moving]
    # Momenta are the local coordinates of x relative to the state with zero momenta.
    momenta = model.local(np.concatenate([x[:nq], np.zeros(model.nx - nq)]), x)[nv:]
    dx[nv : nv + n] = momentum * momenta[:n]
    out = model.retract(x, signs * dx)
    if system.n_holonomic_constraints and change.any():
        out[:nq] = satisfy_constraints(system, out[:nq])
    return out
