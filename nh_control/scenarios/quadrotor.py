"""The quadrotor scenario: the least effort through two windows, and hover, tracked by LQR or by
predictive control.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost
from nh_control.control.optimize import optimize
from nh_control.control.path_constraints import tilt_limit
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry import quaternion
from nh_control.integrators import midpoint
from nh_control.mechanics.external_forces import ForceTarget, on_body
from nh_control.mechanics.system import System
from nh_control.scenarios.joints import ending_at_rest
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.obstacles import through_windows
from nh_control.scenarios.perturbation import (
    SeededPerturbation,
    error_seed,
    initial_error,
    momentum_error,
    perturb_state,
)
from nh_control.scenarios.quadrotor_visual import ARM_M, BODY, PROPELLER_M, WORLD, visual_model
from nh_control.scenarios.scenario import BodyState, Scenario
from nh_control.systems import QuadrotorParameters, quadrotor

START, END = (0.0, 0.0, 1.0), (6.0, 0.0, 1.0)
"""Where flights begin and end (m)."""
FLIGHT_S, STRAIGHT_S, HOVER_S = 2.4, 5.0, 5.0
"""Durations of `windows`, `straight` and `hover`."""
WINDOWS = (((2.0, 0.9, 1.6), 0.3), ((4.0, -0.9, 1.1), 0.3))
"""Centers (m), and how far (m) the middle of the quadrotor may be from them in the wall."""
DEPTH_M, SHARE, TILT = 0.2, 0.8, np.radians(60)
"""How fast the windows' hyperboloids widen, the share of openings, thrust and torques that the
reference uses, the rest is for feedback, and its largest tilt.
"""
EFFORT = (0.1, 20.0, 20.0, 20.0)
"""Weights of thrust beyond the weight (1/N^2) and of torques (1/(N m)^2)."""


def still(dsys: DiscreteSystem, position: Sequence[float]) -> np.ndarray:
    """The state (nx) at rest at a position (3, m), level, x forward."""
    return dsys.state([*position, 1.0, 0.0, 0.0, 0.0], np.zeros(6))


def hover_inputs(dsys: DiscreteSystem) -> np.ndarray:
    """The thrust that carries the weight, and no torques (4)."""
    p = dsys.system.parameters
    return np.array([p.m * p.g, 0.0, 0.0, 0.0])


def windows(dsys: DiscreteSystem) -> Trajectory:
    """From rest to rest through both windows with the least effort, within limits of thrust,
    torques and tilt.

    The search starts from straight ways between the windows' middles. Raises ValueError if it does
    not converge.
    """
    narrow = tuple((center, SHARE * radius) for center, radius in WINDOWS)
    walls = through_windows(lambda q: q[:3], narrow, DEPTH_M, np.inf).make(dsys)
    return _flight(dsys, FLIGHT_S, [walls], [center for center, _ in WINDOWS])


def straight(dsys: DiscreteSystem) -> Trajectory:
    """From rest to rest straight on with the least effort, into both walls."""
    return _flight(dsys, STRAIGHT_S, [], [])


def _flight(
    dsys: DiscreteSystem,
    duration: float,
    walls: Sequence[Constraint],
    between: Sequence[Sequence[float]],
) -> Trajectory:
    """The flight from START to END with the least effort; the search starts from straight ways
    with these places (3, m) `between`.
    """
    steps, hold = round(duration / dsys.h), hover_inputs(dsys)
    places = np.array([START, *between, END])
    along = np.linspace(0, len(places) - 1, steps + 1)
    way = np.column_stack([np.interp(along, range(len(places)), x) for x in places.T])
    states = np.array([still(dsys, p) for p in way])
    guess = Trajectory(dsys.h, states, np.tile(hold, (steps, 1)))
    effort = Cost(lambda x, u, w: dsys.h / 2 * ca.dot(ca.DM(EFFORT), (u - hold) ** 2))
    limits = {
        name: (SHARE * lower, SHARE * upper)
        for name, (lower, upper) in zip(dsys.inputs, dsys.system.input_bounds)
    }
    constraints = [*walls, tilt_limit(dsys, TILT)]
    optimum = optimize(dsys, effort, guess, limits=limits, constraints=constraints, end=states[-1])
    if not optimum.converged:
        raise ValueError(f"{dsys}: no flight found ({optimum.reason}); choose another step")
    return ending_at_rest(optimum.trajectory, states[-1], hold)


def hover(dsys: DiscreteSystem) -> Trajectory:
    """At rest where flights begin."""
    steps = round(HOVER_S / dsys.h)
    return dsys.simulate(still(dsys, START), np.tile(hover_inputs(dsys), (steps, 1)))


@dataclass(frozen=True)
class QuadrotorPerturbation(SeededPerturbation):
    """The initial error of a quadrotor."""

    position: float = initial_error("m", "distance from the reference's position, to the left")
    heading: float = initial_error("rad", "turn to the left")
    tilt: float = initial_error("rad", "turn about the horizontal axis of that direction")
    momentum: float = momentum_error()
    seed: int = error_seed()


def perturbed(
    model: DiscreteSystem, x: np.ndarray, perturbation: QuadrotorPerturbation
) -> np.ndarray:
    """State x (nx) moved, turned by the rotation vector (tilt, heading) in its own axes, and every
    momentum scaled.
    """
    direction, signs = perturbation.draw_direction_and_signs(1 + model.system.nrho)
    turn = [*(perturbation.tilt * direction), signs[0] * perturbation.heading]
    change = np.array([*(perturbation.position * direction), 0.0, *turn])
    momenta = np.concatenate([np.ones(model.system.space.nv), signs[1:]])
    return perturb_state(model, x, change, perturbation.momentum, momenta)


def to_bodies(_: QuadrotorParameters, q: np.ndarray, v: np.ndarray) -> tuple[BodyState, ...]:
    """The quadrotor of a configuration (7) and velocity (6)."""
    return (BodyState(BODY, WORLD, q[:3], q[3:], v[:3], v[3:]),)


def from_bodies(bodies: Sequence[BodyState]) -> tuple[np.ndarray, np.ndarray]:
    """Configuration (7) and velocity (6) of the quadrotor; raises ValueError for others."""
    if [body.frame for body in bodies] != [BODY]:
        raise ValueError(f"expected the body {BODY}, got {[body.frame for body in bodies]}")
    (body,) = bodies
    attitude = np.divide(body.quaternion_wxyz, np.linalg.norm(body.quaternion_wxyz))
    velocity = np.concatenate([body.linear_velocity, body.angular_velocity_body])
    return np.concatenate([body.position, attitude]), velocity


def on_quadrotor(system: System) -> tuple[ForceTarget]:
    """The quadrotor may be pushed and turned, as by wind."""
    return (
        on_body(
            system.space,
            BODY,
            lambda q, p: (q[:3], quaternion.matrix(q[3:])),
            "force at the center of mass, e.g. wind, and torque, in the axes of odom",
        ),
    )


QUADROTOR = Scenario(
    name="quadrotor",
    title="Quadrotor flying through two windows",
    parameters=QuadrotorParameters(),
    make_system=quadrotor,
    nodes={"fallback": "hold"},  # what flies falls without thrust
    integrators={"midpoint": midpoint},
    references={"windows": windows, "straight": straight, "hover": hover},
    weights=(
        np.diag([20.0] * 3 + [5.0] * 3 + [2.0] * 3 + [50.0] * 3),
        np.diag([0.05, 5.0, 5.0, 5.0]),
        None,
    ),
    perturbation=QuadrotorPerturbation(position=0.1, heading=0.1, momentum=0.1),
    perturb=perturbed,
    external=on_quadrotor,
    to_bodies=to_bodies,
    from_bodies=from_bodies,
    visual=visual_model,
    hold=True,
    limits=SafetyLimits(ranges=(f"{BODY}.tilt:0:1.5",)),
    constraints={
        "windows": through_windows(
            *(lambda q: q[:3], WINDOWS, DEPTH_M, 1e3, ("windows", "straight")),
            size=ARM_M + PROPELLER_M / 2,
        )
    },
    horizon_s=0.8,
)
