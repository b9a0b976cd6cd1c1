"""The formulation of an optimal control problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost, LimitsByName, limit_bounds
from nh_control.control.optimal.extended import ExtendedStates
from nh_control.discrete.system import DiscreteSystem


@dataclass(frozen=True)
class Formulation:
    """The cost, the limits, the constraints and the end condition of trajectories of `dsys` with
    `steps` steps. With `curved`, the method uses second derivatives of steps and constraints.

    The first state is prescribed, except for its tangent coordinates named in `free`. The limits
    of these coordinates also apply at the first node. Parameters of the steps named in `free` are
    unknowns (see `ExtendedStates`). If `end` (nx) is a state, `local(end, x_N) = 0` in the tangent
    coordinates `fixed` (by default, all of them). If the motion is `periodic`, the end is the
    first state. The steps are divided among `threads` threads, at most 64 and at most one per
    step, unless Python computes the steps. Raises ValueError for wrong shapes, unknown names, and
    threads < 1.
    """

    dsys: DiscreteSystem
    cost: Cost
    steps: int
    limits: LimitsByName = field(default_factory=dict)
    constraints: Sequence[Constraint] = ()
    end: ArrayLike | None = None
    fixed: Sequence[str] | None = None
    curved: bool = True
    free: Sequence[str] = ()
    periodic: bool = False
    threads: int = 1

    def __post_init__(self) -> None:
        names = self.dsys.state_space.tangent_names
        if self.threads < 1:
            raise ValueError(f"{self.dsys}: threads must be at least 1, got {self.threads}")
        if not self.dsys.nu:
            raise ValueError(f"{self.dsys}: a system without inputs has nothing to optimize")
        if self.periodic and self.end is not None:
            raise ValueError(
                f"{self.dsys}: a periodic motion ends where it starts and cannot have an `end`"
            )
        unknown = [name for name in self.fixed or () if name not in names]
        if self.end is not None or self.periodic:
            # a periodic motion has no `end`
            fits = self.end is None or (
                np.shape(self.end) == (self.dsys.nx,) and np.isfinite(self.end).all()
            )
            if unknown or not fits:
                raise ValueError(
                    f"{self.dsys}: end must be a finite state of shape ({self.dsys.nx},), and "
                    f"fixed must contain names among {list(names)}; got {self.end}, fixed "
                    f"{self.fixed}"
                )
        if self.end is not None:  # store a copy that the caller cannot change
            object.__setattr__(self, "end", np.array(self.end, dtype=float))
        parameters = self.cost.parameters
        if parameters is not None and len(parameters) != self.steps + 1:
            raise ValueError(
                f"{self.dsys}: 'cost' covers {len(parameters) - 1} steps, the trajectory has "
                f"{self.steps}"
            )

    @cached_property
    def states(self) -> ExtendedStates:
        """The extended states of the solver."""
        return ExtendedStates(self.dsys, self.free, self.periodic)

    @cached_property
    def tables(self) -> list[np.ndarray]:
        """Tables (N + 1, n) of the parameters of the cost and of each constraint at all nodes."""
        nodes, nrho, of_cost = self.steps + 1, self.dsys.system.nrho, self.cost.parameters
        first = np.zeros((nodes, 0)) if of_cost is None else of_cost
        return [first, *(c.table(nodes, nrho) for c in self.constraints)]

    @cached_property
    def _limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits (nx + nu, 2) of states and inputs, and their distances."""
        return limit_bounds(self.dsys, self.states.motion_limits(self.limits))

    @property
    def state_limits(self) -> np.ndarray:
        """Lower and upper limits (nx, 2) of the states."""
        return self._limits[0][: self.dsys.nx]

    @property
    def input_bounds(self) -> np.ndarray:
        """Lower and upper limits (2, nu) of the inputs."""
        return self._limits[0][self.dsys.nx :].T

    @property
    def input_spans(self) -> np.ndarray:
        """Distances (nu) between the lower and upper limits of inputs, 1 if infinite."""
        return self._limits[1][self.dsys.nx :]

    @cached_property
    def constant_limits(self) -> np.ndarray:
        """Lower and upper bounds (n, 2) of the free parameters."""
        return self.states.bounds(self.limits)

    @cached_property
    def parameters(self) -> np.ndarray:
        """The parameters (N + 1, n) of the cost and the constraints at all nodes."""
        return np.concatenate(self.tables, axis=1)
