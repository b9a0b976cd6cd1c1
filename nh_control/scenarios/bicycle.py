"""The bicycle scenario. With torques on the steering and the rear wheel, the bicycle rides
straight ahead, changes lanes and turns. Without torques, it rides at speeds around those of weave
and capsize.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import casadi as ca
import numpy as np

from nh_control.control.constraints import Constraint
from nh_control.control.projection import project_trajectory
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import nonholonomic_midpoint
from nh_control.mechanics.consistent_states import satisfy_constraints
from nh_control.mechanics.external_forces import ForceTarget
from nh_control.mechanics.system import System
from nh_control.scenarios.bicycle_visual import visual_model
from nh_control.scenarios.constraints import ScenarioConstraint
from nh_control.scenarios.driving import Course, smoothstep
from nh_control.scenarios.frames import on_frames
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.perturbation import SeededPerturbation, error_seed, initial_error
from nh_control.scenarios.scenario import Joint, PlanarBody, Scenario
from nh_control.scenarios.visual_model import ODOM
from nh_control.systems.bicycle import BicycleParameters, bicycle, bicycle_model

SPEED, SLOW, RIDERLESS = 5.0, 4.0, (3, 4, 5, 6, 8, 10)
"""Speeds (m/s). Riding upright is stable between 4.29 and 6.02 m/s."""
RIDE_S, BEFORE_S, LANE_S, LANE_M = 8.0, 1.0, 4.0, 2.5
"""Duration (s) of a ride, time (s) before the lane change, and duration (s) and width (m) of the
lane change.
"""
RADIUS, ENTRY_S = 10.0, 3.0
"""Radius (m) of the circle, and time (s) until the turn is steady."""
PUSHED, FALLEN = 0.02, 0.6
"""Initial lean (rad) in riderless motions, and lean or steering angle (rad) at which they stop."""
STOP, TIGHT = 0.6, 0.05
"""Steering angles (rad): the mechanical stop of the handlebar, and a limit that a lane change
exceeds.
"""
LANE = Course(
    lambda s: (s, LANE_M * smoothstep((s - SPEED * BEFORE_S) / (SPEED * LANE_S))),
    lambda t: SPEED * t,
    RIDE_S,
)
POSE = ("contact_theta", "contact_x", "contact_y")
FOLLOW = ("contact_omega", "contact_v_side", "rear_wheel_dot", "front_wheel_dot")
"""Velocities that the rolling constraints determine."""
NEWTON = 5
"""Number of Newton iterations for the pitch at which the front wheel touches the ground."""


_Q = np.diag([10.0, 3.0, 5.0, 50.0, 0.0, 0.0, 5.0, 0.0, 0.0, 10.0, 0.0, 20.0, 0.0, 0.0, 1.0, 0.0])
"""Order: heading, forward, side, lean, pitch, rear wheel, steering, front wheel, and their
rates.
"""
WEIGHTS = _Q, np.diag([0.3, 0.05]), 10 * _Q


class Rolling:
    """Computes states in which both wheels roll on the ground."""

    def __init__(self, dsys: DiscreteSystem):
        system, self.space = dsys.system, dsys.system.space
        q, names = system.symbols[0], self.space.velocity_names
        height = system.holonomic(q)
        self._dsys, self._pitch = dsys, self.space.names.index("pitch")
        slope = ca.jacobian(height, q)[self._pitch]
        rows = system.constraint_matrix(q)
        self._functions = [
            ca.Function(name, [q], [out])
            for name, out in (("step", height / slope), ("rows", rows))
        ]
        self._follow = [names.index(name) for name in FOLLOW]

    def __call__(self, **values: float) -> np.ndarray:
        """The state (nx) with the given values of coordinates, `contact_v_forward` (m/s),
        `lean_dot` and `steer_dot`. The pitch and the other velocities follow from the contacts of
        the wheels with the ground.
        """
        q, v = (
            np.array([values.get(name, 0.0) for name in names])
            for names in (self.space.names, self.space.velocity_names)
        )
        step, rows = self._functions
        for _ in range(NEWTON):
            # Newton's method for the height of the front contact:
            # pitch -= height / (d height / d pitch).
            q[self._pitch] -= float(step(q))
        # Solve A(q) v = 0 for the velocities in FOLLOW, whose previous values are zero.
        matrix = np.asarray(rows(q))
        v[self._follow] = np.linalg.solve(matrix[:, self._follow], -matrix @ v)
        return self._dsys.state(q, v)


def steady_turn(
    dsys: DiscreteSystem, speed: float, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """The state (nx) and input (nu) in a steady turn to the left. Lean, steering and all speeds
    are constant, and `radius` (m) is the radius of the rear contact's path.

    A step of the model leaves these values unchanged. Raises ValueError if no such turn is found.
    """
    from scipy.optimize import root  # slow to import

    rolling, space = Rolling(dsys), dsys.system.space
    of_q = [space.names.index(name) for name in ("lean", "steer")]
    of_v = [space.velocity_names.index(n) for n in ("contact_v_forward", "lean_dot", "steer_dot")]

    def at(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        names = "lean", "steer", "lean_dot", "steer_dot"
        return rolling(contact_v_forward=speed, **dict(zip(names, z))), z[4:]

    def steady_values(x: np.ndarray) -> np.ndarray:
        return np.concatenate([dsys.configuration(x)[of_q], dsys.velocity(x)[of_v]])

    # Unknowns z = (lean, steer, their rates, u). Equations s(f(x, u)) = s(x) and yaw rate R = v.
    def residual(z: np.ndarray) -> np.ndarray:
        x, u = at(z)
        yaw_rate, forward, *_ = dsys.velocity(x)
        change = steady_values(dsys.step(x, u)) - steady_values(x)
        return np.append(change, dsys.h * (yaw_rate * radius - forward))

    solution = root(residual, np.array([-0.2, 0.1, 0.0, 0.0, 0.0, 0.0]), tol=1e-12)
    if np.abs(solution.fun).max() > 1e-10:
        raise ValueError(f"{dsys}: no turn of {radius} m at {speed} m/s: {solution.message}")
    return at(solution.x)


def straight(speed: float, dsys: DiscreteSystem) -> Trajectory:
    """The bicycle rides upright and straight ahead, without torques."""
    steps = round(RIDE_S / dsys.h)
    return dsys.simulate(Rolling(dsys)(contact_v_forward=speed), np.zeros((steps, dsys.nu)))


def riderless(speed: float, dsys: DiscreteSystem) -> Trajectory:
    """The motion without torques that starts with a slight lean to the right and stops when the
    lean or the steering angle reaches FALLEN.
    """
    turned = [dsys.state_names.index(name) for name in ("lean", "steer")]
    states = [Rolling(dsys)(contact_v_forward=speed, lean=PUSHED)]
    while np.abs(states[-1][turned]).max() < FALLEN and len(states) <= round(RIDE_S / dsys.h):
        states.append(dsys.step(states[-1], np.zeros(dsys.nu)))
    return dsys.simulate(states[0], np.zeros((len(states) - 1, dsys.nu)))


def turning(dsys: DiscreteSystem, curvature: np.ndarray) -> Trajectory:
    """The motion at SPEED near a path with the given curvatures (N + 1, 1/m) at the nodes.

    An initial guess scales the lean, steering and torques in the steady turn with RADIUS in
    proportion to the curvature. The guess is not a motion of the model, but projection by feedback
    turns it into one.
    """
    x, u = steady_turn(dsys, SPEED, RADIUS)
    values, rolling, share = dict(zip(dsys.state_names, x)), Rolling(dsys), RADIUS * curvature
    # Integrate the heading, theta' = v kappa, and then the position with the midpoint headings.
    heading = np.concatenate([[0.0], SPEED * dsys.h * np.cumsum(curvature[:-1])])
    along = heading[:-1] + SPEED * dsys.h * curvature[:-1] / 2
    x, y = SPEED * dsys.h * np.cumsum([np.cos(along), np.sin(along)], axis=1)
    poses = np.column_stack([heading, np.append(0.0, x), np.append(0.0, y)])
    states = [
        rolling(
            lean=s * values["lean"],
            steer=s * values["steer"],
            contact_v_forward=SPEED,
            **dict(zip(POSE, pose)),
        )
        for s, pose in zip(share, poses)
    ]
    guess = Trajectory(dsys.h, np.array(states), share[:-1, None] * u)
    Q, R, Qf = WEIGHTS
    return project_trajectory(dsys, guess, Q, R, Qf)


def lane_change(dsys: DiscreteSystem) -> Trajectory:
    """A change to the left lane. The bicycle first steers to the right, to lean to the left."""
    times = dsys.h * np.arange(round(RIDE_S / dsys.h) + 1)
    return turning(dsys, np.array([LANE.rates(t).curvature for t in times]))


def circle(dsys: DiscreteSystem) -> Trajectory:
    """From riding straight ahead into a steady turn, once around the circle."""
    duration = ENTRY_S + 2 * np.pi * RADIUS / SPEED
    times = dsys.h * np.arange(round(duration / dsys.h) + 1)
    share = [float(smoothstep(t / ENTRY_S)) for t in times]
    return turning(dsys, np.array(share) / RADIUS)


@dataclass(frozen=True)
class BicyclePerturbation(SeededPerturbation):
    """The initial error of a bicycle."""

    position: float = initial_error("m", "distance from the reference's position, to the left")
    heading: float = initial_error("rad", "turn to the left")
    lean: float = initial_error("rad", "lean to the left")
    speed: float = initial_error("m/s", "additional speed")
    seed: int = error_seed()


def perturbed(
    model: DiscreteSystem, x: np.ndarray, perturbation: BicyclePerturbation
) -> np.ndarray:
    """The state x (nx) after displacing, rotating, tilting and accelerating the bicycle, with the
    wheels on the ground.
    """
    space = model.system.space
    direction, signs = perturbation.draw_direction_and_signs(3)
    forward, side = perturbation.position * direction
    turn, lean, speed = signs * [perturbation.heading, -perturbation.lean, perturbation.speed]
    errors = {"contact_theta": turn, "forward": forward, "side": side, "lean": lean}
    if not any([*errors.values(), speed]):
        return x
    change = [errors.get(name, 0.0) for name in space.tangent_names]
    q = space.retract(model.configuration(x), change)
    # The displaced configuration violates the contact. Lean and steering are kept, and the pitch
    # is corrected.
    q = satisfy_constraints(model.system, q, ("lean", "steer"))
    v = model.velocity(x)
    forward = v[space.velocity_names.index("contact_v_forward")]
    return model.state(q, v * (1 + speed / forward))


def on_saddle(system: System) -> tuple[ForceTarget, ...]:
    """The disturbance target: the saddle."""
    return on_frames(bicycle_model(), ("saddle",))


def steering(name: str, most: float, dsys: DiscreteSystem) -> Constraint:
    """The constraint |steer| <= `most` (rad)."""
    place = dsys.state_names.index("steer")
    return Constraint(name, lambda x, u, w: x[place], -most, most, weight=1e4)


BICYCLE = Scenario(
    name="bicycle",
    title="Bicycle riding and turning",
    parameters=BicycleParameters(),
    make_system=bicycle,
    nodes={"fallback": "damp"},  # a rolling vehicle keeps moving without forces
    integrators={"midpoint": nonholonomic_midpoint},
    meanings={
        "straight": "straight ahead at 5 m/s, where riding is stable",
        "slow": "straight ahead at 4 m/s, where the bicycle weaves",
        "tight_steering": "the lane change with a limit of 0.05 rad, for predictive control",
        **{
            f"riderless_{speed}": f"without torques from {speed} m/s, from a slight lean"
            for speed in RIDERLESS
        },
    },
    references={
        "lane_change": lane_change,
        "circle": circle,
        "straight": partial(straight, SPEED),
        "slow": partial(straight, SLOW),
        "tight_steering": lane_change,
        **{f"riderless_{speed}": partial(riderless, float(speed)) for speed in RIDERLESS},
    },
    weights=WEIGHTS,
    perturbation=BicyclePerturbation(position=0.1, heading=0.02, lean=0.05, speed=0.1),
    perturb=perturbed,
    joints=tuple(
        Joint(f"{name}_joint", name)
        for name in ("lean", "pitch", "rear_wheel", "steer", "front_wheel")
    ),
    body=PlanarBody("base_link", ODOM, POSE),
    external=on_saddle,
    visual=visual_model,
    step_s=0.02,
    limits=SafetyLimits(
        error=2.0, ranges=(f"steer_joint:{-2 * STOP}:{2 * STOP}", "lean_joint:-1.2:1.2")
    ),
    constraints={
        "stop": ScenarioConstraint(partial(steering, "stop", STOP), "rad"),
        "tight_steering": ScenarioConstraint(
            partial(steering, "tight_steering", TIGHT), "rad", ("tight_steering",)
        ),
    },
    horizon_s=1.2,
)
