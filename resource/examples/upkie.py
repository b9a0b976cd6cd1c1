"""Upkie, a biped on wheels, balances, drives and is pushed: pip install upkie-description.

nh_control simulate upkie.py --disturb base:gust:20,0,0,start=1,duration=0.2
nh_control simulate upkie.py --reference drive
nh_control run upkie.py --disturb base:gust:20,0,0,start=1,duration=0.2

LQR holds it by the exact derivatives of the step through the contact of its tires with the ground.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import numpy as np

import nh_control as nh
from nh_control.control import lqr
from nh_control.scenarios.joints import JointPerturbation
from nh_control.scenarios.urdf import at_rest, of_robot, standing

URDF = str(files("upkie_description") / "urdf/upkie.urdf")
RADIUS, FRICTION = 0.05, 0.8
"""Of the tires, radius in m."""
LEGS = "left_hip", "left_knee", "right_hip", "right_knee"
DISTANCE, DRIVE_S, SETTLE_S = 1.0, 4.0, 6.0
"""Way (m) of the reference "drive", its time (s), and the time in which it comes to rest."""
ERRORS = {"base_rotation": 0.03, "base": 0.3, "hip": 0.02, "knee": 0.02}
RATES = {"base": 10.0, "hip": 20.0, "knee": 20.0, "wheel": 50.0}
EFFORTS = {"hip": 4.0, "knee": 4.0, "wheel": 0.3}
"""Errors (rad, m), rates and efforts (N m) that count 1 in the cost; wheels may turn."""

TIRES = tuple(
    nh.Contact(f"{side}_wheel_tire", nh.Disc(RADIUS, "z"), friction=FRICTION, name=f"{side}_tire")
    for side in ("left", "right")
)
MODEL = replace(
    nh.load_urdf(URDF, base="floating", space="SO3xR3"), contacts=TIRES, smoothing=1e-6
)
NAMES = MODEL.system.mechanics.state_space.tangent_names
EXCLUDED = "base_y", "left_wheel", "right_wheel"
"""Coordinates that are not held: across the wheels Upkie cannot move, and turns count for
nothing.
"""


def chosen(sizes: dict[str, float], names: tuple[str, ...]) -> np.ndarray:
    """The size (n) of every name, that of the longest key in it; infinite without one."""
    keys = [max((k for k in sizes if k in name), key=len, default="") for name in names]
    return np.array([sizes.get(key, np.inf) for key in keys])


def weights(base: float = ERRORS["base"]) -> tuple[np.ndarray, np.ndarray, None]:
    """Bryson's rule for errors of configurations, velocities `v = M^{-1} p`, and efforts."""
    n, names = MODEL.space.nv, NAMES[: MODEL.space.nv]
    slow = np.linalg.inv(MODEL.mass_matrix(MODEL.configuration())) / chosen(RATES, names)[:, None]
    Q = np.zeros((2 * n, 2 * n))
    Q[:n, :n], Q[n:, n:] = np.diag(1 / chosen({**ERRORS, "base": base}, names) ** 2), slow.T @ slow
    return Q, np.diag(1 / chosen(EFFORTS, MODEL.system.inputs) ** 2), None


def upright(model: nh.DiscreteSystem) -> tuple[np.ndarray, np.ndarray]:
    """State and input at rest on straight legs."""
    return standing(model, MODEL.configuration(), LEGS)


def stand(model: nh.DiscreteSystem) -> nh.Trajectory:
    """At rest for 10 s."""
    return at_rest(model, *upright(model))


def drive(model: nh.DiscreteSystem) -> nh.Trajectory:
    """Forward from rest to rest: the motion of Upkie when its feedback follows a moving place."""
    x, u = upright(model)
    Q, R, _ = weights(base=0.03)  # closer to the moving place than pushes allow
    K = lqr.infinite_horizon(model, x, u, Q, R, 1e-6, EXCLUDED).K
    still, space = x[MODEL.space.nq :], model.state_space
    states, inputs = [x], []
    for t in model.h * np.arange(round((DRIVE_S + SETTLE_S) / model.h)):
        s = min(t / DRIVE_S, 1.0)
        way, speed = s**3 * (10 - 15 * s + 6 * s**2), 30 * s**2 * (1 - s) ** 2 / DRIVE_S
        change = DISTANCE * forward()
        q = MODEL.space.retract(x[: MODEL.space.nq], way * change)
        momentum = model.state(q, speed * change) - model.state(q, 0 * change)
        target = np.concatenate([q, still]) + momentum
        inputs.append(u - K @ space.local(target, states[-1]))
        states.append(model.step(states[-1], inputs[-1]))
    return nh.Trajectory(model.h, np.array(states), np.array(inputs), dsys=model)


def forward() -> np.ndarray:
    """Tangent vector (nv) of a motion forward by 1 m: the wheels roll, which are mirrored."""
    moved = {"base_x": 1.0, "left_wheel": 1 / RADIUS, "right_wheel": -1 / RADIUS}
    return np.array([moved.get(name, 0.0) for name in MODEL.space.tangent_names])


UPKIE = replace(
    of_robot(MODEL, URDF),
    name="upkie",
    title="Upkie on its wheels",
    references={"stand": stand, "drive": drive},
    weights=weights(),
    excluded=EXCLUDED,
    perturbation=JointPerturbation(),
)
