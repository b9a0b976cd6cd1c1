"""The states of a discrete system: made of configurations and velocities, read again, moved."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.compiled_functions import BoundFunctions
from nh_control.discrete.method import Method
from nh_control.discrete.outputs import OutputMap
from nh_control.discrete.state_quantities import Motion
from nh_control.geometry.spaces import Space
from nh_control.mechanics import states
from nh_control.mechanics.consistent_states import require_consistent
from nh_control.mechanics.system import System
from nh_control.numerics.expressions import all_finite

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger(__name__)

WATCHED = 1000
"""Number of states of a trajectory whose rotations are checked: a velocity takes as long as a
step.
"""


class StateMap:
    """The states of a system under a method with step h (s): functions that take no step.

    A state x (nx) is (q, rho), configuration and discrete momenta at the same node; small changes
    dx (ndx) are in the local coordinates of `state_space`.
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
        """The masses `(X^T M X)_ii` of the momenta rho at the system's nominal configuration,
        (nrho): units of momenta and velocities for tests that must not depend on units.
        """
        q, n = self.system.nominal_configuration, self.system.space.nv
        symbol = self.system.symbols[0]
        mechanics = self.system.mechanics
        (columns,) = mechanics.at_signs([mechanics.admissible_basis(symbol)], symbol)
        basis = self.system.value(columns, q)
        rest = self.measured_state(q, np.zeros(self.system.space.nw))
        moving = [self.local(rest, self.measured_state(q, v)) for v in basis.T]
        return np.array([dx[n + i] for i, dx in enumerate(moving)])

    def state(self, q: ArrayLike, v: ArrayLike, u: ArrayLike | None = None) -> np.ndarray:
        """State (nx) of configuration q (nq) and velocity v (nw), or (N, nx) of tables of them;
        see `DiscreteSystem.state`. The momentum is that of the velocity alone.
        """
        space = self.system.space
        q = states.configuration(self, space, q)
        v = states.rows(self, f"a velocity {space.velocity_names}", v, space.nw)
        if q.shape[:-1] != v.shape[:-1]:
            raise ValueError(
                f"{self}: a state is made of a vector each of configuration and velocity, or of "
                f"tables of as many rows, got shapes {q.shape} and {v.shape}"
            )
        states.require_short(self, space, v, self.h)
        if q.ndim == 1:
            return self._consistent_state(q, v, u)
        forces = [None] * len(q) if u is None else np.broadcast_to(u, (len(q), self.nu))
        made = [self._consistent_state(*row) for row in zip(q, v, forces)]
        return np.reshape(made, (len(q), self.nx))

    def _consistent_state(self, q: np.ndarray, v: np.ndarray, u: ArrayLike | None) -> np.ndarray:
        """The state of a configuration that must satisfy the holonomic constraints."""
        if self.system.n_holonomic_constraints:
            require_consistent(self.system, q)
        return self.measured_state(q, v, u)

    def measured_state(self, q: ArrayLike, v: ArrayLike, u: ArrayLike | None = None) -> np.ndarray:
        """State (nx) of a measured configuration q (nq) and velocity v (nw), as `state` gives it
        but for impulses of holonomic constraints, however far they are from these. Raises
        ValueError for numbers that are not finite.
        """
        if (node := self._code.node_functions) is not None:
            space = self.system.space
            q = states.numbers(self, f"a configuration {space.names}", q, space.nq)
            v = states.numbers(self, f"a velocity {space.velocity_names}", v, space.nw)
            momenta = node.momentum(self._functions.arrays.work, q, v)
            return self._finite("state", np.concatenate([q, momenta]), (q, v))
        forces = np.zeros(self.system.nu) if u is None else np.asarray(u)[: self.system.nu]
        return self._evaluate("state", q, v, forces, [self.h])

    def configuration(self, x: ArrayLike) -> np.ndarray:
        """Configuration q (nq) of a state x (nx), or (N, nq) of a table of states (N, nx); raises
        ValueError for another shape.
        """
        return self._states(x)[..., : self.system.space.nq]

    def velocity(self, x: ArrayLike) -> np.ndarray:
        """Physical velocity at the node, `v = X (X^T M X)^{-1} rho`, with the velocity of the
        prescribed coordinates, (nw) of a state x (nx), or (N, nw) of a table of states (N, nx).

        Raises ValueError for another shape and for numbers that are not finite.
        """
        x = self._states(x)
        if x.ndim == 2:
            return np.reshape([self.velocity(row) for row in x], (len(x), self.system.space.nw))
        x = self._moving(x)
        if (node := self._code.node_functions) is not None:
            return node.velocity(self._functions.arrays.work, x)
        return self.motion.velocity(x)

    def rotation_angles(self, x: ArrayLike) -> np.ndarray:
        """Largest angles (N, rad) by which the velocities of states (N, nx) rotate a body or a
        direction in a step, zeros for a space without any: a step distinguishes less than half a
        turn.
        """
        rows, space = self._rows(x), self.system.space
        if not states.has_rotations(space):  # their velocities cost something
            return np.zeros(len(rows))
        return states.rotation_angles(space, self.velocity(rows), self.h)

    def warn_of_rotations(self, table: np.ndarray, every: int) -> None:
        """Log a warning for the first half turn in one step, in about WATCHED states of a table (N
        + 1, nx) that has every `every`-th state.
        """
        stride = 1 + len(table) // WATCHED
        for row, angle in enumerate(self.rotation_angles(table[::stride])):
            if message := states.rotation_problem(angle, self.h):
                log.warning("%s: at step %d %s", self, row * stride * every, message)
                return

    def constraint_impulses(self, x: ArrayLike) -> np.ndarray:
        """The part mu (n_holonomic_constraints) of a state's momentum `p = M v + Dh^T mu` that
        neither its velocity nor its next step depends on, or (N, n_holonomic_constraints) of a
        table of states (N, nx).
        """
        x = self._states(x)
        if x.ndim == 2:
            rows = [self.constraint_impulses(row) for row in x]
            return np.reshape(rows, (len(x), self.system.n_holonomic_constraints))
        return self.motion.impulses(self._moving(x))

    def with_constraint_impulses(self, x: ArrayLike, mu: ArrayLike) -> np.ndarray:
        """The state of the same configuration and velocity with mu (n_holonomic_constraints) in
        its momentum; of a table of states (N, nx) with rows of mu (N, n_holonomic_constraints).
        """
        n, x = self.system.n_holonomic_constraints, self._states(x)
        if x.ndim == 2:
            mu = states.rows(self, "constraint impulses", mu, n)
            if mu.shape != (len(x), n):
                raise ValueError(
                    f"{self}: a table of {len(x)} states needs as many rows of {n} constraint "
                    f"impulses, got shape {mu.shape}"
                )
            changed = [self.with_constraint_impulses(*row) for row in zip(x, mu)]
            return np.reshape(changed, x.shape)
        mu = states.numbers(self, "constraint impulses", mu, n)
        return self.motion.with_impulses(self._moving(x), mu)

    def idle(self, x: ArrayLike) -> np.ndarray:
        """Input (nu) of zero forces that keeps the prescribed coordinates of a state x (nx), or
        (N, nu) of a table of states (N, nx).
        """
        q = self.configuration(x)
        prescribed = q[..., self.system.space.nq - len(self.system.prescribed) :]
        return np.concatenate([np.zeros((*q.shape[:-1], self.system.nu)), prescribed], axis=-1)

    def energy(self, x: ArrayLike) -> Any:
        """Energy `v . dL/dv - L` at the node in J, a float of a state x (nx), (N) of a table of
        states (N, nx); infinite or NaN, and no error, where no number is large enough.
        """
        x = self._states(x)
        if x.ndim == 2:
            return self.energies(x)
        return float(self._energies(self._moving(x)[None])[0])

    def energies(self, x: ArrayLike) -> np.ndarray:
        """Energies (N) of a table of states (N, nx), as `energy` gives them."""
        rows = self._rows(x)
        if not np.isfinite(rows).all():
            raise ValueError(f"{self}: the states of energies must be finite")
        return self._energies(rows)

    def outputs(self, *names: str) -> OutputMap:
        """Functions of states for the system's outputs with these names, in their order, or for
        all; keep them for many calls. Raises ValueError for an unknown name, or a system without
        outputs.
        """
        chosen = self.system.chosen_outputs(names)
        return OutputMap(self.system, self.state_space, chosen, self.velocity)

    def local(self, x0: ArrayLike, x1: ArrayLike) -> np.ndarray:
        """Tangent vector dx (ndx) from state x0 (nx) to state x1 (nx); (N, ndx) where one of them,
        or both, are tables of states (N, nx).
        """
        if np.ndim(x0) == np.ndim(x1) == 1:
            return self._evaluate("local", x0, x1)
        return self._by_rows("local", self.ndx, x0, x1)

    def retract(self, x: ArrayLike, dx: ArrayLike) -> np.ndarray:
        """State (nx) reached from x (nx) along dx (ndx); (N, nx) where one of them, or both, are
        tables, (N, nx) and (N, ndx).
        """
        if np.ndim(x) == np.ndim(dx) == 1:
            return self._evaluate("retract", x, dx)
        return self._by_rows("retract", self.nx, x, dx)

    def constraint_residual(self, x0: ArrayLike, x1: ArrayLike) -> np.ndarray:
        """Discrete velocity constraint over a step, `A(q_mid) w - h b(q_mid)`, (m), with w the
        mean velocity times h, in the retraction of the method.

        For a composition it is the constraint at the end, `h (A(q1) v1 - b(q1))`: its substeps
        satisfy it at their own middles.
        """
        if len(self.method.substeps) > 1:
            arguments = self.configuration(x1), self.velocity(x1), self.system.parameter_values
            return self.h * self._code.rolling("rolling", *arguments)[0][:, 0]
        return self._evaluate("constraint", x0, x1, [self.h])

    def constraint_residuals(self, before: ArrayLike, after: ArrayLike) -> np.ndarray:
        """Residuals (N, n_velocity_constraints) of the steps before -> after (N, nx), as
        `constraint_residual` gives them.
        """
        x0, x1 = self._rows(before), self._rows(after)
        if len(self.method.substeps) > 1 or not self.system.n_velocity_constraints:
            rows = [
                self.constraint_residual(*step)
                for step in zip(x0, x1)
                if self.system.n_velocity_constraints
            ]
            return np.reshape(rows, (len(x0), self.system.n_velocity_constraints))
        return self._finite(
            "constraint", self.motion.constraint_residuals(x0, x1, self.h), (x0, x1)
        )

    def _states(self, x: ArrayLike) -> np.ndarray:
        """A copy of one state (nx) or of a table of states (N, nx), in C order, as native code
        reads it; raises ValueError for another shape.
        """
        table = np.array(x, dtype=float, order="C")
        if table.ndim not in (1, 2) or table.shape[-1] != self.nx:
            raise ValueError(
                f"{self}: expected a state of shape ({self.nx},) or a table of states of shape "
                f"(N, {self.nx}), got shape {table.shape}"
            )
        return table

    def _rows(self, x: ArrayLike) -> np.ndarray:
        """States (N, nx); one state is a table of one row."""
        return np.atleast_2d(self._states(x))

    def _by_rows(self, name: str, size: int, *arguments: ArrayLike) -> np.ndarray:
        """A function of vectors, with values (size), row by row (N, size): tables have N rows, and
        a vector goes with every row.
        """
        given = [np.asarray(argument, dtype=float) for argument in arguments]
        counts = {len(one) for one in given if one.ndim == 2}
        if len(counts) != 1 or any(one.ndim not in (1, 2) for one in given):
            shapes = " and ".join(str(one.shape) for one in given)
            raise ValueError(
                f"{self}: {name} takes vectors (n,) or tables (N, n) of as many rows, got {shapes}"
            )
        (count,) = counts
        rows = [np.broadcast_to(one, (count, one.shape[-1])) for one in given]
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
        """A function of states at the parameters' values, as a vector; raises ValueError where it
        is not finite.
        """
        value = self._code.state(name, *arguments, self.system.parameter_values)[0][:, 0]
        return self._finite(name, value, arguments)

    def _finite(self, name: str, value: np.ndarray, arguments: Sequence[ArrayLike]) -> np.ndarray:
        if not all_finite(value):
            given = [np.asarray(argument).tolist() for argument in arguments]
            raise ValueError(f"{self}: {name} is not finite, {value.tolist()}, at {given}")
        return value

    def _moving(self, x: ArrayLike) -> np.ndarray:
        """The state x (nx), whose numbers but a method's memory must be finite."""
        x = np.array(x, dtype=float)
        n = self.nx - len(self.method.memory)
        states.numbers(self, "a state", x[:n], n)
        return x

    @cached_property
    def motion(self) -> Motion:
        """Velocities, energies and constraint impulses by code that is not the kernel's."""
        return Motion(self.system, self.nx, self._code)


class HasStates(Protocol):
    """A discrete system, of which only the states count."""

    @property
    def state_map(self) -> StateMap:
        """Functions of its states."""


def of_states(
    function: Callable[Concatenate[StateMap, P], R],
) -> Callable[Concatenate[HasStates, P], R]:
    """A function of the `state_map` as a method of its discrete system."""

    @wraps(function)
    def method(self: HasStates, *args: P.args, **kwargs: P.kwargs) -> R:
        return function(self.state_map, *args, **kwargs)

    return method


def checked_step(method: Method, h: float) -> float:
    """The step h (s); raises ValueError for h <= 0 or not finite."""
    if not (np.isfinite(h) and h > 0):
        raise ValueError(f"{method.name}: step h must be positive and finite, got {h}")
    return float(h)
