"""A retraction of a Lie group: the map tau from the algebra and its inverses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca


@dataclass(frozen=True)
class Retraction:
    """A map tau from the algebra to the group, its `inverse`, and `dtau_inverse(v)`, the inverse
    of its right-trivialized differential as a square matrix, `dtau^{-1}_v (g' g^{-1}) = v'` for
    g = tau(v) [kobilarov2010 5].
    """

    name: str
    tau: Callable[[ca.SX], ca.SX]
    inverse: Callable[[ca.SX], ca.SX]
    dtau_inverse: Callable[[ca.SX], ca.SX]
