"""Checks for a new system: shapes, independent constraints and a regular mass matrix."""

from __future__ import annotations

import inspect

import casadi as ca
import numpy as np

from nh_control.geometry.spaces import Product, Rn
from nh_control.mechanics import first_order_checks
from nh_control.mechanics.contact_checks import check_contacts
from nh_control.mechanics.independence import (
    require_independent_velocity_constraints,
)
from nh_control.mechanics.lagrangian_system import LagrangianSystem
from nh_control.mechanics.mechanics import Mechanics
from nh_control.mechanics.requirements import require_shape, require_solution
from nh_control.mechanics.symmetry_checks import check_symmetry
from nh_control.numerics.expressions import NoValue, contains_nan, require_written_out

WRITTEN = {
    "lagrangian": ("q, v", "lagrangian_at"),
    "force": ("q, v, u", "generalized_force"),
    "velocity_constraint": ("q", "constraint_matrix"),
    "velocity_drift": ("q", "drift"),
    "holonomic_constraint": ("q", "holonomic"),
    "distribution": ("q", "declared_basis"),
    "domain": ("q", "domain_at"),
    "friction_factor": ("q, u", "friction_factor_at"),
    "first_order_rate": ("q, v, u", "rate_at"),
}
"""The user's functions: their arguments, followed by the parameters p if there are any, and the
system's method that calls them.
"""
SINGULAR = 1e-14
"""The scaled mass matrix counts as singular if its smallest eigenvalue is below this value."""
LONGEST = 200
"""Maximum number of characters that are shown from a CasADi message."""
HINTS = {
    "velocity_constraint": "it is the matrix A of A(q) v = b(q); a constraint that is not linear "
    "in v is not supported"
}
ON_TIME = (
    "for dependence on time, add a prescribed coordinate at the end of the space: "
    'prescribed=("time",), with the next values t + h as inputs'
)


def check_declaration(system: LagrangianSystem) -> None:
    """Raise ValueError or TypeError if fields of a system contradict each other."""
    for field in ("inputs", "input_units", "prescribed", "first_order", "first_order_units"):
        if isinstance(value := getattr(system, field), str):
            raise TypeError(
                f"{system.name}: {field} must be a tuple of strings, got the string {value!r}; "
                f"write ({value!r},)"
            )
    _require_companions(system)
    system.nominal_configuration  # noqa: B018  (access raises the error)
    _require_prescribed_last(system)
    first_order_checks.check_names(system)
    system.input_bounds  # noqa: B018  (access raises the error)
    check_contacts(system)


def check_mechanics(system: LagrangianSystem, mechanics: Mechanics) -> None:
    """Raise ValueError if a system's functions have wrong shapes, if its constraints are dependent
    or if its mass matrix is singular. Raise TypeError if a function takes wrong arguments.
    """
    written = {
        what: _expression(system, what) for what in WRITTEN if getattr(system, what) is not None
    }
    q, v, _ = system.symbols
    _require_matrix_of_q(system, q)
    require_shape(system, "lagrangian", written["lagrangian"], (1, 1))
    if "force" in written:
        require_shape(system, "force", written["force"], (system.space.nw, 1))
    if "first_order_rate" in written:
        shape = len(system.first_order), 1
        require_shape(system, "first_order_rate", written["first_order_rate"], shape)
    if "friction_factor" in written:
        require_shape(system, "friction_factor", written["friction_factor"], (1, 1))
    first_order_checks.check_equations(system)
    # L is quadratic in v if L_vv does not depend on v
    mass = ca.hessian(written["lagrangian"], v)[0]
    if ca.depends_on(mass, v):
        raise ValueError(
            f"{system.name}: the Lagrangian must be quadratic in v, but its mass matrix "
            f"depends on v"
        )
    require_shape(
        system,
        "velocity_constraint",
        system.constraint_matrix(q),
        (system.n_velocity_constraints, system.space.nw),
    )
    require_shape(system, "velocity_drift", system.drift(q), (system.n_velocity_constraints, 1))
    require_independent_velocity_constraints(system)
    _require_freedom(system)
    _require_holonomic_freedom(system)
    # the basis solves A X = 0, and X^T M X is positive definite
    (x,) = mechanics.at_signs([mechanics.admissible_basis(q)], q)
    require_shape(system, "distribution", x, (system.space.nw, system.nrho))
    require_solution(system, q, x, "distribution(q)")
    if system.symmetry is not None:
        check_symmetry(system, mechanics.nonholonomic_connection)
    _require_positive(system, x.T @ mass @ x)


def _require_companions(system: LagrangianSystem) -> None:
    """Raise ValueError if a field of the system needs another field that is missing."""
    if system.inputs and system.force is None:
        raise ValueError(f"{system.name}: inputs {system.inputs} need a force(q, v, u)")
    if system.input_units and len(system.input_units) != system.nu:
        raise ValueError(
            f"{system.name}: {system.nu} inputs but {len(system.input_units)} input_units"
        )
    if system.distribution is not None and system.velocity_constraint is None:
        raise ValueError(
            f"{system.name}: a distribution needs the velocity_constraint it satisfies"
        )
    if system.velocity_drift is not None and system.velocity_constraint is None:
        raise ValueError(f"{system.name}: a velocity_drift needs its velocity_constraint")
    if system.space.nw != system.space.nv and system.distribution is not None:
        raise ValueError(
            f"{system.name}: a distribution is not possible on a space with spheres, whose bases "
            "rotate; omit it, a basis follows from velocity_constraint"
        )


def _require_arguments(system: LagrangianSystem, what: str) -> None:
    """Raise TypeError unless a function takes the arguments with which it is called."""
    expected = WRITTEN[what][0] + ("" if system.parameters is None else ", p")
    count = expected.count(",") + 1
    try:
        inspect.signature(getattr(system, what)).bind(*(None,) * count)
    except ValueError:
        return  # built-in functions have no signature
    except TypeError as problem:
        hints = [HINTS[what]] if what in HINTS else []
        raise TypeError(
            f"{system.name}: {what} must be a function {what}({expected}) of {count} "
            f"argument{'s' * (count > 1)}: {problem}; " + "; ".join([*hints, ON_TIME])
        ) from None


def _expression(system: LagrangianSystem, what: str) -> ca.SX:
    """The value of a function at the system's symbols. Raises ValueError if the function fails for
    expressions or returns NaN, as `math` functions do.
    """
    _require_arguments(system, what)
    arguments, method = WRITTEN[what]
    symbols = dict(zip("qvu", system.symbols))
    remedy = (
        "write it with CasADi's functions (ca.cos, ca.fmax, ca.if_else, ca.norm_2), which take "
        "expressions; functions of math, float(), max() and if do not"
    )
    try:
        expression = getattr(system, method)(*(symbols[name] for name in arguments.split(", ")))
    except NoValue as nothing:
        raise ValueError(f"{system.name}: {what}({arguments}): {nothing}") from None
    except (RuntimeError, NotImplementedError) as problem:
        reason = " ".join(str(problem).split())[:LONGEST]
        raise ValueError(
            f"{system.name}: {what}({arguments}) fails: {reason}; {remedy}"
        ) from problem
    require_written_out(f"{system.name}: {what}({arguments})", expression)
    if contains_nan(expression):
        raise ValueError(
            f"{system.name}: {what}({arguments}) must be an expression, got NaN in it; {remedy}"
        )
    return expression


def _require_freedom(system: LagrangianSystem) -> None:
    """Raise ValueError unless the velocity constraints leave a free velocity. Prescribed
    coordinates may determine all velocities.
    """
    # velocities that constraints may determine
    free = system.space.nv - len(system.first_order) - len(system.prescribed)
    determined = system.prescribed and system.n_velocity_constraints == free
    if system.n_velocity_constraints >= free and not determined:
        kind = "not prescribed or of first order" if system.first_order else "not prescribed"
        raise ValueError(
            f"{system.name}: the {system.n_velocity_constraints} rows of velocity_constraint "
            f"leave no motion for the {free} velocities that are {kind}; drop rows"
        )


def _require_positive(system: LagrangianSystem, mass: ca.SX) -> None:
    """Raise ValueError unless the mass matrix on the admissible velocities is positive definite at
    the nominal configuration.
    """
    nominal = system.nominal_configuration
    reduced = system.value(mass, nominal)
    diagonal = np.diag(reduced)
    positive = np.isfinite(reduced).all() and (diagonal > 0).all()
    if positive and scaled_spectrum(reduced)[0].min(initial=np.inf) > SINGULAR:
        return
    lowest = np.linalg.eigvalsh(reduced)[0] if np.isfinite(reduced).all() else np.nan
    kind = (
        f"not positive definite, its smallest eigenvalue is {lowest:.3g},"
        if lowest < -SINGULAR * np.abs(reduced).max()
        else "singular or not finite"
    )
    raise ValueError(
        f"{system.name}: the mass matrix on the admissible velocities is {kind} at q = "
        f"{nominal.tolist()}: {reduced.tolist()}; every admissible velocity needs a positive "
        "kinetic energy (the Lagrangian is kinetic minus potential energy); add it, constrain the "
        "velocity, or set `nominal` to a regular configuration"
    )


def scaled_spectrum(mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of the mass matrix scaled to unit masses,
    `M_ij / sqrt(M_ii M_jj)`. They do not depend on units or mass ratios.
    """
    # D^{-1/2} M D^{-1/2} with D = diag M
    scale = 1 / np.sqrt(np.diag(mass))
    values, vectors = np.linalg.eigh(scale[:, None] * mass * scale)
    return values, vectors


def _require_prescribed_last(system: LagrangianSystem) -> None:
    last = system.space.factors[-1] if isinstance(system.space, Product) else system.space
    n = len(system.prescribed)
    if n and not (isinstance(last, Rn) and last.names[-n:] == system.prescribed and last.nv >= n):
        raise ValueError(
            f"{system.name}: prescribed coordinates {system.prescribed} must be the last ones of "
            f"a space Rn, got {system.space.names}"
        )


def _require_matrix_of_q(system: LagrangianSystem, q: ca.SX) -> None:
    """Raise ValueError if the constraint matrix depends on anything but q and the parameters."""
    if system.velocity_constraint is None:
        return
    # free symbols: variables that are not arguments
    known, a = [q, system.parameter_symbols], system.constraint_matrix(q)
    others = ca.Function("matrix", known, [a], {"allow_free": True}).free_sx()
    if others:
        expected = "A(q)" if system.parameters is None else "A(q, p)"
        raise ValueError(
            f"{system.name}: velocity_constraint depends on {others}, which are not its "
            f"arguments; it must be the matrix {expected} of A(q) v = b(q), without v"
        )


def _require_holonomic_freedom(system: LagrangianSystem) -> None:
    """Raise ValueError if there are more holonomic constraints than admissible velocities."""
    count = system.n_holonomic_constraints - system.n_redundant
    if count > system.nrho:
        raise ValueError(
            f"{system.name}: holonomic_constraint has {count} equations for {system.nrho} "
            "admissible velocities; drop equations"
        )
