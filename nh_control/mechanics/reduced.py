"""Equations of motion as a compiled ordinary differential equation with few variables, for any
solver. They serve as a reference for the discrete equations.
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
    """The equations `w' = f(w, u)` with w = (q, s, v_k): the configuration q, coordinates s of the
    velocity `v = frame(q) (Y s + c)`, and the velocities v_k of prescribed coordinates. Y
    (nv, nrho) is a basis of the admissible velocities, and c contains the velocities due to the
    drift and to v_k. The inputs are (u, v_k'): the forces, then the accelerations of prescribed
    coordinates.

    The equations, with the terms from `motion_terms`, are `Y^T M Y s' = Y^T (F - M (Y' s + c'))`.
    Multipliers are added if there are holonomic constraints. On spaces with spheres, whose bases
    rotate, and for systems with velocity constraints that declare no basis, s is the stored
    velocity v, and all constraints have multipliers. Symbolic LDL^T factors, which exploit zeros,
    solve the linear system.
    """

    def __init__(self, system: System):
        self.system = system = system.numeric
        space, prescribed = system.space, len(system.prescribed)
        flat = _has_minimal_velocities(system)
        n = system.nrho + prescribed if flat else space.nw
        q, u = ca.SX.sym("q", space.nq), ca.SX.sym("u", system.nu)
        a, s, v = ca.SX.sym("a", prescribed), ca.SX.sym("s", n), ca.SX.sym("v", space.nw)
        velocity, rate, _ = (_minimal if flat else _stored)(system, q, s, u, a)
        # q moves with all rates, but s does not contain those of first-order coordinates
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
        """The vector w that corresponds to a configuration q (nq) and an admissible velocity v
        (nw).
        """
        return self._functions("start", q, v)[0][:, 0]

    def phase(self, w: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """The configuration q (nq) and velocity v (nw) that correspond to w."""
        q, v = self._functions("phase", w)
        return q[:, 0], v[:, 0]

    def rates(
        self, u: ArrayLike | Callable[[float], ArrayLike] = ()
    ) -> Callable[[float, np.ndarray], np.ndarray]:
        """The function f(t, w) under inputs (nu + prescribed), which are constant or a function
        u(t). Evaluating it takes one native call with half a microsecond of overhead. The function
        works on fixed arrays, so only one thread may use it. Raises ValueError for a wrong shape.
        """
        # buffers that native code reads and writes in place
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
    """The rate (nw) of the stored velocity v (nw), at symbolic q, v and u, without the rates of
    first-order coordinates. v must satisfy the constraints. Raises ValueError for prescribed
    coordinates.
    """
    if system.prescribed:
        raise ValueError(
            f"{system.name}: an acceleration at (q, v, u) needs free coordinates, but "
            f"{system.prescribed} are prescribed, with accelerations that are not known"
        )
    free = ca.SX(0, 1)
    if _has_minimal_velocities(system):
        return _minimal(system, q, admissible_coordinates(system, q, v), u, free)[2]
    return _stored(system, q, v, u, free)[2]


def _has_minimal_velocities(system: System) -> bool:
    """Whether the same coordinates of the admissible velocities are valid at all
    configurations.
    """
    return system.space.nw == system.space.nv and system.mechanics.default_basis is None


def _minimal(
    system: System, q: ca.SX, w: ca.SX, u: ca.SX, accelerations: ca.SX
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """The velocity, w' and the rate of the velocity for w = (s, v_k), with coordinates s of the
    admissible velocities and the velocities v_k of prescribed coordinates.
    """
    space, n, s = system.space, system.space.nv, w[: system.nrho]
    e, v_k = ca.SX.sym("e", n), ca.SX.sym("v", len(system.prescribed))
    basis, prescribed = system.mechanics.admissible_tangents(q), system.prescribed_part(w)
    velocity = space.frame(q) @ admissible_velocity(system, q, s, prescribed)
    stepping = system.with_rates(q, velocity, u)
    # Y' s + c' along the motion, with constant s
    moved_velocity = admissible_velocity(system, space.retract(q, e), s, v_k)
    moved, along = ca.vertcat(e, v_k), ca.vertcat(space.frame(q).T @ stepping, accelerations)
    basis_rate = ca.jtimes(moved_velocity, moved, along)
    basis_rate = ca.substitute(basis_rate, moved, ca.vertcat(ca.SX.zeros(n), prescribed))
    t = _sparse(motion_terms(system, q, stepping, u))
    mass, holonomic = t["mass"], t["constraint"][system.n_velocity_constraints :, :]
    # Y^T M Y s' = Y^T (F - M (Y' s + c')) + (Dh Y)^T lam,  Dh Y s' = -gamma
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
    """The velocity, s' and the rate of the velocity. s is the stored velocity, so the two rates
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
    """The solution a of `[M, C^T; C, 0] (a, -lam) = (f, g)`. M is regular, so M is factorized
    first, then C M^-1 C^T.
    """
    k, n = rows.shape[0], mass.shape[0]
    matrix = ca.vertcat(ca.horzcat(mass, rows.T), ca.horzcat(rows, ca.SX(k, k)))
    return factorized(matrix)(ca.vertcat(force, rates))[:n]
