"""The cart-pole scenario: swing-up under a limited force, found by collocation, tracked and held
by LQR.
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
"""Time of the swing-up (s), half length of the track (m), and the share of the force limit that
the reference uses; the rest is for feedback.
"""
SHORT = 0.5
"""Half length (m) of a track that is too short for this swing-up."""


def swing_up(dsys: DiscreteSystem) -> Trajectory:
    """From hanging to standing, both at rest in the middle of the track, with the least
    `sum_k h force_k^2`.

    Collocation on a grid of 0.05 s, then on the model's. Raises ValueError if it does not
    converge.
    """
    coarse = midpoint(dsys.system, 0.05)
    steps = round(DURATION_S / coarse.h)
    states = np.zeros((steps + 1, coarse.nx))
    states[:, 1] = np.linspace(0, np.pi, steps + 1)
    guess = Trajectory(coarse.h, states, np.zeros((steps, 1)))
    end = dsys.state([0.0, np.pi], np.zeros(2))
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
    )
    if not result.converged:
        raise ValueError(f"{dsys}: no swing-up found ({result.reason}); choose another step")
    return result.trajectory


def on_pole(system: System) -> tuple[ForceTarget]:
    """Disturbances act on the pole's end."""

    def end(q: Graph, p: Any) -> Graph:
        return ca.vertcat(q[0] + p.l * ca.sin(q[1]), 0, -p.l * ca.cos(q[1]))

    return (on_point(system.space, "pole_end", end, "force on the end of the pole"),)


def on_track(half: float, dsys: DiscreteSystem) -> Constraint:
    """The cart stays on its track."""
    return Constraint("track", lambda x, u, w: x[0], -half, half, weight=1e3)


def buffers(parameters: CartPoleParameters) -> tuple[Shape, ...]:
    """The ends of a short track."""
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
