"""The symmetry that a system may declare: its shape, and the group that moves it as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nh_control.numerics.expressions import Expression


@dataclass(frozen=True)
class Symmetry:
    """Split of the velocity into shape and group parts, `xi = Omega - connection(r) rdot`, `Omega`
    in the span of `basis(r)`.

    The first `n_shape` coordinates (and velocities) are the shape r, the others a Lie group;
    `connection(r)` has shape (group, shape), `basis(r)` has shape (group, c) with the c symmetry
    directions that satisfy the constraints [kobilarov2010 5]. Like the functions of a `System`
    both take the parameters as a last argument where it has some.
    """

    n_shape: int
    connection: Callable[..., Expression]
    basis: Callable[..., Expression]
