"""The reduced d'Alembert-Pontryagin integrator on the product of shape space and group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import casadi as ca

from nh_control.discrete.method import Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.chart import adjoint_operator
from nh_control.geometry.factors import join_spaces, with_retraction
from nh_control.geometry.spaces import Space
from nh_control.integrators.registry import Integrator, first_of, if_combined
from nh_control.mechanics.symmetry import NO_SYMMETRY
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import split

DEFAULT, ELSEWHERE = "sccsk", "exp"
"""Default retractions for `rdp`. The first one is used for groups that have it, and the second one
for other groups.
"""


def _exact_tangents(group: Space, d: ca.SX) -> tuple[ca.SX, ca.SX]:
    """`dtau^{-1}_d` (n, n), trivialized at the beginning and at the end of a displacement d
    (n).
    """
    before, after = group.local_jacobians(ca.SX(group.origin), d)
    return -before, after


def _truncated_tangents(group: Space, d: ca.SX) -> tuple[ca.SX, ca.SX]:
    """The first-order approximations `I - ad_d / 2` and `I + ad_d / 2` of `dtau^{-1}_d`, for any
    retraction.
    """
    ad = adjoint_operator(group, d)
    return ca.SX.eye(group.nv) - ad / 2, ca.SX.eye(group.nv) + ad / 2


TANGENTS = {"exact": _exact_tangents, "truncated": _truncated_tangents}


def rdp(
    system: System,
    h: float,
    retraction: str | None = None,
    alpha: float = 0.5,
    tangent: str = "exact",
) -> DiscreteSystem:
    """Reduced d'Alembert-Pontryagin integrator for a system with a symmetry. The Lagrangian and
    the constraints of such a system do not depend on the group's coordinates [kobilarov2010 (27),
    (28)].

    `r1 = r + h ur,  g1 = g tau(h xi),  xi = basis(r_a) w - connection(r_a) ur` with
    `r_a = (1 - alpha) r + alpha r1`, and
    `X(r)^T [dL/dr'_k - (1 - alpha) h dL/dr ; (dtau^{-1}_{h xi})^* dL/dxi] = rho + h/2 X(r)^T f`;
    rho1 has the same form with the left-trivialized tangent at r1. The unknown is z = (ur, w).
    Rotations and poses in the shape move with the exponential. `retraction` is tau for the
    rotations and poses in the group. It is "exp" or "cay" or, on SE(2), a key of
    `se2.RETRACTIONS`. The default is "sccsk" on groups that consist of SE(2) and R^n, and "exp" on
    others. `tangent` is "exact" or "truncated" (`I - ad/2`). The method has order 2 for alpha =
    1/2 and a symmetric tau (exp, cay, sccsk). With ccsk or another alpha it has order 1, and the
    energy of motions that change the shape drifts at a rate of order h.

    With exp and cay, a body that translates at v and yaws freely has an additional yaw inertia of
    `m v^2 h^2 / 12` and `m v^2 h^2 / 4`, respectively. With sccsk, it has none (theory:
    celledoni2016, free yaw). The exact tangent conserves the momenta of translations that the
    constraints allow. The truncated tangent conserves them only with cay.

    This corrects or changes the printed (27):

    - Velocities are staggered, so rho is the momentum at the node between two half kicks.
    - The rows are X^T. They span the same space as [I, A^T; 0, e^T] if the image of the connection
      lies in the basis, as for the snakeboard. Otherwise only X^T is correct.
    - (27) uses `dtau^{-1}_{-h xi}` as the left-trivialized tangent, which is wrong for ccsk.
    - The equations contain dL/dr.
    """
    if reason := _refuses(system):
        raise ValueError(f"rdp: {system.name} {reason}; use nonholonomic_midpoint")
    if tangent not in TANGENTS:
        raise ValueError(f"rdp: unknown tangent {tangent!r}, choose one of {tuple(TANGENTS)}")
    if not 0 <= alpha <= 1:
        raise ValueError(f"rdp: alpha must lie in [0, 1], got {alpha}")
    retraction, group = _group(system, retraction)
    shape = with_retraction(system.mechanics.nonholonomic_connection.shape, "exp")
    step = _PontryaginStep(system, shape, group, alpha, TANGENTS[tangent])
    name = f"rdp({retraction}, alpha={alpha:g}, {tangent})"
    method = Method(name, system.nrho, step.residual, step.readout)
    return DiscreteSystem(system, h, method, step_space=step.space, alpha=alpha)


@dataclass(frozen=True)
class _PontryaginStep:
    """The equations of `rdp` on the space `shape` x `group`, with the unknowns z = (ur, w)."""

    system: System
    shape: Space
    group: Space
    alpha: float
    tangents: Callable[[Space, ca.SX], tuple[ca.SX, ca.SX]]

    @property
    def space(self) -> Space:
        return join_spaces(self.shape, self.group)

    def residual(self, symbols: StepSymbols) -> ca.SX:
        # rho + X(r)^T (half kick - initial momentum) = 0
        basis = self.system.mechanics.admissible_basis(symbols.q)
        return symbols.rho + basis.T @ (self._half_kick(symbols) - self._momenta(symbols)[0])

    def readout(self, symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q1 = self.space.retract(symbols.q, self._displacement(symbols))
        basis = self.system.mechanics.admissible_basis(q1)
        return q1, basis.T @ (self._momenta(symbols)[1] + self._half_kick(symbols))

    def _displacement(self, symbols: StepSymbols) -> ca.SX:
        """The displacement h (ur, xi) with xi = basis(r_a) w - connection(r_a) ur."""
        n, h = self.shape.nv, symbols.h
        connection = self.system.mechanics.nonholonomic_connection
        shape_velocity, w = split(symbols.z, n)
        start, _ = split(symbols.q, self.shape.nq)
        r = self.shape.retract(start, self.alpha * h * shape_velocity)
        basis = connection.basis(r, connection.signs(start))
        # xi = basis(r_a) w - connection(r_a) ur
        xi = basis @ w - connection.connection(r, basis) @ shape_velocity
        return h * ca.vertcat(shape_velocity, xi)

    def _point(self, symbols: StepSymbols) -> tuple[ca.SX, ca.SX, ca.SX]:
        """The displacement d, the configuration at alpha d and the velocity d / h."""
        d = self._displacement(symbols)
        return d, self.space.retract(symbols.q, self.alpha * d), d / symbols.h

    def _momenta(self, symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        """Momenta at the beginning and at the end of the step. Each consists of the momenta of the
        shape, followed by those of the group from dtau^{-1}.
        """
        (d, point, v), n, h = self._point(symbols), self.shape.nv, symbols.h
        gradient, p = symbols.gradients(point, v)
        (shape_step, group_step), (p_shape, p_group) = split(d, n), split(p, n)
        # p_shape -+ h dL/dr, and (dtau^-1_{h xi})^* dL/dxi for the group
        slopes = self._shape_slopes(symbols.q, shape_step, gradient)
        exact = _exact_tangents(self.shape, shape_step)
        tangents = self.tangents(self.group, group_step)
        before, after = (
            ca.vertcat(of_shape.T @ p_shape + sign * h * slope, of_group.T @ p_group)
            for sign, slope, of_shape, of_group in zip((-1, 1), slopes, exact, tangents)
        )
        return before, after

    def _shape_slopes(self, q: ca.SX, d: ca.SX, gradient: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Derivatives (nv) of L with respect to both ends of the shape's step d from q. Both ends
        vary the point at alpha d. On R^n they are `(1 - alpha) dL/dr` and `alpha dL/dr`.
        """
        (r, _), (slope, _) = (split(x, self.shape.nq) for x in (q, gradient))
        e, d_ = ca.SX.sym("e", self.shape.nv), ca.SX.sym("d", self.shape.nv)
        start, end = self.shape.local_jacobians(r, d_)
        # a change e at one end changes d by local_jacobian e, and thereby the point at alpha d
        points = (
            self.shape.retract(self.shape.retract(r, e), self.alpha * (d_ + start @ e)),
            self.shape.retract(r, self.alpha * (d_ + end @ e)),
        )
        slopes = [ca.jtimes(point, e, slope, True) for point in points]
        before, after = ca.substitute(slopes, [e, d_], [ca.SX.zeros(self.shape.nv), d])
        return before, after

    def _half_kick(self, symbols: StepSymbols) -> ca.SX:
        """Half of the forces' impulse."""
        _, point, v = self._point(symbols)
        return symbols.h / 2 * self.system.generalized_force(point, v, symbols.u)


def _group(system: System, retraction: str | None) -> tuple[str, Space]:
    """The retraction, and the group with this retraction. The default is the retraction of the
    system's group.
    """
    group = system.mechanics.nonholonomic_connection.group
    if retraction is None:
        retraction = DEFAULT if not _lacks_retraction(system, DEFAULT) else ELSEWHERE
    return retraction, with_retraction(group, retraction)


def _lacks_retraction(system: System, retraction: str) -> str:
    try:
        with_retraction(system.mechanics.nonholonomic_connection.group, retraction)
    except ValueError as problem:
        return f"has a group without the retraction {retraction!r} ({problem})"
    return ""


def _lacks_symmetry(system: System) -> str:
    return NO_SYMMETRY if system.symmetry is None else ""


_refuses = first_of(_lacks_symmetry, if_combined)

INTEGRATORS = tuple(
    Integrator(
        name=f"rdp_{retraction}",
        make=partial(rdp, retraction=retraction),
        order=2,
        symmetric=True,
        explicit=False,
        preserves=("velocity constraints at the middle", "nonholonomic momentum"),
        refuses=first_of(_refuses, partial(_lacks_retraction, retraction=retraction)),
        source="kobilarov2010 (27), (28)",
    )
    for retraction in ("exp", "cay", "sccsk")
)
