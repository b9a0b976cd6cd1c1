"""The pendulum scenario: the swing-up in [johnson2014 VIII-A], computed by trajectory
optimization. LQR tracks the motion and then keeps the pendulum upright.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from nh_control.control.costs import quadratic_cost
from nh_control.control.optimize import optimize
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import midpoint
from nh_control.mechanics.external_forces import ForceTarget, on_point
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Graph
from nh_control.scenarios.joints import TurningPerturbation, ending_at_rest, perturbed
from nh_control.scenarios.pendulum_visual import visual_model
from nh_control.scenarios.scenario import Joint, Scenario
from nh_control.systems import PendulumParameters, pendulum

JUMP_S, DURATION_S = 5.0, 12.0
"""Time (s) at which the desired trajectory jumps, and duration (s) of the trajectory. The duration
is so long that the optimum comes to rest up to round-off.
"""

Q, R = np.diag([10000.0, 10.0]), np.array([[500.0]])
"""Weights per second. For a step of 0.1 s they are equal to the weights in the paper."""


def swing_up(dsys: DiscreteSystem) -> Trajectory:
    """The feasible trajectory closest to a jump from hanging to standing, [johnson2014 (35)], with
    the model's step. Raises ValueError if it does not converge.
    """
    steps = round(DURATION_S / dsys.h)
    states = np.zeros((steps + 1, 2))
    states[round(JUMP_S / dsys.h) :, 0] = np.pi
    jump = Trajectory(dsys.h, states, np.zeros((steps, 1)))
    # The weights Q h and R h approximate the integral of the running cost.
    cost = quadratic_cost(dsys, jump, dsys.h * Q, dsys.h * R)
    result = optimize(dsys, cost, jump, dsys.h * Q, dsys.h * R, "newton")
    if not result.converged:
        raise ValueError(f"{dsys}: no swing-up found ({result.reason}); choose another step")
    return ending_at_rest(result.trajectory, states[-1], np.zeros(1))


def on_end(system: System) -> tuple[ForceTarget]:
    """The disturbance target: the tip of the pendulum."""

    def end(q: Graph, parameters: Any) -> Graph:
        return ca.vertcat(parameters.l * ca.sin(q[0]), 0, -parameters.l * ca.cos(q[0]))

    return (on_point(system.space, "pendulum_end", end, "force on the end of the pendulum"),)


PENDULUM_SWING_UP = Scenario(
    name="pendulum_swing_up",
    title="Pendulum swinging up",
    parameters=PendulumParameters(),
    make_system=pendulum,
    integrators={"midpoint": midpoint, "midpoint_left": partial(midpoint, forcing="left")},
    references={"swing_up": swing_up},
    weights=(np.diag([20.0, 0.2]), np.eye(1), None),
    perturbation=TurningPerturbation(angle=0.1, momentum=0.1),
    perturb=perturbed,
    external=on_end,
    joints=(Joint("pendulum_joint", "theta"),),
    visual=visual_model,
    step_s=0.02,
    hold=True,
)
