"""Coefficients of joint springs, dampers and friction for the linear-time kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from nh_control.multibody.elements import (
    JointDamper,
    JointFriction,
    JointSpring,
    NonlinearJointSpring,
)
from nh_control.multibody.parts import MultibodyParts

ON_JOINTS = (JointSpring, NonlinearJointSpring, JointDamper, JointFriction)
NO_FORCES = {
    "stiffness": 0.0,
    "rest_force": 0.0,
    "damping": 0.0,
    "friction": 0.0,
    "friction_velocity": 1.0,
    "n_knots": 0,
    "spline": 0,
}
"""Coefficients of a joint without springs, dampers or friction."""


def coefficients(model: MultibodyParts) -> dict[str, dict[str, Any]]:
    """Coefficients, as in NO_FORCES, for the coordinates that have springs, dampers or
    friction.
    """
    by_coordinate: dict[str, dict[str, Any]] = {}
    start = 0
    for element in model.elements:
        if not isinstance(element, ON_JOINTS):
            continue
        numbers = by_coordinate.setdefault(element.coordinate, dict(NO_FORCES))
        if isinstance(element, JointSpring):
            # springs add up: sum k_i (q - r_i) = (sum k_i) q - sum k_i r_i
            numbers["stiffness"] += element.stiffness
            numbers["rest_force"] += element.stiffness * element.rest
        elif isinstance(element, JointDamper):
            numbers["damping"] += element.damping
        elif isinstance(element, JointFriction):
            numbers["friction"] = element.friction
            numbers["friction_velocity"] = element.friction_velocity
        else:
            # offsets into the concatenated records of `splines`
            numbers["n_knots"], numbers["spline"] = len(element.force.knots), start
            start += len(_spline_record(element))
    return by_coordinate


def splines(model: MultibodyParts) -> np.ndarray:
    """The concatenated records of all nonlinear springs' splines."""
    sprung = (e for e in model.elements if isinstance(e, NonlinearJointSpring))
    return np.concatenate([np.zeros(0), *map(_spline_record, sprung)])


def _spline_record(element: NonlinearJointSpring) -> np.ndarray:
    """The numbers in the order that `springs_at` in C expects."""
    energy = element.force.antiderivative()
    head = element.scale, element.offset, energy.coefficients.shape[1]
    pieces = np.column_stack([energy.centers, energy.coefficients])
    return np.concatenate([head, energy.knots, pieces.ravel()])
