"""The cart-pole scenario: a swing-up with a limited force, computed by collocation. LQR tracks
this motion and then keeps the pole upright.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from nh_control.control.collocation import collocate, resample
from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import midpoint
from nh_control.mechanics.external_forces import ForceTarget, on_point
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Graph
from nh_control.scenarios.cart_pole_visual import TRACK_HEIGHT, visual_model
from nh_control.scenarios.constraints import OBSTACLES, ScenarioConstraint
from nh_control.scenarios.joints import JointPerturbation, ending_at_rest, perturbed
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.obstacles import RED
from nh_control.scenarios.scenario import Joint, Scenario
from nh_control.scenarios.visual_model import Shape
from nh_control.systems import CartPoleParameters, cart_pole

DURATION_S, TRACK, SHARE = 3.0, 1.0, 0.6
"""Duration (s) of the swing-up, half the length (m) of the track, and share of the force limit
that the reference uses. The rest is left for feedback.
"""
SHORT = 0.5
"""Half the length (m) of a track that is too short for this swing-up."""


def swing_up(dsys: DiscreteSystem) -> Trajectory:
    """The motion from hanging to standing, both at rest in the middle of the track, with the least
    `sum_k h force_k^2`.

    Collocation on a grid of 0.05 s starts collocation on the model's grid. Raises ValueError if it
    does not converge.
    """
    # In the guess on the coarse grid, the pole turns at constant speed and the cart stays at rest.
    coarse = midpoint(dsys.system, 0.05)
    steps = round(DURATION_S / coarse.h)
    states = np.zeros((steps + 1, coarse.nx))
    states[:, 1] = np.linspace(0, np.pi, steps + 1)
    guess = Trajectory(coarse.h, states, np.zeros((steps, 1)))
    end = dsys.state([0.0, np.pi], np.zeros(2))
    # The coarse solution is close, so the barrier of the fine problem starts with a small value.
    return ending_at_rest(
        _solve(dsys, resample(_solve(coarse, guess, end, 0.1), dsys.h), end, 1e-4),
        end,
        np.zeros(1),
    )


def _solve(
    dsys: DiscreteSystem, guess: Trajectory, end: np.ndarray, barrier_start: float
) -> Trajectory:
    force = SHARE * dsys.system.parameters.force_limit
    effort = Cost(lambda x, u, w: dsys.h / 2 * ca.sumsqr(u))
    result = collocate(
        dsys,
        effort,
        guess,
        end,
        limits={"force": (-force, force), "x": (-TRACK, TRACK)},
        barrier_start=barrier_start,
        cached=True,
    )
    if not result.converged:
        raise ValueError(f"{dsys}: no swing-up found ({result.reason}); choose another step")
    return result.trajectory


def on_pole(system: System) -> tuple[ForceTarget]:
    """The disturbance target: the tip of the pole."""

    def end(q: Graph, parameters: Any) -> Graph:
        return ca.vertcat(q[0] + parameters.l * ca.sin(q[1]), 0, -parameters.l * ca.cos(q[1]))

    return (on_point(system.space, "pole_end", end, "force on the end of the pole"),)


def on_track(half: float, dsys: DiscreteSystem) -> Constraint:
    """The constraint |x| <= `half` (m): the cart stays on its track."""
    return Constraint("track", lambda x, u, w: x[0], -half, half, weight=1e3)


def buffers(parameters: CartPoleParameters) -> tuple[Shape, ...]:
    """The shapes of the buffers at the ends of the short track."""
    height = TRACK_HEIGHT * parameters.l
    return tuple(
        Shape("box", (0.02, 0.1, 0.1), RED, OBSTACLES, (side * (SHORT + 0.13), 0.0, height))
        for side in (-1.0, 1.0)
    )


CART_POLE = Scenario(
    name="cart_pole",
    title="Cart swinging up a pole",
    parameters=CartPoleParameters(),
    make_system=cart_pole,
    integrators={"midpoint": midpoint},
    meanings={
        "swing_up": "from hanging (theta = 0) to standing (theta = pi), at rest in the middle, "
        "with the least effort",
        "short_track": "the same swing-up on a track of +-0.5 m, for predictive control",
    },
    references={"swing_up": swing_up, "short_track": swing_up},
    weights=(np.diag([10.0, 10.0, 1.0, 1.0]), 0.1 * np.eye(1), None),
    perturbation=JointPerturbation(position=0.1, angle=0.1, momentum=0.1),
    perturb=partial(perturbed, sliding=("x",)),
    external=on_pole,
    joints=(Joint("cart_joint", "x", unit="m"), Joint("pole_joint", "theta")),
    visual=visual_model,
    step_s=0.01,
    limits=SafetyLimits(ranges=(f"cart_joint:{-1.2 * TRACK}:{1.2 * TRACK}",)),
    hold=True,
    constraints={
        "track": ScenarioConstraint(partial(on_track, TRACK), "m", ("swing_up",)),
        "short_track": ScenarioConstraint(
            partial(on_track, SHORT), "m", ("short_track",), buffers(CartPoleParameters())
        ),
    },
)
