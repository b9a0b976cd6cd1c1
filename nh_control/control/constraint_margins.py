"""The margins with which a motion satisfies its constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import casadi as ca
import numpy as np

from nh_control.control.constraints import Constraint
from nh_control.discrete.system import DiscreteSystem


class ConstraintMargins:
    """Values of a model's constraints along motions, and their margins
    `min(f - lower, upper - f)`, which are negative if a constraint is violated. Estimated
    disturbances are assumed to be 0. Raises ValueError for constraints with parameters, because
    such parameters belong to the nodes of a single motion.
    """

    def __init__(self, dsys: DiscreteSystem, constraints: Sequence[Constraint]):
        for c in constraints:
            if c.parameters is not None:
                raise ValueError(
                    f"{dsys}: constraint {c.name!r} has parameters, which belong to the nodes of "
                    "a single motion"
                )
        self._dsys, self.constraints = dsys, tuple(constraints)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the constraints."""
        return tuple(c.name for c in self.constraints)

    def values_along(self, states: np.ndarray, inputs: np.ndarray) -> list[np.ndarray]:
        """The values f (N, n) of each constraint at states (N, nx) under inputs (N, nu)."""
        return [np.asarray(values).T for values in self._functions(states.T, inputs.T)]

    def least(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """The smallest margin of each constraint, (N, number of constraints), from its values
        (N, n).
        """
        # min over the rows of min(f - lower, upper - f)
        margins = [
            np.minimum(value - c.lower, c.upper - value).min(axis=1)
            for c, value in zip(self.constraints, values)
        ]
        return np.array(margins).T

    def __call__(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The smallest margin of each constraint at state x (nx) under input u (nu)."""
        return self.along(x[None], u[None])[0]

    def along(self, states: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        """The margins (N, number of constraints) at states (N, nx) under inputs (N, nu)."""
        return self.least(self.values_along(states, inputs))

    @cached_property
    def _functions(self) -> Callable[[np.ndarray, np.ndarray], list[ca.DM]]:
        """The values (n, N) of all constraints for states and inputs in columns."""
        x, u = ca.SX.sym("x", self._dsys.nx), ca.SX.sym("u", self._dsys.nu)
        nothing, n = ca.SX.zeros(0), self._dsys.system.nrho
        # estimated forces w = 0
        f = [c.f(x, u, ca.SX.zeros(n) if c.disturbed else nothing) for c in self.constraints]
        expressions = [ca.densify(ca.SX(value)) for value in f]
        function = ca.Function("constraints", [x, u], expressions)
        return lambda x, u: function.call([x, u])
