"""Midpoint variational integrators for the discrete Euler-Lagrange and discrete
Lagrange-d'Alembert equations.
"""

from __future__ import annotations

from functools import partial

import casadi as ca

from nh_control.discrete.method import ContactUnknowns, Gradients, Method, StepSymbols
from nh_control.discrete.system import DiscreteSystem
from nh_control.geometry.spaces import StepGeometry
from nh_control.integrators.registry import Integrator, if_constrained
from nh_control.mechanics.contact_rows import ContactRows, StepMotion
from nh_control.mechanics.system import System
from nh_control.multibody.model import Multibody, MultibodySystem

FORCINGS = {"symmetric": 0.5, "left": 1.0}


def midpoint(system: System | Multibody, h: float, forcing: str = "symmetric") -> DiscreteSystem:
    """Midpoint variational integrator with discrete forces. It is second order, and symplectic
    without forces [johnson2014 (2)]. The linear-time tree kernel steps a `Multibody` or its
    `system`, and generated code steps every other system.

    The equations are `p0 + D1 Ld + F- = 0,  p1 = D2 Ld + F+` with
    `F- = a h f(q_mid, v_mid, u),  F+ = (1 - a) h f(q_mid, v_mid, u)`. `forcing` is "symmetric"
    (a = 1/2, second order) or "left" (a = 1, the split in the paper's examples). First-order
    coordinates c in q satisfy
    `(c1 - c0) / h = rate(q_mid, v_mid, u)`. The state is (q, p). Raises ValueError if the system
    has velocity constraints. Use `nonholonomic_midpoint` for such systems.
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
    """The discrete Lagrange-d'Alembert principle with the midpoint rule. It is second order in q
    and rho.

    The equations are
    `rho + X(q0)^T (D1 Ld + F- - Dh(q0)^T lam) = 0,  A(q_mid) v_mid = b(q_mid),  h(q1) = 0` and
    `rho1 = X(q1)^T (D2 Ld + F+)`. The unknowns are the mean velocity `local(q0, q1) / h` and the
    multipliers lam of holonomic constraints. First-order coordinates are treated as in `midpoint`.
    The state is (q, rho). Without velocity constraints, the method is `midpoint`, with the same
    engines.
    """
    system = system.system if isinstance(system, Multibody) else system
    return _lagrange_dalembert(system, h, forcing, "nonholonomic_midpoint")


def _lagrange_dalembert(system: System, h: float, forcing: str, name: str) -> DiscreteSystem:
    if forcing not in FORCINGS:
        raise ValueError(f"{name}: unknown forcing {forcing!r}, choose one of {sorted(FORCINGS)}")
    step = _MidpointStep(system, FORCINGS[forcing])
    method = Method(
        name if forcing == "symmetric" else f"{name}_{forcing}",
        step.first_contact + step.contacts.n_unknowns,
        step.residual,
        step.readout,
        multipliers=range(step.n_velocities, step.first_contact),
        first_order=True,
        contacts=step.contact_unknowns() if system.has_contacts else None,
        redundant=True,
    )
    kernel = None
    # the linear-time tree kernel steps a Multibody, and generated code steps everything else
    if isinstance(system, MultibodySystem) and not system.first_order:
        from nh_control.multibody.tree_engine import tree_engine  # slow to import

        kernel = partial(tree_engine, force_at_start=step.start_share)
    return DiscreteSystem(system, h, method, make_kernel=kernel)


class _MidpointStep:
    """The equations of `nonholonomic_midpoint`. The fraction `start_share` of the forces' impulse
    acts at the beginning of a step.

    The unknowns are the mean velocities (n_velocities) that are not prescribed, the multipliers of
    the holonomic constraints and, beginning at index `first_contact`, the multipliers of the
    contacts.
    """

    def __init__(self, system: System, start_share: float):
        self.system, self.start_share = system, start_share
        self.n_velocities = system.space.nv - len(system.prescribed)
        self.first_contact = self.n_velocities + system.n_holonomic_constraints
        self.contacts = ContactRows(system.mechanics)

    def residual(self, symbols: StepSymbols) -> ca.SX:
        q, rho, u, z, h, gradients = symbols
        system, mechanics = self.system, self.system.mechanics
        step = system.mean_step(q, u, z, h)
        # rho + X(q0)^T (D1 Ld + F- - Dh(q0)^T lam)
        force = system.space.frame(q).T @ self._force_impulse(step, u, h)
        impulse = self.start_share * force - discrete_momenta(gradients, h, step)[0]
        balance = mechanics.reduce(q, rho) + mechanics.admissible_tangents(q).T @ impulse
        if system.n_holonomic_constraints:
            multipliers = z[self.n_velocities : self.first_contact]
            balance -= mechanics.holonomic_impulse(q, multipliers)
        # A(q_mid) v_mid - b(q_mid), the rates of first-order coordinates, and h(q1)
        rolling = system.constraint_matrix(step.middle) @ step.w / h - system.drift(step.middle)
        rows = [balance, rolling, self._rate_error(step, u, h), system.holonomic(step.q1)]
        if system.has_contacts:
            x, psi = ca.vertsplit(
                z[self.first_contact :],
                [0, self.contacts.n_impulses, self.contacts.n_unknowns],
            )
            # contacts add J^T i to the momentum balance and their equations to the step
            rows[0] += self.contacts.impulse(q, x)
            rows.append(self.contacts.residual(x, psi, self._motion(symbols)))
        return ca.vertcat(*rows)

    def readout(self, symbols: StepSymbols) -> tuple[ca.SX, ca.SX]:
        q, _, u, z, h, gradients = symbols
        system, step = self.system, self.system.mean_step(q, u, z, h)
        # rho1 = X(q1)^T (D2 Ld + F+)
        force = system.space.frame(step.q1).T @ self._force_impulse(step, u, h)
        momentum = discrete_momenta(gradients, h, step)[1] + (1 - self.start_share) * force
        components = system.mechanics.admissible_tangents(step.q1).T @ momentum
        velocities = system.prescribed_part(step.w) / h
        return step.q1, system.mechanics.store(step.q1, components, velocities)

    def contact_unknowns(self) -> ContactUnknowns:
        def velocities(symbols: StepSymbols) -> ca.SX:
            return self.contacts.velocities(self._motion(symbols))

        def coefficients(symbols: StepSymbols) -> ca.SX:
            u = symbols.u[: self.system.nu]
            return ca.vertcat(*self.contacts.coefficients(symbols.q, u, symbols.h))

        blocks = self.contacts.blocks
        return ContactUnknowns(self.first_contact, blocks, velocities, coefficients)

    def _force_impulse(self, step: StepGeometry, u: ca.SX, h: ca.SX) -> ca.SX:
        """h f(q_mid, v_mid, u)."""
        return h * self.system.generalized_force(step.middle, step.w / h, u[: self.system.nu])

    def _rate_error(self, step: StepGeometry, u: ca.SX, h: ca.SX) -> ca.SX:
        """(c1 - c0) / h - rate(q_mid, v_mid, u) of the first-order coordinates c."""
        mean = step.w / h
        rate = self.system.rate_at(step.middle, mean, u[: self.system.nu])
        return self.system.first_order_part(mean) - rate

    def _motion(self, symbols: StepSymbols) -> StepMotion:
        q, rho, u, z, h, _ = symbols
        step = self.system.mean_step(q, u, z, h)
        return StepMotion(q, rho, u[: self.system.nu], step, h)


def discrete_momenta(gradients: Gradients, h: ca.SX, segment: StepGeometry) -> tuple[ca.SX, ca.SX]:
    """Momenta `(-D1 Ld, D2 Ld)` at the two ends of a step, (nv) each, for
    `Ld(q0, q1) = h L(middle, w / h)`.

    D1, D2 are derivatives along trivialized variations of q0 and q1. On R^n, they are the slot
    derivatives in [johnson2014 (2)].
    """
    gradient_q, gradient_v = gradients(segment.middle, segment.w / h)
    gradient = ca.vertcat(h * gradient_q, gradient_v)
    return -segment.j0.T @ gradient, segment.j1.T @ gradient


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
        redundant=True,
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
        redundant=True,
    ),
)
