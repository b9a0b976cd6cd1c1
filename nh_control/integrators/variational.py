"""Midpoint variational integrators: discrete Euler-Lagrange and discrete Lagrange-d'Alembert."""

from __future__ import annotations

from functools import partial

import casadi as ca

from nh_control.discrete.method import ContactUnknowns, Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.spaces import StepGeometry
from nh_control.integrators.discrete_lagrangian import discrete_momenta
from nh_control.integrators.registry import Integrator, if_constrained
from nh_control.mechanics.contact_rows import ContactRows, StepMotion
from nh_control.mechanics.system import System
from nh_control.multibody.model import Multibody, MultibodySystem
from nh_control.multibody.tree_engine import tree_engine

FORCINGS = {"symmetric": 0.5, "left": 1.0}


def midpoint(system: System | Multibody, h: float, forcing: str = "symmetric") -> DiscreteSystem:
    """Midpoint variational integrator with discrete forces, second order, symplectic if unforced
    [johnson2014 (2)]. A `Multibody`, or its `system`, is stepped by the linear-time kernel of
    trees, every other system by generated code.

    `p0 + D1 Ld + F- = 0,  p1 = D2 Ld + F+,  F- = a h f(q_mid, v_mid, u),  F+ = (1 - a) h f(q_mid,
    v_mid, u)`; `forcing` is "symmetric" (a = 1/2, second order) or "left" (a = 1, the split of the
    paper's examples). First-order coordinates c of q take `(c1 - c0) / h = rate(q_mid, v_mid, u)`.
    State (q, p). Raises ValueError if the system has velocity constraints: use
    `nonholonomic_midpoint`.
    """
    system = system.system if isinstance(system, Multibody) else system
    if system.n_velocity_constraints:
        raise ValueError(
            f"midpoint: {system.name} has {system.n_velocity_constraints} velocity constraints; "
            "use nonholonomic_midpoint"
        )
    return _lagrange_dalembert(system, h, forcing, "midpoint")


def nonholonomic_midpoint(
    system: System | Multibody, h: float, forcing: str = "symmetric"
) -> DiscreteSystem:
    """Discrete Lagrange-d'Alembert on the midpoint rule, second order in q and rho.

    `rho + X(q0)^T (D1 Ld + F- - Dh(q0)^T lam) = 0,  A(q_mid) v_mid = b(q_mid),  h(q1) = 0,
    rho1 = X(q1)^T (D2 Ld + F+)`; unknowns are the mean velocity `local(q0, q1) / h` and the
    multipliers lam of holonomic constraints. First-order coordinates are as in `midpoint`. State
    (q, rho). Systems without velocity constraints
    are allowed (then it is `midpoint`, with the same engines).
    """
    system = system.system if isinstance(system, Multibody) else system
    return _lagrange_dalembert(system, h, forcing, "nonholonomic_midpoint")


def _lagrange_dalembert(system: System, h: float, forcing: str, name: str) -> DiscreteSystem:
    if forcing not in FORCINGS:
        raise ValueError(f"{name}: unknown forcing {forcing!r}, choose one of {sorted(FORCINGS)}")
    start_share, space, mechanics = FORCINGS[forcing], system.space, system.mechanics
    moving = space.nv - len(system.prescribed)
    first = moving + system.n_holonomic_constraints
    contacts = ContactRows(mechanics)
    nz, n_impulses = first + contacts.n_unknowns, contacts.n_impulses

    def segment(q: ca.SX, u: ca.SX, z: ca.SX, h: ca.SX) -> StepGeometry:
        target = system.prescribed_part(u) - system.prescribed_part(q)
        return space.step_geometry(q, ca.vertcat(h * z[:moving], target))

    def kick(step: StepGeometry, u: ca.SX, h: ca.SX) -> ca.SX:
        return h * system.generalized_force(step.middle, step.w / h, u[: system.nu])

    def lag(step: StepGeometry, u: ca.SX, h: ca.SX) -> ca.SX:
        """What the first-order coordinates' mean rates differ by from those at the middle."""
        mean, rate = step.w / h, system.rate_at(step.middle, step.w / h, u[: system.nu])
        return system.first_order_part(mean) - rate

    def residual(symbols: StepSymbols) -> ca.SX:
        q, rho, u, z, h, gradients = symbols
        step = segment(q, u, z, h)
        force = space.frame(q).T @ kick(step, u, h)
        impulse = start_share * force - discrete_momenta(gradients, h, step)[0]
        balance = mechanics.reduce(q, rho) + mechanics.admissible_tangents(q).T @ impulse
        if system.n_holonomic_constraints:
            balance -= mechanics.holonomic_impulse(q, z[moving:first])
        rolling = system.constraint_matrix(step.middle) @ step.w / h - system.drift(step.middle)
        rows = [balance, rolling, lag(step, u, h), system.holonomic(step.q1)]
        if system.has_contacts:
            x, psi = z[first : first + n_impulses], z[first + n_impulses :]
            rows[0] += contacts.impulse(q, x)
            rows.append(contacts.residual(x, psi, motion(symbols)))
        return ca.vertcat(*rows)

    def motion(symbols: StepSymbols) -> StepMotion:
        q, rho, u, z, h, _ = symbols
        return StepMotion(q, rho, u[: system.nu], segment(q, u, z, h), h)

    def velocities(symbols: StepSymbols) -> ca.SX:
        return contacts.velocities(motion(symbols))

    def coefficients(symbols: StepSymbols) -> ca.SX:
        q, u, h = symbols.q, symbols.u[: system.nu], symbols.h
        return ca.vertcat(*contacts.coefficients(q, u, h))

    def readout(symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, _, u, z, h, gradients = symbols
        step = segment(q, u, z, h)
        q1 = step.q1
        force = space.frame(q1).T @ kick(step, u, h)
        momentum = discrete_momenta(gradients, h, step)[1] + (1 - start_share) * force
        components = mechanics.admissible_tangents(q1).T @ momentum
        return q1, mechanics.store(q1, components, system.prescribed_part(step.w) / h)

    label = name if forcing == "symmetric" else f"{name}_{forcing}"
    method = Method(
        label,
        nz,
        residual,
        readout,
        multipliers=range(moving, first),
        first_order=True,
        contacts=ContactUnknowns(first, contacts.blocks, velocities, coefficients)
        if system.has_contacts
        else None,
    )
    # a Multibody takes the linear-time kernel of trees, everything else generated code
    others = system.first_order or system.has_contacts
    is_tree = isinstance(system, MultibodySystem) and not others
    kernel = partial(tree_engine, force_at_start=start_share) if is_tree else None
    return DiscreteSystem(system, h, method, make_kernel=kernel)


INTEGRATORS = (
    Integrator(
        name="midpoint",
        make=midpoint,
        order=2,
        symmetric=True,
        explicit=False,
        preserves=("symplectic form", "momenta", "holonomic constraints"),
        refuses=if_constrained,
        source="johnson2014 (2), (28)",
        first_order=True,
        contacts=True,
    ),
    Integrator(
        name="nonholonomic_midpoint",
        make=nonholonomic_midpoint,
        order=2,
        symmetric=True,
        explicit=False,
        preserves=("velocity constraints at the middle", "holonomic constraints"),
        refuses=lambda system: "",
        source="McLachlan and Perlmutter (2006), I-DLA",
        first_order=True,
        contacts=True,
    ),
)
