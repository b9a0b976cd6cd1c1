"""The outputs of a discrete system as functions of the state, with exact derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.geometry.spaces import Space
from nh_control.mechanics import states
from nh_control.mechanics.outputs import Output, combined_space
from nh_control.mechanics.system import System
from nh_control.numerics.compiled import Functions
from nh_control.numerics.linear_solves import factorized


class OutputMap:
    """The stacked outputs `y = c(x, u)` (ny) of a system as functions of a state x (nx), at given
    parameter values.

    Outputs are elements of `space`; derivatives are in its local coordinates. `velocity(x)`
    returns the velocity (nw) of a state. CasADi's virtual machine evaluates the functions. Raises
    ValueError if there are no outputs.
    """

    def __init__(
        self,
        system: System,
        state_space: Space,
        outputs: Sequence[Output],
        velocity: Callable[[np.ndarray], np.ndarray],
    ):
        if not outputs:
            raise ValueError(f"{system.name} declares no outputs; add System(..., outputs=(...))")
        self.system, self.outputs = system.numeric, tuple(outputs)
        self.names = tuple(name for output in self.outputs for name in output.names)
        self.units = tuple(unit for output in self.outputs for unit in output.number_units)
        self.space, self._states = combined_space(self.outputs), state_space
        self._velocity = velocity

    def __repr__(self) -> str:
        return f"OutputMap({self.system.name!r}, {self.names})"

    @cached_property
    def takes_inputs(self) -> bool:
        """Whether any output depends on the acting inputs."""
        q, v, u = self.system.symbols
        return bool(self.system.nu) and bool(ca.depends_on(self._of(q, v, u), u))

    def __call__(self, x: ArrayLike, u: ArrayLike | None = None) -> np.ndarray:
        """Outputs (ny) at a state x (nx) under the acting inputs u (nu), or (N, ny) for tables of
        states and inputs. Only the inputs that are forces matter. Outputs that do not depend on
        them need no u. Raises ValueError for a wrong shape and for missing inputs.
        """
        x = np.asarray(x, dtype=float)
        if x.ndim == 1:
            q = x[: self.system.space.nq]
            return self.values(q, self._velocity(x), u)
        acting = np.zeros(0) if u is None else np.asarray(u, dtype=float)
        inputs = np.broadcast_to(acting, (len(x), acting.shape[-1]))
        rows = [self(x_k, u_k) for x_k, u_k in zip(x, inputs)]
        return np.reshape(rows, (len(x), len(self.names)))

    def values(self, q: np.ndarray, v: np.ndarray, u: ArrayLike | None = None) -> np.ndarray:
        """Outputs (ny) at a configuration q (nq) and velocity v (nw) under inputs u."""
        return self._functions("values", q, v, self.inputs(u))[0][:, 0]

    def inputs(self, u: ArrayLike | None) -> np.ndarray:
        """The forces (nu) among the inputs u, by default zero. Raises ValueError if outputs depend
        on missing forces, if values are missing, or if a value is not finite.
        """
        nu = self.system.nu
        # missing inputs matter only for outputs with feedthrough
        if u is None or not np.size(u):
            if self.takes_inputs:
                raise ValueError(
                    f"{self.system.name}: the outputs {self.names} depend on the inputs "
                    f"{self.system.inputs}; pass the acting inputs, u ({nu})"
                )
            return np.zeros(nu)
        return states.numbers(self.system.name, "inputs", np.asarray(u, dtype=float)[:nu], nu)

    def expression(self, x: ca.SX, u: ca.SX) -> ca.SX:
        """The outputs (ny) for a symbolic state x (nx) and symbolic forces u (nu)."""
        return self._of(x[: self.system.space.nq], velocity_expression(self.system, x), u)

    def linearize(self, x: ArrayLike, u: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
        """The matrices C (n, ndx) and D (n, nu) in
        `local(y, c(retract(x, dx), u + du)) = C dx + D du` to first order.
        """
        C, D = self._derivatives("linearize", x, self.inputs(u))
        return C, D

    def _of(self, q: ca.SX, v: ca.SX, u: ca.SX) -> ca.SX:
        return ca.vertcat(*(output.of(self.system, q, v, u) for output in self.outputs))

    @cached_property
    def _functions(self) -> Functions:
        q, v, u = self.system.symbols
        function = ca.Function("values", [q, v, u], [self._of(q, v, u)], {"cse": True})
        return Functions(f"{self.system.name}_outputs", [function], compiled=False)

    @cached_property
    def _derivatives(self) -> Functions:
        x, e = ca.SX.sym("x", self._states.nq), ca.SX.sym("e", self._states.nv)
        u = self.system.symbols[2]
        # C = d local(y, c(retract(x, e), u)) / de at e = 0, and D the same for u
        here, moved = self.expression(x, u), self.expression(self._states.retract(x, e), u)
        # y = c(x, u) is a symbol until the derivatives are taken, so that it does not vary with e
        y = ca.SX.sym("y", here.shape[0])
        change = self.space.local(y, moved)
        by = [ca.jacobian(change, e), ca.jacobian(change, u)]
        at_zero = ca.substitute(by, [e, y], [ca.SX.zeros(e.shape[0]), here])
        function = ca.Function(
            "linearize", [x, u], [ca.densify(part) for part in at_zero], {"cse": True}
        )
        return Functions(f"{self.system.name}_output_slopes", [function], compiled=False)


def velocity_expression(system: System, x: ca.SX) -> ca.SX:
    """The velocity (nw) `v = X M^{-1} b + c` as an expression in a state x (nx) and the system's
    parameters.
    """
    mechanics = system.mechanics
    q, rho = mechanics.components_of(x[: mechanics.state_space.nq])
    mass, momentum, basis, drift = mechanics.at_signs(mechanics.inertia(q, rho), q)
    return basis @ factorized(mass)(momentum) + drift
