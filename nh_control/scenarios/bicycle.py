"""The bicycle scenario: riding straight on, changing lanes and turning, by torques on the steering
and on the rear wheel, and riding without them at speeds between weave and capsize.
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
from nh_control.scenarios.bicycle_visual import ODOM, visual_model
from nh_control.scenarios.constraints import ScenarioConstraint
from nh_control.scenarios.driving import Course, smoothstep
from nh_control.scenarios.frames import on_frames
from nh_control.scenarios.limits import SafetyLimits
from nh_control.scenarios.perturbation import SeededPerturbation, error_seed, initial_error
from nh_control.scenarios.scenario import Body, Joint, Scenario
from nh_control.systems.bicycle import BicycleParameters, bicycle, bicycle_model

SPEED, SLOW, RIDERLESS = 5.0, 4.0, (3, 4, 5, 6, 8, 10)
"""Speeds (m/s): upright riding is stable between 4.29 and 6.02 m/s."""
RIDE_S, BEFORE_S, LANE_S, LANE_M = 8.0, 1.0, 4.0, 2.5
"""Duration of rides (s), begin and duration of the change of lanes (s), and its width (m)."""
RADIUS, ENTRY_S = 10.0, 3.0
"""Radius of the circle (m) and time (s) until it is settled."""
PUSHED, FALLEN = 0.02, 0.6
"""Lean (rad) at the start of riderless motions, and lean or steering angle at which they end."""
STOP, TIGHT = 0.6, 0.05
"""Steering angles (rad): the stop of the handlebar, and one that a change of lanes exceeds."""
LANE = Course(
    lambda s: (s, LANE_M * smoothstep((s - SPEED * BEFORE_S) / (SPEED * LANE_S))),
    lambda t: SPEED * t,
    RIDE_S,
)
POSE = ("contact_theta", "contact_x", "contact_y")
FOLLOW = ("contact_omega", "contact_v_side", "rear_wheel_dot", "front_wheel_dot")
"""Velocities that follow from rolling."""
NEWTON = 5
"""Newton steps to the pitch at which the front wheel touches the ground."""


_Q = np.diag([10.0, 3.0, 5.0, 50.0, 0.0, 0.0, 5.0, 0.0, 0.0, 10.0, 0.0, 20.0, 0.0, 0.0, 1.0, 0.0])
"""Heading, forward, side, lean, pitch, rear wheel, steering, front wheel, then their rates."""
WEIGHTS = _Q, np.diag([0.3, 0.05]), 10 * _Q


class Rolling:
    """States of a model that rolls on the ground."""

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
        """The state (nx) with these values of coordinates and of `contact_v_forward` (m/s),
        `lean_dot` and `steer_dot`: the pitch and the other velocities follow from the wheels.
        """
        q, v = (
            np.array([values.get(name, 0.0) for name in names])
            for names in (self.space.names, self.space.velocity_names)
        )
        step, rows = self._functions
        for _ in range(NEWTON):
            q[self._pitch] -= float(step(q))
        matrix = np.asarray(rows(q))
        v[self._follow] = np.linalg.solve(matrix[:, self._follow], -matrix @ v)
        return self._dsys.state(q, v)


def steady_turn(
    dsys: DiscreteSystem, speed: float, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """State (nx) and input (nu) of a turn to the left with a radius (m) of the rear contact in
    which lean, steering and all speeds stay as they are.

    They are those that one step of the model keeps. Raises ValueError if none are found.
    """
    from scipy.optimize import root  # takes long to import

    rolling, space = Rolling(dsys), dsys.system.space
    of_q = [space.names.index(name) for name in ("lean", "steer")]
    of_v = [space.velocity_names.index(n) for n in ("contact_v_forward", "lean_dot", "steer_dot")]

    def at(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        names = "lean", "steer", "lean_dot", "steer_dot"
        return rolling(contact_v_forward=speed, **dict(zip(names, z))), z[4:]

    def kept(x: np.ndarray) -> np.ndarray:
        return np.concatenate([dsys.configuration(x)[of_q], dsys.velocity(x)[of_v]])

    def residual(z: np.ndarray) -> np.ndarray:
        x, u = at(z)
        yaw_rate, forward, *_ = dsys.velocity(x)
        return np.append(kept(dsys.step(x, u)) - kept(x), dsys.h * (yaw_rate * radius - forward))

    found = root(residual, np.array([-0.2, 0.1, 0.0, 0.0, 0.0, 0.0]), tol=1e-12)
    if np.abs(found.fun).max() > 1e-10:
        raise ValueError(f"{dsys}: no turn of {radius} m at {speed} m/s: {found.message}")
    return at(found.x)


def straight(speed: float, dsys: DiscreteSystem) -> Trajectory:
    """Upright and straight on, without torques."""
    steps = round(RIDE_S / dsys.h)
    return dsys.simulate(Rolling(dsys)(contact_v_forward=speed), np.zeros((steps, dsys.nu)))


def riderless(speed: float, dsys: DiscreteSystem) -> Trajectory:
    """The motion without torques from a slight lean to the right, until lean or steering reach
    FALLEN.
    """
    turned = [dsys.state_names.index(name) for name in ("lean", "steer")]
    states = [Rolling(dsys)(contact_v_forward=speed, lean=PUSHED)]
    while np.abs(states[-1][turned]).max() < FALLEN and len(states) <= round(RIDE_S / dsys.h):
        states.append(dsys.step(states[-1], np.zeros(dsys.nu)))
    return dsys.simulate(states[0], np.zeros((len(states) - 1, dsys.nu)))


def turning(dsys: DiscreteSystem, curvature: np.ndarray) -> Trajectory:
    """The motion at SPEED near a path with curvatures (N + 1, 1/m) at the nodes.

    Lean, steering and torques are those of the steady turn of RADIUS times the curvature over
    its own: a wish, which feedback turns into a motion.
    """
    x, u = steady_turn(dsys, SPEED, RADIUS)
    values, rolling, share = dict(zip(dsys.state_names, x)), Rolling(dsys), RADIUS * curvature
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
    wish = Trajectory(dsys.h, np.array(states), share[:-1, None] * u)
    return project_trajectory(dsys, wish, *WEIGHTS)


def lane_change(dsys: DiscreteSystem) -> Trajectory:
    """To the left and straight on; it steers to the right at first to lean to the left."""
    times = dsys.h * np.arange(round(RIDE_S / dsys.h) + 1)
    return turning(dsys, np.array([LANE.rates(t).curvature for t in times]))


def circle(dsys: DiscreteSystem) -> Trajectory:
    """From straight on into a steady turn, once around."""
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
    speed: float = initial_error("m/s", "excess of the speed")
    seed: int = error_seed()


def perturbed(
    model: DiscreteSystem, x: np.ndarray, perturbation: BicyclePerturbation
) -> np.ndarray:
    """State x (nx) moved, turned, leaning and faster, with the wheels on the ground."""
    space, p = model.system.space, perturbation
    direction, signs = p.draw_direction_and_signs(3)
    forward, side = p.position * direction
    turn, lean, speed = signs * [p.heading, -p.lean, p.speed]
    errors = {"contact_theta": turn, "forward": forward, "side": side, "lean": lean}
    if not any([*errors.values(), speed]):
        return x
    change = [errors.get(name, 0.0) for name in space.tangent_names]
    q = space.retract(model.configuration(x), change)
    q = satisfy_constraints(model.system, q, ("lean", "steer"))
    v = model.velocity(x)
    forward = v[space.velocity_names.index("contact_v_forward")]
    return model.state(q, v * (1 + speed / forward))


def on_saddle(system: System) -> tuple[ForceTarget, ...]:
    """The rider may be pushed at the saddle."""
    return on_frames(bicycle_model(), ("saddle",))


def steering(name: str, most: float, dsys: DiscreteSystem) -> Constraint:
    """The handlebar stays within an angle (rad) to both sides."""
    place = dsys.state_names.index("steer")
    return Constraint(name, lambda x, u, w: x[place], -most, most, weight=1e4)


BICYCLE = Scenario(
    name="bicycle",
    title="Bicycle riding and turning",
    parameters=BicycleParameters(),
    make_system=bicycle,
    nodes={"fallback": "damp"},  # what rolls goes on without forces
    integrators={"midpoint": nonholonomic_midpoint},
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
    body=Body("base_link", ODOM, POSE),
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
