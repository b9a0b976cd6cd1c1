"""The outputs of a discrete system as functions of its state, with exact derivatives."""

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
    """Some outputs of a system, one after another, as functions `y = c(x, u)` (ny) of a state
    x (nx), at the parameters' values.

    Values lie in `space`; derivatives are in its local coordinates. `velocity(x)` gives the
    velocities (N, nw) of a table of states. Evaluated in CasADi's virtual machine. Raises
    ValueError without any output.
    """

    def __init__(
        self,
        system: System,
        state_space: Space,
        outputs: Sequence[Output],
        velocity: Callable[[np.ndarray], np.ndarray],
    ):
        if not outputs:
            raise ValueError(f"{system.name} declares no outputs, System(..., outputs=(...))")
        self.system, self.outputs = system.numeric, tuple(outputs)
        self.names = tuple(name for output in self.outputs for name in output.names)
        self.units = tuple(unit for output in self.outputs for unit in output.number_units)
        self.space, self._states = combined_space(self.outputs), state_space
        self._velocity = velocity

    def __repr__(self) -> str:
        return f"OutputMap({self.system.name!r}, {self.names})"

    @cached_property
    def takes_inputs(self) -> bool:
        """Whether a value depends on the inputs that act."""
        q, v, u = self.system.symbols
        return bool(self.system.nu) and bool(ca.depends_on(self._of(q, v, u), u))

    def __call__(self, x: ArrayLike, u: ArrayLike | None = None) -> np.ndarray:
        """Values (ny) at a state x (nx) under the inputs u (nu) that act, or (N, ny) of tables of
        states and inputs. Only the forces among the inputs count; outputs that do not depend on
        them need no u. Raises ValueError for another shape, and for missing inputs.
        """
        x = np.asarray(x, dtype=float)
        if x.ndim == 1:
            q = x[: self.system.space.nq]
            return self.values(q, self._velocity(x), u)
        given = np.zeros(0) if u is None else np.asarray(u, dtype=float)
        inputs = np.broadcast_to(given, (len(x), given.shape[-1]))
        rows = [self(*row) for row in zip(x, inputs)]
        return np.reshape(rows, (len(x), len(self.names)))

    def values(self, q: np.ndarray, v: np.ndarray, u: ArrayLike | None = None) -> np.ndarray:
        """Values (ny) at a configuration q (nq) and velocity v (nw) under inputs u."""
        return self._functions("values", q, v, self.inputs(u))[0][:, 0]

    def inputs(self, u: ArrayLike | None) -> np.ndarray:
        """The forces (nu) among the inputs; raises ValueError where they are needed and are None,
        or are fewer or not finite.
        """
        nu = self.system.nu
        if u is None or not np.size(u):
            if self.takes_inputs:
                raise ValueError(
                    f"{self.system.name}: the outputs {self.names} depend on the inputs "
                    f"{self.system.inputs}; give those that act, u ({nu})"
                )
            return np.zeros(nu)
        return states.numbers(self.system.name, "inputs", np.asarray(u, dtype=float)[:nu], nu)

    def expression(self, x: ca.SX, u: ca.SX) -> ca.SX:
        """The values (ny) at expressions of a state x (nx) and of forces u (nu)."""
        system = self.system
        mechanics = system.mechanics
        q, rho = mechanics.components_of(x[: mechanics.state_space.nq])
        mass, momentum, basis, drift = mechanics.at_signs(mechanics.inertia(q, rho), q)
        velocity = basis @ factorized(mass)(momentum) + drift
        return self._of(q, velocity, u)

    def linearize(self, x: ArrayLike, u: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
        """C (n, ndx) and D (n, nu) with `local(y, c(retract(x, dx), u + du)) = C dx + D du`, to
        first order.
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
        here, moved = self.expression(x, u), self.expression(self._states.retract(x, e), u)
        y = ca.SX.sym("y", here.shape[0])
        change = self.space.local(y, moved)
        by = [ca.jacobian(change, e), ca.jacobian(change, u)]
        at_zero = ca.substitute(by, [e, y], [ca.SX.zeros(e.shape[0]), here])
        function = ca.Function(
            "linearize", [x, u], [ca.densify(part) for part in at_zero], {"cse": True}
        )
        return Functions(f"{self.system.name}_output_slopes", [function], compiled=False)
