"""The ballbot scenario: standing, a move and a circle of a body that balances on a ball, tracked by
LQR or by predictive control with a limit of its lean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import casadi as ca
import numpy as np

from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost
from nh_control.control.optimize import optimize
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import nonholonomic_midpoint
from nh_control.mechanics.external_forces import ForceTarget
from nh_control.mechanics.system import System
from nh_control.scenarios.ballbot_visual import WORLD, visual_model
from nh_control.scenarios.constraints import ScenarioConstraint
from nh_control.scenarios.driving import smoothstep
from nh_control.scenarios.frames import on_frames
from nh_control.scenarios.joints import ending_at_rest
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.perturbation import (
    SeededPerturbation,
    error_seed,
    initial_error,
    momentum_error,
    perturb_state,
)
from nh_control.scenarios.scenario import BodyState, Scenario
from nh_control.systems.ballbot import BALL, BODY, BallbotParameters, ballbot, ballbot_model

STAND_S = 5.0
"""Duration of `stand`."""
LEAN = np.radians(15)
"""Largest lean of the body that predictive control allows."""
CLOSE, EFFORT = 20.0, 0.02
"""Weights of the distance from the way (1/m^2) and of the torques (1/(N m)^2)."""


@dataclass(frozen=True)
class Way:
    """A way `path(s) -> (x, y)` in m of the ball, from s = 0 to 1, from rest to rest in `duration`
    s.
    """

    path: Callable[[float], tuple[float, float]]
    duration: float

    def reference(self, dsys: DiscreteSystem) -> Trajectory:
        """The motion that is closest to the way with little effort, from rest to rest; the search
        starts from a body that stays upright. Raises ValueError if it does not converge.
        """
        steps = round(self.duration / dsys.h)
        parts = [float(smoothstep(s)) for s in np.linspace(0.0, 1.0, steps + 1)]
        places = np.array([self.path(s) for s in parts])
        states = np.array([still(dsys, place) for place in places])
        x, nq = dsys.state_names.index("x"), dsys.system.space.nq
        cost = Cost(
            lambda x_, u, w: dsys.h
            / 2
            * (CLOSE * ca.sumsqr(x_[x : x + 2] - w) + EFFORT * ca.sumsqr(u)),
            parameters=places,
        )
        held = [n for n in dsys.state_space.tangent_names if not n.startswith(f"{BALL}_rotation")]
        guess = Trajectory(dsys.h, states, np.zeros((steps, dsys.nu)))
        optimum = optimize(dsys, cost, guess, end=states[-1], fixed=held, hessian="gauss_newton", monitor=MON)
        if not optimum.converged:
            raise ValueError(f"{dsys}: no motion found ({optimum.reason}); choose another step")
        end = np.array(optimum.trajectory.states[-1])
        end[nq:] = 0.0
        return ending_at_rest(optimum.trajectory, end, np.zeros(dsys.nu))


def still(dsys: DiscreteSystem, place: Sequence[float]) -> np.ndarray:
    """The state (nx) at rest, upright, at a place (2, m)."""
    q = dsys.system.space.origin.copy()
    q[-2:] = place
    return dsys.state(q, np.zeros(dsys.system.space.nw))


def stand(dsys: DiscreteSystem) -> Trajectory:
    """At rest, upright."""
    return dsys.simulate(still(dsys, (0.0, 0.0)), np.zeros((round(STAND_S / dsys.h), dsys.nu)))


WAYS = {
    "move": Way(lambda s: (2.0 * s, 0.0), 4.0),
    "circle": Way(
        lambda s: (np.sin(2 * np.pi * s), 1.0 - np.cos(2 * np.pi * s)),
        8.0,
    ),
}
