"""States of systems with velocity constraints `A(q) v = b(q)`. They are regular at every
configuration, no matter which velocities the constraints determine there.
"""

from __future__ import annotations

from functools import cached_property

import casadi as ca
import numpy as np

from nh_control.geometry.space import Space
from nh_control.mechanics.householder import householder
from nh_control.mechanics.lagrangian_system import LagrangianSystem


class AdmissibleBasis:
    """Bases X(q) of the admissible virtual velocities, `A X = 0`, for a system that declares no
    basis, and the corresponding momenta.

    The bases satisfy `X^T D X = 1`, where D contains the masses of the coordinates at the nominal
    configuration, so units do not matter. X is computed by Householder reflections, whose signs
    (n_velocity_constraints) are chosen at a configuration. With these signs, X is smooth as long
    as no row of A has rotated by 84 degrees from that configuration. Momenta are stored as
    `p = P rho` with `P = M X (X^T M X)^{-1}`, which does not depend on the signs. If the
    constraints have no drift, this is p = dL/dv for the velocity that satisfies `X^T p = rho`.
    First-order and prescribed coordinates have no momenta.
    """

    def __init__(self, system: LagrangianSystem):
        self._system = system
        count = len(system.first_order) + len(system.prescribed)
        self.n_momenta = system.space.nw - count
        self.signs = ca.SX.sym("signs", system.n_velocity_constraints)
        """Symbols for the signs, used in equations that contain several configurations."""

    def signs_at(self, q: ca.SX) -> ca.SX:
        """The signs for bases near q."""
        return self._expressions(q, self.signs, self._system.parameter_symbols)[0]

    def basis(self, q: ca.SX, signs: ca.SX) -> ca.SX:
        """X(q), (nw, nrho)."""
        return self._expressions(q, signs, self._system.parameter_symbols)[1]

    def momenta(self, q: ca.SX, signs: ca.SX) -> ca.SX:
        """P(q), (n_momenta, nrho)."""
        return self._expressions(q, signs, self._system.parameter_symbols)[2]

    @cached_property
    def _expressions(self) -> ca.Function:
        """The function of q, signs and parameters that returns the signs for q, X and P. It is
        cached because the expressions are slow to build.
        """
        system, signs = self._system, self.signs
        q, v, _ = system.symbols
        # X = D^(-1/2) times the null space of A D^(-1/2)
        matrix = self._scaled_matrix(q)
        scaled, _ = householder(matrix, signs)
        moving = scaled / ca.repmat(self.sizes, 1, scaled.shape[1])
        basis = ca.vertcat(moving, ca.SX(system.space.nw - self.n_momenta, moving.shape[1]))
        momenta = ca.SX(self.n_momenta, 0)
        if basis.shape[1]:
            # P = M X (X^T M X)^{-1}
            moved = ca.hessian(system.lagrangian_at(q, v), v)[0] @ basis
            momenta = ca.solve(basis.T @ moved, moved[: self.n_momenta, :].T).T
        values = [householder(matrix)[1], basis, momenta]
        return ca.Function("basis", [q, signs, system.parameter_symbols], values)

    def components(self, q: ca.SX, p: ca.SX, signs: ca.SX) -> ca.SX:
        """The components `rho = X^T p` (nrho) of stored momenta p (n_momenta)."""
        return self.basis(q, signs)[: self.n_momenta, :].T @ p

    @cached_property
    def is_constant(self) -> bool:
        """Whether X is the same at all configurations, for example for constraints in a body
        frame.
        """
        q = self._system.symbols[0]
        return not ca.depends_on(self._system.constraint_matrix(q), q)

    def particular(self, q: ca.SX, prescribed_velocity: ca.SX) -> ca.SX:
        """The velocity c (nw) that satisfies `A c = b` and has these prescribed velocities. Its
        remaining part is the smallest possible in the metric D.
        """
        system, n = self._system, self.n_momenta
        a, weights = system.constraint_matrix(q), self.sizes**-2
        c = ca.vertcat(ca.SX(system.space.nw - len(system.prescribed), 1), prescribed_velocity)
        if system.prescribed or system.velocity_drift is not None:
            # c = D^{-1} A^T (A D^{-1} A^T)^{-1} (b - A c_prescribed)
            free = a[:, :n] * ca.repmat(weights.T, a.shape[0], 1)
            c[:n] = free.T @ ca.solve(free @ a[:, :n].T, system.drift(q) - a @ c)
        return ca.densify(c)

    def _scaled_matrix(self, q: ca.SX) -> ca.SX:
        a = self._system.constraint_matrix(q)[:, : self.n_momenta]
        return a / ca.repmat(self.sizes.T, a.shape[0], 1)

    @cached_property
    def sizes(self) -> ca.SX:
        """`D^(1/2)` (n_momenta), 1 for coordinates without mass."""
        system = self._system
        q, v, _ = system.symbols
        nominal = system.nominal_configuration
        masses = ca.diag(ca.hessian(system.lagrangian_at(ca.SX(nominal), v), v)[0])
        masses = masses[: self.n_momenta]
        values = system.value(masses, nominal)[:, 0]
        sizes = [ca.sqrt(masses[i]) if x > 0 else ca.SX(1) for i, x in enumerate(values)]
        return ca.vertcat(*sizes)


class ConstrainedStates(Space):
    """States (q, p, v_k) over a space, with momenta p on the constraint manifold `M D` (see
    `AdmissibleBasis`) and velocities v_k of prescribed coordinates. A state has more numbers than
    dimensions. Its local coordinates are (dq, dr, dv_k).

    `retract((q, p), (dq, dr)) = (q1, P(q1) (X(q)^T p + dr))` with `q1 = retract(q, dq)` and the
    signs of q; `local((q, p), (q1, p1)) = (local(q, q1), X(q1)^T p1 - X(q)^T p)`.
    """

    def __init__(
        self, base: Space, basis: AdmissibleBasis, momenta: tuple[str, ...], rest: tuple[str, ...]
    ):
        self.base, self._basis, self._n_rho = base, basis, basis.n_momenta - basis.signs.shape[0]
        self.names = (*base.names, *momenta, *rest)
        self.velocity_names = (
            *base.velocity_names,
            *(f"{name}_dot" for name in (*momenta, *rest)),
        )
        components = (f"rho_{i + 1}" for i in range(self._n_rho))
        self._tangent_names = (*base.tangent_names, *components, *rest)

    @property
    def tangent_names(self) -> tuple[str, ...]:
        return self._tangent_names

    @property
    def origin(self) -> np.ndarray:
        return np.concatenate([self.base.origin, np.zeros(len(self.names) - self.base.nq)])

    def _retract(self, x: ca.SX, dx: ca.SX) -> ca.SX:
        q, p, rest = self._split(x, self.base.nq, self._basis.n_momenta)
        dq, dr, change = self._split(dx, self.base.nv, self._n_rho)
        # the signs for q are also used at q1, so the components of both momenta are comparable
        signs, q1 = self._basis.signs_at(q), self.base.retract(q, dq)
        rho = self._basis.components(q, p, signs) + dr
        return ca.vertcat(q1, self._basis.momenta(q1, signs) @ rho, rest + change)

    def _local(self, x0: ca.SX, x1: ca.SX) -> ca.SX:
        (q0, p0, r0), (q1, p1, r1) = (
            self._split(x, self.base.nq, self._basis.n_momenta) for x in (x0, x1)
        )
        signs = self._basis.signs_at(q0)
        rho0, rho1 = (self._basis.components(q, p, signs) for q, p in ((q0, p0), (q1, p1)))
        return ca.vertcat(self.base.local(q0, q1), rho1 - rho0, r1 - r0)

    @staticmethod
    def _split(x: ca.SX, first: int, second: int) -> list[ca.SX]:
        return ca.vertsplit(x, [0, first, first + second, x.shape[0]])
