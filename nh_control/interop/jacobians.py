"""Steps of stored numbers with their Jacobians, row by row, for automatic differentiation."""

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
    """Next states (N, nx) with their Jacobians by states (N, nx, nx), inputs (N, nx, nu) and
    parameters (N, nx, k).
    """

    x1: np.ndarray
    by_x: np.ndarray
    by_u: np.ndarray
    by_p: np.ndarray


class PairJacobians(NamedTuple):
    """Values (N, n) of a function of two vectors, with its Jacobians by both."""

    value: np.ndarray
    by_a: np.ndarray
    by_b: np.ndarray


class StoredNumbers:
    """A discrete system as functions of the stored numbers of states, and of some of its
    `parameters` (k) by name, the step h among them.

    On manifolds `dx1/dx = T(x1) A T(x)^+`, with `T(x) = d retract(x, e)/de` at e = 0 and its
    pseudoinverse: the Jacobian along the manifold, zero across it. Raises ValueError for unknown
    parameters.
    """

    def __init__(self, dsys: DiscreteSystem, parameters: Sequence[str] = ()):
        self.dsys, self.parameters = dsys, tuple(parameters)
        names = dsys.parameter_names
        if unknown := [name for name in self.parameters if name not in names]:
            raise ValueError(f"{dsys}: no parameters {unknown}, choose of {list(names)}")
        self._places = [names.index(name) for name in self.parameters]

    @property
    def nominal(self) -> np.ndarray:
        """Values (k) of the parameters in the discrete system."""
        return self.dsys.parameter_values[self._places]

    def step(self, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> np.ndarray:
        """States after a step, (N, nx); raises StepFailed."""
        after, failures = step_all(self._at(p), x, u)
        if failures:
            raise _with_row(*next(iter(failures.items())))
        return after

    def step_jacobians(self, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> StepJacobians:
        """States after a step, and their Jacobians; raises StepFailed."""
        dsys, rows = self._at(p), []
        for i, row in enumerate(zip(x, u)):
            try:
                lin = dsys.linearize(*row, self.parameters)
            except (StepFailed, ValueError) as failure:
                raise _with_row(i, failure) from failure
            out = self._functions("tangent", lin.x1)[0]
            into = np.linalg.pinv(self._functions("tangent", row[0])[0])
            rows.append((lin.x1, out @ lin.A @ into, out @ lin.B, out @ lin.P))
        d, k = dsys, len(self.parameters)
        shapes = (d.nx,), (d.nx, d.nx), (d.nx, d.nu), (d.nx, k)
        parts = ([row[j] for row in rows] for j in range(4))
        return StepJacobians(
            *(np.reshape(part, (len(rows), *shape)) for part, shape in zip(parts, shapes))
        )

    def local(self, x0: np.ndarray, x1: np.ndarray) -> PairJacobians:
        """`local(x0, x1)` of rows, with its Jacobians by all stored numbers."""
        return self._pairs("local", x0, x1)

    def retract(self, x: np.ndarray, dx: np.ndarray) -> PairJacobians:
        """`retract(x, dx)` of rows, with its Jacobians by all stored numbers."""
        return self._pairs("retract", x, dx)

    def _pairs(self, name: str, a: np.ndarray, b: np.ndarray) -> PairJacobians:
        rows = [self._functions(name, *row) for row in zip(a, b)]
        sizes = {"local": self.dsys.ndx, "retract": self.dsys.nx}
        n, widths = sizes[name], (1, a.shape[1], b.shape[1])
        value, by_a, by_b = (
            np.reshape([row[j] for row in rows], (len(rows), n, width))
            for j, width in enumerate(widths)
        )
        return PairJacobians(value[:, :, 0], by_a, by_b)

    def _at(self, p: np.ndarray) -> DiscreteSystem:
        """The discrete system at values (k) of the parameters."""
        if not self._places or (p == self.nominal).all():
            return self.dsys
        values = self.dsys.parameter_values.copy()
        values[self._places] = p
        return self.dsys.with_parameter_values(values)

    @cached_property
    def _functions(self) -> Functions:
        """`tangent(x) -> T`, and `local` and `retract` with their Jacobians."""
        d, space = self.dsys, self.dsys.state_space
        x, x1, dx = (ca.SX.sym(n, k) for n, k in zip("xyd", (d.nx, d.nx, d.ndx)))
        moved, change = space.retract(x, dx), space.local(x, x1)
        tangent = ca.substitute(ca.jacobian(moved, dx), dx, ca.SX.zeros(d.ndx))
        outputs = {
            "tangent": ([x], [tangent]),
            "local": ([x, x1], [change, ca.jacobian(change, x), ca.jacobian(change, x1)]),
            "retract": ([x, dx], [moved, ca.jacobian(moved, x), ca.jacobian(moved, dx)]),
        }
        functions = [
            ca.Function(name, arguments, out) for name, (arguments, out) in outputs.items()
        ]
        return Functions(f"{d.system.name}_stored_numbers", functions)


def _with_row(row: int, failure: Exception) -> Exception:
    """The failure, with a note that names the row of the batch."""
    if hasattr(failure, "add_note"):
        failure.add_note(f"in row {row} of the batch")
    return failure
