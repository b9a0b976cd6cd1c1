"""What scenarios of joints share: initial errors, and references that end at rest."""

from __future__ import annotations

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.scenarios.scenario import Perturbation


def perturbed(
    model: DiscreteSystem, x: np.ndarray, perturbation: Perturbation, sliding: tuple[str, ...] = ()
) -> np.ndarray:
    """State x (nx) with every joint turned by `heading`, those named in `sliding` moved by
    `position`, and every momentum scaled.

    Raises ValueError for an error only quadrotors can have.
    """
    names = model.system.space.tangent_names
    return displaced(
        model,
        x,
        perturbation,
        np.array(
            [perturbation.position if name in sliding else perturbation.heading for name in names]
        ),
    )


def displaced(
    model: DiscreteSystem, x: np.ndarray, perturbation: Perturbation, change: np.ndarray
) -> np.ndarray:
    """State x (nx) with its configuration changed by `change` (nv) and every momentum scaled; with
    a seed, the sign of each is drawn.

    Raises ValueError for an error only quadrotors can have.
    """
    perturbation.refuse_swing_and_tilt(model.system.name)
    nq, nv = model.system.space.nq, model.system.space.nv
    signs = (
        np.ones(model.ndx)
        if perturbation.seed < 0
        else np.random.default_rng(perturbation.seed).choice([-1.0, 1.0], model.ndx)
    )
    momenta = model.local(np.concatenate([x[:nq], np.zeros(model.nx - nq)]), x)[nv:]
    return model.retract(x, signs * np.concatenate([change, perturbation.momentum * momenta]))


def ending_at_rest(trajectory: Trajectory, x: np.ndarray, u: np.ndarray) -> Trajectory:
    """The trajectory with the equilibrium (x, u), which it reaches but for round-off, for its last
    step.
    """
    states = np.vstack([trajectory.states[:-1], x, x])
    return Trajectory(
        trajectory.h,
        states,
        np.vstack([trajectory.inputs, u]),
        trajectory.state_names,
        trajectory.input_names,
        trajectory.name,
    )
