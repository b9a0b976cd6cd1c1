"""Conversion of systems with planar poses to plain coordinates, as used in papers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import casadi as ca

from nh_control.geometry.spaces import SE2, Product, Rn, Space
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import Returned, as_expression


def in_coordinates(system: System) -> System:
    """The same system on R^n: poses (theta, x, y) change to `q + d`, and velocities are the rates
    of the coordinates, `q' = E(q) v`, where E contains the rotation by theta.

    The functions become `L(q, E^T q')`, `E f(q, E^T q', u)`, `A E^T` and `E X`, so rho does not
    change. The mass matrix may then depend on q. The result declares no symmetry, because its
    group is not R^n. Raises ValueError for a space that has factors other than SE2 and Rn.
    """
    factors = system.space.factors if isinstance(system.space, Product) else (system.space,)
    if other := [type(f).__name__ for f in factors if not isinstance(f, (SE2, Rn))]:
        raise ValueError(
            f"{system.name}: only planar poses have such coordinates, its space contains {other}"
        )

    def body(q: ca.SX, rates: ca.SX) -> ca.SX:
        return coordinate_frame(factors, q).T @ rates

    def along(
        function: Callable[..., Returned] | None, change: Callable[[ca.SX, ca.SX], ca.SX]
    ) -> Callable[..., Returned] | None:
        if function is None:
            return None
        return lambda q, *p: change(coordinate_frame(factors, q), as_expression(function(q, *p)))

    def of_rates(force: Callable[..., Returned]) -> Callable[..., Returned]:
        return lambda q, rates, *up: (
            coordinate_frame(factors, q) @ as_expression(force(q, body(q, rates), *up))
        )

    names = system.space.names
    return replace(
        system,
        name=f"{system.name}_coordinates",
        space=Rn(*names),
        lagrangian=lambda q, rates, *p: system.lagrangian(q, body(q, rates), *p),
        force=None if system.force is None else of_rates(system.force),
        velocity_constraint=along(system.velocity_constraint, lambda e, a: a @ e.T),
        distribution=along(system.distribution, lambda e, x: e @ x),
        symmetry=None,
    )


def coordinate_frame(factors: tuple[Space, ...], q: ca.SX) -> ca.SX:
    """The orthogonal matrix E(q) (n, n) in `q' = E(q) v` on a product of SE2 and Rn."""
    blocks, offset = [], 0
    for factor in factors:
        if isinstance(factor, SE2):
            # theta' = omega, (x', y') = R(theta) (v_x, v_y)
            c, s = ca.cos(q[offset]), ca.sin(q[offset])
            rotation = ca.vertcat(ca.horzcat(c, -s), ca.horzcat(s, c))
            blocks.append(ca.diagcat(1, rotation))
        else:
            blocks.append(ca.SX.eye(factor.nv))
        offset += factor.nq
    return ca.diagcat(*blocks)
