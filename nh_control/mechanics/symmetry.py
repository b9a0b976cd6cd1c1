"""The symmetry that a system may declare: its shape, and the group that moves the whole system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nh_control.numerics.expressions import Expression


@dataclass(frozen=True)
class Symmetry:
    """A split of the configuration into a shape r (the first `n_shape` coordinates) and an element
    of a Lie group (the other coordinates). If velocities of the group are body velocities, the
    Lagrangian and the constraints must not depend on the group element [kobilarov2010 5].

    Admissible velocities are `xi = Omega - connection(r) rdot` with `Omega` in the span of
    `basis(r)`, the c group directions that satisfy the constraints. By default, the connection and
    the basis follow from the Lagrangian and the constraints (see `NonholonomicConnection`). The
    functions `connection` (group, shape) and `basis` (group, c) replace them. As in a `System`,
    these functions take the parameters, if there are any, as their last argument.
    """

    n_shape: int
    connection: Callable[..., Expression] | None = None
    basis: Callable[..., Expression] | None = None


NO_SYMMETRY = (
    "declares no symmetry (symmetry=nh.Symmetry(n_shape=...), the number of coordinates before "
    "those of a group on which its Lagrangian and constraints do not depend)"
)
"""The error message of methods that need a symmetry if the system declares none."""
