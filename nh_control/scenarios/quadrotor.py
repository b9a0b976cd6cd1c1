"""The quadrotor scenario: a minimum-effort flight through two windows, hover, and other flights,
tracked by LQR or by predictive control.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.control import paths
from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost
from nh_control.control.optimize import optimize
from nh_control.control.path_constraints import tilt_limit
from nh_control.control.projection import project_trajectory
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry import quaternion
from nh_control.integrators import midpoint
from nh_control.mechanics.external_forces import ForceTarget, on_body
from nh_control.mechanics.system import System
from nh_control.scenarios.flight import Craft, Flight
from nh_control.scenarios.joints import ending_at_rest
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.obstacles import through_windows
from nh_control.scenarios.payload_flatness import norm, shortest_rotation
from nh_control.scenarios.perturbation import (
    SeededPerturbation,
    error_seed,
    initial_error,
    momentum_error,
    perturb_state,
)
from nh_control.scenarios.quadrotor_visual import ARM_M, BODY, PROPELLER_M, visual_model
from nh_control.scenarios.scenario import BodyState, Scenario
from nh_control.scenarios.visual_model import ODOM
from nh_control.systems import Airframe, QuadrotorParameters, quadrotor

START, END = (0.0, 0.0, 1.0), (6.0, 0.0, 1.0)
"""Positions (m) where flights begin and end."""
FLIGHT_S, STRAIGHT_S, HOVER_S = 2.4, 5.0, 5.0
"""Durations of `windows`, `straight` and `hover` (s)."""
WINDOWS = (((2.0, 0.9, 1.6), 0.3), ((4.0, -0.9, 1.1), 0.3))
"""Centers (m) of windows, and maximum distances (m) between these centers and the quadrotor's
center.
"""
DEPTH_M, SHARE, TILT = 0.2, 0.8, np.radians(60)
"""Depth (m) of the windows' hyperboloids, share of the openings, thrust and torques that the
reference uses (the rest is left for feedback), and maximum tilt (rad) of the reference.
"""
EIGHT = {"length": 4.0, "width": 2.0, "speed": 2.0, "laps": 2, "ramp": 2.0, "height": 1.0}
"""The path of `figure_eight` (see `paths.figure_of_eight`)."""
EFFORT = (0.1, 20.0, 20.0, 20.0)
"""Cost weights on the thrust beyond the weight (1/N^2) and on the torques (1/(N m)^2)."""


def still(dsys: DiscreteSystem, position: Sequence[float]) -> np.ndarray:
    """The state (nx) at rest at a position (3, m), level and with the nose along x."""
    return dsys.state([*position, 1.0, 0.0, 0.0, 0.0], np.zeros(6))


def hover_inputs(dsys: DiscreteSystem) -> np.ndarray:
    """The inputs (4) in hover: a thrust equal to the weight, and no torques."""
    parameters = dsys.system.parameters
    return np.array([parameters.m * parameters.g, 0.0, 0.0, 0.0])


def windows(dsys: DiscreteSystem) -> Trajectory:
    """From rest to rest through both windows with the least effort, within limits of thrust,
    torques and tilt.

    The initial guess consists of straight lines between the windows' centers. Raises ValueError if
    the optimization does not converge.
    """
    # The windows are narrowed, to leave a margin for tracking errors.
    narrow = tuple((center, SHARE * radius) for center, radius in WINDOWS)
    walls = through_windows(lambda q: q[:3], narrow, DEPTH_M, np.inf).make(dsys)
    return _flight(dsys, FLIGHT_S, [walls], [center for center, _ in WINDOWS])


def straight(dsys: DiscreteSystem) -> Trajectory:
    """Straight ahead from rest to rest with the least effort, which leads through both walls."""
    return _flight(dsys, STRAIGHT_S, [], [])


def _flight(
    dsys: DiscreteSystem,
    duration: float,
    walls: Sequence[Constraint],
    between: Sequence[Sequence[float]],
) -> Trajectory:
    """The minimum-effort flight from START to END. The initial guess consists of straight lines
    through the positions (3, m) in `between`.
    """
    steps, hold = round(duration / dsys.h), hover_inputs(dsys)
    places = np.array([START, *between, END])
    # All lines take the same time.
    along = np.linspace(0, len(places) - 1, steps + 1)
    line = np.column_stack([np.interp(along, range(len(places)), x) for x in places.T])
    states = np.array([still(dsys, position) for position in line])
    guess = Trajectory(dsys.h, states, np.tile(hold, (steps, 1)))
    # Effort: sum_k h/2 (u_k - u_hover)' W (u_k - u_hover).
    effort = Cost(lambda x, u, w: dsys.h / 2 * ca.dot(ca.DM(EFFORT), (u - hold) ** 2))
    limits = {
        # The rest of the input range is left for feedback.
        name: (SHARE * lower, SHARE * upper)
        for name, (lower, upper) in zip(dsys.inputs, dsys.system.input_bounds)
    }
    constraints = [*walls, tilt_limit(dsys, TILT)]
    optimum = optimize(dsys, effort, guess, limits=limits, constraints=constraints, end=states[-1])
    if not optimum.converged:
        raise ValueError(f"{dsys}: no flight found ({optimum.reason}); choose another step")
    return ending_at_rest(optimum.trajectory, states[-1], hold)


def hover(dsys: DiscreteSystem) -> Trajectory:
    """The quadrotor hovers at the start of the other flights."""
    steps = round(HOVER_S / dsys.h)
    return dsys.simulate(still(dsys, START), np.tile(hover_inputs(dsys), (steps, 1)))


@dataclass(frozen=True)
class QuadrotorPerturbation(SeededPerturbation):
    """The initial error of a quadrotor."""

    position: float = initial_error("m", "distance from the reference's position, to the left")
    heading: float = initial_error("rad", "turn to the left")
    tilt: float = initial_error("rad", "rotation about the horizontal axis in that direction")
    momentum: float = momentum_error()
    seed: int = error_seed()


def perturbed(
    model: DiscreteSystem, x: np.ndarray, perturbation: QuadrotorPerturbation
) -> np.ndarray:
    """The state x (nx) with the quadrotor displaced and rotated by the vector (tilt, heading) in
    body axes, and all momenta scaled.
    """
    direction, signs = perturbation.draw_direction_and_signs(1 + model.system.nrho)
    turn = [*(perturbation.tilt * direction), signs[0] * perturbation.heading]
    change = np.array([*(perturbation.position * direction), 0.0, *turn])
    momenta = np.concatenate([np.ones(model.system.space.nv), signs[1:]])
    return perturb_state(model, x, change, perturbation.momentum, momenta)


def to_bodies(_: QuadrotorParameters, q: np.ndarray, v: np.ndarray) -> tuple[BodyState, ...]:
    """The state of the body at a configuration (7) with a velocity (6)."""
    return (BodyState(BODY, ODOM, q[:3], q[3:], v[:3], v[3:]),)


def from_bodies(bodies: Sequence[BodyState]) -> tuple[np.ndarray, np.ndarray]:
    """The quadrotor's configuration (7) and velocity (6). Raises ValueError for other bodies."""
    if [body.frame for body in bodies] != [BODY]:
        raise ValueError(f"expected the body {BODY}, got {[body.frame for body in bodies]}")
    (body,) = bodies
    attitude = np.divide(body.quaternion_wxyz, np.linalg.norm(body.quaternion_wxyz))
    velocity = np.concatenate([body.linear_velocity, body.angular_velocity_body])
    return np.concatenate([body.position, attitude]), velocity


def on_quadrotor(system: System) -> tuple[ForceTarget]:
    """The disturbance target: a force and a torque on the quadrotor, for example due to wind."""
    return (
        on_body(
            system.space,
            BODY,
            lambda q, parameters: (q[:3], quaternion.matrix(q[3:])),
            "force at the center of mass, e.g. wind, and torque, in the axes of odom",
        ),
    )


def figure_eight(dsys: DiscreteSystem) -> Trajectory:
    """Twice along a horizontal figure of eight, from rest to rest.

    States and inputs follow from the path: `T R e_z = m (x'' + g e_z)` with the smallest rotation
    R from z to the thrust, and Euler's equation. They are projected onto the discrete motions.
    """
    path, parameters, h = paths.figure_of_eight(**EIGHT), dsys.system.parameters, dsys.h
    steps = round((path.duration + 1.0) / h)
    nodes = h * np.arange(steps + 1)
    x, v, a, jerk, snap = (ca.SX.sym("d", 3) for _ in range(5))
    thrust = parameters.m * (a + ca.vertcat(0, 0, parameters.g))

    # Total time derivative along the path: d/dt f(x, v, a, j) with (x, v, a, j)' = (v, a, j, s).
    def rate(expression: ca.SX) -> ca.SX:
        return ca.jtimes(expression, ca.vertcat(x, v, a, jerk), ca.vertcat(v, a, jerk, snap))

    # The flat outputs are the position and a yaw of 0.
    attitude = shortest_rotation(thrust / norm(thrust))
    omega = 2 * quaternion.multiply(quaternion.conjugate(attitude), rate(attitude))[1:]
    inertia = ca.DM([parameters.Jx, parameters.Jy, parameters.Jz])
    torque = inertia * rate(omega) + ca.cross(omega, inertia * omega)
    outputs = [ca.vertcat(x, attitude), ca.vertcat(v, omega), ca.vertcat(norm(thrust), torque)]
    flat = ca.Function("flat", [ca.horzcat(x, v, a, jerk, snap)], outputs)

    def along(times: np.ndarray) -> list[np.ndarray]:
        rows = [flat(jet[:5].T) for jet in path.jets(times)]
        return [np.asarray(ca.horzcat(*column)).T for column in zip(*rows)]

    # States are sampled at the nodes. Inputs, which are constant in a step, are sampled at the
    # midpoint.
    q, w, _ = along(nodes)
    _, _, u = along(nodes[:-1] + h / 2)
    desired = Trajectory(
        h, dsys.state(q, w), u, dsys.state_names, dsys.inputs, "figure_eight", dsys
    )
    return project_trajectory(dsys, desired, np.eye(dsys.ndx), 1e-3 * np.eye(dsys.nu))


def crafts(_: System) -> tuple[Craft]:
    """The quadrotor as the craft that a flight controller flies."""
    return (
        Craft(
            BODY,
            position=lambda q, parameters: q[:3],
            attitude=lambda q: q[3:],
            velocity=lambda q, v, parameters: v[:3],
        ),
    )


QUADROTOR = Scenario(
    name="quadrotor",
    title="Quadrotor flying through two windows",
    parameters=QuadrotorParameters(),
    make_system=quadrotor,
    nodes={"fallback": "hold"},  # without thrust the quadrotor would fall
    integrators={"midpoint": midpoint},
    references={
        "windows": windows,
        "straight": straight,
        "hover": hover,
        "figure_eight": figure_eight,
    },
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
            lambda q: q[:3],
            WINDOWS,
            DEPTH_M,
            weight=1e3,
            references=("windows", "straight"),
            size=ARM_M + PROPELLER_M / 2,
        )
    },
    horizon_s=0.8,
    flight=Flight(
        crafts,
        Airframe.x(0.226, max_thrust=6.0),
        ("hover", "figure_eight"),
        tuning=(
            *("set p_roll = 18", "set i_roll = 40", "set p_pitch = 18", "set i_pitch = 40"),
            *("set p_yaw = 200", "set i_yaw = 20"),
        ),
    ),
)
