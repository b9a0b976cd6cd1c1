"""An integrator: a residual and a read-out."""

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
    """The symbols of a step from (q, rho) under the input u: the unknowns z, the step h, and
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
    """The last unknowns of a step with contacts, from the place `first` in z on: impulses x, then
    slip bounds psi, by the `blocks` of a contact problem, see `numerics.contact_problem`.

    The residual is linear in x. `velocities` are the w (n) that go with the impulses, a function
    of the other unknowns, and `coefficients` the friction and the bound of every block, one below
    the other. kappa is the last parameter of the system.
    """

    first: int
    blocks: tuple[Block, ...]
    velocities: Residual
    coefficients: Residual


@dataclass(frozen=True)
class Method:
    """An integrator: `r(q, rho, u, z, h) = 0` fixes the nz unknowns z, then
    `(q1, rho1) = g(q, rho, u, z, h)`; Newton starts at z = 0.

    Unknowns are mean velocities and impulses: for a kinetic energy quadratic in v the first
    iteration finds them to first order in h. `multipliers` are the places in z of the multipliers
    of holonomic constraints (impulses); the rows of r at the same places are the constraints. Both
    functions take the `StepSymbols`, and use the Lagrangian by their `gradients` only.

    A method that needs more memory than (q, rho) names it in `memory`: a state then ends with
    these numbers, rho in both functions too, and `start(q, rho, u, h)` are those of a state
    that is made from a configuration and a velocity, for a step under u; zero without it.

    `first_order` says that the step moves first-order coordinates by their rates; other methods
    refuse systems that have some.

    `redundant` says that r stays solvable where holonomic constraints follow from others: they act
    on the step by their multipliers alone.

    A step with `contacts` starts at the impulses that an interior point finds; Newton's method
    on all of r follows.

    A composition takes steps by the fractions `substeps` of h in turn, see
    `DiscreteSystem.composed`.
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
        """States of a system under this method: the system's states, with the memory."""
        if not self.memory:
            return system.mechanics.state_space
        return Product(system.mechanics.state_space, Rn(*self.memory))

    def require_taken(self, system: System) -> None:
        """Raise ValueError for first-order coordinates that the method would not move, for
        contacts that it does not know, and for redundant constraints that it cannot solve.
        """
        if system.first_order and not self.first_order:
            raise ValueError(
                f"{self.name} cannot take {system.name}, which has first-order coordinates "
                f"{system.first_order}; use midpoint, nonholonomic_midpoint, a composition of "
                "them or rk4, or declare Method(..., first_order=True) for one that moves them"
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
    """The residual (0) of a method without unknowns."""
    return ca.SX(0, 1)
