"""Variational integrators of higher order: Galerkin polynomials with Gauss quadrature."""

from __future__ import annotations

from functools import partial

import casadi as ca
from numpy.polynomial import Polynomial

from nh_control.discrete.method import Gradients, Method
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.chart import Chart
from nh_control.geometry.spaces import Space
from nh_control.integrators.discrete_gradients import if_asymmetric
from nh_control.integrators.registry import Integrator, first_of, if_combined, if_constrained
from nh_control.mechanics.system import System
from nh_control.numerics.quadrature import gauss


def variational_gauss(system: System, h: float, stages: int = 2) -> DiscreteSystem:
    """Variational integrator with polynomials of degree `stages` and as many Gauss points, order
    2 `stages`, symplectic if unforced; on R^n it is the Gauss method.

    `Ld(q0, q1, a) = h sum_i b_i L(q(c_i), v(c_i))` on the curves `q(t) = retract(c, d(t))`,
    `d(t) = (2 t - 1) w + sum_k a_k t (1 - t) (t - 1/2)^(k - 1)`, k < stages, about the middle c,
    `c = retract(q0, w)`, `q1 = retract(c, w)`, v the velocity of the curve:
    `p0 + D1 Ld + F- = 0,  dLd/da + f_a = 0,  p1 = D2 Ld + F+`, with the virtual work
    `h sum_i b_i f_i . delta q(c_i)` for the forces. Derivatives are along trivialized variations
    of q0 and q1, the tangent maps exact (truncated ones would leave second order). State (q, p);
    the unknowns are (2 w, a) / h. One stage is `midpoint`. Raises ValueError for a system that it
    cannot take.

    The classical curves in one chart per step are not symplectic on a Lie group; those about the
    middle are, because c moves with both ends.
    """
    if reason := _refuses(system):
        raise ValueError(f"variational_gauss: {system.name} {reason}; use midpoint")
    if stages < 1:
        raise ValueError(f"variational_gauss: stages must be at least 1, got {stages}")
    space, n = system.space, system.space.nv
    c, b = gauss(stages)
    bumps = [_bump(k) for k in range(stages - 1)]

    def moved(
        q: ca.SX, z: ca.SX, h: ca.SX, e0: ca.SX, e1: ca.SX, ea: ca.SX
    ) -> list[tuple[ca.SX, ca.SX]]:
        """Positions and velocities at the Gauss points of the curve with moved ends and a."""
        w, dw, turn = h * z[:n] / 2, *_moved_middle(space, h * z[:n] / 2, e0, e1)
        chart = Chart(space, space.retract(space.retract(q, w), turn))
        a = ca.reshape(h * z[n:] + ea, n, stages - 1)
        nodes = []
        for t in c:
            weights = ca.DM([bump(t) for bump in bumps])
            slopes = ca.DM([bump.deriv()(t) for bump in bumps])
            d = (2 * t - 1) * (w + dw) + a @ weights
            rate = (2 * (w + dw) + a @ slopes) / h
            nodes.append((chart.position(d), chart.velocity(d, rate)))
        return nodes

    def slope(q: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX, gradients: Gradients, which: int) -> ca.SX:
        """Derivative of the action, plus the forces' work, by one of (e0, e1, ea)."""
        e = [ca.SX.zeros(n), ca.SX.zeros(n), ca.SX.zeros(n * (stages - 1))]
        at = moved(q, z, h, *e)
        s = e[which] = ca.SX.sym("e", e[which].shape[0])
        action = ca.SX(s.shape[0], 1)
        for weight, here, there in zip(b, at, moved(q, z, h, *e)):
            force = system.generalized_force(*here, u)
            ends = ca.vertcat(*there, space.local(here[0], there[0]))
            weights = ca.vertcat(*gradients(*here), force)
            action += h * float(weight) * ca.jtimes(ends, s, weights, True)
        return ca.substitute(action, s, ca.SX.zeros(s.shape[0]))

    def residual(q: ca.SX, p: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX, gradients: Gradients) -> ca.SX:
        start = p + slope(q, u, z, h, gradients, 0)
        return ca.vertcat(start, slope(q, u, z, h, gradients, 2) / h if bumps else ca.SX(0, 1))

    def readout(
        q: ca.SX, p: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX, gradients: Gradients
    ) -> tuple[ca.SX, ca.SX]:
        w = h * z[:n] / 2
        return space.retract(space.retract(q, w), w), slope(q, u, z, h, gradients, 1)

    name = f"variational_gauss_{2 * stages}"
    return DiscreteSystem(system, h, Method(name, n * stages, residual, readout))


def _bump(k: int) -> Polynomial:
    """`t (1 - t) (t - 1/2)^k`, zero at both ends."""
    return Polynomial([0, 1, -1]) * Polynomial([-0.5, 1]) ** k


def _moved_middle(space: Space, w: ca.SX, e0: ca.SX, e1: ca.SX) -> tuple[ca.SX, ca.SX]:
    """First-order changes of w (nv) and of the middle c (nv, trivialized) when q0 and q1 move by
    e0 and e1, from `w = local(c, q1)` and `-w = local(c, q0)`.
    """
    ahead0, ahead1 = space.local_jacobians(ca.SX(space.origin), w)
    behind0, behind1 = space.local_jacobians(ca.SX(space.origin), -w)
    turn = -ca.solve(ahead0 + behind0, ahead1 @ e1 + behind1 @ e0)
    return ahead0 @ turn + ahead1 @ e1, turn


_refuses = first_of(if_constrained, if_combined, if_asymmetric)

INTEGRATORS = tuple(
    Integrator(
        name=f"variational_gauss_{2 * stages}",
        make=partial(variational_gauss, stages=stages),
        order=2 * stages,
        symmetric=True,
        explicit=False,
        preserves=("symplectic form", "momenta"),
        refuses=_refuses,
        source="Hairer, Lubich and Wanner (2006) VI.6.2; Marsden and West (2001)",
    )
    for stages in (2, 3)
)
