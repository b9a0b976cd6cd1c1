"""Trajectories and costs the tests of optimal control share."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np

from nh_control.control.costs import Cost
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.spaces import Rn
from nh_control.mechanics.system import System
from nh_control.scenarios import Scenario, get
from nh_control.systems.spherical_pendulum import spherical_pendulum


def pushed_ball() -> System:
    """The spherical pendulum with horizontal forces at its end."""
    return replace(
        spherical_pendulum(),
        inputs=("force_x", "force_y"),
        input_limits=None,
        force=lambda q, v, u, p: ca.vertcat(u, 0),
    )


def wandering(dsys: DiscreteSystem, steps: int, rng, size: float = 0.3) -> Trajectory:
    """A feasible trajectory from a random state under random inputs."""
    x0 = dsys.retract(dsys.state_space.origin, size * rng.normal(size=dsys.ndx))
    return dsys.simulate(x0, size * rng.normal(size=(steps, dsys.nu)))


def entangled(dsys: DiscreteSystem) -> Cost:
    """A cost of the user's own in which everything is coupled to everything."""

    def stage(x, u, w):
        return (
            ca.exp(0.1 * ca.sum1(ca.sin(x)))
            + ca.sumsqr(u) * (1 + ca.sumsqr(x))
            + x[0] * ca.sum1(u)
        )

    return Cost(stage, lambda x, w: ca.cos(ca.sum1(x)) + ca.sumsqr(x))


@cache
def optimized(
    name: str, reference: str = "", integrator: str = "", step_s: float = 0.0
) -> tuple[Scenario, DiscreteSystem, Trajectory]:
    """A scenario, its model and its reference, which is optimized once a process."""
    scenario = get(name)
    model = scenario.model(integrator, step_s)
    return scenario, model, scenario.reference(model, reference)


def springs_system() -> System:
    """Two masses on springs, one of them damped: a linear system."""
    return System(
        name="springs",
        space=Rn("a", "b"),
        lagrangian=lambda q, v: v[0] ** 2 / 2 + v[1] ** 2 - q[0] ** 2 - (q[1] - q[0]) ** 2,
        inputs=("pull",),
        force=lambda q, v, u: ca.vertcat(u - 0.1 * v[0], 0),
    )


def resting(dsys: DiscreteSystem, steps: int, x=None) -> Trajectory:
    """A guess that stays at a state."""
    x = dsys.state_space.origin if x is None else np.asarray(x)
    return Trajectory(dsys.h, np.tile(x, (steps + 1, 1)), np.zeros((steps, dsys.nu)))


def mass(inputs=("push",), end=None):
    """A mass that is pushed by the sum of its inputs, with a step that fails beyond x = end."""
    domain = {} if end is None else {"domain": lambda q: end - q[0]}
    return System(
        name="mass",
        space=Rn("x"),
        lagrangian=lambda q, v: v[0] ** 2 / 2,
        inputs=inputs,
        force=lambda q, v, u: sum(u[i] for i in range(len(inputs))),
        **domain,
    )
