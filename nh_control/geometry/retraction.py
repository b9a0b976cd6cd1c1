"""Retractions of Lie groups: maps tau from the algebra, and their inverses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca


@dataclass(frozen=True)
class Retraction:
    """A map tau from the algebra to the group, its `inverse`, and the inverse `dtau_inverse(v)` of
    its right-trivialized differential, a square matrix with `dtau^{-1}_v (g' g^{-1}) = v'` for
    g = tau(v) [kobilarov2010 5].
    """

    name: str
    tau: Callable[[ca.SX], ca.SX]
    inverse: Callable[[ca.SX], ca.SX]
    dtau_inverse: Callable[[ca.SX], ca.SX]
