"""Higher-order variational integrators with Galerkin polynomials and Gauss quadrature."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import casadi as ca
from numpy.polynomial import Polynomial

from nh_control.discrete.method import Gradients, Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.chart import Chart, middle_and_end, trivialized_jacobian
from nh_control.integrators.energy_steps import if_asymmetric
from nh_control.integrators.registry import Integrator, first_of, if_constrained, if_driven
from nh_control.mechanics.system import System
from nh_control.numerics.quadrature import gauss


def variational_gauss(system: System, h: float, stages: int = 2) -> DiscreteSystem:
    """Variational integrator with polynomials of degree `stages` and `stages` Gauss points. It has
    order 2 `stages` and is symplectic without forces. On R^n it is the Gauss method.

    `Ld(q0, q1, a) = h sum_i b_i L(q(c_i), v(c_i))` on the curves `q(t) = retract(c, d(t))`,
    `d(t) = (2 t - 1) w + sum_k a_k t (1 - t) (t - 1/2)^(k - 1)`, k < stages, about the middle c,
    `c = retract(q0, w)`, `q1 = retract(c, w)`, with the velocity v of the curve:
    `p0 + D1 Ld + F- = 0,  dLd/da + f_a = 0,  p1 = D2 Ld + F+`, with the virtual work
    `h sum_i b_i f_i . delta q(c_i)` for the forces. Derivatives are along trivialized variations
    of q0 and q1, with exact tangent maps (truncated maps would reduce the order to 2). The state
    is (q, p), and the unknowns are (2 w, a) / h. Without forces, the method with one stage is
    `midpoint` on spaces where two half retractions equal a whole one. Raises ValueError for an
    unsupported system.

    Curves in one fixed chart per step, as in the classical method, would not be symplectic on a
    Lie group. Curves about the middle are, because c moves with both ends.
    """
    if reason := _refuses(system):
        raise ValueError(f"variational_gauss: {system.name} {reason}; use midpoint")
    if stages < 1:
        raise ValueError(f"variational_gauss: stages must be at least 1, got {stages}")
    space, n, action = system.space, system.space.nv, _Action(system, stages)

    def residual(symbols: StepSymbols) -> ca.SX:
        q, p, u, z, h, gradients = symbols
        start, _, inner = action.end_derivatives(q, u, z, h, gradients)
        # p0 + D1 Ld + F- = 0 and dLd/da + f_a = 0
        return ca.vertcat(space.frame(q).T @ (p + start), inner / h)

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, _, u, z, h, gradients = symbols
        _, q1 = middle_and_end(space, q, h * z[:n])
        return q1, action.end_derivatives(q, u, z, h, gradients)[1]

    name = f"variational_gauss_{2 * stages}"
    return DiscreteSystem(system, h, Method(name, n * stages, residual, readout))


class _Action:
    """Ld(q0, q1, a) of a system for polynomials of degree `stages`, and its derivatives including
    the virtual work of the forces.
    """

    def __init__(self, system: System, stages: int):
        self._system, self._space, self._bumps = system, system.space, stages - 1
        self._nodes = [_Node.of(float(t), float(b), stages) for t, b in zip(*gauss(stages))]

    def end_derivatives(
        self, q: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX, gradients: Gradients
    ) -> tuple[ca.SX, ca.SX, ca.SX]:
        """D1 Ld + F-, D2 Ld + F+, and dLd/da. `w = local(c, q1)` and `-w = local(c, q0)` determine
        how w and c vary with both ends.
        """
        w = h * z[: self._space.nv] / 2
        center, _ = middle_and_end(self._space, q, 2 * w)
        chart = Chart(self._space, center, q)
        w = chart.turned(q, w)
        ahead, behind = (chart.end_jacobians(d) for d in (w, -w))
        by_w, by_center, by_a = self._derivatives(chart, w, u, z, h, gradients)
        # eliminate the variation of c: (w_c+ + w_c-) dc + w_q+ dq1 + w_q- dq0 = 0
        shared = -ca.solve((ahead[0] + behind[0]).T, ahead[0].T @ by_w + by_center)
        return behind[1].T @ shared, ahead[1].T @ (by_w + shared), by_a

    def _derivatives(
        self, chart: Chart, w: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX, gradients: Gradients
    ) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Derivatives with respect to w, the variations of c, and all a."""
        n = self._space.nv
        a = ca.reshape(h * z[n:], n, self._bumps)
        by_w, by_center, by_a = ca.SX(n, 1), ca.SX(n, 1), ca.SX(n, self._bumps)
        for t, weight, bump, bump_rate in self._nodes:
            # d(t) = (2 t - 1) w + sum_k a_k bump_k(t)
            d, rate = (2 * t - 1) * w + a @ bump, (2 * w + a @ bump_rate) / h
            by_d, by_rate, moved = self._node_derivatives(chart, d, rate, u, gradients)
            # the derivatives of d and of its rate with respect to w are 2 t - 1 and 2 / h
            by_w += h * weight * ((2 * t - 1) * by_d + 2 / h * by_rate)
            by_a += h * weight * (by_d @ bump.T + by_rate / h @ bump_rate.T)
            by_center += h * weight * moved
        return by_w, by_center, ca.vec(by_a)

    def _node_derivatives(
        self, chart: Chart, d: ca.SX, rate: ca.SX, u: ca.SX, gradients: Gradients
    ) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Derivatives of L at one point of the curve with respect to d, d' and the variations of
        c.
        """
        system, space = self._system, self._space
        q, v = chart.position(d), chart.velocity(d, rate)
        gradient_q, p = gradients(q, v)
        force = trivialized_jacobian(
            space, q, lambda q: q
        ).T @ gradient_q + system.generalized_force(q, v, u)
        return chart.gradients(d, rate, force, p)


class _Node(NamedTuple):
    """A quadrature point t in [0, 1] with its weight, the bumps at t, and their derivatives,
    (stages - 1) each.
    """

    t: float
    weight: float
    bumps: ca.DM
    rates: ca.DM

    @classmethod
    def of(cls, t: float, weight: float, stages: int) -> _Node:
        """The quadrature point for polynomials of degree `stages`."""
        bumps = [_bump(k) for k in range(stages - 1)]
        return cls(t, weight, ca.DM([b(t) for b in bumps]), ca.DM([b.deriv()(t) for b in bumps]))


def _bump(k: int) -> Polynomial:
    """`t (1 - t) (t - 1/2)^k`, zero at both ends."""
    return Polynomial([0, 1, -1]) * Polynomial([-0.5, 1]) ** k


def _if_holonomic(system: System) -> str:
    """Refuses holonomic constraints. If the constraints held only at the ends, the method would
    have order 2, like `midpoint`. With multipliers at the Gauss points, which are not at the ends,
    it would not be symplectic.
    """
    if not system.n_holonomic_constraints:
        return ""
    return "has holonomic constraints, which the curve of a step leaves between its ends"


_refuses = first_of(if_constrained, _if_holonomic, if_driven, if_asymmetric)

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
