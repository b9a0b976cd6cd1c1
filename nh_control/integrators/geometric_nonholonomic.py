"""Geometric nonholonomic integrators, nonholonomic RATTLE and SHAKE: one map under three names."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from nh_control.discrete.method import Gradients, Method, Readout, Residual
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators.coordinates import Coordinates, if_not_plain, plain
from nh_control.integrators.registry import Integrator, Refusal, first_of
from nh_control.mechanics.system import System

Quadrature = tuple[tuple[float, float], ...]

TRAPEZOID: Quadrature = ((0.0, 0.5), (1.0, 0.5))
MIDPOINT: Quadrature = ((0.5, 1.0),)
STARTS = ("consistent", "zero", "paper")


def gni(
    system: System,
    h: float,
    quadrature: Quadrature = TRAPEZOID,
    start: str = "consistent",
    explicit: bool | None = None,
) -> DiscreteSystem:
    """Geometric nonholonomic integrator: free motion of a discrete Lagrangian between elastic
    reflections at the constraints, second order in q and rho [kobilarov2010 (5), (6), (13)-(16)].

    `Ld = h sum_i b_i L(q0 + a_i h w, w),  w = (q1 - q0) / h`, and the same sum for the discrete
    forces, over the pairs (a_i, b_i) of `quadrature`; the paper's is TRAPEZOID.
    `lift(q0, rho) + A(q0)^T sigma + D1 Ld + F- = 0,  p1 = D2 Ld + F+`
    `rho1 = X(q1)^T p1,  sigma1 = -(A M^{-1} A^T)^{-1} A M^{-1} p1` at q1: the minus sign is the
    reflection S = P^T - Q^T of (12), an involution.
    State (q, rho, sigma), sigma (m) in N s or N m s; (q, rho) needs no half kick at either end.
    With the trapezoid, a constant mass matrix and forces of (q, u) alone a step is explicit,
    (14), and n_z = 0; otherwise the unknown is w. `explicit` asks for one of the two. The mass
    matrix is derived from the Lagrangian, and explicit steps take their forces from it, too.
    Plain coordinates, see `Coordinates`.

    `start` is sigma of a state made from (q, v): "zero" (lambda_0 = 0 of (10)), "paper"
    (p_{1/2} = p_0 + h/2 P^T f of (16), which is not the same motion, corrected), "consistent"
    (h/2 times the multipliers of the continuous motion); without inputs, which a state does not
    know. sigma then alternates around h/2 times the true multipliers, undamped: that is the
    oscillation of [kobilarov2010 7], of which a consistent start is free as long as no input
    jumps. Dropping sigma would leave a method of first order. In a linearization it adds m
    eigenvalues near -1, of the method and not of the system: design an LQR on another method.
    Raises ValueError for unknown options, an explicit step that is impossible, and systems that
    `if_not_plain` refuses.
    """
    if start not in STARTS:
        raise ValueError(f"gni: unknown start {start!r}, choose one of {STARTS}")
    space = plain(system, "gni")
    possible = not _not_explicit(system) and quadrature == TRAPEZOID
    if explicit and not possible:
        reason = _not_explicit(system) or f"has a quadrature {quadrature}, not the trapezoid's"
        raise ValueError(f"gni: no explicit step, {system.name} {reason}; leave out `explicit`")
    steps = _explicit if possible and explicit is not False else _implicit
    name = {TRAPEZOID: "gni", MIDPOINT: "gni_midpoint"}.get(quadrature, f"gni{quadrature}")
    memory = tuple(f"sigma_{i + 1}" for i in range(system.m))
    sigma = _starts(space)[start] if memory else None
    n_z, residual, readout = steps(space, quadrature)
    label = name if start == "consistent" else f"{name}({start})"
    method = Method(label, n_z, residual, readout, memory=memory, start=sigma)
    return DiscreteSystem(system, h, method)


def rattle(system: System, h: float) -> DiscreteSystem:
    """Nonholonomic RATTLE (10), lambda_0 = 0: `gni` started with sigma = 0; its multipliers are
    `lambda = -2 sigma / h` [kobilarov2010 (10)].

    (10) has a constant mass matrix; here it may depend on q.
    """
    return gni(system, h, start="zero")


def shake(system: System, h: float) -> DiscreteSystem:
    """Nonholonomic SHAKE (9): the configurations of RATTLE (10) without its momenta, started by
    the half kick of (16) [kobilarov2010 (9), (16)].

    (9) keeps two configurations; they are kept here as (q, rho, sigma) at the later one, so that
    it is `gni`.
    """
    return gni(system, h, start="paper")


def _ends(
    space: Coordinates,
    quadrature: Quadrature,
    gradients: Gradients,
    q: ca.SX,
    w: ca.SX,
    u: ca.SX,
    h: ca.SX,
) -> tuple[ca.SX, ca.SX]:
    """(-D1 Ld - F-, D2 Ld + F+)."""
    before = after = ca.SX(space.n, 1)
    for a, b in quadrature:
        p, force = space.slopes(gradients, q + a * h * w, w, u)
        before += b * (p - (1 - a) * h * force)
        after += b * (p + a * h * force)
    return before, after


def _incoming(space: Coordinates, q: ca.SX, rho: ca.SX) -> ca.SX:
    """Momentum after the reflection at q, of (rho, sigma)."""
    n = space.system.n_rho
    return space.node(q, rho[:n])[1] + space.reaction(q, rho[n:])


def _reflected(space: Coordinates, q: ca.SX, p: ca.SX) -> ca.SX:
    rho, sigma = space.split(q, p)
    return ca.vertcat(rho, -sigma)


def _implicit(space: Coordinates, quadrature: Quadrature) -> tuple[int, Residual, Readout]:
    def residual(
        q: ca.SX, rho: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX, gradients: Gradients
    ) -> ca.SX:
        return _ends(space, quadrature, gradients, q, z, u, h)[0] - _incoming(space, q, rho)

    def readout(
        q: ca.SX, rho: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX, gradients: Gradients
    ) -> tuple[ca.SX, ca.SX]:
        q1 = q + h * z
        after = _ends(space, quadrature, gradients, q, z, u, h)[1]
        return q1, _reflected(space, q1, after)

    return space.n, residual, readout


def _explicit(space: Coordinates, _: Quadrature) -> tuple[int, Residual, Readout]:
    rest = ca.SX.zeros(space.n)

    def force(q: ca.SX, u: ca.SX) -> ca.SX:
        return space.slopes(space.system.gradients, q, rest, u)[1]

    def residual(
        q: ca.SX, rho: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX, gradients: Gradients
    ) -> ca.SX:
        return ca.SX(0, 1)

    def readout(
        q: ca.SX, rho: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX, gradients: Gradients
    ) -> tuple[ca.SX, ca.SX]:
        p = _incoming(space, q, rho) + h / 2 * force(q, u)
        q1 = q + h * space.speed(q, p)
        return q1, _reflected(space, q1, p + h / 2 * force(q1, u))

    return 0, residual, readout


def _starts(space: Coordinates) -> dict[str, Callable]:
    """sigma(q, rho, h) of the three starts, under inputs that are zero."""
    idle, gradients = ca.SX(space.system.nu, 1), space.system.gradients

    def consistent(q: ca.SX, rho: ca.SX, h: ca.SX) -> ca.SX:
        w, _ = space.node(q, rho)
        return h / 2 * space.multipliers(gradients, q, w, idle)

    def zero(q: ca.SX, rho: ca.SX, h: ca.SX) -> ca.SX:
        return ca.SX(space.m, 1)

    def paper(q: ca.SX, rho: ca.SX, h: ca.SX) -> ca.SX:
        w, _ = space.node(q, rho)
        kick = h / 2 * space.slopes(gradients, q, w, idle)[1]
        return space.split(q, space.momentum_at_rest(q) - kick)[1]

    return {"consistent": consistent, "zero": zero, "paper": paper}


def _not_explicit(system: System) -> str:
    space = Coordinates(system)
    if not space.constant_mass:
        return "has a mass matrix that depends on q"
    return "" if space.separable else "has forces that depend on the velocities"


def _entry(name: str, make: Callable, explicit: bool, refuses: Refusal, source: str) -> Integrator:
    return Integrator(
        name=name,
        make=make,
        order=2,
        symmetric=True,
        explicit=explicit,
        preserves=("velocity constraints at the nodes", "nonholonomic momentum"),
        refuses=refuses,
        source=f"kobilarov2010 {source}",
    )


_explicit_only = first_of(if_not_plain, _not_explicit)

INTEGRATORS = (
    _entry("gni", gni, True, _explicit_only, "(13)-(16)"),
    _entry("rattle", rattle, True, _explicit_only, "(10)"),
    _entry("shake", shake, True, _explicit_only, "(9)"),
    _entry(
        "gni_implicit",
        lambda system, h: gni(system, h, explicit=False),
        False,
        if_not_plain,
        "(5), (6)",
    ),
    _entry(
        "gni_midpoint", lambda system, h: gni(system, h, MIDPOINT), False, if_not_plain, "(5), (6)"
    ),
)
