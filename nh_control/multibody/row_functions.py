"""Rows for contacts and wheel constraints. The linear-time tree kernel evaluates them with
generated functions that contain the kinematics of the touching bodies, but no dynamics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from nh_control.discrete.method import StepSymbols
from nh_control.multibody.model import MultibodySystem


@dataclass(frozen=True)
class RowFunctions:
    """A step's rows as functions of the state x, the input u, the n_unknowns unknowns z, and the
    parameters p. The last parameter is the step h.

    The rows' impulses i (k) begin at index `first` of z. The unknowns before it are velocities and
    other impulses.

    - `rows -> J` (k, nv): the impulses add `J(q0)^T i` to the momentum balance
    - `values -> w, w_z, ...`: the values w (k) of the rows, their derivatives with respect to the
      unknowns `rates`, and the values of `more`
    - `derivatives -> w_s, (J^T i)_q`: derivatives with respect to the kernel's variables
      (dq, dp, u), and with respect to the configuration
    """

    system: MultibodySystem
    n_unknowns: int
    first: int
    jacobian: Callable[[ca.SX], ca.SX]
    step_values: Callable[[StepSymbols], ca.SX]
    more: Callable[[StepSymbols], ca.SX] | None = None

    @cached_property
    def rates(self) -> np.ndarray:
        """Indices (n) of the unknowns on which the values depend."""
        by_y = ca.jacobian(self.step_symbolic, self.symbols[2][: self.first])
        return np.unique(by_y.sparsity().get_triplet()[1]).astype(np.int32)

    @cached_property
    def symbols(self) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """x, u, z and p."""
        system = self.system
        nu, nx = system.nu + len(system.prescribed), system.mechanics.state_space.nq
        x, u, z = (ca.SX.sym(name, n) for name, n in zip("xuz", (nx, nu, self.n_unknowns)))
        return x, u, z, ca.vertcat(system.parameter_symbols, ca.SX.sym("h"))

    @cached_property
    def step_symbolic(self) -> ca.SX:
        """The values w (k) at the symbols."""
        return ca.densify(self.step_values(self._step(self.symbols[0][: self.system.space.nq])))

    @property
    def functions(self) -> list[ca.Function]:
        """The functions "rows", "values" and "derivatives"."""
        space, (x, u, z, parameters) = self.system.space, self.symbols
        arguments, q = (x, u, z, parameters), x[: space.nq]
        by_y = ca.jacobian(self.step_symbolic, z[: self.first])[:, self.rates.tolist()]
        # only differentiate with respect to unknowns on which a value depends
        values = [self.step_symbolic, by_y]
        if self.more is not None:
            values.append(self.more(self._step(q)))
        # derivatives with respect to changes dq of the initial configuration, at dq = 0
        dq = ca.SX.sym("dq", space.nv)
        moved = space.retract(q, dq)
        J = self.jacobian(q)
        impulses = z[self.first : self.first + J.shape[0]]
        w = self.step_values(self._step(moved))
        slopes = [ca.jacobian(w, dq), ca.jacobian(self.jacobian(moved).T @ impulses, dq)]
        by_q, force_by_q = ca.substitute(slopes, [dq], [ca.SX.zeros(space.nv)])
        # the rows do not depend on the momentum
        by_p, by_u = ca.SX(w.shape[0], space.nv), ca.jacobian(self.step_symbolic, u)
        derivatives = [ca.horzcat(by_q, by_p, by_u), force_by_q]
        return [
            ca.Function("rows", arguments, ca.cse([ca.densify(J)])),
            ca.Function("values", arguments, ca.cse([ca.densify(e) for e in values])),
            ca.Function("derivatives", arguments, ca.cse([ca.densify(e) for e in derivatives])),
        ]

    def _step(self, q: ca.SX) -> StepSymbols:
        x, u, z, parameters = self.symbols
        return StepSymbols(q, x[self.system.space.nq :], u, z, parameters[-1], _no_gradients)


def _no_gradients(q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
    raise TypeError("rows of contacts and wheels do not depend on the Lagrangian")
