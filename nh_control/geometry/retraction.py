"""What a retraction onto a group is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca


@dataclass(frozen=True)
class Retraction:
    """A map tau from algebra to group, as stored, its inverse, and the inverse of its
    right-trivialized tangent, `dtau_inverse(v)`, a square matrix.
    """

    name: str
    tau: Callable[[ca.SX], ca.SX]
    inverse: Callable[[ca.SX], ca.SX]
    dtau_inverse: Callable[[ca.SX], ca.SX]
