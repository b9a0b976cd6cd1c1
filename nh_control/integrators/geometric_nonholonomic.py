"""The geometric nonholonomic integrator, nonholonomic RATTLE and nonholonomic SHAKE, which are
three names for the same map.
"""

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
    """Geometric nonholonomic integrator. It alternates the free motion of a discrete Lagrangian
    with elastic reflections at the constraints, and is second order in q and rho
    [kobilarov2010 (5), (6), (13)-(16)].

    `Ld = h sum_i b_i L(q0 + a_i h w, w),  w = (q1 - q0) / h`, and the same sum for the discrete
    forces, over the pairs (a_i, b_i) in `quadrature`. The paper uses TRAPEZOID.
    `lift(q0, rho) + A(q0)^T sigma + D1 Ld + F- = 0,  p1 = D2 Ld + F+`
    `rho1 = X(q1)^T p1,  sigma1 = -(A M^{-1} A^T)^{-1} A M^{-1} p1` at q1. The minus sign is the
    reflection S = P^T - Q^T in (12), an involution. The state is (q, rho, sigma) with sigma (m) in
    N s or N m s. No half kick is needed to convert it to (q, rho) at either end. With the
    trapezoid, a constant mass matrix and forces that depend on (q, u) only, a step is explicit
    (14), with nz = 0. Otherwise the unknown is w. `explicit` selects one of the two forms. The
    mass matrix, and the forces of explicit steps, are derived from the Lagrangian. `coordinates`
    chooses the coordinates.

    Holonomic constraints have impulses `Dh(q0)^T K`, with h(q1) = 0. rho1 belongs to p1 without
    its component along `Dh^T`. As in RATTLE, this component is projected, not reflected, and the
    state does not contain it. Such a step is implicit.

    `start` selects sigma for a state that is created from (q, v). It is "zero" (lambda_0 = 0 in
    (10)), "paper" (p_{1/2} = p_0 + h/2 P^T f in (16), corrected, which gives a different motion),
    or "consistent" (h/2 times the multipliers of the continuous motion for the input passed to
    `state`). sigma then alternates, undamped, around h/2 times the true multipliers. This is the
    oscillation in [kobilarov2010 6.2]. The oscillation is small after a consistent start if the
    inputs have no jumps, but it grows as fast as the true motion decays. For a coasting sleigh, it
    finally contains all of the energy (`nh_control paper kobilarov2010 --figure oscillation`).
    Without sigma, the method would have order 1. Linearizations have m additional eigenvalues near
    -1. They belong to the method, not to the system, so use another method to design an LQR.
    Raises ValueError for unknown options, for an impossible explicit step, and for systems that
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
    """Nonholonomic RATTLE (10) with lambda_0 = 0. It is the same as `gni` with sigma = 0
    initially. Its multipliers are `lambda = -2 sigma / h` [kobilarov2010 (10)].

    In (10), the mass matrix is constant. Here, it may depend on q.
    """
    return gni(system, h, start="zero")


def shake(system: System, h: float) -> DiscreteSystem:
    """Nonholonomic SHAKE (9). It computes the configurations of RATTLE (10) without the momenta,
    and begins with the half kick in (16) [kobilarov2010 (9), (16)].

    In (9), the state consists of two configurations. Here it is (q, rho, sigma) at the later
    configuration, so the method is `gni`.
    """
    return gni(system, h, start="paper")


def _incoming(space: Coordinates, position: ca.SX, q: ca.SX, rho: ca.SX) -> ca.SX:
    """The momentum for (rho, sigma) after the reflection at the configuration `position` with
    coordinates q.
    """
    m = space.n_velocity_constraints
    momentum, sigma = ca.vertsplit(rho, [0, rho.shape[0] - m, rho.shape[0]])
    # holonomic constraints are projected, so their part of sigma is zero
    sigma = ca.vertcat(sigma, ca.SX(space.n_holonomic, 1))
    return space.node(position, q, momentum, sigma if m else None)[1]


def _reflected(space: Coordinates, q: ca.SX, p: ca.SX) -> ca.SX:
    """(rho, sigma) after the reflection of the momentum p at q."""
    rho, sigma = space.split(q, p)
    return ca.vertcat(rho, -sigma)


def _implicit(space: Coordinates, quadrature: Quadrature) -> _Equations:
    def ends(
        q: ca.SX, u: ca.SX, w: ca.SX, h: ca.SX, gradients: Gradients
    ) -> tuple[Coordinates, ca.SX, ca.SX, ca.SX]:
        """The coordinates, the initial configuration in them, -D1 Ld - F-, and D2 Ld + F+."""
        local, q0 = space.about(q, h * w)
        before = after = ca.SX(space.n, 1)
        for a, b in quadrature:
            # p = dL/dw and f = dL/dq + force at q0 + a h w
            p, force = local.derivatives(gradients, q0 + a * h * w, w, u)
            # -D1 Ld - F- = sum b (dL/dw - (1 - a) h f),  D2 Ld + F+ = sum b (dL/dw + a h f)
            before += b * (p - (1 - a) * h * force)
            after += b * (p + a * h * force)
        return local, q0, before, after

    n = space.n

    def residual(symbols: StepSymbols) -> ca.SX:
        q, rho, u, z, h, gradients = symbols
        local, q0, before, _ = ends(q, u, z[:n], h, gradients)
        # lift + A^T sigma + Dh^T K + D1 Ld + F- = 0
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
        # half kick, drift, half kick (14)
        p = _incoming(space, q, q, rho) + h / 2 * force(q, u)
        q1 = q + h * space.speed(q, p)
        return q1, _reflected(space, q1, p + h / 2 * force(q1, u))

    return 0, no_residual, readout


def _starts(space: Coordinates) -> dict[str, _Start]:
    """The functions sigma(q, rho, u, h) for the three values of `start`."""
    rest = ca.SX.zeros(space.n)
    gradients = space.system.mechanics.gradients

    def consistent(q: ca.SX, rho: ca.SX, u: ca.SX, h: ca.SX) -> ca.SX:
        return h / 2 * space.parts(space.multipliers(gradients, q, rho, u))[0]

    def zero(q: ca.SX, rho: ca.SX, u: ca.SX, h: ca.SX) -> ca.SX:
        return ca.SX(space.n_velocity_constraints, 1)

    def paper(q: ca.SX, rho: ca.SX, u: ca.SX, h: ca.SX) -> ca.SX:
        local, q0 = space.about(q, rest)
        force = local.derivatives(gradients, q0, local.node(q, q0, rho)[0], u)[1]
        # the half kick in (16) is sigma of c - h/2 f
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
