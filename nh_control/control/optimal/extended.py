"""States extended by constants of a motion: unknown parameters, and the first state."""

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
    """States (x, p, c) of trajectories that start where the guess does but for the tangent
    coordinates and parameters `free`: x of `dsys`, the free parameters p and, where they are
    `periodic`, a copy c of the first state. The steps keep p and c, `f(x, u; p), p, c`.

    Raises ValueError for unknown names.
    """

    dsys: DiscreteSystem
    free: Sequence[str]
    periodic: bool

    def __post_init__(self) -> None:
        coordinates, parameters = self._coordinates, self.dsys.parameter_names
        if unknown := [name for name in self.free if name not in (*coordinates, *parameters)]:
            raise ValueError(
                f"{self.dsys}: unknown free quantities {unknown}, choose among coordinates of the "
                f"first state, {list(coordinates)}, and parameters, {list(parameters)}"
            )

    @property
    def _coordinates(self) -> tuple[str, ...]:
        return self.dsys.state_space.tangent_names

    @property
    def parameters(self) -> list[str]:
        """The free parameters."""
        return [name for name in self.free if name not in self._coordinates]

    @property
    def starts(self) -> list[int]:
        """Places of the free coordinates of the first state."""
        return [i for i, name in enumerate(self._coordinates) if name in self.free]

    @property
    def places(self) -> list[int]:
        """Places of the free parameters among those of the step."""
        return [self.dsys.parameter_names.index(name) for name in self.parameters]

    @property
    def nx(self) -> int:
        """Numbers of a state."""
        return self.dsys.nx * (1 + self.periodic) + len(self.parameters)

    @property
    def ndx(self) -> int:
        """Local coordinates of a state."""
        return self.dsys.ndx * (1 + self.periodic) + len(self.parameters)

    @cached_property
    def moves(self) -> np.ndarray:
        """How the first state moves by its unknowns, (ndx, number of unknowns)."""
        n, m = self.dsys.ndx, len(self.parameters)
        moves = np.zeros((self.ndx, len(self.starts) + m))
        for column, place in enumerate(self.starts):
            moves[[place, n + m + place] if self.periodic else place, column] = 1.0
        moves[n : n + m, len(self.starts) :] = np.eye(m)
        return moves

    def split(self, x: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """x, p and c of a state."""
        n, m = self.dsys.nx, len(self.parameters)
        return x[:n], x[n : n + m], x[n + m :]

    def retract(self, x: ca.SX, dx: ca.SX) -> ca.SX:
        """The state moved by local coordinates."""
        (state, p, first), n, space = self.split(x), self.dsys.ndx, self.dsys.state_space
        m = n + len(self.parameters)
        moved = [space.retract(state, dx[:n]), p + dx[n:m]]
        return ca.vertcat(*moved, *([space.retract(first, dx[m:])] if self.periodic else []))

    def local(self, x0: ca.SX, x1: ca.SX) -> ca.SX:
        """Local coordinates of x1 about x0."""
        (a, p, first), (b, q, last) = self.split(x0), self.split(x1)
        space = self.dsys.state_space
        moved = [space.local(a, b), q - p]
        return ca.vertcat(*moved, *([space.local(first, last)] if self.periodic else []))

    def coordinate_change(self, x0: ca.SX, x1: ca.SX) -> ca.SX:
        """From local coordinates about x1 to those about x0, see `Space.coordinate_change`."""
        (a, _, first), (b, _, last) = self.split(x0), self.split(x1)
        change = self.dsys.state_space.coordinate_change
        blocks = [change(a, b), ca.SX.eye(len(self.parameters))]
        return ca.diagcat(*blocks, *([change(first, last)] if self.periodic else []))

    def of_states(self, states: np.ndarray) -> np.ndarray:
        """States (N + 1, nx) of the system's states with its parameters."""
        given = np.concatenate(
            [self.dsys.parameter_values[self.places], states[0] if self.periodic else []]
        )
        return np.hstack([states, np.tile(given, (len(states), 1))])

    def values(self, x: np.ndarray) -> dict[str, float]:
        """The free parameters in a state (nx)."""
        n = self.dsys.nx
        return dict(zip(self.parameters, x[n : n + len(self.parameters)].tolist()))

    def system_at(self, x: np.ndarray) -> DiscreteSystem:
        """The system with the parameters in a state (nx)."""
        if not self.parameters:
            return self.dsys
        values = self.dsys.parameter_values
        values[self.places] = list(self.values(x).values())
        return self.dsys.with_parameter_values(values)

    def motion_limits(self, limits: LimitsByName) -> LimitsByName:
        """The limits of states and inputs among these."""
        return {name: bound for name, bound in limits.items() if name not in self.parameters}

    def rows(self, x: ca.SX, limits: LimitsByName) -> list[Row]:
        """Inequalities of the parameters in a state x: their limits, or the bounds that they
        declare. Raises ValueError for limits that are not lower < upper.
        """
        of_system = declarations(self.dsys.system.parameters)
        declared = {d.name: max(d.above, d.at_least) for d in of_system} | {STEP: 0.0}
        rows, values = [], ca.vertsplit(self.split(x)[1]) if self.parameters else []
        for name, value in zip(self.parameters, values):
            limit = limits.get(name, (declared.get(name.partition("[")[0], -np.inf), np.inf))
            if np.shape(limit) != (2,) or not limit[0] < limit[1]:
                raise ValueError(
                    f"{self.dsys}: limits of {name!r} must be lower < upper, got {limit}"
                )
            rows += between(name, value, limit[0], limit[1], np.inf, False)
        return rows
