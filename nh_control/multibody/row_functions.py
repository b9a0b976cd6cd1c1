"""Rows that the linear-time kernel of trees evaluates by generated functions: of contacts, and of
the constraints of wheels. They have the kinematics of the bodies that touch, and no dynamics.
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
    """Rows of a step with the state x, the input u, the n_unknowns unknowns z and the parameters p
    with the step h, as functions of (x, u, z, p).

    i (k) are the impulses of the rows, in z from the place `first` on; unknowns before
    `first` are velocities and other impulses.

    - `rows -> J` (k, nv): they act on the balance of momenta by `J(q0)^T i`
    - `values -> w, w_z, ...`: the values w (k) of the rows, their derivatives by the unknowns
      `rates`, and what `more` adds
    - `derivatives -> w_s, (J^T i)_q`: derivatives by the kernel's variables (dq, dp, u), and by
      the configuration
    """

    system: MultibodySystem
    n_unknowns: int
    first: int
    jacobian: Callable[[ca.SX], ca.SX]
    step_values: Callable[[StepSymbols], ca.SX]
    more: Callable[[StepSymbols], ca.SX] | None = None

    @cached_property
    def rates(self) -> np.ndarray:
        """The unknowns (n) on which the values depend."""
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
        space, (x, u, z, p) = self.system.space, self.symbols
        arguments, q = (x, u, z, p), x[: space.nq]
        by_y = ca.jacobian(self.step_symbolic, z[: self.first])[:, self.rates.tolist()]
        values = [self.step_symbolic, by_y]
        if self.more is not None:
            values.append(self.more(self._step(q)))
        # derivatives by changes dq of the start, at dq = 0
        dq = ca.SX.sym("dq", space.nv)
        moved = space.retract(q, dq)
        J = self.jacobian(q)
        impulses = z[self.first : self.first + J.shape[0]]
        w = self.step_values(self._step(moved))
        slopes = [ca.jacobian(w, dq), ca.jacobian(self.jacobian(moved).T @ impulses, dq)]
        by_q, force_by_q = ca.substitute(slopes, [dq], [ca.SX.zeros(space.nv)])
        by_p, by_u = ca.SX(w.shape[0], space.nv), ca.jacobian(self.step_symbolic, u)
        derivatives = [ca.horzcat(by_q, by_p, by_u), force_by_q]
        return [
            ca.Function("rows", arguments, ca.cse([ca.densify(J)])),
            ca.Function("values", arguments, ca.cse([ca.densify(e) for e in values])),
            ca.Function("derivatives", arguments, ca.cse([ca.densify(e) for e in derivatives])),
        ]

    def _step(self, q: ca.SX) -> StepSymbols:
        x, u, z, p = self.symbols
        return StepSymbols(q, x[self.system.space.nq :], u, z, p[-1], _no_gradients)


def _no_gradients(q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
    raise TypeError("rows of contacts and wheels do not depend on the Lagrangian")
