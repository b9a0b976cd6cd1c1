"""Checks for a declared symmetry: the Lagrangian and the constraints must be invariant."""

from __future__ import annotations

import casadi as ca
import numpy as np

from nh_control.mechanics.elimination import dependent_rows
from nh_control.mechanics.lagrangian_system import LagrangianSystem
from nh_control.mechanics.nonholonomic_connection import NonholonomicConnection
from nh_control.mechanics.requirements import configurations, require_shape, require_solution
from nh_control.numerics.expressions import split

BASIS = "[1, 0; -connection(r), basis(r)] of symmetry"
INVARIANT = 1e-11
"""Maximum difference between Lagrangians that should be equal, relative to the energies."""


def check_symmetry(system: LagrangianSystem, connection: NonholonomicConnection) -> None:
    """Raise ValueError if the Lagrangian or the constraints are not invariant under the declared
    symmetry, or if a declared connection or basis violates the constraints.
    """
    _require_flat_coordinates(system)
    _require_constrained_group(system, connection)
    _require_invariant_lagrangian(system, connection)
    q, group = system.symbols[0], connection.group.nw
    (r, _), n = split(q, connection.shape.nq), connection.shape.nw
    basis = connection.basis(r)
    require_shape(system, "basis(r) of symmetry", basis, (group, connection.n_basis))
    at = system.nominal_configuration
    if dependent := dependent_rows(system.value(ca.densify(basis).T, at)):
        raise ValueError(
            f"{system.name}: columns {dependent} (counted from 0) of basis(r) of symmetry are "
            f"zero or depend on previous columns at q = {at.tolist()}"
        )
    a = connection.connection(r, basis)
    require_shape(system, "connection(r) of symmetry", a, (group, n))
    # A X = 0 with X = [1, 0; -connection, basis], at random group elements
    shape = ca.horzcat(ca.SX.eye(n), ca.SX(n, connection.n_basis))
    x = ca.vertcat(shape, ca.horzcat(-a, basis))
    require_solution(system, q, x, BASIS, _remedy(system, connection))


def _require_flat_coordinates(system: LagrangianSystem) -> None:
    kinds = {
        f"prescribed coordinates {system.prescribed}": bool(system.prescribed),
        f"first-order coordinates {system.first_order}": bool(system.first_order),
        "spheres": system.space.nw != system.space.nv,
    }
    if obstacles := [kind for kind, there in kinds.items() if there]:
        raise ValueError(
            f"{system.name}: a symmetry is not possible with {' and '.join(obstacles)}; omit it "
            "(symmetry=None)"
        )


def _require_constrained_group(
    system: LagrangianSystem, connection: NonholonomicConnection
) -> None:
    """Raise ValueError unless D + V = TQ, which means that the rows of A_g are independent."""
    r, _ = split(system.symbols[0], connection.shape.nq)
    group = ca.densify(connection.constraint_blocks(r)[1])
    at = system.nominal_configuration
    if dependent := dependent_rows(system.value(group, at)):
        raise ValueError(
            f"{system.name}: rows {dependent} (counted from 0) of velocity_constraint constrain "
            f"only the shape {list(connection.shape.names)}, or follow from previous rows, at "
            f"q = {at.tolist()}; the rows must be independent constraints of the velocities "
            f"{list(connection.group.velocity_names)} of the group: reduce n_shape of symmetry "
            "or set `nominal` to a regular configuration"
        )


def _require_invariant_lagrangian(
    system: LagrangianSystem, connection: NonholonomicConnection
) -> None:
    q, v, _ = system.symbols
    r, _ = split(q, connection.shape.nq)
    places = (q, v), (connection.at_identity(r), v), (q, ca.SX.zeros(v.shape))
    values = [system.lagrangian_at(at_q, at_v) for at_q, at_v in places]
    lagrangians = ca.Function("lagrangians", [q, v, system.parameter_symbols], values)
    for at in configurations(system):
        # the Lagrangian must be equal at any group element and at the identity
        speed = np.random.default_rng(1).normal(size=system.space.nw)
        there, here, rest = (float(x) for x in lagrangians(at, speed, system.parameter_values))
        if not abs(there - here) <= INVARIANT * (abs(there - rest) + abs(here) + abs(rest)):
            names = _dependent_names(values[0], q, connection)
            raise ValueError(
                f"{system.name}: the Lagrangian must not depend on the coordinates of the group "
                f"of its symmetry, but it changes with {names}: by {there - here:.1e} J between "
                f"q = {at.tolist()} and the group's identity, v = {speed.tolist()}; increase "
                "n_shape of symmetry such that these belong to the shape, or omit it"
            )


def _remedy(system: LagrangianSystem, connection: NonholonomicConnection) -> str:
    q = system.symbols[0]
    names = _dependent_names(ca.vec(system.constraint_matrix(q)), q, connection)
    if not names:
        return ""
    return (
        f"; it depends on {names} of the group, under which the constraints must be invariant: "
        "increase n_shape of symmetry such that these belong to the shape, or omit it"
    )


def _dependent_names(expression: ca.SX, q: ca.SX, connection: NonholonomicConnection) -> list[str]:
    """The names of the group's coordinates on which an expression depends."""
    names, n = (*connection.shape.names, *connection.group.names), connection.shape.nq
    depends = ca.which_depends(expression, q, 1, False)
    return [name for name, there in list(zip(names, depends))[n:] if there]
