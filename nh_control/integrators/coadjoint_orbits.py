"""Lie-Poisson steps on the dual of a Lie algebra, for any Hamiltonian on the dual."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from nh_control.geometry.arcs import apply_transpose, coadjoint_transport
from nh_control.geometry.groups import LieGroup
from nh_control.numerics.expressions import Expression
from nh_control.numerics.quadrature import gauss

Gradient = Callable[[ca.SX], ca.SX]


def _euler_poincare(group: LieGroup, gradient: Gradient, mu: ca.SX, z: ca.SX) -> ca.SX:
    return gradient(apply_transpose(lambda e: group.dexp(z, e), mu))


def _midpoint(group: LieGroup, gradient: Gradient, mu: ca.SX, z: ca.SX) -> ca.SX:
    return gradient(coadjoint_transport(group, z / 2, mu))


def _mean_value(group: LieGroup, gradient: Gradient, mu: ca.SX, z: ca.SX) -> ca.SX:
    # int_0^1 dH(mu + s (mu1 - mu)) ds by Gauss quadrature
    change, mean = coadjoint_transport(group, z, mu) - mu, ca.SX(group.dim, 1)
    for c, b in zip(*gauss(POINTS)):
        mean += float(b) * gradient(mu + float(c) * change)
    return mean


POINTS = 6
"""Number of Gauss points for the mean value."""
RULES = {
    "euler_poincare": _euler_poincare,
    "midpoint": _midpoint,
    "mean_value": _mean_value,
}
TOLERANCE = 1e-13
"""Absolute tolerance of the Newton iteration for z. One more correction follows, as in
`numerics.newton`.
"""


def lie_poisson_step(
    group: LieGroup, hamiltonian: Callable[[ca.SX], Expression], rule: str = "euler_poincare"
) -> ca.Function:
    """A step `mu1(mu, h)` of `mu' = ad*_{dH/dmu} mu` on g*, for body momenta mu (dim) and a
    left-invariant Hamiltonian. `mu1 = Ad*_{exp(z)} mu` lies on the coadjoint orbit of mu to
    round-off.

    - "euler_poincare": `z = h dH(dexp*_z mu)`, symplectic on the orbits, equal to `slgi` for
      left-invariant systems (discrete Euler-Poincare equations; Marsden, Pekarsky, Shkoller 1999).
    - "midpoint": `z = h dH(Ad*_{exp(z/2)} mu)` [Engo and Faltinsen 2001].
    - "mean_value": `z = h int_0^1 dH((1 - s) mu + s mu1) ds`, which conserves H
      [Engo and Faltinsen 2001].

    All rules are symmetric and second order. The heavy top and rigid bodies in a fluid are systems
    on se(3)* (see `SE3Group`). The CasADi function solves for z with Newton's method. It can be
    differentiated and mapped. Raises ValueError for an unknown rule and for group coordinates
    other than "exp".
    """
    if rule not in RULES:
        raise ValueError(f"lie_poisson_step: unknown rule {rule!r}, choose one of {[*RULES]}")
    if group.coordinates != "exp":
        raise ValueError(f"lie_poisson_step: coordinates must be 'exp', got {group.coordinates!r}")
    mu, z, h = ca.SX.sym("mu", group.dim), ca.SX.sym("z", group.dim), ca.SX.sym("h")
    gradient = ca.Function("gradient", [mu], [ca.gradient(ca.SX(hamiltonian(mu)), mu)])
    known, residual = ca.vertcat(mu, h), z - h * RULES[rule](group, gradient, mu, z)
    solve = ca.rootfinder(
        "solve", "newton", {"x": z, "p": known, "g": residual}, {"abstol": TOLERANCE}
    )
    # one more Newton correction brings the residual to round-off
    corrected = z - ca.solve(ca.jacobian(residual, z), residual)
    carry = ca.Function("carry", [z, mu, h], [coadjoint_transport(group, corrected, mu)])
    # a rootfinder can only be called in an MX graph
    mu_, h_ = ca.MX.sym("mu", group.dim), ca.MX.sym("h")
    z_ = solve(ca.MX.zeros(group.dim), ca.vertcat(mu_, h_))
    return ca.Function("step", [mu_, h_], [carry(z_, mu_, h_)], ["mu", "h"], ["mu1"])
