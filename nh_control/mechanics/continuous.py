"""Continuous equations of motion of a system on any space, derived from its Lagrangian, to compare
discrete ones with.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.mechanics.system import System
from nh_control.numerics import newton


class ContinuousSystem:
    """Hamel's equations `d/dt l_y = l_q + ad*_y l_y + F + C^T lam,  C y = 0`, with
    `l(q, y) = L(q, frame(q) y)` and y (nv) the components of the velocity.

    `l_q` is the derivative along `retract(q, e)` at e = 0, `F = frame^T f`, C the velocity
    constraints and the Jacobian of the holonomic ones. With J(e) the derivative of `local(q, .)`
    at `retract(q, e)` along the frame there, `ad*_y p . n = p . (J'[y] n - J'[n] y)`. Evaluated in
    CasADi's virtual machine. Raises ValueError for a system with prescribed coordinates, whose
    accelerations would have to be given. `terms(q, v, u)` is the CasADi function of all that the
    equations are made of.
    """

    def __init__(self, system: System):
        require_free(system)
        self.system = system = system.numeric
        q, v, u = system.symbols
        terms = motion_terms(system, q, v, u)
        values = [ca.densify(value) for value in terms.values()]
        self.terms = ca.Function("terms", [q, v, u], values, ["q", "v", "u"], list(terms))

    def mass_matrix(self, q: ArrayLike) -> np.ndarray:
        """Mass matrix of the velocity's components, (nv, nv), at configuration q (nq)."""
        return self._evaluate(q, np.zeros(self.system.space.nw), np.zeros(self.system.nu))["mass"]

    def potential_force(self, q: ArrayLike) -> np.ndarray:
        """Generalized force `l_q` (nv) at rest: of gravity and springs."""
        return self._evaluate(q, np.zeros(self.system.space.nw), np.zeros(self.system.nu))[
            "gradient_q"
        ][:, 0]

    def acceleration(self, q: ArrayLike, v: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """Rate (nw) of the stored velocity v (nw) at configuration q (nq) under inputs u (nu); q
        and v must satisfy the constraints. Raises ValueError for first-order coordinates, whose
        accelerations depend on how the input changes.

        `[M, -C^T; C, 0] (y', lam) = (F, -C'[y] y)`. Raises LinAlgError where the mass matrix or
        the constraints are singular.
        """
        self._require_inertia()
        t = self._evaluate(q, v, u)
        return (t["frame"] @ _rates(t)[: self.system.space.nv] + t["frame_rate"])[:, 0]

    def multipliers(self, q: ArrayLike, v: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """Multipliers lam (n_velocity_constraints + n_holonomic_constraints) of the constraints in
        the same equations: `C^T lam` are the generalized forces that the constraints exert. Raises
        as `acceleration` does.
        """
        self._require_inertia()
        return _rates(self._evaluate(q, v, u))[self.system.space.nv :, 0]

    def _require_inertia(self) -> None:
        if self.system.first_order:
            raise ValueError(
                f"{self.system.name}: the first-order coordinates {self.system.first_order} have "
                "no accelerations; use ReducedEquations, which has their rates"
            )

    def _evaluate(self, q: ArrayLike, v: ArrayLike, u: ArrayLike) -> dict[str, np.ndarray]:
        for value, name, size in (
            (q, "q", self.system.space.nq),
            (v, "v", self.system.space.nw),
            (u, "u", self.system.nu),
        ):
            if np.shape(value) != (size,):
                raise ValueError(
                    f"{self.system.name}: {name} must have shape ({size},), got {np.shape(value)}"
                )
        values = self.terms(q=np.asarray(q), v=np.asarray(v), u=np.asarray(u, dtype=float))
        return {name: np.asarray(value) for name, value in values.items()}


def _rates(t: dict[str, np.ndarray]) -> np.ndarray:
    """(y', lam), as a column."""
    zero = np.zeros((len(t["constraint"]),) * 2)
    matrix = np.block([[t["mass"], -t["constraint"].T], [t["constraint"], zero]])
    return newton.solve(matrix, np.concatenate([t["force"], -t["constraint_rate"]]))


def require_free(system: System) -> None:
    """Raise ValueError for prescribed coordinates."""
    if system.prescribed:
        raise ValueError(
            f"{system.name}: continuous equations of motion need free coordinates, but "
            f"{system.prescribed} are prescribed"
        )


def motion_terms(system: System, q: ca.SX, v: ca.SX, u: ca.SX) -> dict[str, ca.SX]:
    """What Hamel's equations of a system are made of, at expressions: mass, gradient_q, force,
    constraint, constraint_rate, frame and frame_rate, see `ContinuousSystem`.
    """
    space = system.space
    e, y, n = (ca.SX.sym(name, space.nv) for name in "eyn")
    moved = space.retract(q, e)
    velocity = space.frame(moved) @ y
    lagrangian = system.lagrangian_at(moved, velocity)
    momentum, gradient_q = ca.gradient(lagrangian, y), ca.gradient(lagrangian, e)
    jacobian = space.local_jacobians(q, e)[1]
    bracket = ca.jtimes(jacobian @ n, e, y) - ca.jtimes(jacobian @ y, e, n)
    force = (
        space.frame(q).T @ system.generalized_force(q, v, u)
        + gradient_q
        + ca.gradient(ca.dot(momentum, bracket), n)
        - ca.jtimes(momentum, e, y)
    )
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
    at_zero = [e, y], [ca.SX.zeros(space.nv), space.frame(q).T @ v]
    return dict(zip(terms, ca.substitute(list(terms.values()), *at_zero)))
