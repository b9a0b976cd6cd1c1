"""JVRC-1, a humanoid, stands, is pushed, and squats: pip install jvrc-description.

nh_control simulate jvrc1.py --disturb base_link:gust:60,0,0,start=1,duration=0.1
nh_control simulate jvrc1.py --reference squat
nh_control run jvrc1.py --reference squat

LQR acts by the exact derivatives of the step through eight contacts of its feet with the ground,
in the directions that they leave free (`stance`).
"""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import numpy as np

import nh_control as nh
from nh_control.multibody import Point
from nh_control.scenarios.joints import JointPerturbation
from nh_control.scenarios.urdf import at_rest, of_robot, standing

URDF = str(files("jvrc_description") / "urdf/jvrc1.urdf")
SOLE, FRICTION = (0.1, 0.05, -0.1), 0.7
"""Half length, half width and height (m) of a sole in the axes of its foot."""
ARMS = {"L_ELBOW_P": -0.3, "R_ELBOW_P": -0.3, "L_UTHUMB": 0.1, "R_UTHUMB": -0.1}
"""Angles (rad) away from the ends of their ranges."""
STAND, SQUAT = 0.4, 1.0
"""Angles (rad) of hips and ankles, half of those of the knees."""
DOWN_S, STAY_S, SETTLE_S = 2.0, 0.5, 4.0
"""Time (s) of the way down and that up, at the bottom, and in which it comes to rest."""
ERRORS = {"base_rotation": 0.1, "base": 0.1, "joint": 0.3}
RATES, EFFORT = {"base": 0.5, "joint": 2.0}, 50.0
"""Errors (rad, m), rates and efforts (N m) that count 1 in the cost."""


def soles(model: nh.Multibody) -> tuple[nh.Contact, ...]:
    """The four corners of each sole, which is level where all joints are at 0."""
    corners, q = [], model.configuration()
    for side in "LR":
        foot = f"{side}_ANKLE_P_S"
        turned = model.pose(q, foot).rotation.T
        for i, (x, y) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1)), 1):
            place = turned @ np.multiply((x, y, 1), SOLE)
            name = f"{side}_sole_{i}"
            corners.append(nh.Contact(Point(foot, tuple(place)), nh.Corner(), FRICTION, name=name))
    return tuple(corners)


ROBOT = nh.load_urdf(URDF, base="floating", space="SO3xR3")
MODEL = replace(ROBOT, contacts=soles(ROBOT), smoothing=1e-4)
JOINTS = MODEL.tree.scalars


def bent(angle: float) -> np.ndarray:
    """The configuration with bent legs and level soles."""
    angles = {"HIP_P": -angle, "KNEE": 2 * angle, "ANKLE_P": -angle}
    legs = {f"{side}_{name}": a for side in "LR" for name, a in angles.items()}
    return MODEL.configuration(ARMS | legs)


def stand(model: nh.DiscreteSystem) -> nh.Trajectory:
    """At rest for 10 s."""
    return at_rest(model, *standing(model, bent(STAND), JOINTS))


def squat(model: nh.DiscreteSystem) -> nh.Trajectory:
    """Down and up again, from rest to rest: the motion of the robot closest to postures that are
    in equilibrium, with their velocities.
    """
    from scipy.interpolate import CubicSpline

    knots, space, nq = np.linspace(0.0, 1.0, 9), MODEL.space, MODEL.space.nq
    held = [standing(model, bent(STAND + s * (SQUAT - STAND)), JOINTS) for s in knots]
    t = model.h * np.arange(round((2 * DOWN_S + STAY_S + SETTLE_S) / model.h) + 1)
    s = np.clip(np.minimum(t, 2 * DOWN_S + STAY_S - t) / DOWN_S, 0.0, 1.0)
    way = CubicSpline(knots, [np.concatenate(pair) for pair in held])
    states, inputs = np.split(way(s**3 * (10 - 15 * s + 6 * s**2)), [model.nx], axis=1)
    states[:, :4] /= np.linalg.norm(states[:, :4], axis=1, keepdims=True)
    q = states[:, :nq].copy()
    for k in range(1, len(q) - 1):
        velocity = space.local(q[k - 1], q[k + 1]) / (2 * model.h)
        states[k] += model.state(q[k], velocity) - model.state(q[k], 0 * velocity)
    postures = nh.Trajectory(model.h, states, inputs[:-1], dsys=model)
    return nh.project_trajectory(model, postures, *weights()[:2], stance=True)


def weights() -> tuple[np.ndarray, np.ndarray, None]:
    """Bryson's rule for errors of configurations, velocities `v = M^{-1} p`, and efforts."""
    n = MODEL.space.nv
    errors = np.repeat(list(ERRORS.values()), [3, 3, n - 6])
    rates = np.repeat(list(RATES.values()), [6, n - 6])
    slow = np.linalg.inv(MODEL.mass_matrix(bent(STAND))) / rates[:, None]
    Q = np.zeros((2 * n, 2 * n))
    Q[:n, :n], Q[n:, n:] = np.diag(1 / errors**2), slow.T @ slow
    return Q, np.eye(len(MODEL.system.inputs)) / EFFORT**2, None


JVRC1 = replace(
    of_robot(MODEL, URDF),
    name="jvrc1",
    title="JVRC-1 on its feet",
    source={},
    references={"stand": stand, "squat": squat},
    weights=weights(),
    perturbation=JointPerturbation(),
)
