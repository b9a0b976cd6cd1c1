"""The discrete Lagrangian of a step and its trivialized derivatives, shared by the variational integrators."""

from __future__ import annotations

import casadi as ca

from nh_control.spaces import Space
from nh_control.system import System


def discrete_momenta(system: System, space: Space, h: float, alpha: float, q, d, jacobians=None) -> tuple[ca.SX, ca.SX]:
    """Momenta `(-D1 Ld, D2 Ld)` at the two ends of the step d = local(q0, q1), `Ld = h L(retract(q0, alpha d), d / h)`, (nv) each.

    D1, D2 are derivatives along trivialized variations of q0 and q1; `jacobians` replaces `space.local_jacobians(q, d)`
    (for truncated retraction tangents). On Rn with alpha = 1/2 these are the slots of (2) in [johnson2014].
    """
    e, d_ = ca.SX.sym("e", space.nv), ca.SX.sym("d", space.nv)
    moved = space.retract(q, e)
    ld = h * system.lagrangian(space.retract(moved, alpha * d_), d_ / h)
    grad_q, grad_d = (
        ca.substitute(ca.gradient(ld, w), ca.vertcat(e, d_), ca.vertcat(ca.SX.zeros(space.nv), d)) for w in (e, d_)
    )
    j0, j1 = jacobians or space.local_jacobians(q, d)
    return -(grad_q + j0.T @ grad_d), j1.T @ grad_d
