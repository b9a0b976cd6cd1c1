"""Steps in stored coordinates with their Jacobians, row by row, for automatic differentiation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import casadi as ca
import numpy as np

from nh_control.control.parallel_steps import step_all
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.numerics.compiled import Functions


class StepJacobians(NamedTuple):
    """Next states (N, nx) with their Jacobians with respect to states (N, nx, nx), inputs
    (N, nx, nu) and parameters (N, nx, k).
    """

    x1: np.ndarray
    by_x: np.ndarray
    by_u: np.ndarray
    by_p: np.ndarray


class PairJacobians(NamedTuple):
    """Values (N, n) of a function of vectors a and b, with the Jacobians with respect to both
    vectors.
    """

    value: np.ndarray
    by_a: np.ndarray
    by_b: np.ndarray


class StoredCoordinates:
    """A discrete system as functions of the states' stored coordinates, such as quaternion
    components, and of some named `parameters` (k), which may include the step size h.

    On manifolds `dx1/dx = T(x1) A T(x)^+`, with `T(x) = d retract(x, e)/de` at e = 0 and its
    pseudoinverse `T^+`. This Jacobian is exact along the manifold, and zero in directions normal
    to it. Raises ValueError for unknown parameters.
    """

    def __init__(self, dsys: DiscreteSystem, parameters: Sequence[str] = ()):
        self.dsys, self.parameters = dsys, tuple(parameters)
        names = dsys.parameter_names
        if unknown := [name for name in self.parameters if name not in names]:
            raise ValueError(f"{dsys}: no parameters {unknown}, choose from {list(names)}")
        self.indices = [names.index(name) for name in self.parameters]

    @property
    def nominal(self) -> np.ndarray:
        """The discrete system's values (k) of the parameters."""
        return self.dsys.parameter_values[self.indices]

    def step(self, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> np.ndarray:
        """States after a step, (N, nx). Raises StepFailed."""
        after, failures = step_all(self._at(p), x, u)
        if failures:
            row, failure = next(iter(failures.items()))
            raise _with_row(row, failure)
        return after

    def step_jacobians(self, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> StepJacobians:
        """States after a step, and their Jacobians. Raises StepFailed."""
        dsys, rows = self._at(p), []
        for i, (state, inputs) in enumerate(zip(x, u)):
            try:
                lin = dsys.linearize(state, inputs, self.parameters)
            except (StepFailed, ValueError) as failure:
                raise _with_row(i, failure) from failure
            # dx1/dx = T(x1) A T(x)^+, dx1/du = T(x1) B, dx1/dp = T(x1) P
            T1 = self._functions("tangent", lin.x1)[0]
            T_inverse = np.linalg.pinv(self._functions("tangent", state)[0])
            rows.append((lin.x1, T1 @ lin.A @ T_inverse, T1 @ lin.B, T1 @ lin.P))
        d, k = dsys, len(self.parameters)
        shapes = (d.nx,), (d.nx, d.nx), (d.nx, d.nu), (d.nx, k)
        # reshape gives the right shapes even for a batch without rows
        x1, by_x, by_u, by_p = (
            np.reshape([row[j] for row in rows], (len(rows), *shape))
            for j, shape in enumerate(shapes)
        )
        return StepJacobians(x1, by_x, by_u, by_p)

    def local(self, x0: np.ndarray, x1: np.ndarray) -> PairJacobians:
        """`local(x0, x1)` for rows, with its Jacobians with respect to x0 and x1."""
        return self._pairs("local", x0, x1)

    def retract(self, x: np.ndarray, dx: np.ndarray) -> PairJacobians:
        """`retract(x, dx)` for rows, with its Jacobians with respect to x and dx."""
        return self._pairs("retract", x, dx)

    def _pairs(self, name: str, a: np.ndarray, b: np.ndarray) -> PairJacobians:
        rows = [self._functions(name, first, second) for first, second in zip(a, b)]
        sizes = {"local": self.dsys.ndx, "retract": self.dsys.nx}
        n, widths = sizes[name], (1, a.shape[1], b.shape[1])
        value, by_a, by_b = (
            np.reshape([row[j] for row in rows], (len(rows), n, width))
            for j, width in enumerate(widths)
        )
        return PairJacobians(value[:, :, 0], by_a, by_b)

    def _at(self, p: np.ndarray) -> DiscreteSystem:
        """The discrete system with the given parameter values (k)."""
        if not self.indices or (p == self.nominal).all():
            return self.dsys
        values = self.dsys.parameter_values.copy()
        values[self.indices] = p
        return self.dsys.with_parameter_values(values)

    @cached_property
    def expressions(self) -> dict[str, ca.Function]:
        """The functions `tangent(x) -> T`, and `local` and `retract` with their Jacobians."""
        d, space = self.dsys, self.dsys.state_space
        x, x1, dx = (ca.SX.sym(n, k) for n, k in zip("xyd", (d.nx, d.nx, d.ndx)))
        retracted, change = space.retract(x, dx), space.local(x, x1)
        # T(x) = d retract(x, e)/de at e = 0
        tangent = ca.substitute(ca.jacobian(retracted, dx), dx, ca.SX.zeros(d.ndx))
        outputs = {
            "tangent": ([x], [tangent]),
            "local": ([x, x1], [change, ca.jacobian(change, x), ca.jacobian(change, x1)]),
            "retract": (
                [x, dx],
                [retracted, ca.jacobian(retracted, x), ca.jacobian(retracted, dx)],
            ),
        }
        return {
            name: ca.Function(name, arguments, out) for name, (arguments, out) in outputs.items()
        }

    @cached_property
    def _functions(self) -> Functions:
        name = f"{self.dsys.system.name}_stored_numbers"
        return Functions(name, list(self.expressions.values()))


def _with_row(row: int, failure: Exception) -> Exception:
    """Return the failure with a note that names the row of the batch."""
    if hasattr(failure, "add_note"):  # from Python 3.11
        failure.add_note(f"in row {row} of the batch")
    return failure
