"""States extended by unknown constants of a motion: parameters and the first state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from nh_control.control.constraints import Row, between
from nh_control.control.costs import LimitsByName
from nh_control.discrete.system import DiscreteSystem
from nh_control.mechanics.parameters import declarations

STEP = "h"
"""The name of the step h among the parameters."""


@dataclass(frozen=True)
class ExtendedStates:
    """Extended states (x, theta, c): the state x of `dsys`, the free parameters theta and, if
    trajectories are `periodic`, a copy c of the first state.

    A step leads to `f(x, u; theta), theta, c`. The first state is that of the guess, except for
    the tangent coordinates and parameters named in `free`. Raises ValueError for unknown names.
    """

    dsys: DiscreteSystem
    free: Sequence[str]
    periodic: bool

    def __post_init__(self) -> None:
        coordinates, parameters = self._coordinates, self.dsys.parameter_names
        if unknown := [name for name in self.free if name not in (*coordinates, *parameters)]:
            raise ValueError(
                f"{self.dsys}: unknown free quantities {unknown}, choose from coordinates of the "
                f"first state, {list(coordinates)}, and parameters, {list(parameters)}"
            )

    @property
    def _coordinates(self) -> tuple[str, ...]:
        return self.dsys.state_space.tangent_names

    @cached_property
    def parameters(self) -> list[str]:
        """The free parameters."""
        return [name for name in self.free if name not in self._coordinates]

    @property
    def starts(self) -> list[int]:
        """The indices of the free coordinates of the first state."""
        return [i for i, name in enumerate(self._coordinates) if name in self.free]

    @property
    def places(self) -> list[int]:
        """The indices of the free parameters among all parameters of a step."""
        return [self.dsys.parameter_names.index(name) for name in self.parameters]

    @property
    def nx(self) -> int:
        """The number of components of an extended state."""
        return self.dsys.nx * (1 + self.periodic) + len(self.parameters)

    @property
    def ndx(self) -> int:
        """The number of local coordinates of an extended state."""
        return self.dsys.ndx * (1 + self.periodic) + len(self.parameters)

    @cached_property
    def moves(self) -> np.ndarray:
        """Derivatives (ndx, number of unknowns) of the first extended state with respect to its
        unknowns.
        """
        n, m = self.dsys.ndx, len(self.parameters)
        moves = np.zeros((self.ndx, len(self.starts) + m))
        # the copy c of the first state changes with it
        for column, place in enumerate(self.starts):
            moves[[place, n + m + place] if self.periodic else place, column] = 1.0
        # free parameters
        moves[n : n + m, len(self.starts) :] = np.eye(m)
        return moves

    def split(self, x: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """The parts x, theta and c of an extended state."""
        n, m = self.dsys.nx, len(self.parameters)
        return x[:n], x[n : n + m], x[n + m :]

    def retract(self, x: ca.SX, dx: ca.SX) -> ca.SX:
        """The extended state with local coordinates dx about x."""
        (state, theta, first), n, space = self.split(x), self.dsys.ndx, self.dsys.state_space
        m = n + len(self.parameters)
        parts = [space.retract(state, dx[:n]), theta + dx[n:m]]
        return ca.vertcat(*parts, *([space.retract(first, dx[m:])] if self.periodic else []))

    def local(self, x0: ca.SX, x1: ca.SX) -> ca.SX:
        """Local coordinates of x1 about x0."""
        (a, theta0, first), (b, theta1, last) = self.split(x0), self.split(x1)
        space = self.dsys.state_space
        parts = [space.local(a, b), theta1 - theta0]
        return ca.vertcat(*parts, *([space.local(first, last)] if self.periodic else []))

    def coordinate_change(self, x0: ca.SX, x1: ca.SX) -> ca.SX:
        """The matrix that transforms local coordinates about x1 to those about x0 (see
        `Space.coordinate_change`).
        """
        (a, _, first), (b, _, last) = self.split(x0), self.split(x1)
        change = self.dsys.state_space.coordinate_change
        blocks = [change(a, b), ca.SX.eye(len(self.parameters))]
        return ca.diagcat(*blocks, *([change(first, last)] if self.periodic else []))

    def of_states(self, states: np.ndarray) -> np.ndarray:
        """The system's states (N + 1, nx), extended by its parameters and the first state."""
        if not (self.parameters or self.periodic):
            return states
        constants = np.concatenate(
            [self.dsys.parameter_values[self.places], states[0] if self.periodic else []]
        )
        return np.hstack([states, np.tile(constants, (len(states), 1))])

    def values(self, x: np.ndarray) -> dict[str, float]:
        """The free parameters in an extended state (nx)."""
        n = self.dsys.nx
        return dict(zip(self.parameters, x[n : n + len(self.parameters)].tolist()))

    def system_at(self, x: np.ndarray) -> DiscreteSystem:
        """The system with the parameters in an extended state (nx)."""
        if not self.parameters:
            return self.dsys
        # a copy with the optimized values in place of the nominal ones
        values = self.dsys.parameter_values
        values[self.places] = list(self.values(x).values())
        return self.dsys.with_parameter_values(values)

    def motion_limits(self, limits: LimitsByName) -> LimitsByName:
        """The limits, without the limits of parameters."""
        return {name: bound for name, bound in limits.items() if name not in self.parameters}

    def bounds(self, limits: LimitsByName) -> np.ndarray:
        """Lower and upper bounds (n, 2) of the free parameters: the limits of a parameter or, by
        default, its declared bounds. Raises ValueError unless lower < upper.
        """
        if not self.parameters:
            return np.zeros((0, 2))
        of_system = declarations(self.dsys.system.parameters)
        declared = {d.name: max(d.above, d.at_least) for d in of_system} | {STEP: 0.0}
        bounds = []
        for name in self.parameters:
            limit = limits.get(name, (declared.get(name.partition("[")[0], -np.inf), np.inf))
            if np.shape(limit) != (2,) or not limit[0] < limit[1]:
                raise ValueError(
                    f"{self.dsys}: limits of {name!r} must be lower < upper, got {limit}"
                )
            bounds.append(limit)
        return np.array(bounds, dtype=float)

    def rows(self, x: ca.SX, limited: np.ndarray, place: int) -> list[Row]:
        """The inequalities for the parameters in an extended state x, one for each bound that is
        `limited` (n, 2). `place` is the index of the first parameter among all bounded quantities.
        """
        rows, values = list[Row](), ca.vertsplit(self.split(x)[1]) if self.parameters else []
        for i, (name, value) in enumerate(zip(self.parameters, values)):
            rows += between(name, value, limited[i], place + i, False)
        return rows
