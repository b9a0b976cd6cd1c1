"""Models of quadrotors with a payload that the tests share, built once a process."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from nh_control.integrators import midpoint
from nh_control.scenarios.quadrotor_payload import weights
from nh_control.systems import QuadrotorPayloadParameters, quadrotor_payload

LENGTHS = {1: (0.7,), 2: (0.6, 0.8), 3: (0.6, 0.8, 0.7)}


def parameters(n: int) -> QuadrotorPayloadParameters:
    """Parameters of n quadrotors with different links."""
    return QuadrotorPayloadParameters(lengths=LENGTHS[n])


@cache
def model(n: int, h: float = 0.01, wind: bool = False):
    """The variational integrator of n quadrotors with step h."""
    return midpoint(quadrotor_payload(parameters(n), wind), h)


@cache
def weak_model(thrust_limit: float = 12.0):
    """Two quadrotors whose thrusts of 9.4 N in hover have little to spare."""
    return midpoint(quadrotor_payload(replace(parameters(2), thrust_limit=thrust_limit)), 0.01)


def lqr_weights(n: int):
    """Q and R of the scenario for n quadrotors."""
    return weights(n)[:2]


def random_motion(n: int, rng, speed: float = 1.0):
    """A configuration with any attitudes and links, and a velocity of the given size."""
    unit = rng.normal(size=(n, 3))
    links = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    turns = rng.normal(size=(n, 4))
    attitudes = turns / np.linalg.norm(turns, axis=1, keepdims=True)
    rates = rng.normal(size=(n, 3))
    rates -= links * np.sum(links * rates, axis=1, keepdims=True)
    q = np.concatenate([rng.normal(size=3), attitudes.ravel(), links.ravel()])
    return q, speed * np.concatenate([rng.normal(size=3 + 3 * n), rates.ravel()])
