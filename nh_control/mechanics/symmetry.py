"""The symmetry that a system may declare: its shape, and the group that moves it as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nh_control.numerics.expressions import Expression


@dataclass(frozen=True)
class Symmetry:
    """Split of the configuration into a shape r, the first `n_shape` coordinates, and a Lie group,
    the others, that leaves the Lagrangian and the constraints the same: they do not depend on the
    group's coordinates, where velocities are body velocities [kobilarov2010 5].

    Velocities are `xi = Omega - connection(r) rdot`, `Omega` in the span of `basis(r)`, the c
    symmetry directions that satisfy the constraints. Both follow from the Lagrangian and the
    constraints, see `NonholonomicConnection`; functions of shapes (group, shape) and (group, c)
    take their places. Like the functions of a `System` these take the parameters as a last
    argument where it has some.
    """

    n_shape: int
    connection: Callable[..., Expression] | None = None
    basis: Callable[..., Expression] | None = None


NO_SYMMETRY = (
    "declares no symmetry (symmetry=nh.Symmetry(n_shape=...), the number of coordinates before "
    "those of a group on which its Lagrangian and constraints do not depend)"
)
"""What a system without a symmetry is told where a method asks for it."""
