"""The discrete Lagrangian of a step and its trivialized derivatives."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from nh_control.geometry.spaces import StepGeometry


def discrete_momenta(gradients: Callable, h: ca.SX, segment: StepGeometry) -> tuple[ca.SX, ca.SX]:
    """Momenta `(-D1 Ld, D2 Ld)` at the two ends of a step, `Ld(q0, q1) = h L(middle, w / h)`, (nv)
    each.

    D1, D2 are derivatives along trivialized variations of q0 and q1. On Rn these are the slots of
    (2) in [johnson2014].
    """
    gradient_q, gradient_v = gradients(segment.middle, segment.w / h)
    gradient = ca.vertcat(h * gradient_q, gradient_v)
    return -segment.j0.T @ gradient, segment.j1.T @ gradient
