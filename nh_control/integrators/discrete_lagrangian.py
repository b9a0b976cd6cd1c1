"""The discrete Lagrangian of a step and its trivialized derivatives."""

from __future__ import annotations

import casadi as ca

from nh_control.spaces import Segment
from nh_control.system import System


def discrete_momenta(system: System, h: float, segment: Segment) -> tuple[ca.SX, ca.SX]:
    """Momenta `(-D1 Ld, D2 Ld)` at the two ends of a step, `Ld(q0, q1) = h L(middle, w / h)`, (nv) each.

    D1, D2 are derivatives along trivialized variations of q0 and q1. On Rn these are the slots of (2) in [johnson2014].
    """
    q, v = ca.SX.sym("q", segment.middle.shape[0]), ca.SX.sym("v", segment.w.shape[0])
    at = ca.vertcat(q, v)
    ld = h * system.lagrangian(q, v)
    gradient = ca.substitute(ca.gradient(ld, at), at, ca.vertcat(segment.middle, segment.w / h))
    gradient = ca.vertcat(gradient[: q.shape[0]], gradient[q.shape[0] :] / h)
    return -segment.j0.T @ gradient, segment.j1.T @ gradient
