"""Checks of guesses for trajectory optimization, and the projection of guesses onto the state
manifold.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


def require_fitting(dsys: DiscreteSystem, guess: Trajectory) -> None:
    """Raise ValueError unless the guess has the states, the inputs and the step size of the
    system.
    """
    if guess.states.shape[1] != dsys.nx or guess.inputs.shape[1] != dsys.nu:
        raise ValueError(
            f"{dsys}: the guess has {guess.states.shape[1]} states and {guess.inputs.shape[1]} "
            f"inputs, expected {dsys.nx} and {dsys.nu}"
        )
    if not abs(guess.h - dsys.h) <= 1e-8 + 1e-12 * dsys.h:
        raise ValueError(
            f"{dsys}: the guess has h = {guess.h:g} s, expected {dsys.h:g}; use "
            f"`resample(guess, {dsys.h:g})`"
        )


def on_manifold(dsys: DiscreteSystem, guess: Trajectory) -> Trajectory:
    """The guess with all states except the first projected onto the manifold."""
    # retract(x, 0) is the projection, such as the normalization of quaternions
    states = dsys.state_space.retract(guess.states[1:], np.zeros(dsys.ndx))
    projected = np.vstack([guess.states[:1], states])
    require_projected(dsys, guess, projected)
    return replace(guess, states=projected)


def require_projected(dsys: DiscreteSystem, guess: Trajectory, states: np.ndarray) -> None:
    """Raise ValueError if a state of a guess is so far from the manifold that its projection is
    not finite. `states` (N + 1, nx) are the projected states.
    """
    if not np.isfinite(states).all():
        k = int(np.flatnonzero(~np.isfinite(states).all(axis=1))[0])
        raise ValueError(
            f"{dsys}: node {k} of the guess is too far from the manifold of states: "
            f"{guess.states[k].tolist()}; use a closer one"
        )
