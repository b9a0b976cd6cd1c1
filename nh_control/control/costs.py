"""Costs of discrete trajectories, `J = sum_k stage(x_k, u_k, w_k) + terminal(x_N, w_N)`, with
exact derivatives in local coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Protocol, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.weights import StateWeight, checked_weights, is_local
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.space import Space
from nh_control.numerics import compiled
from nh_control.numerics.compiled import Functions


@dataclass(frozen=True)
class Cost:
    """`J = sum_{k<N} stage(x_k, u_k, w_k) + terminal(x_N, w_N)` with CasADi expressions of the
    state x (nx), the input u (nu) and the parameters w_k of node k.

    `parameters` (N + 1, n_parameters) are the w_k; a cost without parameters can be used with
    trajectories of any length. The unknown parameters of `nh.optimize` (`free`) are at the end of
    w_k. Costs can be added. Raises ValueError if the parameters have the wrong shape, or if costs
    of different lengths are added.
    """

    stage: Callable[[ca.SX, ca.SX, ca.SX], ca.SX]
    terminal: Callable[[ca.SX, ca.SX], ca.SX] = lambda x, w: ca.SX(0)
    parameters: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.parameters is not None and (
            np.ndim(self.parameters) != 2 or not np.isfinite(self.parameters).all()
        ):
            raise ValueError(
                f"Cost: parameters must be finite with shape (N + 1, n_parameters), got "
                f"{np.shape(self.parameters)}"
            )

    @property
    def n_parameters(self) -> int:
        """Number of parameters of a node."""
        return 0 if self.parameters is None else np.shape(self.parameters)[1]

    def __add__(self, other: Cost) -> Cost:
        n, end = self.n_parameters, self.n_parameters + other.n_parameters
        tables = [c.parameters for c in (self, other) if c.parameters is not None]
        if len({len(table) for table in tables}) > 1:
            raise ValueError(
                f"Cost: cannot add costs over {len(tables[0]) - 1} and {len(tables[1]) - 1} steps"
            )
        # the functions do not use the values of the parameters, so sums of equal expressions are
        # equal
        stage, terminal, more_stage, more = self.stage, self.terminal, other.stage, other.terminal

        def first_parameters(w: ca.SX) -> ca.SX:
            # w = (w of self, w of other, free parameters); both costs use the free parameters
            return ca.vertcat(w[:n], w[end:])

        return Cost(
            lambda x, u, w: stage(x, u, first_parameters(w)) + more_stage(x, u, w[n:]),
            lambda x, w: terminal(x, first_parameters(w)) + more(x, w[n:]),
            np.hstack(tables) if tables else None,
        )


def quadratic_cost(
    dsys: DiscreteSystem,
    desired: Trajectory,
    Q: StateWeight,
    R: ArrayLike,
    Qf: StateWeight | None = None,
) -> Cost:
    """`1/2 sum_k dx_k^T Q dx_k + du_k^T R du_k + 1/2 dx_N^T Qf dx_N` with `dx = local(x_d, x)` and
    `du = u - u_d`. The default of Qf is Q; both are weights at x_d (see `StateWeight`).

    `desired` need not be feasible. Raises ValueError if a weight is not symmetric, if Q or Qf is
    not positive semidefinite, if R is not positive definite, or if the trajectory belongs to a
    different system.
    """
    nx, nu = dsys.nx, dsys.nu
    if desired.states.shape[1] != nx or desired.inputs.shape[1] != nu:
        raise ValueError(
            f"{dsys}: the desired trajectory has {desired.states.shape[1]} states and "
            f"{desired.inputs.shape[1]} inputs, expected {nx} and {nu}"
        )

    weights = QuadraticWeights.of(dsys, desired.states, Q, R, Qf)
    expressions = QuadraticExpressions(dsys.state_space, nx, nu, weights.patterns)
    # the last node has no input
    inputs = np.vstack([desired.inputs, np.zeros((1, nu))])
    parameters = weights.parameters(desired.states, inputs)
    return Cost(expressions.stage, expressions.terminal, parameters)


@dataclass(frozen=True, eq=False)
class QuadraticExpressions:
    """The expressions of a quadratic cost, which depend on the space of the states, on the sizes
    nx and nu, and on the `patterns` of the triangles of Q, R and Qf. They never change.
    """

    space: Space
    nx: int
    nu: int
    patterns: tuple[ca.Sparsity, ca.Sparsity, ca.Sparsity]

    @cached_property
    def _ends(self) -> list[int]:
        """Where the parts of the parameters w of a node end: x_d and u_d, then the triangles."""
        sizes = [self.nx + self.nu, *(pattern.nnz() for pattern in self.patterns)]
        return list(accumulate(sizes))

    def stage(self, x: ca.SX, u: ca.SX, w: ca.SX) -> ca.SX:
        """The cost of a node with the input u."""
        (by_state, by_input, _), (first, second, third, _) = self.patterns, self._ends
        dx, du = self.space.local(w[: self.nx], x), u - w[self.nx : first]
        return _squared(by_state, w[first:second], dx) + _squared(by_input, w[second:third], du)

    def terminal(self, x: ca.SX, w: ca.SX) -> ca.SX:
        """The cost of the last node."""
        *_, third, end = self._ends
        return _squared(self.patterns[-1], w[third:end], self.space.local(w[: self.nx], x))


def _squared(pattern: ca.Sparsity, triangle: ca.SX, d: ca.SX) -> ca.SX:
    return ca.bilin(ca.triu2symm(ca.SX(pattern, triangle)), d, d) / 2


@dataclass(frozen=True)
class QuadraticWeights:
    """Weights of a quadratic cost: `each` (N, ndx, ndx) for the states in the local coordinates at
    N nodes, `inputs` (nu, nu), and `last` (ndx, ndx) for the last state. `full` is true if the
    weight of the states differs between nodes. The weights are parameters of the cost, so the
    expressions of the cost depend only on which weights are zero.
    """

    each: np.ndarray
    inputs: np.ndarray
    last: np.ndarray
    full: bool

    @classmethod
    def of(
        cls,
        dsys: DiscreteSystem,
        states: np.ndarray,
        Q: StateWeight,
        R: ArrayLike,
        Qf: StateWeight | None = None,
    ) -> QuadraticWeights:
        """The weights along states (N, nx). Raises ValueError as `checked_weights` does."""
        each, inputs, last = checked_weights(dsys, states, Q, R, Qf)
        return cls(each, inputs, last, full=not is_local(dsys, Q))

    @property
    def patterns(self) -> tuple[ca.Sparsity, ca.Sparsity, ca.Sparsity]:
        """The entries that may be nonzero in the upper triangles of the weights of the state, the
        input and the last state.
        """
        of_states = (_pattern(weights, self.full) for weights in (self.each[:1], self.last[None]))
        by_state, at_end = of_states
        return by_state, _pattern(self.inputs[None], self.full), at_end

    def parameters(self, states: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        """The parameters of `quadratic_cost` at the nodes of a reference: the states (N, nx), the
        inputs (N, nu), and the triangles of the weights.
        """
        n, weights = len(states), (self.each, self.inputs[None], self.last[None])
        return np.hstack(
            [states, inputs, *(_rows(P, pattern, n) for P, pattern in zip(weights, self.patterns))]
        )


def triangles(P: np.ndarray, nodes: int) -> np.ndarray:
    """The upper triangles (nodes, n) of the symmetric matrices P (N, ndx, ndx), in CasADi's order.
    Nodes after the first N get the last triangle.
    """
    return _rows(P, ca.Sparsity.upper(P.shape[-1]), nodes)


def _pattern(weights: np.ndarray, full: bool) -> ca.Sparsity:
    """The pattern of the upper triangle of symmetric matrices (N, n, n): all entries if `full`,
    otherwise the entries that are nonzero in any of the matrices.
    """
    # the lower triangle, because rows and columns are exchanged below
    used = np.tril(np.ones(weights.shape[1:], dtype=bool) if full else (weights != 0).any(axis=0))
    rows, columns = np.nonzero(used)
    return ca.Sparsity.triplet(len(used), len(used), columns.tolist(), rows.tolist())


def _rows(weights: np.ndarray, pattern: ca.Sparsity, nodes: int) -> np.ndarray:
    """The entries (nodes, n) of symmetric matrices (N, n, n) in a pattern. Nodes after the first N
    get the entries of the last matrix.
    """
    columns, rows = pattern.get_triplet()
    return weights[:, rows, columns][np.arange(nodes).clip(max=len(weights) - 1)]


LimitsByName: TypeAlias = Mapping[str, tuple[float, float]]
"""Lower and upper bounds of states and inputs by name; an infinite bound means no bound."""


class Limits(dict[str, tuple[float, float]]):
    """Lower and upper bounds of states and inputs by name, such as `Limits(torque=(-4, 9))`.
    Functions that take limits also accept dictionaries.
    """

    @classmethod
    def of(cls, dsys: DiscreteSystem) -> Limits:
        """The limits of the system's inputs, such as the effort limits of the joints in a URDF
        file.
        """
        bounds = zip(dsys.inputs, dsys.system.input_bounds.tolist())
        return cls({name: (lower, upper) for name, (lower, upper) in bounds})


def limit_bounds(dsys: DiscreteSystem, limits: LimitsByName) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (nx + nu, 2) of (x, u), which are infinite for names that are not in `limits`, and
    the distance (nx + nu) between the lower and the upper bound, or 1 if it is infinite.

    Raises ValueError if a name is neither a state nor an input, or if lower < upper does not hold.
    """
    names = (*dsys.state_names, *dsys.inputs)
    both = np.empty((len(names), 2))
    both[:] = -np.inf, np.inf
    for name, limit in limits.items():
        if name not in names:
            raise ValueError(
                f"{dsys}: no state or input {name!r} to limit, choose from {list(names)}"
            )
        if np.shape(limit) != (2,) or not limit[0] < limit[1]:
            raise ValueError(f"{dsys}: limits of {name!r} must be lower < upper, got {limit}")
        # (x, u) between the bounds
        both[names.index(name)] = limit
    span = both[:, 1] - both[:, 0]
    return both, np.where(np.isfinite(span), span, 1.0)


def limit_excess(dsys: DiscreteSystem, limits: LimitsByName, trajectory: Trajectory) -> float:
    """The largest violation of the limits along a trajectory, as a fraction of the distance
    between the lower and the upper limit. The result is negative if all limits are satisfied. The
    first state is prescribed and does not count.
    """
    both, span = limit_bounds(dsys, limits)
    values = np.hstack([trajectory.states[1:], trajectory.inputs])
    # max_k max_i of the violation divided by the distance between the bounds
    return float((np.maximum(both[:, 0] - values, values - both[:, 1]) / span).max())


def barrier_cost(
    dsys: DiscreteSystem, limits: LimitsByName, weight: float, relaxed: float, steps: int
) -> Cost:
    """`weight sum_k sum_i b(s_i)` over the slacks s_i of all limits. A slack is a fraction of the
    distance between the two limits, or has the unit of the limit if only one limit is finite.

    `b(s) = -log(s)` for s > d = `relaxed`. Below d, the quadratic extension
    `((s - 2 d)^2 / d^2 - 1) / 2 - log(d)` keeps the cost finite outside the limits (Hauser and
    Saccon, A barrier function method for the optimization of trajectory functionals, 2006, (6)).
    At the last node, only states have limits.
    """
    both, span = limit_bounds(dsys, limits)

    def walls(values: ca.SX, w: ca.SX, first: int) -> ca.SX:
        total = ca.SX(0)
        for i in range(values.shape[0]):
            lower, upper = both[first + i]
            # s = (value - lower) / span and (upper - value) / span
            slacks = [
                sign * (values[i] - wall) / span[first + i]
                for sign, wall in ((1, lower), (-1, upper))
                if np.isfinite(wall)
            ]
            total += sum(w[0] * _relaxed_log(s, w[1]) for s in slacks)
        return total

    return Cost(
        lambda x, u, w: walls(x, w, 0) + walls(u, w, dsys.nx),
        lambda x, w: walls(x, w, 0),
        np.tile([weight, relaxed], (steps + 1, 1)),
    )


def _relaxed_log(s: ca.SX, d: ca.SX) -> ca.SX:
    inside = s > d  # the unused branch is evaluated at 1, where log is finite
    return ca.if_else(
        inside, -ca.log(ca.if_else(inside, s, 1)), (((s - 2 * d) / d) ** 2 - 1) / 2 - ca.log(d)
    )


@dataclass(frozen=True)
class Expansion:
    """Second-order model of a cost about a trajectory, in y = (dx, du) at its nodes: the gradients
    (N, ny) and Hessians (N, ny, ny) of the stage costs, and the gradient (ndx) and Hessian
    (ndx, ndx) of the terminal cost.
    """

    gradients: np.ndarray
    hessians: np.ndarray
    end_gradient: np.ndarray
    end_hessian: np.ndarray

    def slope(self, z: np.ndarray, v: np.ndarray) -> float:
        """Directional derivative of the cost along variations z (N + 1, ndx) of the states and v
        (N, nu) of the inputs.
        """
        return float(np.sum(self.gradients * np.hstack([z[:-1], v])) + self.end_gradient @ z[-1])


@dataclass(frozen=True)
class CompiledCost:
    """A cost compiled by `compile_cost`: its value and derivatives along the trajectories of a
    system. `parameters` (N + 1, n_parameters) is None for a cost without parameters.
    """

    dsys: DiscreteSystem
    functions: Functions
    parameters: np.ndarray | None

    def __call__(self, states: np.ndarray, inputs: np.ndarray) -> float:
        """The cost J of states (N + 1, nx) and inputs (N, nu)."""
        f, w = self.functions, self._nodes(len(states))
        # J = sum_k stage(x_k, u_k, w_k) + terminal(x_N, w_N)
        total = sum(f("stage", x, u, wk)[0][0, 0] for x, u, wk in zip(states, inputs, w))
        return float(total + f("terminal", states[-1], w[-1])[0][0, 0])

    def expand(self, states: np.ndarray, inputs: np.ndarray) -> Expansion:
        """First and second derivatives of J along `retract(x_k, dx_k), u_k + du_k`."""
        f, w, n = self.functions, self._nodes(len(states)), self.dsys.ndx + self.dsys.nu
        gradients, hessians = np.empty((len(inputs), n)), np.empty((len(inputs), n, n))
        for k, (x, u, wk) in enumerate(zip(states, inputs, w)):
            gradient, hessians[k] = f("stage_derivatives", x, u, wk)
            gradients[k] = gradient[:, 0]
        gradient, hessian = f("terminal_derivatives", states[-1], w[-1])
        return Expansion(gradients, hessians, gradient[:, 0], hessian)

    def _nodes(self, count: int) -> np.ndarray:
        if self.parameters is None:
            return np.zeros((count, 0))
        if len(self.parameters) != count:
            raise ValueError(
                f"{self.dsys}: the cost covers {len(self.parameters) - 1} steps, the trajectory "
                f"has {count - 1}"
            )
        return self.parameters


class Coordinates(Protocol):
    """Local coordinates of states with a symbolic `retract`, such as a `Space`."""

    def retract(self, x: ca.SX, dx: ca.SX) -> ca.SX:
        """The state with local coordinates dx about x."""


def compile_cost(
    dsys: DiscreteSystem,
    cost: Cost,
    states: tuple[Coordinates, int, int] | None = None,
) -> CompiledCost:
    """Compile the cost and its derivatives in local coordinates. The states are those of the
    system unless `states` contains other coordinates and their sizes nx and ndx. Raises ValueError
    if an expression is not a scalar.
    """
    space, nx, ndx = states or (dsys.state_space, dsys.nx, dsys.ndx)
    x, u, w = ca.SX.sym("x", nx), ca.SX.sym("u", dsys.nu), ca.SX.sym("w", cost.n_parameters)
    dx = ca.SX.sym("dx", ndx)
    varied = space.retract(x, dx)  # for derivatives with respect to dx at dx = 0
    stage, end = ca.SX(cost.stage(varied, u, w)), ca.SX(cost.terminal(varied, w))
    for which, value in (("stage", stage), ("terminal", end)):
        if value.shape != (1, 1):
            raise ValueError(
                f"{dsys}: the {which} cost must be one expression, got shape {value.shape}"
            )
    values = [cost.stage(x, u, w), cost.terminal(x, w), stage, end]
    expressions = ca.Function("cost", [x, u, w, dx], ca.cse(values))
    functions = _derived(f"{dsys.system.name}_cost", expressions.serialize(), compiled.compiler())
    return CompiledCost(dsys, functions, cost.parameters)


@lru_cache(maxsize=32)
def _derived(name: str, expressions: str, _compiler: str | None) -> Functions:
    """Functions of a cost and its derivatives, from expressions `(x, u, w, dx) -> stage, terminal,
    stage at retract(x, dx), terminal at retract(x, dx)`. The cache avoids repeated work for equal
    expressions, for example when a problem is solved from several guesses.
    """
    f = ca.Function.deserialize(expressions)
    x, u, w, dx = symbols = [ca.SX.sym(name, f.size1_in(k)) for k, name in enumerate("xuwd")]
    stage, end, varied_stage, varied_end = f.call(symbols)

    def derivatives(value: ca.SX, variables: ca.SX) -> list[ca.SX]:
        # derivatives at dx = 0
        hessian, gradient = ca.hessian(value, variables)
        return ca.substitute([gradient, hessian], [dx], [ca.SX.zeros(dx.shape)])

    both, last, results = ["x", "u", "w"], ["x", "w"], ["gradient", "hessian"]
    of_stage, of_end = derivatives(varied_stage, ca.vertcat(dx, u)), derivatives(varied_end, dx)
    functions = [
        ca.Function("stage", [x, u, w], [stage], both, ["value"]),
        ca.Function("terminal", [x, w], [end], last, ["value"]),
        ca.Function("stage_derivatives", [x, u, w], of_stage, both, results),
        ca.Function("terminal_derivatives", [x, w], of_end, last, results),
    ]
    return Functions(name, functions)
