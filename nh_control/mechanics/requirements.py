"""Checks for the expressions in a declaration: shapes, and bases that satisfy constraints."""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca
import numpy as np

from nh_control.mechanics.lagrangian_system import LagrangianSystem


def require_shape(
    system: LagrangianSystem, what: str, expression: ca.SX, shape: tuple[int, int]
) -> None:
    """Raise ValueError if the expression has a different shape."""
    if expression.shape != shape:
        raise ValueError(f"{system.name}: {what} must have shape {shape}, got {expression.shape}")


def require_solution(
    system: LagrangianSystem, q: ca.SX, x: ca.SX, what: str, remedy: str = ""
) -> None:
    """Raise ValueError unless A X vanishes at the nominal configuration and at others nearby."""
    rows = system.constraint_matrix(q)
    for at in configurations(system):
        a, basis = (system.value(e, at) for e in (rows, x))
        # round-off is relative to the sizes of both factors
        defect = np.abs(a @ basis).max(initial=0.0)
        if not defect <= 1e-12 * np.abs(a).max(initial=0.0) * np.abs(basis).max(initial=0.0):
            raise ValueError(
                f"{system.name}: velocity_constraint(q) @ {what} must vanish, got {defect:.1e} at "
                f"q = {at.tolist()}{remedy}"
            )


def configurations(system: LagrangianSystem) -> Iterator[np.ndarray]:
    """The nominal configuration and three random configurations near it."""
    nv = system.space.nv
    for d in (np.zeros(nv), *np.random.default_rng(0).normal(size=(3, nv))):
        yield system.space.retract(system.nominal_configuration, d)
