"""The margins by which a motion keeps its constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import casadi as ca
import numpy as np

from nh_control.control.constraints import Constraint
from nh_control.discrete.system import DiscreteSystem


class ConstraintMargins:
    """Values of a model's constraints along motions, and their margins
    `min(f - lower, upper - f)`, negative for a violated constraint. Estimated disturbances count
    as 0. Raises ValueError for constraints with parameters, which belong to the nodes of one
    motion.
    """

    def __init__(self, dsys: DiscreteSystem, constraints: Sequence[Constraint]):
        for c in constraints:
            if c.parameters is not None:
                raise ValueError(f"{dsys}: constraint {c.name!r} has parameters of its own nodes")
        self._dsys, self.constraints = dsys, tuple(constraints)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the constraints."""
        return tuple(c.name for c in self.constraints)

    def values(self, x: np.ndarray, u: np.ndarray) -> list[np.ndarray]:
        """The values f (n) of every constraint at state x (nx) under input u (nu)."""
        return [np.asarray(value)[:, 0] for value in self._functions(x, u)]

    def __call__(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The smallest margin of every constraint at state x (nx) under input u (nu)."""
        return np.array(
            [
                min((value - c.lower).min(), (c.upper - value).min())
                for c, value in zip(self.constraints, self.values(x, u))
            ]
        )

    def along(self, states: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        """The margins (N, constraints) of states (N, nx) under inputs (N, nu)."""
        rows = [self(x, u) for x, u in zip(states, inputs)]
        return np.array(rows).reshape(len(rows), len(self.constraints))

    @cached_property
    def _functions(self) -> Callable[[np.ndarray, np.ndarray], list[ca.DM]]:
        x, u = ca.SX.sym("x", self._dsys.nx), ca.SX.sym("u", self._dsys.nu)
        nothing, n = ca.SX.zeros(0), self._dsys.system.nrho
        f = [c.f(x, u, ca.SX.zeros(n) if c.disturbed else nothing) for c in self.constraints]
        one = [ca.densify(ca.SX(value)) for value in f]
        made = ca.Function("constraints", [x, u], one)
        return lambda x, u: made.call([x, u])
