"""A UR5e moves its tool around a ball in its way: pip install airo-models.

nh_control simulate ur5e_around_ball.py                      the optimal way around, under LQR
nh_control simulate ur5e_around_ball.py --reference across --controller mpc
nh_control run ur5e_around_ball.py --reference across --controller mpc

`across` leads through the ball, where LQR follows it and predictive control does not.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import numpy as np

import nh_control as nh
from nh_control.scenarios.joints import JointPerturbation, ending_at_rest
from nh_control.scenarios.obstacles import clear_of
from nh_control.scenarios.urdf import of_robot

URDF = str(files("airo_models") / "arms/ur5e/ur5e.urdf")
START, END = np.array([[-0.8, -1.2, 1.6, -1.97, -1.57, 0.0], [0.8, -1.2, 1.6, -1.97, -1.57, 0.0]])
"""Angles of the joints in rad: the tool points down, to both sides of x."""
MOVE_S = 2.0
BALL = (0.615, 0.133, 0.246), 0.15
"""Center and radius in m, a little below where the tool comes along."""
KEPT_OUT = "tool0", "wrist_3_link", "wrist_2_link", "wrist_1_link"
MARGIN = 0.02
"""How far in m the reference stays away from the ball."""

ARM = of_robot(nh.load_urdf(URDF), URDF)


def holding(model: nh.DiscreteSystem, x: np.ndarray) -> np.ndarray:
    """The torques (nu) that hold a state at rest."""
    fixed = model.state_space.tangent_names
    return nh.equilibrium(model, x, np.zeros(model.nu), fixed=fixed)[1]


def across(model: nh.DiscreteSystem) -> nh.Trajectory:
    """From side to side at once, from rest to rest, through the ball."""
    return _move(model, [])


def around(model: nh.DiscreteSystem) -> nh.Trajectory:
    """From side to side around the ball, within the limits of the torques."""
    center, radius = BALL
    balls = [nh.keep_out(model, f, center, radius + MARGIN, name=f) for f in KEPT_OUT]
    return _move(model, balls)


def _move(model: nh.DiscreteSystem, constraints: list[nh.Constraint]) -> nh.Trajectory:
    """The motion closest to that with the least jerk of the joints."""
    s = np.linspace(0, 1, round(MOVE_S / model.h) + 1)[:, None]
    angles = START + (END - START) * s**3 * (10 - 15 * s + 6 * s**2)
    rates = (END - START) * 30 * s**2 * (1 - s) ** 2 / MOVE_S
    states = np.array([model.state(*one) for one in zip(angles, rates)])
    still = [model.state(q, np.zeros(model.nu)) for q in angles]
    guess = nh.Trajectory(model.h, states, np.array([holding(model, x) for x in still[:-1]]))
    Q = model.h * np.diag(np.repeat([1.0, 0.0], model.nu))
    cost = nh.quadratic_cost(model, guess, Q, model.h * 1e-3 * np.eye(model.nu))
    limits = nh.Limits.of(model)
    found = nh.optimize(
        model, cost, guess, limits=limits, constraints=constraints, end=still[-1], tolerance=1e-6
    )
    if not found.converged:
        raise ValueError(f"no way around the ball: {found.reason}")
    return ending_at_rest(found.trajectory, still[-1], holding(model, still[-1]))


UR5E_AROUND_BALL = replace(
    ARM,
    name="ur5e_around_ball",
    title="A UR5e around a ball",
    source={},
    references={"around": around, "across": across},
    perturbation=JointPerturbation(angle=0.02),
    constraints={**ARM.constraints, "ball": clear_of(KEPT_OUT, [BALL], 1e4)},
    step_s=0.01,
    horizon_s=0.5,
)
