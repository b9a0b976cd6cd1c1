"""Geometric nonholonomic integrators, nonholonomic RATTLE and SHAKE: one map under three names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import casadi as ca

from nh_control.discrete.method import Gradients, Method, StepSymbols, no_residual
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators.coordinate_systems import Coordinates, coordinates
from nh_control.integrators.refusals import if_curved, if_irregular
from nh_control.integrators.registry import Integrator, Make, Refusal
from nh_control.mechanics.system import System

Quadrature = tuple[tuple[float, float], ...]

TRAPEZOID: Quadrature = ((0.0, 0.5), (1.0, 0.5))
MIDPOINT: Quadrature = ((0.5, 1.0),)
STARTS = ("consistent", "zero", "paper")

_Start = Callable[[ca.SX, ca.SX, ca.SX, ca.SX], ca.SX]
_Equations = tuple[int, Callable[..., ca.SX], Callable[..., tuple[ca.SX, ca.SX]]]


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
    (14), and nz = 0; otherwise the unknown is w. `explicit` asks for one of the two. The mass
    matrix is derived from the Lagrangian, and explicit steps take their forces from it, too.
    Coordinates as in `coordinates`.

    Holonomic constraints have impulses `Dh(q0)^T K`, with h(q1) = 0, and rho1 is that of p1 less
    its part along `Dh^T`: as in RATTLE they are projected, not reflected, and no part of theirs is
    remembered. Such a step is implicit.

    `start` is sigma of a state made from (q, v): "zero" (lambda_0 = 0 of (10)), "paper"
    (p_{1/2} = p_0 + h/2 P^T f of (16), which is not the same motion, corrected), "consistent"
    (h/2 times the multipliers of the continuous motion), under the input that `state` is given.
    sigma then alternates around h/2 times the true multipliers, undamped: that is the
    oscillation of [kobilarov2010 6.2]. A consistent start and inputs without jumps make it small,
    but it grows as fast as the true motion settles: a sleigh's, coasting, comes to hold all energy
    (`nh_control paper kobilarov2010 --figure oscillation`). Dropping sigma would leave a method of
    first order. In a linearization it adds m eigenvalues near -1, of the method and not of the
    system: design an LQR on another method.
    Raises ValueError for unknown options, an explicit step that is impossible, and systems that
    `if_irregular` refuses.
    """
    if start not in STARTS:
        raise ValueError(f"gni: unknown start {start!r}, choose one of {STARTS}")
    space = coordinates(system, "gni", if_irregular)
    possible = not _not_explicit(system) and quadrature == TRAPEZOID
    if explicit and not possible:
        reason = _not_explicit(system) or f"has a quadrature {quadrature}, not the trapezoid's"
        raise ValueError(f"gni: no explicit step, {system.name} {reason}; leave out `explicit`")
    steps = _explicit if possible and explicit is not False else _implicit
    name = {TRAPEZOID: "gni", MIDPOINT: "gni_midpoint"}.get(quadrature, f"gni{quadrature}")
    memory = tuple(f"sigma_{i + 1}" for i in range(system.n_velocity_constraints))
    sigma = _starts(space)[start] if memory else None
    nz, residual, readout = steps(space, quadrature)
    label = name if start == "consistent" else f"{name}({start})"
    method = Method(label, nz, residual, readout, memory=memory, start=sigma)
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

    (9) keeps two configurations. Here the state is (q, rho, sigma) at the later one, so that it is
    `gni`.
    """
    return gni(system, h, start="paper")


def _incoming(space: Coordinates, position: ca.SX, q: ca.SX, rho: ca.SX) -> ca.SX:
    """Momentum after the reflection at the configuration `position` with coordinates q, of
    (rho, sigma).
    """
    m = space.n_velocity_constraints
    momentum, sigma = ca.vertsplit(rho, [0, rho.shape[0] - m, rho.shape[0]])
    sigma = ca.vertcat(sigma, ca.SX(space.n_holonomic, 1))
    return space.node(position, q, momentum, sigma if m else None)[1]


def _reflected(space: Coordinates, q: ca.SX, p: ca.SX) -> ca.SX:
    """(rho, sigma) after the reflection at q of the momentum p."""
    rho, sigma = space.split(q, p)
    return ca.vertcat(rho, -sigma)


def _implicit(space: Coordinates, quadrature: Quadrature) -> _Equations:
    def ends(
        q: ca.SX, u: ca.SX, w: ca.SX, h: ca.SX, gradients: Gradients
    ) -> tuple[Coordinates, ca.SX, ca.SX, ca.SX]:
        """Coordinates, start in them, -D1 Ld - F-, D2 Ld + F+."""
        local, q0 = space.about(q, h * w)
        before = after = ca.SX(space.n, 1)
        for a, b in quadrature:
            p, force = local.derivatives(gradients, q0 + a * h * w, w, u)
            before += b * (p - (1 - a) * h * force)
            after += b * (p + a * h * force)
        return local, q0, before, after

    n = space.n

    def residual(symbols: StepSymbols) -> ca.SX:
        q, rho, u, z, h, gradients = symbols
        local, q0, before, _ = ends(q, u, z[:n], h, gradients)
        balance = before - _incoming(local, q, q0, rho) - local.normal_reaction(q0, z[n:])
        return ca.vertcat(balance, space.system.holonomic(local.position(q0 + h * z[:n])))

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, _, u, z, h, gradients = symbols
        local, q0, _, after = ends(q, u, z[:n], h, gradients)
        q1 = q0 + h * z[:n]
        return local.position(q1), _reflected(local, q1, after)

    return n + space.n_holonomic, residual, readout


def _explicit(space: Coordinates, _: Quadrature) -> _Equations:
    rest = ca.SX.zeros(space.n)

    def force(q: ca.SX, u: ca.SX) -> ca.SX:
        return space.derivatives(space.system.mechanics.gradients, q, rest, u)[1]

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, rho, u, _, h, _ = symbols
        p = _incoming(space, q, q, rho) + h / 2 * force(q, u)
        q1 = q + h * space.speed(q, p)
        return q1, _reflected(space, q1, p + h / 2 * force(q1, u))

    return 0, no_residual, readout


def _starts(space: Coordinates) -> dict[str, _Start]:
    """sigma(q, rho, u, h) of the three starts."""
    rest = ca.SX.zeros(space.n)
    gradients = space.system.mechanics.gradients

    def consistent(q: ca.SX, rho: ca.SX, u: ca.SX, h: ca.SX) -> ca.SX:
        return h / 2 * space.parts(space.multipliers(gradients, q, rho, u))[0]

    def zero(q: ca.SX, rho: ca.SX, u: ca.SX, h: ca.SX) -> ca.SX:
        return ca.SX(space.n_velocity_constraints, 1)

    def paper(q: ca.SX, rho: ca.SX, u: ca.SX, h: ca.SX) -> ca.SX:
        local, q0 = space.about(q, rest)
        force = local.derivatives(gradients, q0, local.node(q, q0, rho)[0], u)[1]
        return local.split(q0, local.momentum_at_rest(q0) - h / 2 * force)[1]

    return {"consistent": consistent, "zero": zero, "paper": paper}


def _not_explicit(system: System) -> str:
    if reason := if_curved(system):
        return reason
    space = Coordinates(system)
    if not space.constant_mass:
        return "has a mass matrix that depends on q"
    return "" if space.separable else "has forces that depend on the velocities"


def _entry(
    name: str,
    make: Make,
    explicit: bool,
    refuses: Refusal,
    source: str,
    more: tuple[str, ...] = (),
) -> Integrator:
    return Integrator(
        name=name,
        make=make,
        order=2,
        symmetric=True,
        explicit=explicit,
        preserves=("velocity constraints at the nodes", "nonholonomic momentum", *more),
        refuses=refuses,
        source=f"kobilarov2010 {source}",
    )


_ON_SURFACES = ("holonomic constraints",)

INTEGRATORS = (
    _entry("gni", gni, True, _not_explicit, "(13)-(16)"),
    _entry("rattle", rattle, True, _not_explicit, "(10)"),
    _entry("shake", shake, True, _not_explicit, "(9)"),
    _entry(
        "gni_implicit", partial(gni, explicit=False), False, if_irregular, "(5), (6)", _ON_SURFACES
    ),
    _entry(
        "gni_midpoint",
        partial(gni, quadrature=MIDPOINT),
        False,
        if_irregular,
        "(5), (6)",
        _ON_SURFACES,
    ),
)
