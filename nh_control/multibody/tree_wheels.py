"""The wheel constraints of a tree as functions that the linear-time kernel calls."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from nh_control.discrete.method import StepSymbols
from nh_control.mechanics.constrained_states import AdmissibleBasis
from nh_control.multibody.model import MultibodySystem
from nh_control.multibody.row_functions import RowFunctions
from nh_control.numerics.compiled import Functions
from nh_control.numerics.rounding import rounding_sizes
from nh_control.numerics.virtual_machine import FunctionData

FUNCTIONS = "rows", "values", "derivatives", "sizes", "basis"
"""Names of the functions, in the order of `struct wheel_functions`."""


class WheelFunctionsData(ctypes.Structure):
    """`struct wheel_functions` in tree_data.h. `owners` are the objects that must stay alive as
    long as native code calls the functions.
    """

    _fields_ = [(name, FunctionData) for name in FUNCTIONS]
    owners: Any


@dataclass(frozen=True)
class TreeWheels:
    """The wheel constraints as `RowFunctions`. The rows are the heights `h(q1) = 0`, then rolling
    `A(q_mid) v_mid = b(q_mid)`. They follow the `n_closures` rows of other constraints. The
    kernel's `n_unknowns` unknowns contain the impulses i of all these rows, with
    `r - J(q0)^T i = 0`.

    - `sizes -> s` (k): bounds of the terms of the values
    - `basis -> X, D X, (X^T p)_q`: the basis X (n_free, nrho) of the admissible virtual
      velocities (see `AdmissibleBasis`), a right inverse of X^T, and the derivative (nrho, nv) of
      the components of the momentum p with respect to the configuration
    """

    system: MultibodySystem
    n_closures: int
    n_unknowns: int

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes in the header of the kernel's model."""
        rolling = self.system.n_velocity_constraints
        heights = self.system.n_holonomic_constraints - self.n_closures
        return {
            "n_wheel_rows": heights + rolling,
            "n_rolling": rolling,
            "n_wheel_rates": len(self.rates),
        }

    @property
    def rates(self) -> np.ndarray:
        """Indices (n) of the unknowns on which the rows' values depend."""
        return self._rows.rates

    def data(self) -> WheelFunctionsData:
        """The functions for native code in one thread."""
        functions = {name: self._code.function(name) for name in FUNCTIONS}
        data = WheelFunctionsData(**functions)
        data.owners = functions, self
        return data

    @cached_property
    def _code(self) -> Functions:
        functions = [*self._rows.functions, self._size_function, self._basis_function]
        return Functions(f"{self.system.name}_wheels", functions)

    @cached_property
    def _rows(self) -> RowFunctions:
        system, first = self.system, self.n_closures
        free = system.space.nv - len(system.prescribed)

        def jacobian(q: ca.SX) -> ca.SX:
            heights = system.mechanics.holonomic_jacobian(q)[first:, :]
            return ca.vertcat(heights, system.constraint_matrix(q) @ system.space.frame(q))

        def values(symbols: StepSymbols) -> ca.SX:
            q, _, u, z, h, _ = symbols
            step = system.mean_step(q, u, z, h)
            # A(q_mid) w / h - b(q_mid) for the step's displacement w
            rolling = system.constraint_matrix(step.middle) @ step.w / h
            heights = system.holonomic(step.q1)[first:]
            return ca.vertcat(heights, rolling - system.drift(step.middle))

        return RowFunctions(system, self.n_unknowns, free + first, jacobian, values)

    @property
    def _size_function(self) -> ca.Function:
        arguments = self._rows.symbols
        values = ca.Function("values", arguments, [self._rows.step_symbolic])
        return ca.Function("sizes", arguments, ca.cse([rounding_sizes(values, arguments)]))

    @property
    def _basis_function(self) -> ca.Function:
        arguments, space = self._rows.symbols, self.system.space
        basis = AdmissibleBasis(self.system)
        q, p = ca.vertsplit(arguments[0], [0, space.nq, arguments[0].shape[0]])
        n, dq = basis.n_momenta, ca.SX.sym("dq", space.nv)
        signs = basis.signs_at(q)
        x = basis.basis(q, signs)[:n, :]
        moved = basis.components(space.retract(q, dq), p[:n], basis.signs)
        by_q = ca.substitute(ca.jacobian(moved, dq), dq, ca.SX.zeros(space.nv))
        # the signs of the basis vectors are constant in derivatives
        by_q = ca.substitute(by_q, basis.signs, signs)
        weighted = ca.repmat(basis.sizes**2, 1, x.shape[1]) * x
        results = [ca.densify(each) for each in (x, weighted, by_q)]
        return ca.Function("basis", arguments, ca.cse(results))
