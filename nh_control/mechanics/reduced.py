"""Equations of motion as a compiled ordinary differential equation with few numbers, for any
solver: the reference for discrete ones.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.mechanics.motion_terms import (
    admissible_coordinates,
    admissible_velocity,
    input_names,
    motion_terms,
    moving,
    with_known_rates,
)
from nh_control.mechanics.system import System
from nh_control.numerics.compiled import Functions
from nh_control.numerics.linear_solves import factorized


class ReducedEquations:
    """`w' = f(w, u)` with w = (q, s, v_k): configuration, coordinates of the velocity `frame(q) (Y
    s + c) = v`, Y (nv, nrho) a basis of the admissible velocities and c those of the drift, of the
    prescribed velocities v_k, and in the rates of motion those of first-order coordinates. Inputs
    are (u, v_k'): forces, then the accelerations of prescribed coordinates.

    `Y^T M Y s' = Y^T (F - M (Y' s + c'))`, with the holonomic constraints' multipliers where there
    are some, from `motion_terms`. On spheres, whose bases turn, and for velocity constraints of a
    system that declares no basis, s is the stored velocity v itself and all constraints have
    multipliers. The linear system is solved by
    symbolic LDL^T factors, which know its zeros.
    """

    def __init__(self, system: System):
        self.system = system = system.numeric
        space, prescribed = system.space, len(system.prescribed)
        flat = _has_minimal_velocities(system)
        n = system.nrho + prescribed if flat else space.nw
        q, u = ca.SX.sym("q", space.nq), ca.SX.sym("u", system.nu)
        a, s, v = ca.SX.sym("a", prescribed), ca.SX.sym("s", n), ca.SX.sym("v", space.nw)
        velocity, rate, _ = (_minimal if flat else _stored)(system, q, s, u, a)
        y = space.frame(q).T @ system.with_rates(q, velocity, u)
        w, inputs = ca.vertcat(q, s), ca.vertcat(u, a)
        of_velocity = v
        if flat:
            s_of_velocity = admissible_coordinates(system, q, v)
            of_velocity = ca.vertcat(s_of_velocity, system.prescribed_part(v))
        self._functions = Functions(
            f"{system.name}_reduced",
            [
                ca.Function("rates", [w, inputs], [ca.vertcat(moving(system, q, y), rate)]),
                ca.Function("phase", [w], [w[: space.nq], velocity]),
                ca.Function("start", [q, v], [ca.vertcat(q, of_velocity)]),
            ],
        )

    def start(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """w of configuration q (nq) and a velocity v (nw) that keeps the constraints."""
        return self._functions("start", q, v)[0][:, 0]

    def phase(self, w: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Configuration q (nq) and velocity v (nw) of w."""
        q, v = self._functions("phase", w)
        return q[:, 0], v[:, 0]

    def rates(
        self, u: ArrayLike | Callable[[float], ArrayLike] = ()
    ) -> Callable[[float, np.ndarray], np.ndarray]:
        """f(t, w) under inputs (nu + prescribed), constant or a function u(t): one native call on
        its own arrays, which costs half a microsecond of Python. For one thread. Raises ValueError
        for a wrong shape.
        """
        function = self._functions.direct("rates")
        w_buffer, u_buffer = function.inputs
        column = function.outputs[0][:, 0]

        def assign(value: ArrayLike) -> None:
            if np.shape(value) != u_buffer.shape:
                raise ValueError(
                    f"{self.system.name}: u must have shape {u_buffer.shape}, got "
                    f"{np.shape(value)}; the inputs are {input_names(self.system)}"
                )
            u_buffer[:] = value

        if not callable(u):
            assign(u)

        def rates(t: float, w: np.ndarray) -> np.ndarray:
            if callable(u):
                assign(u(t))
            w_buffer[:] = w
            function.run()
            return column.copy()

        return rates


def velocity_rate(system: System, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
    """Rate (nw) of the stored velocity v (nw), with the rates of first-order coordinates left out,
    at expressions; v must keep the constraints. Raises ValueError for prescribed coordinates.
    """
    if system.prescribed:
        raise ValueError(
            f"{system.name}: an acceleration at (q, v, u) needs free coordinates, but those of "
            f"{system.prescribed} are prescribed and have accelerations of their own"
        )
    free = ca.SX(0, 1)
    if _has_minimal_velocities(system):
        return _minimal(system, q, admissible_coordinates(system, q, v), u, free)[2]
    return _stored(system, q, v, u, free)[2]


def _has_minimal_velocities(system: System) -> bool:
    """Whether coordinates of the admissible velocities are the same at all configurations."""
    return system.space.nw == system.space.nv and system.mechanics.default_basis is None


def _minimal(
    system: System, q: ca.SX, w: ca.SX, u: ca.SX, accelerations: ca.SX
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Velocity, w' and the rate of the velocity for w = (s, v_k), with coordinates s of the
    admissible velocities and those of prescribed coordinates.
    """
    space, n, s = system.space, system.space.nv, w[: system.nrho]
    e, v_k = ca.SX.sym("e", n), ca.SX.sym("v", len(system.prescribed))
    basis, prescribed = system.mechanics.admissible_tangents(q), system.prescribed_part(w)
    velocity = space.frame(q) @ admissible_velocity(system, q, s, prescribed)
    stepping = system.with_rates(q, velocity, u)
    moved_velocity = admissible_velocity(system, space.retract(q, e), s, v_k)
    moved, along = ca.vertcat(e, v_k), ca.vertcat(space.frame(q).T @ stepping, accelerations)
    basis_rate = ca.jtimes(moved_velocity, moved, along)
    basis_rate = ca.substitute(basis_rate, moved, ca.vertcat(ca.SX.zeros(n), prescribed))
    t = _sparse(motion_terms(system, q, stepping, u))
    mass, holonomic = t["mass"], t["constraint"][system.n_velocity_constraints :, :]
    force = basis.T @ (t["force"] - mass @ basis_rate)
    rows, gamma = (
        holonomic @ basis,
        t["constraint_rate"][system.n_velocity_constraints :, :] + holonomic @ basis_rate,
    )
    rate = _solve(basis.T @ mass @ basis, rows, force, -gamma)
    acceleration = t["frame"] @ (basis @ rate + basis_rate) + t["frame_rate"]
    return velocity, ca.vertcat(rate, accelerations), acceleration


def _stored(
    system: System, q: ca.SX, s: ca.SX, u: ca.SX, accelerations: ca.SX
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Velocity, s' and rate of the velocity; s is the stored velocity, so the last two
    are equal.
    """
    terms = motion_terms(system, q, system.with_rates(q, s, u), u)
    t = _sparse(with_known_rates(system, terms, accelerations))
    y_rate = _solve(t["mass"], t["constraint"], t["force"], -t["constraint_rate"])
    rate = t["frame"] @ y_rate + t["frame_rate"]
    return s, rate, rate


def _sparse(terms: dict[str, ca.SX]) -> dict[str, ca.SX]:
    return {name: ca.sparsify(value) for name, value in terms.items()}


def _solve(mass: ca.SX, rows: ca.SX, force: ca.SX, rates: ca.SX) -> ca.SX:
    """a of `[M, C^T; C, 0] (a, -lam) = (f, g)`; M first, whose factors exist, then C M^-1 C^T."""
    k, n = rows.shape[0], mass.shape[0]
    matrix = ca.vertcat(ca.horzcat(mass, rows.T), ca.horzcat(rows, ca.SX(k, k)))
    return factorized(matrix)(ca.vertcat(force, rates))[:n]
