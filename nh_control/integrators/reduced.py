"""Reduced d'Alembert-Pontryagin integrator on shape space times group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import casadi as ca

from nh_control.discrete.method import Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry import se2
from nh_control.geometry.spaces import SE2, Product, Rn
from nh_control.integrators.registry import Integrator, first_of, if_combined
from nh_control.mechanics.system import System


def _exact_tangents(group: SE2, d: ca.SX) -> tuple[ca.SX, ca.SX]:
    """`dtau^{-1}_d` (3, 3), trivialized at the start of a displacement d (3) and at its end."""
    before, after = group.local_jacobians(ca.SX(group.origin), d)
    return -before, after


def _truncated_tangents(group: SE2, d: ca.SX) -> tuple[ca.SX, ca.SX]:
    """The first-order approximation `I - ad_d / 2` and `I + ad_d / 2` of them, for any
    retraction.
    """
    return ca.SX.eye(3) - se2.ad(d) / 2, ca.SX.eye(3) + se2.ad(d) / 2


TANGENTS = {"exact": _exact_tangents, "truncated": _truncated_tangents}


def rdp(
    system: System, h: float, retraction: str = "sccsk", alpha: float = 0.5, tangent: str = "exact"
) -> DiscreteSystem:
    """Reduced d'Alembert-Pontryagin integrator on Q = R^s x SE(2) with constraints and Lagrangian
    invariant under SE(2) [kobilarov2010 (27), (28)].

    `r1 = r + h ur,  g1 = g tau(h xi),  xi = basis(r_a) w - connection(r_a) ur` with `r_a = (1 -
    alpha) r + alpha r1`, and `X(r)^T [dL/dr'_k - (1 - alpha) h dL/dr ; (dtau^{-1}_{h xi})^*
    dL/dxi] = rho + h/2 X(r)^T f`; rho1 is the same with the left-trivialized tangent at r1. The
    unknown is z = (ur, w). `retraction` is a key of `se2.RETRACTIONS`, `tangent` "exact" or
    "truncated" (`I - ad/2`). Second order for alpha = 1/2 and a symmetric tau (exp, cay, sccsk).
    With ccsk or another alpha it is of first order, and the energy of motions that change shape
    drifts at a rate of order h.

    With exp and cay a body that translates with v and yaws freely has `m v^2 h^2 / 12` and
    `m v^2 h^2 / 4` more yaw inertia, with sccsk it has not (theory: celledoni2016, free yaw). The
    exact tangent keeps momenta of translations that the constraints allow, the truncated one only
    with cay.

    Differences from the printed (27), corrected here:

    - Velocities are staggered, so rho is the node momentum between two half kicks.
    - Its rows are X^T. They span the same space as [I, A^T; 0, e^T] if the connection's image lies
      in the basis, as on the snakeboard; otherwise only X^T is right.
    - (27) has `dtau^{-1}_{-h xi}` as the left-trivialized tangent, which is not true for ccsk.
    - dL/dr is kept.
    """
    if reason := _refuses(system):
        raise ValueError(f"rdp: {system.name} {reason}; use nonholonomic_midpoint")
    if tangent not in TANGENTS:
        raise ValueError(f"rdp: unknown tangent {tangent!r}, choose one of {tuple(TANGENTS)}")
    if not 0 <= alpha <= 1:
        raise ValueError(f"rdp: alpha must lie in [0, 1], got {alpha}")
    space, group = _step_space(system, retraction)
    step = _PontryaginStep(system, space, group, alpha, TANGENTS[tangent])
    name = f"rdp({retraction}, alpha={alpha:g}, {tangent})"
    method = Method(name, system.nrho, step.residual, step.readout)
    return DiscreteSystem(system, h, method, step_space=space, alpha=alpha)


@dataclass(frozen=True)
class _PontryaginStep:
    """The equations of `rdp` on the `space` R^s x `group`, with the unknowns z = (ur, w)."""

    system: System
    space: Product
    group: SE2
    alpha: float
    tangents: Callable[[SE2, ca.SX], tuple[ca.SX, ca.SX]]

    @property
    def n_shape(self) -> int:
        return self.system.declared_symmetry.n_shape

    def residual(self, symbols: StepSymbols) -> ca.SX:
        # rho + X(r)^T (half kick - momentum at the start) = 0
        basis = self.system.mechanics.admissible_basis(symbols.q)
        return symbols.rho + basis.T @ (self._half_kick(symbols) - self._momenta(symbols)[0])

    def readout(self, symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q1 = self.space.retract(symbols.q, self._displacement(symbols))
        basis = self.system.mechanics.admissible_basis(q1)
        return q1, basis.T @ (self._momenta(symbols)[1] + self._half_kick(symbols))

    def _displacement(self, symbols: StepSymbols) -> ca.SX:
        """h (ur, xi) with xi = basis(r_a) w - connection(r_a) ur."""
        s, h = self.n_shape, symbols.h
        shape_velocity, w = symbols.z[:s], symbols.z[s:]
        r = symbols.q[:s] + self.alpha * h * shape_velocity
        xi = self.system.symmetry_basis(r) @ w - self.system.connection(r) @ shape_velocity
        return h * ca.vertcat(shape_velocity, xi)

    def _point(self, symbols: StepSymbols) -> tuple[ca.SX, ca.SX, ca.SX]:
        """The displacement d, the configuration at alpha d and the velocity d / h."""
        d = self._displacement(symbols)
        return d, self.space.retract(symbols.q, self.alpha * d), d / symbols.h

    def _momenta(self, symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        """Momenta at the start and at the end: the shape's, then the group's by dtau^{-1}."""
        (d, point, v), s, h = self._point(symbols), self.n_shape, symbols.h
        gradient_r, p = symbols.gradients(point, v)
        before, after = self.tangents(self.group, d[s:])
        return (
            ca.vertcat(p[:s] - (1 - self.alpha) * h * gradient_r[:s], before.T @ p[s:]),
            ca.vertcat(p[:s] + self.alpha * h * gradient_r[:s], after.T @ p[s:]),
        )

    def _half_kick(self, symbols: StepSymbols) -> ca.SX:
        """Half of the forces' impulse."""
        _, point, v = self._point(symbols)
        return symbols.h / 2 * self.system.generalized_force(point, v, symbols.u)


def _step_space(system: System, retraction: str) -> tuple[Product, SE2]:
    """R^s x SE(2) with a retraction of the step's own, and its second factor."""
    space, s = system.space, system.declared_symmetry.n_shape
    shape = Rn(*space.names[:s], velocity_names=space.velocity_names[:s])
    group = SE2(space.names[s:], space.velocity_names[s:], retraction)
    return Product(shape, group), group


def _lacks_symmetry(system: System) -> str:
    there = system.symmetry is not None
    return "" if there else "declares no symmetry (shape, connection, basis)"


_refuses = first_of(_lacks_symmetry, if_combined)

INTEGRATORS = tuple(
    Integrator(
        name=f"rdp_{retraction}",
        make=partial(rdp, retraction=retraction),
        order=2,
        symmetric=True,
        explicit=False,
        preserves=("velocity constraints at the middle", "nonholonomic momentum"),
        refuses=_refuses,
        source="kobilarov2010 (27), (28)",
    )
    for retraction in ("exp", "cay", "sccsk")
)
