"""The ballbot scenario: a body balances on a ball while standing still, moving along a line or
moving in a circle. The motion is tracked by LQR, or by predictive control that limits the lean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from nh_control.control.costs import Cost
from nh_control.control.optimize import optimize
from nh_control.control.path_constraints import tilt_limit
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.integrators import nonholonomic_midpoint
from nh_control.mechanics.external_forces import ForceTarget
from nh_control.scenarios.ballbot_visual import visual_model
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
from nh_control.scenarios.scenario import BodyState, Joint, Scenario
from nh_control.scenarios.visual_model import ODOM
from nh_control.systems.ballbot import BODY, CENTER, DRIVES, BallbotParameters, ballbot

STAND_S, REST_S = 5.0, 1.5
"""Durations (s) of `stand` and of the rest after a path."""
CLOSE, UPRIGHT, EFFORT, END = 20.0, 10.0, 0.02, 1e6
"""Weights on the distance from a path (1/m^2), the body's attitude, the torques (1/(N m)^2), and
the final deviation from rest.
"""
LEAN = np.radians(12)
"""Maximum lean (rad) of the body that predictive control allows."""
ATTITUDE, PLACE = slice(1, 4), slice(4, 6)
"""Slices of a configuration: the vector part of the body's quaternion, and the position of the
ball.
"""


@dataclass(frozen=True)
class BallPath:
    """A path `path(s) -> (x, y)` (m) of the ball for s from 0 to 1. The motion takes `duration` s,
    and it starts and ends at rest.
    """

    path: Callable[[ca.SX], tuple[ca.SX, ca.SX]]
    duration: float

    def reference(self, dsys: DiscreteSystem) -> Trajectory:
        """The motion that minimizes the distance from the path, the lean and the effort.

        In the initial guess, the body is upright and moves along the path. Raises ValueError if
        the optimization does not converge.
        """
        t, nq = ca.SX.sym("t"), dsys.system.space.nq
        # Positions path(smoothstep(t / T)) along the path, and their rates.
        place = ca.vertcat(*self.path(smoothstep(t / self.duration)))
        along = ca.Function("along", [t], [place, ca.jacobian(place, t)])
        times = dsys.h * np.arange(round((self.duration + REST_S) / dsys.h) + 1)
        places, rates = (np.asarray(table).T for table in along(times[None]))
        states = np.array([upright(dsys, at, rate) for at, rate in zip(places, rates)])
        # The guess is not a motion of the model. The optimizer closes its gaps.
        guess = Trajectory(dsys.h, states, np.zeros((len(times) - 1, dsys.nu)))

        def error(x: ca.SX, w: ca.SX) -> ca.SX:
            return CLOSE * ca.sumsqr(x[PLACE] - w) + UPRIGHT * ca.sumsqr(x[ATTITUDE])

        cost = Cost(
            lambda x, u, w: dsys.h / 2 * (error(x, w) + EFFORT * ca.sumsqr(u)),
            lambda x, w: END / 2 * (error(x, w) + ca.sumsqr(x[nq:])),
            places,
        )
        optimum = optimize(dsys, cost, guess)
        if not optimum.converged:
            raise ValueError(f"{dsys}: no motion found ({optimum.reason}); choose another step")
        q = dsys.configuration(optimum.trajectory.states[-1]).copy()
        # The optimum is only nearly at rest in the last state, so an exact state of rest replaces
        # it.
        q[:6] = 1.0, 0.0, 0.0, 0.0, *places[-1]
        rest = dsys.state(q, np.zeros(dsys.system.space.nw))
        return ending_at_rest(optimum.trajectory, rest, np.zeros(dsys.nu))


def upright(
    dsys: DiscreteSystem, place: Sequence[float], rate: Sequence[float] = (0.0, 0.0)
) -> np.ndarray:
    """The state (nx) with the body upright and the ball at `place` (2, m), rolling with the
    velocity `rate` (2, m/s).
    """
    system: Any = dsys.system
    model = system.model
    vx, vy = rate
    r = model.wheels[0].radius
    q = model.configuration({"x": place[0], "y": place[1]})
    # The ball rolls without slip, so a drive turns at v / r.
    drives = {"roll_drive_dot": -vy / r, "pitch_drive_dot": vx / r}
    return dsys.state(q, model.velocity({"x_dot": vx, "y_dot": vy, **drives}))


def stand(dsys: DiscreteSystem) -> Trajectory:
    """The body stands upright, at rest."""
    return dsys.simulate(upright(dsys, (0.0, 0.0)), np.zeros((round(STAND_S / dsys.h), dsys.nu)))


PATHS = {
    "move": BallPath(lambda s: (1.6 * s, 1.2 * s), 4.0),
    "circle": BallPath(lambda s: (ca.sin(2 * np.pi * s), 1.0 - ca.cos(2 * np.pi * s)), 8.0),
}
"""Paths of the references: 2 m forward and to the left, and once around a circle of radius 1 m."""


@dataclass(frozen=True)
class BallbotPerturbation(SeededPerturbation):
    """The initial error of a ballbot."""

    position: float = initial_error("m", "distance from the reference's position, to the left")
    lean: float = initial_error("rad", "lean of the body to that side")
    heading: float = initial_error("rad", "turn of the body to the left")
    momentum: float = momentum_error()
    seed: int = error_seed()


def perturbed(
    model: DiscreteSystem, x: np.ndarray, perturbation: BallbotPerturbation
) -> np.ndarray:
    """The state x (nx) with the ball displaced, the body rotated by a vector of lean and heading
    in body axes, and all momenta scaled.
    """
    (dx, dy), signs = perturbation.draw_direction_and_signs(1 + model.system.nrho)
    # A lean towards (dx, dy) is a rotation about (-dy, dx).
    turn = -perturbation.lean * dy, perturbation.lean * dx, signs[0] * perturbation.heading
    change = np.array(
        [*turn, perturbation.position * dx, perturbation.position * dy, 0.0, 0.0, 0.0]
    )
    momenta = np.concatenate([np.ones(model.system.space.nv), signs[1:]])
    return perturb_state(model, x, change, perturbation.momentum, momenta)


def to_bodies(
    parameters: BallbotParameters, q: np.ndarray, v: np.ndarray
) -> tuple[BodyState, ...]:
    """The state of the body. Its origin is at the center of the ball."""
    return (
        BodyState(
            BODY, ODOM, np.array([*q[4:6], parameters.r]), q[:4], np.array([*v[3:5], 0]), v[:3]
        ),
    )


def from_bodies(bodies: Sequence[BodyState]) -> tuple[np.ndarray, np.ndarray]:
    """The body's attitude and position (6), and its angular and linear velocity (5). Raises
    ValueError for other bodies.
    """
    if [body.frame for body in bodies] != [BODY]:
        raise ValueError(f"expected the body {BODY}, got {[body.frame for body in bodies]}")
    (body,) = bodies
    attitude = np.divide(body.quaternion_wxyz, np.linalg.norm(body.quaternion_wxyz))
    return (
        np.concatenate([attitude, body.position[:2]]),
        np.concatenate([body.angular_velocity_body, body.linear_velocity[:2]]),
    )


def on_center(system: Any) -> tuple[ForceTarget, ...]:
    """The disturbance target: the body's center of mass."""
    return on_frames(system.model, (CENTER,))


_Q = np.diag([10.0, 10.0, 5.0, 20.0, 20.0, *(0.0,) * 3, 1.0, 1.0, 1.0, 5.0, 5.0, *(0.0,) * 3])

BALLBOT = Scenario(
    name="ballbot",
    title="Ballbot balancing on a rolling ball",
    parameters=BallbotParameters(),
    make_system=ballbot,
    integrators={"midpoint": nonholonomic_midpoint},
    meanings={
        "move": "2 m to the front and left, from rest to rest",
        "circle": "once around a circle of radius 1 m, from rest to rest",
    },
    references={**{name: path.reference for name, path in PATHS.items()}, "stand": stand},
    weights=(_Q, np.diag([0.2, 0.2, 0.5]), None),
    perturbation=BallbotPerturbation(position=0.1, lean=0.03, heading=0.1, momentum=0.1),
    perturb=perturbed,
    joints=tuple(Joint(f"{name}_joint", name) for name in DRIVES),
    to_bodies=to_bodies,
    from_bodies=from_bodies,
    external=on_center,
    visual=visual_model,
    step_s=0.02,
    hold=True,
    excluded=tuple(DRIVES),
    limits=SafetyLimits(ranges=(f"{BODY}.tilt:0:1",)),
    constraints={
        "lean": ScenarioConstraint(
            partial(tilt_limit, angle=LEAN, weight=1e3, name="lean"), references=("circle",)
        )
    },
    horizon_s=1.0,
)
