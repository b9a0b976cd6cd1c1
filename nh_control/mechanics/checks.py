"""What a system must be, found out when it is made: shapes, independence, a regular mass."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Product, Rn

if TYPE_CHECKING:
    from nh_control.mechanics.system import System


def check(system: System) -> None:
    """Raise ValueError, or TypeError for a function of other arguments, where a system is none."""
    if system.inputs and system.force is None:
        raise ValueError(f"{system.name}: inputs {system.inputs} need a force(q, v, u)")
    if system.input_units and len(system.input_units) != system.nu:
        raise ValueError(
            f"{system.name}: {system.nu} inputs but {len(system.input_units)} input_units"
        )
    _require_prescribed_last(system)
    system.input_bounds  # noqa: B018  (refuses wrong ones)
    q, v, u = system.symbols
    _require_matrix_of_q(system, q)
    _expect(system, "lagrangian", system.lagrangian_at(q, v), (1, 1))
    _expect(system, "force", system.generalized_force(q, v, u), (system.space.nw, 1))
    mass = ca.hessian(system.lagrangian_at(q, v), v)[0]
    if ca.depends_on(mass, v):
        raise ValueError(
            f"{system.name}: the Lagrangian must be quadratic in v, but its mass matrix "
            f"depends on v"
        )
    if system.distribution is not None and system.velocity_constraint is None:
        raise ValueError(f"{system.name}: a distribution needs the velocity_constraint it solves")
    if system.velocity_drift is not None and system.velocity_constraint is None:
        raise ValueError(f"{system.name}: a velocity_drift needs its velocity_constraint")
    _expect(
        system, "velocity_constraint", system.constraint_matrix(q), (system.m, system.space.nw)
    )
    _expect(system, "velocity_drift", system.drift(q), (system.m, 1))
    if system.elimination.on_spheres and system.distribution is not None:
        raise ValueError(
            f"{system.name}: a distribution cannot have the turning bases of spheres; leave it "
            "out, it is eliminated from velocity_constraint"
        )
    x = system.admissible_basis(q)
    _expect(system, "distribution", x, (system.space.nw, system.n_rho))
    _require_independence(system, q)
    _require_solution(system, q, x)
    reduced = system.value(x.T @ mass @ x, system.space.origin)
    if not np.isfinite(reduced).all() or np.linalg.cond(reduced) > 1e12:
        raise ValueError(
            f"{system.name}: the mass matrix on the admissible velocities is singular or not "
            f"finite at q = {system.space.origin.tolist()}: {reduced.tolist()}; give every "
            "admissible velocity a kinetic energy, or constrain it"
        )


def _require_prescribed_last(system: System) -> None:
    last = system.space.factors[-1] if isinstance(system.space, Product) else system.space
    n = len(system.prescribed)
    if n and not (isinstance(last, Rn) and last.names[-n:] == system.prescribed and last.nv >= n):
        raise ValueError(
            f"{system.name}: prescribed coordinates {system.prescribed} must be the last ones of "
            f"a space Rn, got {system.space.names}"
        )


def _require_matrix_of_q(system: System, q: ca.SX) -> None:
    """The matrix of the constraints is a function of q and the parameters alone."""
    if system.velocity_constraint is None:
        return
    given = 1 if system.parameters is None else 2
    wanted = "A(q)" if given == 1 else "A(q, p)"
    try:
        inspect.signature(system.velocity_constraint).bind(*(None,) * given)
    except TypeError as problem:
        raise TypeError(
            f"{system.name}: velocity_constraint must be a function {wanted} of "
            f"{given} argument{'s' * (given > 1)}, the matrix of A(q) v = b(q): {problem}; a "
            "constraint that is not linear in v is not supported"
        ) from None
    known, a = [q, system.parameter_symbols], system.constraint_matrix(q)
    others = ca.Function("matrix", known, [a], {"allow_free": True}).free_sx()
    if others:
        raise ValueError(
            f"{system.name}: velocity_constraint depends on {others}, which are none of its "
            f"arguments; it must be the matrix {wanted} of A(q) v = b(q), without v"
        )


def _require_independence(system: System, q: ca.SX) -> None:
    """The constraints must be independent at the origin, where it lies in the domain."""
    at = system.space.origin
    if not system.m or not (system.value(system.domain_at(q), at) > 0).all():
        return
    a = system.value(system.constraint_matrix(q) @ system.space.frame(q), at)
    rank = np.linalg.matrix_rank(a) if np.isfinite(a).all() else 0
    if rank < system.m:
        raise ValueError(
            f"{system.name}: the {system.m} rows of velocity_constraint have rank {rank} at q = "
            f"{at.tolist()}: {a.tolist()}; drop dependent rows, or write them so that they "
            "stay independent there"
        )


def _require_solution(system: System, q: ca.SX, x: ca.SX) -> None:
    """A X must vanish at the origin and at configurations around it."""
    a = system.constraint_matrix(q)
    for d in (
        np.zeros(system.space.nv),
        *np.random.default_rng(0).normal(size=(3, system.space.nv)),
    ):
        at = system.space.retract(system.space.origin, d)
        defect, size = (np.abs(system.value(e, at)).max(initial=0.0) for e in (a @ x, a))
        if not defect <= 1e-12 * max(1.0, size):
            raise ValueError(
                f"{system.name}: velocity_constraint(q) @ distribution(q) must vanish, got "
                f"{defect:.1e} at q = {at.tolist()}"
            )


def _expect(system: System, what: str, expression: ca.SX, shape: tuple[int, int]) -> None:
    if expression.shape != shape:
        raise ValueError(f"{system.name}: {what} must have shape {shape}, got {expression.shape}")
