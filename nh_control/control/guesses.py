"""Guesses of trajectories that are optimized, checked and put on the manifold of states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


def require_fitting(dsys: DiscreteSystem, guess: Trajectory) -> None:
    """Raises ValueError for a guess with other states, inputs or steps than the system's."""
    if guess.states.shape[1] != dsys.nx or guess.inputs.shape[1] != dsys.nu:
        raise ValueError(
            f"{dsys}: the guess has {guess.states.shape[1]} states and {guess.inputs.shape[1]} "
            f"inputs, expected {dsys.nx} and {dsys.nu}"
        )
    if not np.isclose(guess.h, dsys.h, rtol=1e-12):
        raise ValueError(
            f"{dsys}: the guess has h = {guess.h:g} s, expected {dsys.h:g}; bring it there by "
            f"`resample(guess, {dsys.h:g})`"
        )


def on_manifold(dsys: DiscreteSystem, guess: Trajectory) -> Trajectory:
    """The guess with all states but the first projected on their manifold."""
    states = dsys.state_space.retract(guess.states[1:], np.zeros(dsys.ndx))
    if not np.isfinite(states).all():
        k = 1 + int(np.flatnonzero(~np.isfinite(states).all(axis=1))[0])
        raise ValueError(
            f"{dsys}: node {k} of the guess is near no state: {guess.states[k].tolist()}; give "
            f"one that is closer to the manifold"
        )
    return replace(guess, states=np.vstack([guess.states[:1], states]))
