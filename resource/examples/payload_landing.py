"""Two quadrotors put their payload down on the ground and pick it up again.

nh_control simulate payload_landing.py --perturb-position 0.2
nh_control simulate payload_landing.py --plant-parameter payload_mass=0.45 --integral
nh_control run payload_landing.py

The reference is the motion of quadrotors whose feedback leads the payload below the ground, which
carries it; LQR tracks it by the derivatives of the step through contact.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

import nh_control as nh
from nh_control import scenarios
from nh_control.control import lqr
from nh_control.systems import QuadrotorPayloadParameters, quadrotor_payload

FLYING = scenarios.get("quadrotor_payload")
BELOW, FRICTION = 0.05, 0.5
"""Depth (m) below the ground to which the payload is led, and the ground's friction."""
DOWN_S, REST_S, SETTLE_S = 3.0, 1.0, 8.0
"""Times (s) of the way down, as of that up, on the ground, and of coming to rest in the air."""


def place(q: ca.SX, p: QuadrotorPayloadParameters) -> ca.SX:
    """Position of the payload, the ground's normal and its tangents."""
    return ca.horzcat(q[:3], ca.DM([0, 0, 1]), ca.DM([1, 0, 0]), ca.DM([0, 1, 0]))


def system(parameters: QuadrotorPayloadParameters) -> nh.System:
    """The quadrotors with a payload that the ground at height 0 stops."""
    ground = nh.UnilateralConstraint(
        "ground",
        gap=lambda q, p: q[2],
        point=lambda q, p: q[:2],
        friction=FRICTION,
        place=place,
    )
    flying = quadrotor_payload(parameters)
    return replace(flying, name="payload_landing", contacts=(ground,), smoothing=1e-6)


def height(t: float) -> float:
    """Height (m) to which the payload is led at time t, from 1 m down and up again."""
    s = np.clip(min(t, 2 * DOWN_S + REST_S - t) / DOWN_S, 0.0, 1.0)
    return 1.0 - (1.0 + BELOW) * s**3 * (10 - 15 * s + 6 * s**2)


def landing(model: nh.DiscreteSystem) -> nh.Trajectory:
    """From rest at 1 m down to the ground, and up again."""
    hover = FLYING.reference(FLYING.model(step_s=model.h), "hover")
    x, u = hover.states[0], hover.inputs[0]
    Q, R, _ = FLYING.weights
    K = lqr.infinite_horizon(model, x, u, Q, R, 1e-6).K
    states, inputs, target = [x], [], x.copy()
    for t in model.h * np.arange(round((2 * DOWN_S + REST_S + SETTLE_S) / model.h)):
        target[2] = height(t)
        inputs.append(u - K @ model.local(target, states[-1]))
        states.append(model.step(states[-1], inputs[-1]))
    return nh.Trajectory(model.h, np.array(states), np.array(inputs), dsys=model)


PAYLOAD_LANDING = replace(
    FLYING,
    name="payload_landing",
    title="Two quadrotors that land their payload",
    make_system=system,
    references={"land": landing},
    guidance=None,
    constraints={},
)
