"""Integrators, each defined by a residual and a read-out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import casadi as ca

from nh_control.geometry.spaces import Product, Rn, Space
from nh_control.mechanics.system import System
from nh_control.numerics.contact_problem import Block

Gradients: TypeAlias = Callable[[ca.SX, ca.SX], tuple[ca.SX, ca.SX]]


class StepSymbols(NamedTuple):
    """The symbols of a step from (q, rho) under the input u, with the unknowns z, the step h, and
    `gradients(q, v) = (dL/dq, dL/dv)`.
    """

    q: ca.SX
    rho: ca.SX
    u: ca.SX
    z: ca.SX
    h: ca.SX
    gradients: Gradients


Residual: TypeAlias = Callable[[StepSymbols], ca.SX]
Readout: TypeAlias = Callable[[StepSymbols], tuple[ca.SX, ca.SX]]


@dataclass(frozen=True)
class ContactUnknowns:
    """The unknowns that contacts add to a step. They begin at the index `first` of z: impulses x,
    then slip bounds psi, in the `blocks` of a contact problem (see `numerics.contact_problem`).

    The residual is linear in x. `velocities` are the velocities w (n) conjugate to the impulses,
    as functions of the other unknowns. `coefficients` contains the friction coefficients of all
    blocks, then their bounds. kappa is the system's last parameter.
    """

    first: int
    blocks: tuple[Block, ...]
    velocities: Residual
    coefficients: Residual


@dataclass(frozen=True)
class Method:
    """An integrator: the nz unknowns z solve `r(q, rho, u, z, h) = 0`, and the next state is
    `(q1, rho1) = g(q, rho, u, z, h)`. Newton's method starts at z = 0.

    Unknowns are mean velocities and impulses. If the kinetic energy is quadratic in v, the first
    iteration computes them to first order in h. `multipliers` are the indices in z of the
    multipliers of holonomic constraints (impulses); the rows of r with the same indices are the
    constraints. Both functions take `StepSymbols` and use the Lagrangian only through their
    `gradients`.

    A method that needs more memory than (q, rho) names the additional numbers in `memory`. They
    are then the last entries of a state, and of rho in both functions. `start(q, rho, u, h)`
    returns their initial values for a step under u; by default they are zero.

    `first_order` says whether the step integrates the rates of first-order coordinates. Other
    methods reject systems with such coordinates.

    `redundant` says whether r can be solved with redundant holonomic constraints. This requires
    that constraints enter the step only through their multipliers.

    A step with `contacts` first computes the impulses by an interior-point method and then solves
    all of r by Newton's method.

    A composition takes consecutive steps by the fractions `substeps` of h (see
    `DiscreteSystem.composed`).
    """

    name: str
    nz: int
    residual: Residual
    readout: Readout
    multipliers: range = range(0)
    memory: tuple[str, ...] = ()
    start: Callable[[ca.SX, ca.SX, ca.SX, ca.SX], ca.SX] | None = None
    substeps: tuple[float, ...] = (1.0,)
    first_order: bool = False
    contacts: ContactUnknowns | None = None
    redundant: bool = False

    def state_space(self, system: System) -> Space:
        """The space of the system's states, extended by this method's memory."""
        # x = (q, rho, memory)
        if not self.memory:
            return system.mechanics.state_space
        return Product(system.mechanics.state_space, Rn(*self.memory))

    def require_taken(self, system: System) -> None:
        """Raise ValueError for first-order coordinates that the method does not integrate, for
        contacts that it does not support, and for redundant constraints that it cannot solve.
        """
        if system.first_order and not self.first_order:
            raise ValueError(
                f"{self.name} cannot take {system.name}, which has first-order coordinates "
                f"{system.first_order}; use midpoint, nonholonomic_midpoint, a composition of "
                "them or rk4, or declare Method(..., first_order=True) if the method moves them"
            )
        if system.has_contacts and self.contacts is None:
            raise ValueError(
                f"{self.name} cannot take {system.name}, which has contacts or grips; use "
                "midpoint or nonholonomic_midpoint"
            )
        if system.n_redundant and not self.redundant:
            raise ValueError(
                f"{self.name} cannot take {system.name}, which has redundant constraints: "
                f"{system.named_rows(system.redundant_rows)} follow from the others; drop "
                "them, or use midpoint, nonholonomic_midpoint, a composition of them or slgi"
            )


def no_residual(symbols: StepSymbols) -> ca.SX:
    """The empty residual (0) of a method without unknowns."""
    return ca.SX(0, 1)
