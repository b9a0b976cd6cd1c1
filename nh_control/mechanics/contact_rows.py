"""The equations for contacts in a step. Each contact adds impulses to the unknowns, and equations
of complementarity and maximum dissipation to the residual.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import StepGeometry
from nh_control.mechanics.contacts import Coefficient, Grip, UnilateralConstraint
from nh_control.mechanics.lagrangian_system import LagrangianSystem
from nh_control.mechanics.mechanics import Mechanics
from nh_control.numerics.contact_problem import Block, blocks, impulse_count, slip_count
from nh_control.numerics.expressions import Returned, as_expression
from nh_control.numerics.linear_solves import factorized


class StepMotion(NamedTuple):
    """The quantities of a step from (q, rho) under u on which the contacts depend."""

    q: ca.SX
    rho: ca.SX
    u: ca.SX
    segment: StepGeometry
    h: ca.SX


@dataclass(frozen=True)
class ContactRows:
    """The equations for a system's contacts, then for its grips, one block each (see
    `numerics.contact_problem`).

    For impulses x (n), slip bounds psi, and the velocities w(step) (n) conjugate to the impulses:

        lam (gap(q1) / h - bounce) = kappa
        beta psi + g . s = kappa,   beta s + psi g = 0,   beta = friction lam  or  h friction load

    with `bounce = gap(q0) / h + restitution |v_n|` for a body that approaches fast, else 0. Like
    the impulses of h(q) = 0, the contact impulses act at the first node of the step, because
    impulses at both nodes would reflect the momentum.
    """

    mechanics: Mechanics

    @cached_property
    def laws(self) -> tuple[_Law, ...]:
        """The laws of all contacts, then of all grips."""
        system = self.mechanics.system
        contacts = (_ContactLaw(system, each, self.mechanics) for each in system.contacts)
        return (*contacts, *(_GripLaw(system, grip) for grip in system.grips))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all contacts, then of all grips (`grip_1`, ... if unnamed)."""
        system = self.mechanics.system
        grips = (grip.name or f"grip_{i}" for i, grip in enumerate(system.grips, 1))
        return (*(contact.name for contact in system.contacts), *grips)

    @property
    def placed(self) -> dict[str, int]:
        """The block indices of the contacts and grips that declare a place, by name."""
        system = self.mechanics.system
        places = [contact.place for contact in system.contacts]
        places += [grip.place for grip in system.grips]
        return {n: i for i, (n, place) in enumerate(zip(self.names, places)) if place is not None}

    def gaps(self, q: ca.SX) -> ca.SX:
        """The gaps (m) for all blocks at q; NaN for grips."""
        return ca.vertcat(*(law.gap(q) for law in self.laws))

    def openings(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """The rates (m/s) of the contacts' gaps at q with the velocity v (nw). Grips are left
        out.
        """
        system = self.mechanics.system
        # d gap / dt = Dgap F^T v
        along = system.space.frame(q).T @ v
        slopes = (system.slope_at(contact.gap, q) @ along for contact in system.contacts)
        return ca.vertcat(*slopes)

    def places(self, q: ca.SX) -> list[ca.SX]:
        """The positions and axes (3, 1 + rows) for all blocks; NaN if undeclared."""
        return [law.place(q) for law in self.laws]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks for all contacts and grips."""
        q = self.mechanics.system.symbols[0]
        return blocks([(law.has_normal, law.tangents(q).shape[0]) for law in self.laws])

    @property
    def n_impulses(self) -> int:
        """The number of impulses x."""
        return impulse_count(self.blocks)

    @property
    def n_unknowns(self) -> int:
        """The number of impulses and slip bounds."""
        return self.n_impulses + slip_count(self.blocks)

    def impulse(self, q: ca.SX, x: ca.SX) -> ca.SX:
        """The generalized impulse `Y^T J(q)^T x` (nrho) for impulses x (n), with the admissible
        tangents Y and the Jacobian J of the velocities w.
        """
        rows = ca.vertcat(*(law.rows(q) for law in self.laws))
        return self.mechanics.admissible_tangents(q).T @ (rows.T @ x)

    def velocities(self, step: StepMotion) -> ca.SX:
        """The velocities w (n): `gap(q1) / h - bounce` along the normals, and slip velocities."""
        return ca.vertcat(*(law.velocities(step) for law in self.laws))

    def coefficients(self, q: ca.SX, u: ca.SX, h: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(friction, bound) at q under u: Coulomb's coefficient and the bound of the friction
        impulse (N s) for each block; zero for a block without them.
        """
        factor = self.mechanics.system.friction_factor_at(q, u)
        pairs = [law.coefficients(h) for law in self.laws]
        friction, bound = (ca.vertcat(*column) for column in zip(*pairs))
        return factor * friction, factor * bound

    def residual(self, x: ca.SX, psi: ca.SX, step: StepMotion) -> ca.SX:
        """The equations for complementarity and maximum dissipation, in the order of (x, psi)."""
        kappa, w = self.mechanics.system.smoothing_symbol, self.velocities(step)
        mu, bound = self.coefficients(step.q, step.u, step.h)
        rows, products = list[ca.SX](), list[ca.SX]()
        for i, (normal, t, k, j) in enumerate(self.blocks):
            # complementarity: lam (gap(q1) / h - bounce) = kappa
            if normal >= 0:
                rows.append(x[normal] * w[normal] - kappa)
            # maximum dissipation: beta s + psi g = 0, beta psi + g . s = kappa
            if k:
                beta = mu[i] * x[normal] if normal >= 0 else bound[i]
                g, s = x[t : t + k], w[t : t + k]
                rows.append(beta * s + psi[j] * g)
                products.append(beta * psi[j] + ca.dot(g, s) - kappa)
        return ca.vertcat(*rows, *products)


class _Law(ABC):
    """The equations for one block."""

    has_normal: bool

    @abstractmethod
    def tangents(self, q: ca.SX) -> ca.SX:
        """The Jacobian (k, nv) of the slip velocity along the space's tangent vectors."""

    @abstractmethod
    def rows(self, q: ca.SX) -> ca.SX:
        """The Jacobian of all velocities along the tangent vectors, beginning with the row for the
        gap.
        """

    @abstractmethod
    def velocities(self, step: StepMotion) -> ca.SX:
        """The velocities conjugate to the impulses."""

    @abstractmethod
    def coefficients(self, h: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Coulomb's coefficient and the bound of the friction impulse (N s)."""

    @abstractmethod
    def gap(self, q: ca.SX) -> ca.SX:
        """The gap (m); NaN for a grip."""

    @abstractmethod
    def place(self, q: ca.SX) -> ca.SX:
        """The position and the axes (3, 1 + rows); NaN if undeclared."""


@dataclass(frozen=True)
class _ContactLaw(_Law):
    system: LagrangianSystem
    contact: UnilateralConstraint
    mechanics: Mechanics
    has_normal = True

    def tangents(self, q: ca.SX) -> ca.SX:
        if not self.contact.has_friction:
            return ca.SX(0, self.system.space.nv)
        if self.contact.point is not None:
            return self.system.slope_at(self.contact.point, q)
        return self._slip(q) @ self.system.space.frame(q)

    def rows(self, q: ca.SX) -> ca.SX:
        return ca.vertcat(self.system.slope_at(self.contact.gap, q), self.tangents(q))

    def velocities(self, step: StepMotion) -> ca.SX:
        value_at, contact, (q, _, _, segment, h) = self.system.value_at, self.contact, step
        # the gap at the end of the step is used, not its rate, so penetrations do not accumulate
        opening = value_at(contact.gap, segment.q1) / h - self._bounce(step)
        if not contact.has_friction:
            return opening
        if contact.point is not None:
            slip = (value_at(contact.point, segment.q1) - value_at(contact.point, q)) / h
        else:
            # slip(q) v at the midpoint or at the beginning
            place = q if contact.slips_at_start else segment.middle
            slip = self._slip(place) @ segment.w / h
        # slip velocity relative to a moving surface
        if contact.surface_velocity:
            slip -= ca.DM(contact.surface_velocity)
        return ca.vertcat(opening, slip)

    def coefficients(self, h: ca.SX) -> tuple[ca.SX, ca.SX]:
        return _number(self.system, self.contact.friction), ca.SX(0)

    def gap(self, q: ca.SX) -> ca.SX:
        return self.system.value_at(self.contact.gap, q)

    def place(self, q: ca.SX) -> ca.SX:
        return _place(self.system, self.contact.place, q, 1 + self.tangents(q).shape[0])

    def _slip(self, q: ca.SX) -> ca.SX:
        if self.contact.slip is None:
            raise ValueError(f"contact {self.contact.name!r} declares no slip(q)")
        return self.system.value_at(self.contact.slip, q)

    def _bounce(self, step: StepMotion) -> ca.SX:
        """The opening velocity `gap / h + e |v_n|` by Newton's law of impact if a body with the
        state's velocity v_n (m/s) reaches the surface within the step, else 0.
        """
        contact, (q, rho, _, _, h) = self.contact, step
        if not contact.bounces:
            return ca.SX(0)
        # v_n = Dgap v with v = X M^{-1} b + c
        mass, momentum, basis, drift = self.mechanics.inertia(q, rho)
        velocity = basis @ factorized(mass)(momentum) + drift
        frame = self.system.space.frame(q)
        approach = self.system.slope_at(contact.gap, q) @ frame.T @ velocity
        gap = self.system.value_at(contact.gap, q)
        # the body reaches the surface within h and is fast enough
        hits = ca.logic_and(gap + h * approach < 0, approach < -contact.bounce_speed)
        rebound = gap / h - _number(self.system, contact.restitution) * approach
        return ca.if_else(hits, rebound, 0)


@dataclass(frozen=True)
class _GripLaw(_Law):
    system: LagrangianSystem
    grip: Grip
    has_normal = False

    def tangents(self, q: ca.SX) -> ca.SX:
        return self.system.constraint_rows(q)[self._places, :] @ self.system.space.frame(q)

    def rows(self, q: ca.SX) -> ca.SX:
        return self.tangents(q)

    def velocities(self, step: StepMotion) -> ca.SX:
        # A(q_mid) w / h - b(q_mid)
        middle = step.segment.middle
        slip = self.system.constraint_rows(middle)[self._places, :] @ step.segment.w / step.h
        return slip - self.system.drift_rows(middle)[self._places]

    def coefficients(self, h: ca.SX) -> tuple[ca.SX, ca.SX]:
        # bound of the friction impulse: h mu load
        friction, load = (_number(self.system, c) for c in (self.grip.friction, self.grip.load))
        return ca.SX(0), h * friction * load

    def gap(self, q: ca.SX) -> ca.SX:
        return ca.SX(np.nan)

    def place(self, q: ca.SX) -> ca.SX:
        return _place(self.system, self.grip.place, q, len(self.grip.rows))

    @property
    def _places(self) -> list[int]:
        return list(self.grip.rows)


def _place(
    system: LagrangianSystem, place: Callable[..., Returned] | None, q: ca.SX, rows: int
) -> ca.SX:
    if place is None:
        return ca.SX(np.full((3, 1 + rows), np.nan))
    return system.value_at(place, q)[:, : 1 + rows]


def _number(system: LagrangianSystem, coefficient: Coefficient) -> ca.SX:
    """A coefficient as an expression in the parameters."""
    if callable(coefficient):
        return as_expression(coefficient(system.parameter_expressions))
    return ca.SX(coefficient)
