"""The reduction of a system by its symmetry: the nonholonomic connection, the locked inertia, the
nonholonomic momentum, and the momentum equation.
"""

from __future__ import annotations

from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.geometry.chart import adjoint_operator
from nh_control.geometry.space import Space
from nh_control.mechanics.nonholonomic_connection import NonholonomicConnection
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import split


class Reduction:
    """The reduction of a system with `q = (r, g)` to its shape r and its nonholonomic momentum
    [kobilarov2010 4, 5]. The Lagrangian L and the constraints do not depend on the group element
    g.

    Velocities are v = (rdot, xi), where xi is the body velocity of the group,
    `xi = Omega - A rdot`. S is the set of group directions that satisfy the constraints, E
    (group, c) is a `basis` of S, and `I = E^T M_gg E` is the locked inertia. Then

    - `A = A_kin + A_sym` is the nonholonomic connection (17),
    - `J = E^T dL/dxi` is the nonholonomic momentum (8), and `Omega = E I^{-1} J` for an admissible
      motion,
    - `J_b' = dL/dxi . ([xi, E_b] + DE_b rdot) + E_b . f` is the momentum equation.

    The basis is the system's, or an orthonormal one whose signs are chosen at every r (see
    `NonholonomicConnection.basis`). Arguments are arrays q (nq), v (nw) and u (nu). CasADi's
    virtual machine evaluates the functions. Raises ValueError for a system without a symmetry,
    with holonomic constraints or with drifting velocity constraints.
    """

    def __init__(self, system: System):
        self.system = system = system.numeric
        self._connection: NonholonomicConnection = system.mechanics.nonholonomic_connection
        if system.n_holonomic_constraints or system.velocity_drift is not None:
            raise ValueError(
                f"{system.name} has holonomic constraints or a drift of its velocity constraints; "
                "a reduction is only possible with A(q) v = 0"
            )

    @property
    def shape(self) -> Space:
        """The space of the shapes r."""
        return self._connection.shape

    @property
    def group(self) -> Space:
        """The group."""
        return self._connection.group

    def connection(self, q: ArrayLike) -> np.ndarray:
        """The connection A(r) (group, shape) that follows from the Lagrangian and the constraints,
        even if the symmetry declares a different one.
        """
        return self._call("connection", q)

    def kinematic_connection(self, q: ArrayLike) -> np.ndarray:
        """A_kin(r) (group, shape), which the constraints determine: `A_g A_kin = A_r`."""
        return self._call("kinematic_connection", q)

    def symmetric_connection(self, q: ArrayLike) -> np.ndarray:
        """The mechanical connection along S, `A_sym(r) = E I^{-1} E^T M_gr` (group, shape)."""
        return self._call("symmetric_connection", q)

    def basis(self, q: ArrayLike) -> np.ndarray:
        """The basis E(r) (group, c)."""
        return self._call("basis", q)

    def locked_inertia(self, q: ArrayLike) -> np.ndarray:
        """The locked inertia `I(r) = E^T M_gg E` (c, c)."""
        return self._call("locked_inertia", q)

    def momentum(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """The nonholonomic momentum `J(q, v) = E^T dL/dxi` (c)."""
        return self._call("momentum", q, v)[:, 0]

    def locked_velocity(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """`Omega(q, v) = E I^{-1} J` (group), the body velocity after the shape is locked."""
        return self._call("locked_velocity", q, v)[:, 0]

    def momentum_rate(self, q: ArrayLike, v: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """J' (c) for an admissible velocity v under the inputs u, which is the right-hand side of
        the momentum equation.
        """
        return self._call("momentum_rate", q, v, u)[:, 0]

    def velocity(self, q: ArrayLike, shape_velocity: ArrayLike, momentum: ArrayLike) -> np.ndarray:
        """The admissible velocity v (nw) with the given shape velocity and momentum J (c):
        `xi = E I^{-1} J - A rdot`.
        """
        return self._call("velocity", q, shape_velocity, momentum)[:, 0]

    def _call(self, name: str, *arguments: ArrayLike) -> np.ndarray:
        function = self._functions[name]
        for k, value in enumerate(arguments):
            if np.shape(value) != (expected := (function.size1_in(k),)):
                raise ValueError(
                    f"{self.system.name}: {function.name_in(k)} must have shape {expected}, got "
                    f"{np.shape(value)}"
                )
        return np.asarray(function(*arguments))

    @cached_property
    def _functions(self) -> dict[str, ca.Function]:
        system, connection = self.system, self._connection
        q, v, u = system.symbols
        n, c = self.shape.nw, connection.n_basis
        (r, _), (rdot, xi) = split(q, self.shape.nq), split(v, n)
        # the signs at r are constant in the derivatives of E
        signs = connection.signs(r)
        basis = connection.basis(r, signs)
        inertia = connection.locked_inertia(r, basis)
        a, symmetric = connection.nonholonomic(r, basis), connection.symmetric(r, basis)
        _, p = split(system.mechanics.gradients(q, v)[1], n)
        _, force = split(system.generalized_force(q, v, u), n)
        # the body-fixed derivative of the basis along the motion, [xi, E_b] + DE_b rdot
        e = ca.SX.sym("e", self.shape.nv)
        turned = ca.vec(connection.basis(self.shape.retract(r, e), signs))
        change = ca.substitute(ca.jtimes(turned, e, rdot), e, ca.SX.zeros(self.shape.nv))
        moved = adjoint_operator(self.group, xi) @ basis + ca.reshape(change, basis.shape)
        j = ca.SX.sym("J", c)
        momentum = basis.T @ p
        symbols = {"q": q, "v": v, "u": u, "shape_velocity": rdot, "momentum": j}
        velocity = ca.vertcat(rdot, basis @ ca.solve(inertia, j) - a @ rdot)
        results = {
            "connection": ("q", a),
            "kinematic_connection": ("q", a - symmetric),
            "symmetric_connection": ("q", symmetric),
            "basis": ("q", basis),
            "locked_inertia": ("q", inertia),
            "momentum": ("q v", momentum),
            "locked_velocity": ("q v", basis @ ca.solve(inertia, momentum)),
            "momentum_rate": ("q v u", moved.T @ p + basis.T @ force),
            "velocity": ("q shape_velocity momentum", velocity),
        }
        return {
            name: ca.Function(
                name,
                [symbols[argument] for argument in arguments.split()],
                [ca.densify(value)],
                arguments.split(),
                ["value"],
            )
            for name, (arguments, value) in results.items()
        }
