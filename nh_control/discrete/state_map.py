"""Functions of a discrete system's states: conversions, local coordinates, energies."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property, partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.compiled_functions import BoundFunctions
from nh_control.discrete.method import Method
from nh_control.discrete.outputs import OutputMap
from nh_control.discrete.state_quantities import StateQuantities
from nh_control.geometry.spaces import Space
from nh_control.mechanics import states
from nh_control.mechanics.consistent_states import require_consistent
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import all_finite

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger(__name__)

WATCHED = 1000
"""Number of states in a trajectory whose rotations are checked. Not all are checked because a
velocity takes as long to compute as a step.
"""


class StateMap:
    """Functions of a system's states, for a method with step h (s), that can be evaluated without
    a step.

    A state x (nx) is (q, rho), the configuration and the discrete momenta at the same node; small
    changes dx (ndx) are in the local coordinates of `state_space`.
    """

    def __init__(
        self, system: System, h: float, method: Method, space: Space, functions: BoundFunctions
    ):
        self.system, self.h, self.method, self.state_space = system, h, method, space
        self._code, self._functions = functions.code, functions
        self.inputs = system.inputs + system.prescribed
        self.nx, self.ndx, self.nu = space.nq, space.nv, len(self.inputs)

    def __repr__(self) -> str:
        return f"{self.system.name} by {self.method.name}, h = {self.h:g} s"

    @cached_property
    def nominal_masses(self) -> np.ndarray:
        """The masses `(X^T M X)_ii` (nrho) for the momenta rho at the system's nominal
        configuration. They scale tests that must not depend on units.
        """
        q, n = self.system.nominal_configuration, self.system.space.nv
        symbol = self.system.symbols[0]
        mechanics = self.system.mechanics
        (columns,) = mechanics.at_signs([mechanics.admissible_basis(symbol)], symbol)
        basis = self.system.value(columns, q)
        # rho for the i-th admissible velocity, relative to the state at rest
        rest = self.measured_state(q, np.zeros(self.system.space.nw))
        moving = [self.local(rest, self.measured_state(q, v)) for v in basis.T]
        return np.array([dx[n + i] for i, dx in enumerate(moving)])

    def state(self, q: ArrayLike, v: ArrayLike, u: ArrayLike | None = None) -> np.ndarray:
        """The state (nx) with the configuration q (nq) and the velocity v (nw), or states (N, nx)
        for tables (see `DiscreteSystem.state`). The momentum contains no constraint impulses.
        """
        space = self.system.space
        q = states.configuration(self, space, q)
        v = states.rows(self, f"a velocity {space.velocity_names}", v, space.nw)
        if q.shape[:-1] != v.shape[:-1]:
            raise ValueError(
                f"{self}: expected a configuration and a velocity, or tables of both with "
                f"equally many rows, got shapes {q.shape} and {v.shape}"
            )
        states.require_short(self, space, v, self.h)
        if q.ndim == 1:
            return self._consistent_state(q, v, u)
        forces = [None] * len(q) if u is None else np.broadcast_to(u, (len(q), self.nu))
        rows = [self._consistent_state(q_k, v_k, u_k) for q_k, v_k, u_k in zip(q, v, forces)]
        return np.reshape(rows, (len(q), self.nx))

    def _consistent_state(self, q: np.ndarray, v: np.ndarray, u: ArrayLike | None) -> np.ndarray:
        """The state for a configuration that must satisfy the holonomic constraints."""
        if self.system.n_holonomic_constraints:
            require_consistent(self.system, q)
        return self.measured_state(q, v, u)

    def measured_state(self, q: ArrayLike, v: ArrayLike, u: ArrayLike | None = None) -> np.ndarray:
        """The state (nx) with a measured configuration q (nq) and velocity v (nw), which need not
        satisfy the holonomic constraints. The result corresponds to that of `state` without
        constraint impulses. Raises ValueError for numbers that are not finite.
        """
        if (node := self._code.node_functions) is not None:
            space = self.system.space
            q = states.numbers(self, f"a configuration {space.names}", q, space.nq, space.names)
            v = states.numbers(self, f"a velocity {space.velocity_names}", v, space.nw)
            momenta = node.momentum(self._functions.arrays.work, q, v)
            return self._finite("state", np.concatenate([q, momenta]), (q, v))
        forces = np.zeros(self.system.nu) if u is None else np.asarray(u)[: self.system.nu]
        return self._evaluate("state", q, v, forces, [self.h])

    def configuration(self, x: ArrayLike) -> np.ndarray:
        """The configuration q (nq) of a state x (nx), or (N, nq) for states (N, nx); raises
        ValueError for any other shape.
        """
        return self._states(x)[..., : self.system.space.nq]

    def velocity(self, x: ArrayLike) -> np.ndarray:
        """The physical velocity (nw) at the node of a state x (nx), `v = X (X^T M X)^{-1} rho`,
        including the velocities of prescribed coordinates, or (N, nw) for states (N, nx). Raises
        ValueError for any other shape and for numbers that are not finite.
        """
        x = self._states(x)
        x, of_state = self._moving(x), self.motion.velocity
        if (node := self._code.node_functions) is not None:
            of_state = partial(node.velocity, self._functions.arrays.work)
        if x.ndim == 1:
            return of_state(x)
        return np.reshape([of_state(row) for row in x], (len(x), self.system.space.nw))

    def rotation_angles(self, x: ArrayLike) -> np.ndarray:
        """The largest angle (N, rad) by which the velocity of each state (N, nx) rotates a body or
        a direction in one step; zeros for a space without rotations. A step can only represent
        rotations of less than half a turn.
        """
        rows, space = self._rows(x), self.system.space
        if not states.has_rotations(space):  # do not compute velocities
            return np.zeros(len(rows))
        return states.rotation_angles(space, self.velocity(rows), self.h)

    def warn_of_rotations(self, table: np.ndarray, every: int) -> None:
        """Log a warning for the first rotation by half a turn or more in one step. This method
        checks about WATCHED states in a table (N + 1, nx) that contains every `every`-th state. If
        it contains all states, only those that rotate visibly in a step are checked.
        """
        if not states.has_rotations(self.system.space):
            return
        rows = np.arange(0, len(table), 1 + len(table) // WATCHED)
        if every == 1:
            far = states.turned_far(self.system.space, table[:, : self.system.space.nq])
            rows = rows[np.append(far, False)[rows] | np.append(False, far)[rows]]
        if not len(rows):
            return
        for row, angle in zip(rows, self.rotation_angles(table[rows])):
            if message := states.rotation_problem(angle, self.h):
                log.warning("%s: at step %d %s", self, row * every, message)
                return

    def constraint_impulses(self, x: ArrayLike) -> np.ndarray:
        """The constraint impulses mu (n_holonomic_constraints) in the momentum `p = M v + Dh^T mu`
        of a state x (nx), or (N, n_holonomic_constraints) for states (N, nx). Neither the velocity
        nor the next step depends on them.
        """
        x = self._states(x)
        if x.ndim == 2:
            rows = [self.constraint_impulses(row) for row in x]
            return np.reshape(rows, (len(x), self.system.n_holonomic_constraints))
        return self.motion.impulses(self._moving(x))

    def with_constraint_impulses(self, x: ArrayLike, mu: ArrayLike) -> np.ndarray:
        """The state with the configuration and velocity of x (nx) and with the constraint impulses
        mu (n_holonomic_constraints) in its momentum. Also works for tables of states (N, nx) and
        impulses (N, n_holonomic_constraints).
        """
        n, x = self.system.n_holonomic_constraints, self._states(x)
        if x.ndim == 2:
            mu = states.rows(self, "constraint impulses", mu, n)
            if mu.shape != (len(x), n):
                raise ValueError(
                    f"{self}: a table of {len(x)} states needs equally many rows of {n} "
                    f"constraint impulses, got shape {mu.shape}"
                )
            changed = [self.with_constraint_impulses(x_k, mu_k) for x_k, mu_k in zip(x, mu)]
            return np.reshape(changed, x.shape)
        mu = states.numbers(self, "constraint impulses", mu, n)
        return self.motion.with_impulses(self._moving(x), mu)

    def idle(self, x: ArrayLike) -> np.ndarray:
        """The input (nu) with zero forces that leaves the prescribed coordinates of a state x (nx)
        unchanged, or inputs (N, nu) for states (N, nx).
        """
        q = self.configuration(x)
        # prescribed coordinates are the last entries of q
        prescribed = q[..., self.system.space.nq - len(self.system.prescribed) :]
        return np.concatenate([np.zeros((*q.shape[:-1], self.system.nu)), prescribed], axis=-1)

    def energy(self, x: ArrayLike) -> Any:
        """The energy `v . dL/dv - L` (J) at the node, a float for a state x (nx) and (N) for
        states (N, nx). In case of overflow, it returns inf or NaN and raises no error.
        """
        x = self._states(x)
        if x.ndim == 2:
            return self.energies(x)
        return float(self._energies(self._moving(x)[None])[0])

    def energies(self, x: ArrayLike) -> np.ndarray:
        """The energies (N) of states (N, nx); see `energy`."""
        rows = self._rows(x)
        if not np.isfinite(rows).all():
            raise ValueError(f"{self}: states must be finite to compute energies")
        return self._energies(rows)

    def outputs(self, *names: str) -> OutputMap:
        """The system's outputs with these names, in this order, as functions of the state; by
        default all outputs. Reuse the result for many calls. Raises ValueError for an unknown name
        and for a system without outputs.
        """
        chosen = self.system.chosen_outputs(names)
        return OutputMap(self.system, self.state_space, chosen, self.velocity)

    def local(self, x0: ArrayLike, x1: ArrayLike) -> np.ndarray:
        """The tangent vector dx (ndx) from state x0 (nx) to state x1 (nx), or (N, ndx) if one or
        both are tables of states (N, nx).
        """
        if np.ndim(x0) == np.ndim(x1) == 1:
            return self._evaluate("local", x0, x1)
        return self._by_rows("local", self.ndx, x0, x1)

    def retract(self, x: ArrayLike, dx: ArrayLike) -> np.ndarray:
        """The state (nx) that is reached from x (nx) along dx (ndx), or (N, nx) if one or both are
        tables (N, nx) and (N, ndx).
        """
        if np.ndim(x) == np.ndim(dx) == 1:
            return self._evaluate("retract", x, dx)
        return self._by_rows("retract", self.nx, x, dx)

    def constraint_residual(self, x0: ArrayLike, x1: ArrayLike) -> np.ndarray:
        """The residual `A(q_mid) w - h b(q_mid)` (m) of the discrete velocity constraints of a
        step, where w is the mean velocity times h in the method's retraction.

        For a composition it is `h (A(q1) v1 - b(q1))` at the end of the step, because each substep
        satisfies the constraints at its own midpoint.
        """
        if len(self.method.substeps) > 1:
            q1, v1, p = self.configuration(x1), self.velocity(x1), self.system.parameter_values
            return self.h * self._code.rolling("rolling", q1, v1, p)[0][:, 0]
        return self._evaluate("constraint", x0, x1, [self.h])

    def constraint_residuals(self, before: ArrayLike, after: ArrayLike) -> np.ndarray:
        """The residuals (N, n_velocity_constraints) of the steps before -> after (N, nx); see
        `constraint_residual`.
        """
        x0, x1 = self._rows(before), self._rows(after)
        if len(self.method.substeps) > 1 or not self.system.n_velocity_constraints:
            rows = [
                self.constraint_residual(start, end)
                for start, end in zip(x0, x1)
                if self.system.n_velocity_constraints
            ]
            return np.reshape(rows, (len(x0), self.system.n_velocity_constraints))
        return self._finite(
            "constraint", self.motion.constraint_residuals(x0, x1, self.h), (x0, x1)
        )

    def _states(self, x: ArrayLike) -> np.ndarray:
        """A copy of a state (nx) or of a table of states (N, nx) in the C order that native code
        needs. Raises ValueError for any other shape.
        """
        table = np.array(x, dtype=float, order="C")
        if table.ndim not in (1, 2) or table.shape[-1] != self.nx:
            raise ValueError(
                f"{self}: expected a state of shape ({self.nx},) or a table of states of shape "
                f"(N, {self.nx}), got shape {table.shape}"
            )
        return table

    def _rows(self, x: ArrayLike) -> np.ndarray:
        """A table of states (N, nx); a single state becomes a table with one row."""
        return np.atleast_2d(self._states(x))

    def _by_rows(self, name: str, size: int, *arguments: ArrayLike) -> np.ndarray:
        """The values (N, size) of a function of vectors for the N rows of tables. An argument that
        is a vector is used for every row.
        """
        arrays = [np.asarray(argument, dtype=float) for argument in arguments]
        counts = {len(array) for array in arrays if array.ndim == 2}
        if len(counts) != 1 or any(array.ndim not in (1, 2) for array in arrays):
            shapes = " and ".join(str(array.shape) for array in arrays)
            raise ValueError(
                f"{self}: {name} takes vectors (n,) or tables (N, n) with equally many rows, "
                f"got {shapes}"
            )
        (count,) = counts
        rows = [np.broadcast_to(array, (count, array.shape[-1])) for array in arrays]
        # all rows in one native call; single calls raise the errors for values that are not finite
        if self.motion.takes(name, rows[0], rows[1]):
            values = self.motion.pairs(name, rows[0], rows[1], size)
            if all_finite(values):
                return values
        return np.reshape([self._evaluate(name, *row) for row in zip(*rows)], (count, size))

    def _energies(self, states: np.ndarray) -> np.ndarray:
        node = self._code.node_functions
        if node is None:
            return self.motion.energies(states)
        work = self._functions.arrays.work
        return np.array([node.energy(work, x, node.velocity(work, x)) for x in states])

    def _evaluate(self, name: str, *arguments: ArrayLike) -> np.ndarray:
        """The vector that a function of states returns at the parameter values; raises ValueError
        if it is not finite.
        """
        value = self._code.state(name, *arguments, self.system.parameter_values)[0][:, 0]
        return self._finite(name, value, arguments)

    def _finite(self, name: str, value: np.ndarray, arguments: Sequence[ArrayLike]) -> np.ndarray:
        if not all_finite(value):
            numbers = [np.asarray(argument).tolist() for argument in arguments]
            raise ValueError(f"{self}: {name} is not finite, {value.tolist()}, at {numbers}")
        return value

    def _moving(self, x: ArrayLike) -> np.ndarray:
        """A copy of the state x (nx) or of the table of states (N, nx). Raises ValueError unless
        all numbers, except for a method's memory, are finite.
        """
        x = np.array(x, dtype=float)
        n = self.nx - len(self.method.memory)
        states.rows(self, "a state", x[..., :n], n)
        return x

    @cached_property
    def motion(self) -> StateQuantities:
        """Velocities, energies and constraint impulses from generated code, not from the
        kernel.
        """
        return StateQuantities(self.system, self.nx, self._code)


class HasStates(Protocol):
    """The part of a discrete system that concerns its states."""

    @property
    def state_map(self) -> StateMap:
        """Functions of the system's states."""


def of_states(
    function: Callable[Concatenate[StateMap, P], R],
) -> Callable[Concatenate[HasStates, P], R]:
    """Turn a function of the `state_map` into a method of its discrete system."""

    @wraps(function)
    def method(self: HasStates, *args: P.args, **kwargs: P.kwargs) -> R:
        return function(self.state_map, *args, **kwargs)

    return method


def checked_step(method: Method, h: float) -> float:
    """The step h (s); raises ValueError for h <= 0 or not finite."""
    if not (np.isfinite(h) and h > 0):
        raise ValueError(f"{method.name}: step h must be positive and finite, got {h}")
    return float(h)
