"""Costs of discrete trajectories, `J = sum_k stage(x_k, u_k, w_k) + terminal(x_N, w_N)`, with
exact derivatives in local coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.weights import StateWeight, checked_weights, is_local, state_weights
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.numerics.compiled import Functions, compiler


@dataclass(frozen=True)
class Cost:
    """`J = sum_{k<N} stage(x_k, u_k, w_k) + terminal(x_N, w_N)` with CasADi expressions of state x
    (nx), input u (nu) and parameters w_k of node k.

    `parameters` (N + 1, n_parameters) are the w_k; a cost without them fits trajectories of any
    length. With unknown parameters of `nh.optimize` (`free`), w_k ends with these. Costs can be
    added. Raises ValueError for parameters of another shape, or when costs of different lengths
    are added.
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
        given = [c.parameters for c in (self, other) if c.parameters is not None]
        if len({len(p) for p in given}) > 1:
            raise ValueError(
                f"Cost: cannot add costs over {len(given[0]) - 1} and {len(given[1]) - 1} steps"
            )

        def own(w: ca.SX) -> ca.SX:
            return ca.vertcat(w[:n], w[end:])

        return Cost(
            lambda x, u, w: self.stage(x, u, own(w)) + other.stage(x, u, w[n:]),
            lambda x, w: self.terminal(x, own(w)) + other.terminal(x, w[n:]),
            np.hstack(given) if given else None,
        )


def quadratic_cost(
    dsys: DiscreteSystem,
    desired: Trajectory,
    Q: StateWeight,
    R: ArrayLike,
    Qf: StateWeight | None = None,
) -> Cost:
    """`1/2 sum_k dx_k^T Q dx_k + du_k^T R du_k + 1/2 dx_N^T Qf dx_N` with `dx = local(x_d, x)`,
    `du = u - u_d`, Qf = Q if not given, and weights Q and Qf as `StateWeight` says, at x_d.

    `desired` need not be feasible.
    Raises ValueError for weights that are not symmetric, semidefinite (Q, Qf) or definite (R), and
    for a trajectory of another system.
    """
    nx, nu = dsys.nx, dsys.nu
    if desired.states.shape[1] != nx or desired.inputs.shape[1] != nu:
        raise ValueError(
            f"{dsys}: the desired trajectory has {desired.states.shape[1]} states and "
            f"{desired.inputs.shape[1]} inputs, expected {nx} and {nu}"
        )

    each, R, last = checked_weights(dsys, desired.states, Q, R, Qf)
    fixed, effort, final = (ca.SX(ca.sparsify(ca.DM(m))) for m in (each[0], R, last))
    triangle = ca.Sparsity.upper(dsys.ndx)

    def weight(w: ca.SX) -> ca.SX:
        if is_local(dsys, Q):
            return fixed
        return ca.triu2symm(ca.SX(triangle, w[nx + nu : nx + nu + triangle.nnz()]))

    def stage(x: ca.SX, u: ca.SX, w: ca.SX) -> ca.SX:
        dx, du = dsys.state_space.local(w[:nx], x), u - w[nx : nx + nu]
        return (ca.bilin(weight(w), dx, dx) + ca.bilin(effort, du, du)) / 2

    def terminal(x: ca.SX, w: ca.SX) -> ca.SX:
        dx = dsys.state_space.local(w[:nx], x)
        return ca.bilin(final, dx, dx) / 2

    inputs = np.vstack([desired.inputs, np.zeros((1, nu))])
    return Cost(stage, terminal, reference_parameters(dsys, desired.states, inputs, Q))


def reference_parameters(
    dsys: DiscreteSystem, states: np.ndarray, inputs: np.ndarray, Q: StateWeight
) -> np.ndarray:
    """The parameters of `quadratic_cost` at the nodes of a reference: states (N, nx) and inputs
    (N, nu). A weight Q on configuration and velocity adds its triangle in the local coordinates of
    each node.
    """
    table = np.hstack([states, inputs])
    if is_local(dsys, Q):
        return table
    return np.hstack([table, triangles(state_weights(dsys, "Q", Q, states), len(states))])


def triangles(P: np.ndarray, nodes: int) -> np.ndarray:
    """The triangles (nodes, n) of symmetric matrices, as CasADi stores upper ones; the last one of
    P (N, ndx, ndx) at later nodes.
    """
    rows, columns = np.tril_indices(P.shape[-1])
    return P[np.arange(nodes).clip(max=len(P) - 1)][:, rows, columns]


LimitsByName: TypeAlias = Mapping[str, tuple[float, float]]
"""Lower and upper bounds of states and inputs by name; infinite where there is none."""


class Limits(dict[str, tuple[float, float]]):
    """Lower and upper bounds of states and inputs by name, `Limits(torque=(-4, 9))`; a dictionary
    does as well.
    """

    @classmethod
    def of(cls, dsys: DiscreteSystem) -> Limits:
        """The limits of the inputs that the system has, such as the efforts of a URDF's joints."""
        bounds = zip(dsys.inputs, dsys.system.input_bounds.tolist())
        return cls({name: (lower, upper) for name, (lower, upper) in bounds})


def limit_bounds(dsys: DiscreteSystem, limits: LimitsByName) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (nx + nu, 2) of (x, u), infinite where `limits` names none, and the distance (nx +
    nu) between them, 1 where it is infinite.

    Raises ValueError for a name that is no state or input, or bounds that are not lower < upper.
    """
    names = (*dsys.state_names, *dsys.inputs)
    both = np.tile([-np.inf, np.inf], (len(names), 1))
    for name, limit in limits.items():
        if name not in names:
            raise ValueError(
                f"{dsys}: no state or input {name!r} to limit, choose of {list(names)}"
            )
        if np.shape(limit) != (2,) or not limit[0] < limit[1]:
            raise ValueError(f"{dsys}: limits of {name!r} must be lower < upper, got {limit}")
        both[names.index(name)] = limit
    span = both[:, 1] - both[:, 0]
    return both, np.where(np.isfinite(span), span, 1.0)


def limit_excess(dsys: DiscreteSystem, limits: LimitsByName, trajectory: Trajectory) -> float:
    """The largest violation of the limits by a trajectory, as a fraction of the distance between
    them; negative if all limits hold. The first state is given and does not count.
    """
    both, span = limit_bounds(dsys, limits)
    values = np.hstack([trajectory.states[1:], trajectory.inputs])
    return float((np.maximum(both[:, 0] - values, values - both[:, 1]) / span).max())


def barrier_cost(
    dsys: DiscreteSystem, limits: LimitsByName, weight: float, relaxed: float, steps: int
) -> Cost:
    """`weight sum_k sum_i b(s_i)` over the slacks s of all limits, as fractions of the distance
    between them (in their units, if only one is finite).

    `b(s) = -log(s)` for s > d = `relaxed`, with the quadratic extension `((s - 2 d)^2 / d^2 - 1) /
    2 - log(d)` below, so that the cost is also finite outside the limits (Hauser and Saccon, A
    barrier function method for the optimization of trajectory functionals, 2006, (6)). At the last
    node only states have limits.
    """
    both, span = limit_bounds(dsys, limits)

    def walls(values: ca.SX, w: ca.SX, first: int) -> ca.SX:
        total = ca.SX(0)
        for i in range(values.shape[0]):
            lower, upper = both[first + i]
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
    inside = s > d  # the branch not taken is evaluated at 1, where log is finite
    return ca.if_else(
        inside, -ca.log(ca.if_else(inside, s, 1)), (((s - 2 * d) / d) ** 2 - 1) / 2 - ca.log(d)
    )


@dataclass(frozen=True)
class Expansion:
    """Second-order model of a cost about a trajectory, over y = (dx, du) at its nodes: gradients
    (N, ny) and Hessians (N, ny, ny) of the stages, gradient (ndx) and Hessian (ndx, ndx) of the
    terminal cost."""

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
    """A cost's value and derivatives on trajectories of a system, with the `parameters` (N + 1,
    n_parameters), None for a cost without; made by `compile_cost`.
    """

    dsys: DiscreteSystem
    functions: Functions
    parameters: np.ndarray | None

    def __call__(self, states: np.ndarray, inputs: np.ndarray) -> float:
        """J of states (N + 1, nx) and inputs (N, nu)."""
        f, w = self.functions, self._nodes(len(states))
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
                f"{self.dsys}: the cost is over {len(self.parameters) - 1} steps, the trajectory "
                f"has {count - 1}"
            )
        return self.parameters


class Coordinates(Protocol):
    """A symbolic `retract` of states, such as a `Space` has."""

    def retract(self, x: ca.SX, dx: ca.SX) -> ca.SX:
        """The state x moved by local coordinates dx."""


def compile_cost(
    dsys: DiscreteSystem,
    cost: Cost,
    states: tuple[Coordinates, int, int] | None = None,
) -> CompiledCost:
    """The cost as compiled functions, with derivatives through `retract`. States are the system's,
    or other ones with sizes nx and ndx and their `coordinates`. Raises ValueError if an expression
    is not a scalar.
    """
    space, nx, ndx = states or (dsys.state_space, dsys.nx, dsys.ndx)
    x, u, w = ca.SX.sym("x", nx), ca.SX.sym("u", dsys.nu), ca.SX.sym("w", cost.n_parameters)
    dx = ca.SX.sym("dx", ndx)
    varied = space.retract(x, dx)  # derivatives by dx at dx = 0
    stage, end = ca.SX(cost.stage(varied, u, w)), ca.SX(cost.terminal(varied, w))
    for which, value in (("stage", stage), ("terminal", end)):
        if value.shape != (1, 1):
            raise ValueError(
                f"{dsys}: the {which} cost must be one expression, got shape {value.shape}"
            )
    values = [cost.stage(x, u, w), cost.terminal(x, w), stage, end]
    expressions = ca.Function("cost", [x, u, w, dx], values)
    functions = _derived(f"{dsys.system.name}_cost", expressions.serialize(), compiler())
    return CompiledCost(dsys, functions, cost.parameters)


@lru_cache(maxsize=32)
def _derived(name: str, expressions: str, _compiler: str | None) -> Functions:
    """Functions of a cost and its derivatives, made once of equal expressions `(x, u, w, dx) ->
    stage and terminal cost, and both of the state moved by dx`, as of a problem that is solved
    from several guesses.
    """
    f = ca.Function.deserialize(expressions)
    x, u, w, dx = symbols = [ca.SX.sym(name, f.size1_in(k)) for k, name in enumerate("xuwd")]
    stage, end, varied_stage, varied_end = f.call(symbols)

    def derivatives(value: ca.SX, variables: ca.SX) -> list[ca.SX]:
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
