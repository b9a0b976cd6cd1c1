"""Equations of motion as a compiled ordinary differential equation with few numbers, for any
solver: the reference for discrete ones.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.mechanics.continuous import motion_terms, require_free
from nh_control.mechanics.system import System
from nh_control.numerics.compiled import Functions


class ReducedEquations:
    """`w' = f(w, u)` with w = (q, s): configuration and velocity, `frame(q) (Y s + c) = v`, Y (nv,
    nrho) a basis of the admissible velocities and c those of the drift, and in the rates of
    motion those of first-order coordinates.

    `Y^T M Y s' = Y^T (F - M (Y' s + c'))`, with the holonomic constraints' multipliers where there
    are some, from `motion_terms`. On spheres, whose bases turn, s is the stored
    velocity v itself and all constraints have multipliers. The linear system is solved by
    symbolic LDL^T factors, which know its zeros. Raises ValueError for prescribed coordinates.
    """

    def __init__(self, system: System):
        require_free(system)
        self.system = system = system.numeric
        space = system.space
        flat = space.nw == space.nv
        self._n = space.nq + (system.nrho if flat else space.nw)
        q, u = ca.SX.sym("q", space.nq), ca.SX.sym("u", system.nu)
        s, v = ca.SX.sym("s", self._n - space.nq), ca.SX.sym("v", space.nw)
        velocity, rate, _ = (_minimal if flat else _stored)(system, q, s, u)
        y = space.frame(q).T @ system.with_rates(q, velocity, u)
        w = ca.vertcat(q, s)
        of_velocity = _coordinates(system, q, v) if flat else v
        self._functions = Functions(
            f"{system.name}_reduced",
            [
                ca.Function("rates", [w, u], [ca.vertcat(_moving(system, q, y), rate)]),
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

    def rates(self, u: ArrayLike = ()) -> Callable[[float, np.ndarray], np.ndarray]:
        """f(t, w) under a constant input u (nu): one native call on its own arrays, which costs
        half a microsecond of Python. For one thread. Raises ValueError for a wrong shape.
        """
        function = self._functions.direct("rates")
        w_buffer, u_buffer = function.inputs
        if np.shape(u) != u_buffer.shape:
            raise ValueError(
                f"{self.system.name}: u must have shape {u_buffer.shape}, got {np.shape(u)}"
            )
        u_buffer[:] = u
        column = function.outputs[0][:, 0]

        def rates(_: float, w: np.ndarray) -> np.ndarray:
            w_buffer[:] = w
            function.run()
            return column.copy()

        return rates


def velocity_rate(system: System, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
    """Rate (nw) of the stored velocity v (nw), with the rates of first-order coordinates left out,
    at expressions; v must keep the constraints. Raises ValueError for prescribed coordinates.
    """
    require_free(system)
    if system.space.nw == system.space.nv:
        return _minimal(system, q, _coordinates(system, q, v), u)[2]
    return _stored(system, q, v, u)[2]


def _minimal(system: System, q: ca.SX, s: ca.SX, u: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Velocity, s' and the rate of the velocity for coordinates s of the admissible velocities."""
    space, n = system.space, system.space.nv
    e = ca.SX.sym("e", n)
    moved, basis = space.retract(q, e), system.mechanics.admissible_tangents(q)
    velocity = space.frame(q) @ (
        basis @ s + system.mechanics.elimination.particular(q, ca.SX(0, 1))
    )
    moving = system.with_rates(q, velocity, u)
    moved_velocity = system.mechanics.admissible_tangents(moved) @ s
    moved_velocity += system.mechanics.elimination.particular(moved, ca.SX(0, 1))
    basis_rate = ca.jtimes(moved_velocity, e, space.frame(q).T @ moving)
    basis_rate = ca.substitute(basis_rate, e, ca.SX.zeros(n))
    t = _sparse(motion_terms(system, q, moving, u))
    mass, holonomic = t["mass"], t["constraint"][system.n_velocity_constraints :, :]
    force = basis.T @ (t["force"] - mass @ basis_rate)
    rows, gamma = (
        holonomic @ basis,
        t["constraint_rate"][system.n_velocity_constraints :, :] + holonomic @ basis_rate,
    )
    rate = _solve(basis.T @ mass @ basis, rows, force, -gamma)
    return velocity, rate, t["frame"] @ (basis @ rate + basis_rate) + t["frame_rate"]


def _stored(system: System, q: ca.SX, s: ca.SX, u: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Velocity, s' and rate of the velocity; s is the stored velocity, so the last two
    are equal.
    """
    t = _sparse(motion_terms(system, q, system.with_rates(q, s, u), u))
    # the velocities of first-order coordinates are no unknowns: 1 s' = 0 in their rows
    still = [*range(system.space.nv - len(system.first_order), system.space.nv)]
    mass, force = t["mass"], t["force"]
    mass[still, still], force[still] = ca.SX.eye(len(still)), 0
    y_rate = _solve(mass, t["constraint"], force, -t["constraint_rate"])
    rate = t["frame"] @ y_rate + t["frame_rate"]
    if still:
        rate[system.space.nw - len(still) :] = 0
    return s, rate, rate


def _sparse(terms: dict[str, ca.SX]) -> dict[str, ca.SX]:
    return {name: ca.sparsify(value) for name, value in terms.items()}


def _solve(mass: ca.SX, rows: ca.SX, force: ca.SX, rates: ca.SX) -> ca.SX:
    """a of `[M, C^T; C, 0] (a, -lam) = (f, g)`; M first, whose factors exist, then C M^-1 C^T."""
    k, n = rows.shape[0], mass.shape[0]
    matrix = ca.vertcat(ca.horzcat(mass, rows.T), ca.horzcat(rows, ca.SX(k, k)))
    d, upper, order = ca.ldl(ca.sparsify(matrix), False)
    return ca.ldl_solve(ca.densify(ca.vertcat(force, rates)), d, upper, order)[:n]


def _moving(system: System, q: ca.SX, y: ca.SX) -> ca.SX:
    """q' of the velocity's components y."""
    e = ca.SX.sym("e", system.space.nv)
    rate = ca.jtimes(system.space.retract(q, e), e, y)
    return ca.substitute(rate, e, ca.SX.zeros(system.space.nv))


def _coordinates(system: System, q: ca.SX, v: ca.SX) -> ca.SX:
    """Least-squares coordinates s of a velocity v (nw), less that of the drift, in Y."""
    basis = system.mechanics.admissible_tangents(q)
    y = system.space.frame(q).T @ v - system.mechanics.elimination.particular(q, ca.SX(0, 1))
    return ca.solve(basis.T @ basis, basis.T @ y) if basis.shape[1] else ca.SX(0, 1)
