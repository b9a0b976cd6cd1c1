"""Energy-preserving discrete gradient methods on D* [celledoni2016 3]."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from numpy.polynomial import Legendre

from nh_control.discrete.method import Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators.energy_steps import EnergySteps, refuses
from nh_control.integrators.registry import Integrator, Make, Refusal, first_of
from nh_control.mechanics.almost_poisson import AlmostPoisson, LocalStructure
from nh_control.mechanics.distribution import BASES
from nh_control.mechanics.system import System
from nh_control.numerics.newton import LEAST
from nh_control.numerics.quadrature import gauss

POINTS = 6
"""Number of Gauss points for dH. A difference quotient of H loses digits if the change is small,
and is 0/0 without a change. The quadrature of dH at the points replaces the quotient if the
quadrature is exact to round-off (see `_is_near`). H is quadratic in the momenta, so the quadrature
along momenta is always exact.
"""
NODES, WEIGHTS = gauss(POINTS)
LAST = [(2 * n + 1) * WEIGHTS * Legendre.basis(n)(2 * NODES - 1) for n in (4, 5)]
"""Weights of the derivatives at the points. The weighted sums are the last two Legendre
coefficients of the derivative along the change.
"""
EPS = float(np.finfo(float).eps)

MOST_COORDINATES = 20
"""Maximum number of coordinates for coordinate increment methods. The equations of a step evaluate
H about eight times for each coordinate.
"""


def _if_large(system: System) -> str:
    n = system.space.nv - len(system.prescribed)
    if n <= MOST_COORDINATES:
        return ""
    return (
        f"has {n} coordinates, more than {MOST_COORDINATES}, and would evaluate H for each of them"
    )


refuses_increments = first_of(refuses, _if_large)

DiscreteGradient = Callable[..., ca.SX]
"""`g(H, zeta0, zeta1)` with `g . (zeta1 - zeta0) = H(zeta1) - H(zeta0)`."""


def mean_value_gradient(h: LocalStructure, zeta0: ca.SX, zeta1: ca.SX, points: int = 5) -> ca.SX:
    """`int_0^1 grad H((1 - s) zeta0 + s zeta1) ds`, evaluated at Gauss points
    [celledoni2016 (11)].
    """
    change = zeta1 - zeta0
    # g = sum_i b_i grad H(zeta0 + c_i D)
    values = (float(b) * h.gradient(zeta0 + float(c) * change) for c, b in zip(*gauss(points)))
    return sum(values, ca.SX(zeta0.shape[0], 1))


NORMS = ("euclidean", "kinetic")
"""Norms of changes in (q, rho) for Gonzalez' discrete gradient."""


def midpoint_gradient(
    h: LocalStructure,
    zeta0: ca.SX,
    zeta1: ca.SX,
    middle: LocalStructure | None = None,
    covector: ca.SX | None = None,
) -> ca.SX:
    """`g + (H(zeta1) - H(zeta0) - g . D) / (D . W D) W D` with g = grad H at the middle and
    `D = zeta1 - zeta0` (Gonzalez). If `middle` is given, g is the gradient of this structure.

    By default the `covector` W D is D, as in [celledoni2016 (12)]. `|D|^2` adds lengths, angles
    and momenta, so if H is not quadratic, the method depends on the units.
    """
    change = zeta1 - zeta0
    g = (middle or h).gradient((zeta0 + zeta1) / 2)
    derivatives = [ca.dot(h.gradient(zeta0 + float(c) * change), change) for c in NODES]
    gain = ca.dot(g, change)
    # H(zeta1) - H(zeta0) - g . D = int (dH . D - g . D) ds avoids cancellation
    near = sum(float(b) * (derivative - gain) for derivative, b in zip(derivatives, WEIGHTS))
    before, after = h.energy(zeta0), h.energy(zeta1)
    is_near = _is_near(derivatives, ca.fabs(before) + ca.fabs(after))
    defect = ca.if_else(is_near, near, after - before - gain)
    covector = change if covector is None else covector
    return g + defect / (ca.dot(change, covector) + LEAST) * covector


def _is_near(derivatives: list[ca.SX], energies: ca.SX) -> ca.SX:
    """Whether the quadrature s of the `derivatives` of H along a change is as accurate as a
    difference of `energies`. The criterion is `|s| (a / |s|)^3 <= eps |H|`.

    The Legendre coefficients decay like powers of the ratio between the length of the change and
    the distance to the nearest singularity of H in the complex plane. a is the size of the last
    two coefficients. The twelfth coefficient is the error of six points. Relative to |s|, it is
    about the cube of a. The test does not depend on units.
    """
    # |s| = sum b |derivative|, a^3 <= eps |s|^2 |H|
    size = sum(float(b) * ca.fabs(derivative) for derivative, b in zip(derivatives, WEIGHTS))
    last = sum(ca.fabs(ca.dot(ca.DM(weights), ca.vertcat(*derivatives))) for weights in LAST)
    return last**3 <= EPS * size**2 * energies


def coordinate_gradient(h: LocalStructure, zeta0: ca.SX, zeta1: ca.SX) -> ca.SX:
    """`g_i = (H(.., zeta1_i, zeta0_i+1, ..) - H(.., zeta0_i, zeta0_i+1, ..)) / D_i`, one
    coordinate after another (Itoh and Abe) [celledoni2016 (13)].
    """
    entries = []
    for i in range(zeta0.shape[0]):
        before = ca.vertcat(zeta1[:i], zeta0[i:])
        after = ca.vertcat(zeta1[: i + 1], zeta0[i + 1 :])
        if i not in h.curved:  # H is quadratic in this coordinate
            # for a quadratic H, the quotient is the derivative at the middle
            entries.append(h.gradient((before + after) / 2)[i])
            continue
        change = zeta1[i] - zeta0[i]
        derivatives = [h.gradient(before + float(c) * (after - before))[i] for c in NODES]
        near = sum(float(b) * derivative for derivative, b in zip(derivatives, WEIGHTS))
        first, last = h.energy(before), h.energy(after)
        is_near = _is_near(
            [derivative * change for derivative in derivatives], ca.fabs(first) + ca.fabs(last)
        )
        entries.append(ca.if_else(is_near, near, (last - first) / ca.if_else(is_near, 1, change)))
    return ca.vertcat(*entries)


def symmetrized_gradient(h: LocalStructure, zeta0: ca.SX, zeta1: ca.SX) -> ca.SX:
    """The mean of Itoh and Abe's forward and backward discrete gradients, which is symmetric."""
    return (coordinate_gradient(h, zeta0, zeta1) + coordinate_gradient(h, zeta1, zeta0)) / 2


def mean_value(system: System, h: float, points: int = 5, basis: str = "own") -> DiscreteSystem:
    """Mean value (average vector field) discrete gradient method (see `_step`)
    [celledoni2016 (11), (14)].

    With `points` Gauss points per step, the method is exact for H of degree d if 2 points >= d.
    Otherwise each additional point reduces the energy error by a factor of about 1000 until
    round-off (gearbox, h = 0.1 s: 4e-14 with 5 points, 6e-15 with 6). Raises ValueError for an
    unknown basis or an unsupported system.
    """
    if points < 1:
        raise ValueError(f"mean_value: points must be at least 1, got {points}")
    label = "mean_value" if points == 5 else f"mean_value_{points}"
    return _step(system, h, partial(mean_value_gradient, points=points), label, basis)


def gonzalez(
    system: System,
    h: float,
    basis: str = "own",
    differences: bool = False,
    norm: str = "euclidean",
) -> DiscreteSystem:
    """Gonzalez' midpoint discrete gradient method (see `_step`) [celledoni2016 (12), (14)].

    The paper uses the "euclidean" `norm` `|d|^2 + |r|^2` for a change (d, r) in (q, rho). It adds
    quantities with different units. If H is not quadratic, different units therefore define a
    different method, with the same order and energy. The "kinetic" norm,
    `d . M d / h^2 + r . (X^T M X)^{-1} r` at the middle, defines the same steps in all units.

    With the basis "householder", the method is Gonzalez-R. With `differences`, the derivatives of
    the basis at the middle are central differences over the length of a step, and the energy
    remains exact (Remark 3.5). Close to rest, the derivatives of the method lose digits like
    1/|zeta1 - zeta0|. If you need second derivatives at equilibria, where the correction is not
    twice differentiable, use `mean_value`.
    """
    if norm not in NORMS:
        raise ValueError(f"gonzalez: unknown norm {norm!r}, choose one of {NORMS}")
    label = "gonzalez_differences" if differences else "gonzalez"
    label += "_kinetic" if norm == "kinetic" else ""
    return _step(system, h, midpoint_gradient, label, basis, differences, norm)


def itoh_abe(
    system: System, h: float, symmetrized: bool = False, basis: str = "own"
) -> DiscreteSystem:
    """Itoh and Abe's coordinate increment method (see `_step`) [celledoni2016 (13), (14)]. It has
    order 1, or order 2 if `symmetrized` is true.
    """
    gradient = symmetrized_gradient if symmetrized else coordinate_gradient
    label = "itoh_abe_symmetrized" if symmetrized else "itoh_abe"
    return _step(system, h, gradient, label, basis, refusal=refuses_increments)


def _step(
    system: System,
    h: float,
    gradient: DiscreteGradient,
    label: str,
    basis: str,
    differences: bool = False,
    norm: str = "euclidean",
    refusal: Refusal = refuses,
) -> DiscreteSystem:
    """`(zeta1 - zeta0) / h = Pi(middle) g + (0, X^T f(q_mid, v, u))` with `v = X g_rho` and a
    discrete gradient g of H between zeta0 and zeta1 [celledoni2016 (14)].

    The coordinates zeta = (d, rho) belong to the chart at the middle of the step, with q0 at -d/2
    and q1 at d/2. Pi is evaluated at d = 0, where it needs no tangent map. On R^n, zeta is
    equivalent to (q, rho). The velocity constraints hold at the middle, and `H1 - H0 = h f . v` to
    round-off. A `basis` other than the system's basis is used only within the step, because states
    contain rho in the system's basis.

    With holonomic constraints h(q), g is the discrete gradient of the augmented energy
    `H + lam . h` (see `EnergySteps`). Then h(q1) = 0, and the velocities of states satisfy
    `Dh v = 0`. Prescribed coordinates move with their mean velocities and do work.
    """
    if basis not in BASES:
        raise ValueError(f"{label}: unknown basis {basis!r}, choose one of {sorted(BASES)}")
    if reason := refusal(system):
        raise ValueError(f"{label}: {system.name} {reason}; use nonholonomic_midpoint")
    steps = EnergySteps(system, basis)
    n, rates, multipliers = steps.n_free, steps.n_rates, steps.multipliers

    def residual(symbols: StepSymbols) -> ca.SX:
        z, h = symbols.z, symbols.h
        step = steps.at(symbols, h * z[:rates])
        lam = z[multipliers.start : multipliers.stop] / h
        local = step.local(lam)
        half, rho = step.d / 2, step.start
        rho1 = rho + h * z[n:rates]
        zeta0, zeta1 = ca.vertcat(-half, rho), ca.vertcat(half, rho1)
        # in the chart, zeta = 0 is the configuration at the middle
        middle = ca.vertcat(ca.SX(half.shape[0], 1), (rho + rho1) / 2)
        structure, options = local, dict[str, Any]()
        if differences:
            # the derivatives of the basis in Pi are central differences (Remark 3.5)
            differenced = AlmostPoisson(system, step.bases, h)
            structure = differenced.local(step.chart, step.w, lam)
            options["middle"] = structure
        if norm == "kinetic":
            options["covector"] = local.kinetic_covector(middle, zeta1 - zeta0, h)
        rate = structure.rate(middle, gradient(local, zeta0, zeta1, **options), step.inputs)
        # (zeta1 - zeta0) / h - Pi g - (0, X^T f)
        balance = step.unknown(step.rates(z[:rates]) - rate)
        return ca.vertcat(balance, step.end_rows(rho1))

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        z, h = symbols.z, symbols.h
        step = steps.at(symbols, h * z[:rates])
        return step.end(step.start + h * z[n:rates])

    name = label if basis == "own" else f"{label}({basis})"
    method = Method(name, steps.nz, residual, readout, multipliers=multipliers)
    return DiscreteSystem(system, h, method)


PRESERVED = ("energy", "velocity constraints at the middle", "holonomic constraints")


def _entry(
    name: str, make: Make, order: int, source: str, refusal: Refusal = refuses
) -> Integrator:
    return Integrator(
        name=name,
        make=make,
        order=order,
        symmetric=order > 1,
        explicit=False,
        preserves=PRESERVED,
        refuses=refusal,
        source=source,
    )


INTEGRATORS = (
    _entry("mean_value", mean_value, 2, "celledoni2016 (11), (14)"),
    _entry("gonzalez", gonzalez, 2, "celledoni2016 (12), (14), norm of numbers in SI units"),
    _entry(
        "gonzalez_kinetic",
        partial(gonzalez, norm="kinetic"),
        2,
        "celledoni2016 (14), Gonzalez (1996), norm of the kinetic energy",
    ),
    _entry("itoh_abe", itoh_abe, 1, "celledoni2016 (13), (14)", refuses_increments),
    _entry(
        "itoh_abe_symmetrized",
        partial(itoh_abe, symmetrized=True),
        2,
        "celledoni2016 (13), (14), symmetrized",
        refuses_increments,
    ),
    _entry(
        "gonzalez_r",
        partial(gonzalez, basis="householder"),
        2,
        "celledoni2016 (14), (16), Algorithm 1",
    ),
    _entry(
        "gonzalez_r_differences",
        partial(gonzalez, basis="householder", differences=True),
        2,
        "celledoni2016 Remark 3.5",
    ),
)
