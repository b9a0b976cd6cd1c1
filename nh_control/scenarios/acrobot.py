"""The acrobot scenario: a swing-up that uses only the elbow, within the limits of its torque and
angle. LQR or predictive control tracks the motion and then keeps the links upright.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost, quadratic_cost
from nh_control.control.optimize import optimize
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import midpoint
from nh_control.mechanics.external_forces import ForceTarget, on_point
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Graph
from nh_control.scenarios.acrobot_visual import visual_model
from nh_control.scenarios.constraints import ScenarioConstraint
from nh_control.scenarios.joints import TurningPerturbation, ending_at_rest, perturbed
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.scenario import Joint, Scenario
from nh_control.systems import AcrobotParameters, acrobot

DURATION_S, ELBOW, SHARE = 5.0, 2.5, 0.6
"""Duration of the swing-up (s), maximum elbow angle (rad), and share of the torque limit that the
reference uses. The rest is left for feedback.
"""
TIGHT = 2.3
"""Limit of the elbow angle (rad) that this swing-up exceeds."""
PUMP_HZ, PUMP = 0.37, 0.3
"""Frequency and amplitude of the torque in the initial guess. The frequency is slightly below the
frequency at which the hanging links swing together. The amplitude is a share of the reference's
maximum torque.
"""


def swing_up(dsys: DiscreteSystem) -> Trajectory:
    """The motion from hanging to standing, both at rest, with the least `sum_k h torque_k^2`
    within the limits of torque and elbow angle.

    The initial guess swings the links near their natural frequency. A first optimization ends
    close to standing; the second ends exactly there. Raises ValueError if it does not converge.
    """
    h, steps = dsys.h, round(DURATION_S / dsys.h)
    torque = SHARE * dsys.system.parameters.torque_limit
    limits = {"torque": (-torque, torque), "elbow": (-ELBOW, ELBOW)}
    hanging, standing = (dsys.state([angle, 0.0], np.zeros(2)) for angle in (0.0, np.pi))
    # Initial guess: a sinusoidal torque near the lowest natural frequency of the hanging links.
    pump = PUMP * torque * np.sin(2 * np.pi * PUMP_HZ * h * (np.arange(steps) + 0.5))
    guess = dsys.simulate(hanging, pump[:, None])
    goal = Trajectory(h, np.tile(standing, (steps + 1, 1)), np.zeros((steps, 1)))
    # First optimization: penalize the deviation of the final state from standing, xN' Qf xN.
    close = np.diag([500.0, 500.0, 50.0, 50.0])
    cost = quadratic_cost(dsys, goal, np.zeros((4, 4)), h * np.eye(1), close)
    near = optimize(dsys, cost, guess, limits=limits).trajectory
    # Second optimization: min sum_k h u_k^2 / 2 subject to x_N = standing, starting from the first
    # motion.
    effort = Cost(lambda x, u, w: h / 2 * ca.sumsqr(u))
    optimum = optimize(dsys, effort, near, limits=limits, end=standing, barrier_start=1e-2)
    if not optimum.converged:
        raise ValueError(f"{dsys}: no swing-up found ({optimum.reason}); choose another step")
    return ending_at_rest(optimum.trajectory, standing, np.zeros(1))


def on_tip(system: System) -> tuple[ForceTarget]:
    """The disturbance target: the tip of the lower link."""

    def tip(q: Graph, parameters: Any) -> Graph:
        # The elbow angle q[1] is relative to the upper link.
        a, b = q[0], q[0] + q[1]
        x, z = (
            parameters.l1 * ca.sin(a) + parameters.l2 * ca.sin(b),
            -parameters.l1 * ca.cos(a) - parameters.l2 * ca.cos(b),
        )
        return ca.vertcat(x, 0, z)

    return (on_point(system.space, "tip", tip, "force on the end of the lower link"),)


def elbow_range(name: str, most: float, dsys: DiscreteSystem) -> Constraint:
    """The constraint |elbow| <= `most` (rad)."""
    return Constraint(name, lambda x, u, w: x[1], -most, most, weight=1e3)


ACROBOT = Scenario(
    name="acrobot",
    title="Acrobot swinging up by its elbow",
    parameters=AcrobotParameters(),
    make_system=acrobot,
    integrators={"midpoint": midpoint},
    meanings={
        "swing_up": "from hanging to standing with the least effort, within the elbow's range",
        "tight_elbow": "the swing-up with an elbow limit of +-2.3 rad, for predictive control",
    },
    references={"swing_up": swing_up, "tight_elbow": swing_up},
    weights=(np.diag([10.0, 10.0, 1.0, 1.0]), 0.1 * np.eye(1), None),
    perturbation=TurningPerturbation(angle=0.1, momentum=0.1),
    perturb=perturbed,
    external=on_tip,
    joints=(Joint("shoulder_joint", "shoulder"), Joint("elbow_joint", "elbow")),
    visual=visual_model,
    step_s=0.01,
    limits=SafetyLimits(ranges=(f"elbow_joint:{-1.2 * ELBOW}:{1.2 * ELBOW}",)),
    hold=True,
    constraints={
        "elbow": ScenarioConstraint(partial(elbow_range, "elbow", ELBOW), "rad", ("swing_up",)),
        "tight_elbow": ScenarioConstraint(
            partial(elbow_range, "tight_elbow", TIGHT), "rad", ("tight_elbow",)
        ),
    },
    horizon_s=1.5,
)
