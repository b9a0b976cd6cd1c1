"""Hamel's equations for a system as expressions, and coordinates of admissible velocities."""

from __future__ import annotations

import casadi as ca

from nh_control.mechanics.system import System


def input_names(system: System) -> tuple[str, ...]:
    """The names of the inputs in continuous equations: the system's inputs, then `<name>_ddot` for
    the accelerations of prescribed coordinates.
    """
    return (*system.inputs, *(f"{name}_ddot" for name in system.prescribed))


def motion_terms(system: System, q: ca.SX, v: ca.SX, u: ca.SX) -> dict[str, ca.SX]:
    """The terms in Hamel's equations for a system, at symbolic q, v and u: mass, gradient_q,
    force, constraint, constraint_rate, frame and frame_rate (see `ContinuousSystem`).
    """
    # l(q, y) = L(q, frame y), varied along retract(q, e)
    space = system.space
    e, y, n = (ca.SX.sym(name, space.nv) for name in "eyn")
    moved = space.retract(q, e)
    velocity = space.frame(moved) @ y
    lagrangian = system.lagrangian_at(moved, velocity)
    momentum, gradient_q = ca.gradient(lagrangian, y), ca.gradient(lagrangian, e)
    # ad*_y p . n = p . (J'[y] n - J'[n] y)
    jacobian = space.local_jacobians(q, e)[1]
    bracket = ca.jtimes(jacobian @ n, e, y) - ca.jtimes(jacobian @ y, e, n)
    # M y' = F + l_q + ad*_y l_y - l_yq y
    force = (
        space.frame(q).T @ system.generalized_force(q, v, u)
        + gradient_q
        + ca.gradient(ca.dot(momentum, bracket), n)
        - ca.jtimes(momentum, e, y)
    )
    # C y = (b, 0), differentiated in time: C y' + C'[y] y = 0
    rolling = system.constraint_matrix(moved) @ space.frame(moved)
    constraint = ca.vertcat(rolling, system.mechanics.holonomic_jacobian(moved))
    drift = ca.vertcat(system.drift(moved), ca.SX(system.n_holonomic_constraints, 1))
    terms = {
        "mass": ca.jacobian(momentum, y),
        "gradient_q": gradient_q,
        "force": force,
        "constraint": constraint,
        "constraint_rate": ca.jtimes(constraint @ y - drift, e, y),
        "frame": space.frame(q),
        "frame_rate": ca.jtimes(velocity, e, y),
    }
    at_q = [ca.SX.zeros(space.nv), space.frame(q).T @ v]
    return dict(zip(terms, ca.substitute(list(terms.values()), [e, y], at_q)))


def with_known_rates(
    system: System, terms: dict[str, ca.SX], accelerations: ca.SX
) -> dict[str, ca.SX]:
    """The terms mass, force, constraint and constraint_rate with known rates inserted. The
    equations for first-order coordinates become `y'_i = 0`, because these have no inertia. Those
    for prescribed coordinates become `y'_i = accelerations_i`.
    """
    count = len(system.first_order) + len(system.prescribed)
    if not count:
        return terms
    n = system.space.nv
    free, known = range(n - count), range(n - count, n)
    rates = ca.SX(n, 1)
    if system.prescribed:
        rates[n - len(system.prescribed) :] = accelerations
    mass, constraint = ca.SX(terms["mass"]), ca.SX(terms["constraint"])
    # move the known rates to the right-hand side, then replace their rows
    force = ca.densify(terms["force"] - mass @ rates)
    constraint_rate = terms["constraint_rate"] + constraint @ rates
    force[known] = rates[known]
    mass[free, known], mass[known, free] = 0, 0
    mass[known, known], constraint[:, known] = ca.SX.eye(count), 0
    return terms | {
        "mass": mass,
        "force": force,
        "constraint": constraint,
        "constraint_rate": constraint_rate,
    }


def moving(system: System, q: ca.SX, y: ca.SX) -> ca.SX:
    """q' for the velocity components y."""
    e = ca.SX.sym("e", system.space.nv)
    rate = ca.jtimes(system.space.retract(q, e), e, y)
    return ca.substitute(rate, e, ca.SX.zeros(system.space.nv))


def admissible_velocity(system: System, q: ca.SX, s: ca.SX, prescribed: ca.SX) -> ca.SX:
    """The velocity `Y s + c` (nv) in local coordinates that satisfies the velocity constraints,
    with the velocities of prescribed coordinates and zero rates of first-order coordinates.
    """
    mechanics = system.mechanics
    return mechanics.admissible_tangents(q) @ s + mechanics.particular(q, prescribed)


def admissible_coordinates(system: System, q: ca.SX, v: ca.SX) -> ca.SX:
    """The least-squares coordinates s (nrho) of a velocity v (nw) in `admissible_velocity`."""
    basis = system.mechanics.admissible_tangents(q)
    c = admissible_velocity(system, q, ca.SX(basis.shape[1], 1), system.prescribed_part(v))
    y = system.space.frame(q).T @ v - c
    return ca.solve(basis.T @ basis, basis.T @ y) if basis.shape[1] else ca.SX(0, 1)
