"""Continuous equations of motion for a system on any space, derived from the Lagrangian, and their
linearization.
"""

from __future__ import annotations

from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.geometry.spaces import Space
from nh_control.mechanics import states
from nh_control.mechanics.continuous_derivatives import (
    ContinuousDerivatives,
    ContinuousLinearization,
)
from nh_control.mechanics.motion_terms import input_names, motion_terms, with_known_rates
from nh_control.mechanics.system import System
from nh_control.numerics import newton


class ContinuousSystem:
    """Hamel's equations `d/dt l_y = l_q + ad*_y l_y + F + C^T lam,  C y = 0`, with
    `l(q, y) = L(q, frame(q) y)`, where y (nv) are the components of the velocity.

    `l_q` is the derivative along `retract(q, e)` at e = 0, `F = frame^T f`, and C contains the
    matrix of the velocity constraints and the Jacobian of the holonomic constraints. Let J(e) be
    the derivative of `local(q, .)` at `retract(q, e)` along the frame at that point. Then
    `ad*_y p . n = p . (J'[y] n - J'[n] y)`. The inputs u (nu) are the system's inputs, then the
    accelerations of prescribed coordinates (see `inputs`). CasADi's virtual machine evaluates all
    functions. `terms(q, v, u)` is the CasADi function for all terms in the equations. Its argument
    u contains only the forces.
    """

    def __init__(self, system: System):
        self.system = system = system.numeric
        q, v, u = system.symbols
        terms = motion_terms(system, q, v, u)
        values = [ca.densify(value) for value in terms.values()]
        self.terms = ca.Function("terms", [q, v, u], values, ["q", "v", "u"], list(terms))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs: the system's inputs, then the accelerations `<name>_ddot` of
        prescribed coordinates.
        """
        return input_names(self.system)

    @property
    def state_space(self) -> Space:
        """The space of the states (q, s) in a linearization. Unlike states of a discrete system,
        they contain velocities instead of momenta (see `Mechanics.velocity_space`).
        """
        return self.system.mechanics.velocity_space

    def state(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """The state (nx) with the configuration q (nq) and the velocity v (nw), where v is
        projected onto the velocity constraints.
        """
        q, v = self._numbers(q=q, v=v)
        return self._derivatives.state(q, v)

    def velocity(self, x: ArrayLike) -> np.ndarray:
        """The velocity (nw) of a state x (nx), without the rates of first-order coordinates."""
        x = states.numbers(self.system.name, "x", x, self.state_space.nq)
        return self._derivatives.velocity(x)

    def mass_matrix(self, q: ArrayLike) -> np.ndarray:
        """The mass matrix (nv, nv) for the velocity components y at the configuration q (nq)."""
        return self._at_rest(q)["mass"]

    def potential_force(self, q: ArrayLike) -> np.ndarray:
        """The generalized force `l_q` (nv) at rest, for example due to gravity and springs."""
        return self._at_rest(q)["gradient_q"][:, 0]

    def acceleration(self, q: ArrayLike, v: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """The rate (nw) of the stored velocity v (nw) at the configuration q (nq) under inputs u
        (nu), from `[M, -C^T; C, 0] (y', lam) = (F, -C'[y] y)`. q and v must satisfy the
        constraints.

        Raises ValueError for first-order coordinates, whose accelerations depend on the rate of
        the input, and LinAlgError if the mass matrix or the constraints are singular.
        """
        # w'' would need u'
        if self.system.first_order:
            raise ValueError(
                f"{self.system.name}: the first-order coordinates {self.system.first_order} have "
                "no accelerations; use ReducedEquations or linearize, which contain their rates"
            )
        t, z = self._solved(q, v, u)
        return (t["frame"] @ z[: self.system.space.nv] + t["frame_rate"])[:, 0]

    def multipliers(self, q: ArrayLike, v: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """The constraint multipliers lam (n_velocity_constraints + n_holonomic_constraints) in the
        equations that `acceleration` solves. The constraints exert the generalized forces
        `C^T lam`. With redundant constraints, lam is the solution with the smallest norm. Raises
        LinAlgError as `acceleration` does.
        """
        return self._solved(q, v, u)[1][self.system.space.nv :, 0]

    def linearize(self, q: ArrayLike, v: ArrayLike, u: ArrayLike = ()) -> ContinuousLinearization:
        """A and B for the rate of a small change of the state in local coordinates, and
        derivatives of the multipliers, at the configuration q (nq), velocity v (nw) and inputs u
        (nu).

        Let f be the rate of the state x = (q, s), and let `g(dx, u) = D_1 local(x, x_e) f(x) + D_2
        local(x, x_e) f(x_e, u),  x_e = retract(x, dx)`, be the rate of `local(x, x_e)` for two
        motions. A and B are the derivatives of g at dx = 0. The corresponding matrices of a
        discrete step h are `1 + h A + O(h^2)` and `h B + O(h^2)`. The equations of motion
        `r(dx, u, z) = 0` with z = (y', lam) contribute `dz = -r_z^{-1} r_(x,u)` by the implicit
        function theorem. v is projected onto the velocity constraints. Raises the same errors as
        `acceleration`, but accepts first-order coordinates.
        """
        return self._derivatives.linearize(self.state(q, v), self._numbers(u=u)[0], self.inputs)

    def hessian(
        self,
        q: ArrayLike,
        v: ArrayLike,
        u: ArrayLike,
        lam: ArrayLike,
        multiplier_adjoint: ArrayLike | None = None,
    ) -> np.ndarray:
        """The second derivative (ndx + nu, ndx + nu) of `lam . g(dx, u + du)` at zero with respect
        to (dx, du), for an adjoint lam (ndx) and the g of `linearize`. A `multiplier_adjoint` adds
        its product with the multipliers to this function.

        `mu = r_z^{-T} (g_z^T lam + lam_z);  H = P^T hess(lam . g - mu . r) P,  P = [I; dz]`, where
        lam_z contains the `multiplier_adjoint` at the indices of the multipliers. Raises the same
        errors as `linearize`.
        """
        m = self.system.n_velocity_constraints + self.system.n_holonomic_constraints
        lam_z = np.zeros(m) if multiplier_adjoint is None else multiplier_adjoint
        name, size = self.system.name, self.state_space.nv
        return self._derivatives.hessian(
            self.state(q, v),
            self._numbers(u=u)[0],
            states.numbers(name, "adjoint", lam, size),
            states.numbers(name, "multiplier adjoint", lam_z, m),
        )

    @cached_property
    def _derivatives(self) -> ContinuousDerivatives:
        return ContinuousDerivatives(self.system, self._motion, self.state_space)

    @cached_property
    def _motion(self) -> ca.Function:
        """The function `(K, b, frame, frame_rate)(q, v, u)` for the equations `K (y', lam) = b`
        and `v' = frame y' + frame_rate`.
        """
        system, (q, v, _) = self.system, self.system.symbols
        u = ca.SX.sym("u", len(self.inputs))
        # coordinates, including first-order ones, move with their rates
        moving = system.with_rates(q, v, u[: system.nu])
        values = self.terms.call([q, moving, u[: system.nu]])
        raw = dict(zip(self.terms.name_out(), values))
        t = with_known_rates(system, raw, system.prescribed_part(u))
        # K = [M, -C^T; C, 0], b = (F, -C'[y] y)
        rows, k = t["constraint"], t["constraint"].shape[0]
        matrix = ca.vertcat(ca.horzcat(t["mass"], -rows.T), ca.horzcat(rows, ca.SX(k, k)))
        right = ca.vertcat(t["force"], -t["constraint_rate"])
        values = [ca.densify(value) for value in (matrix, right, t["frame"], t["frame_rate"])]
        return ca.Function("motion", [q, v, u], values)

    def _solved(
        self, q: ArrayLike, v: ArrayLike, u: ArrayLike
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The terms that determine v', and the column (y', lam)."""
        values = map(np.asarray, self._motion.call(self._numbers(q=q, v=v, u=u)))
        matrix, right, frame, frame_rate = values
        return {"frame": frame, "frame_rate": frame_rate}, newton.solve(
            matrix, right, self.system.n_redundant
        )

    def _numbers(self, **values: ArrayLike) -> list[np.ndarray]:
        """The values of q, v and u as arrays; raises ValueError for wrong shapes and numbers that
        are not finite.
        """
        space, name = self.system.space, self.system.name
        sizes = {"q": space.nq, "v": space.nw, "u": len(self.inputs)}
        labels = {"u": f"inputs u {self.inputs}"}
        return [
            states.numbers(name, labels.get(key, key), value, sizes[key])
            for key, value in values.items()
        ]

    def _at_rest(self, q: ArrayLike) -> dict[str, np.ndarray]:
        rest = np.zeros(self.system.space.nw), np.zeros(self.system.nu)
        values = self.terms.call([*self._numbers(q=q), *rest])
        return {key: np.asarray(value) for key, value in zip(self.terms.name_out(), values)}
