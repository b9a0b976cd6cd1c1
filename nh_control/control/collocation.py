"""Trajectory optimization by direct collocation of the discrete equations (DMOC): states, inputs
and the steps' unknowns together in one nonlinear program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.constraints import Constraint, rows_of
from nh_control.control.costs import Cost, LimitsByName, compile_cost, limit_bounds
from nh_control.control.guesses import on_manifold, require_fitting
from nh_control.control.optimal.fatrop import Staged, Stages
from nh_control.control.optimum import Iteration, Optimum
from nh_control.discrete.equations import StepEquations
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.numerics.interrupts import reraise_signals

IPOPT, FATROP = SOLVERS = ("ipopt", "fatrop")


def collocate(
    dsys: DiscreteSystem,
    cost: Cost,
    guess: Trajectory,
    end: ArrayLike | None = None,
    fixed: Sequence[str] | None = None,
    limits: LimitsByName | None = None,
    tolerance: float = 1e-9,
    max_iterations: int = 500,
    barrier_start: float = 0.1,
    verbose: bool = False,
    constraints: Sequence[Constraint] = (),
    solver: str = IPOPT,
) -> Optimum:
    """Minimize the cost subject to `r(x_k, u_k, z_k) = 0, local(x_{k+1}, g(x_k, u_k, z_k)) = 0`,
    the guess's first state, the limits and the `constraints`, by IPOPT (DMOC: Ober-Bloebaum, Junge
    and Marsden 2011).

    The states are `x_k = retract(guess_k, dx_k)` with variables dx_k, so they stay on their
    manifold. With a state `end` (nx) the last state must satisfy `local(end, x_N) = 0` in the
    tangent coordinates `fixed` (all by default). The guess need not be feasible. If it is close to
    the optimum, a small `barrier_start` (the first weight of IPOPT's barrier) saves iterations.
    The result satisfies the equations to `tolerance`. If IPOPT does not converge, `reason` is its
    return status, and the trajectory is its last iterate, which may not be feasible. Limits and
    the domain of the model hold from the second state on, for the result, not for every iterate.
    `verbose` prints IPOPT's iterations. With `solver` "fatrop" the same program is solved stage by
    stage (Vanroye, Sathya, De Schutter and Decre 2023), from IPOPT's default barrier. Raises
    ValueError for unknown names, wrong shapes and guesses with states off the manifold.
    """
    if solver not in SOLVERS:
        raise ValueError(f"unknown solver {solver!r}, choose one of {SOLVERS}")
    require_fitting(dsys, guess)
    guess = on_manifold(dsys, guess)
    program = _program(dsys, cost, guess, end, fixed, limits or {}, constraints, solver)
    if solver == IPOPT:
        run: Any = _by_ipopt(program.problem, tolerance, max_iterations, barrier_start, verbose)
    else:
        options = {"tol": tolerance, "max_iter": max_iterations, "print_level": 10 * verbose}
        equal = program.bounds["lbg"] == program.bounds["ubg"]
        run = Staged(program.problem, program.stages, equal, options)
    with reraise_signals():
        solution = run(x0=program.start, **program.bounds)
    stats = run.stats()
    states, inputs = map(np.asarray, program.trajectory(solution["x"]))
    return Optimum(
        Trajectory(dsys.h, states, inputs, dsys.state_names, dsys.inputs, guess.name, dsys),
        compile_cost(dsys, cost)(states, inputs) if constraints else float(solution["f"]),
        bool(stats["success"]),
        f"{solver.upper()}: {stats['return_status']}",
        _history(stats.get("iterations")),
    )


class _Program(NamedTuple):
    """A nonlinear program: its expressions x, f and g, `bounds` lbx, ubx, lbg and ubg, a `start`,
    the `stages` of x and g, and the `trajectory(x)` (states, inputs) as a CasADi function.
    """

    problem: dict[str, ca.MX]
    bounds: dict[str, np.ndarray]
    start: np.ndarray
    stages: Stages
    trajectory: ca.Function


def _program(
    dsys: DiscreteSystem,
    cost: Cost,
    guess: Trajectory,
    end: ArrayLike | None,
    fixed: Sequence[str] | None,
    limits: LimitsByName,
    constraints: Sequence[Constraint],
    solver: str,
) -> _Program:
    """The program of `collocate` with the variables (dx, u, z, t)."""
    # variables of the program: local coordinates dx of states, inputs u, unknowns z of the steps
    x, u, z = (
        ca.MX.sym(name, n, len(guess))
        for name, n in (("dx", dsys.ndx), ("u", dsys.nu), ("z", dsys.method.nz))
    )
    X = _states(dsys, guess, x)
    rows, weights, at_rows = _rows(dsys, constraints, X, u)
    t = ca.MX.sym("t", len(weights))  # violations of soft rows
    w = ca.veccat(x, u, z, t)
    of_states, of_inputs = np.split(limit_bounds(dsys, limits)[0], [dsys.nx])
    places = guess.states, x if solver == FATROP else None
    equations, lower, upper, nodes_of_rows = _constraints(
        dsys, X, u, z, end, fixed, of_states, places
    )
    # rows of constraints >= 0, or >= -t with the price `weights . t` where they are soft
    soft = np.flatnonzero(np.isfinite(weights))
    spread = ca.DM(len(weights), 1)
    spread[soft] = 1.0
    price = ca.dot(ca.DM(np.where(np.isfinite(weights), weights, 0.0)), t)
    # bounds of the variables: limits of the inputs, and t >= 0
    box = np.full((w.numel(), 2), [-np.inf, np.inf])
    box[x.numel() : x.numel() + u.numel()] = np.tile(of_inputs, (len(guess), 1))
    box[w.numel() - t.numel() :] = [0.0, np.inf]
    # nodes of the variables, for solvers that use the stages
    nodes = np.arange(len(guess))
    of_steps = [np.repeat(nodes + 1, dsys.ndx), np.repeat(nodes, dsys.nu)]
    of_variables = np.concatenate([*of_steps, np.repeat(nodes, dsys.method.nz), at_rows])
    return _Program(
        {
            "x": w,
            "f": _total(dsys, cost, X, u) + price,
            "g": ca.vertcat(equations, rows + spread * t),
        },
        {
            "lbx": box[:, 0],
            "ubx": box[:, 1],
            "lbg": np.append(lower, np.zeros(len(weights))),
            "ubg": np.append(upper, np.full(len(weights), np.inf)),
        },
        np.append(_start(dsys, guess), np.zeros(t.numel())),
        Stages(of_variables, np.append(nodes_of_rows, at_rows), x.numel(), len(guess)),
        ca.Function("trajectory", [w], [X.T, u.T]),
    )


def _by_ipopt(
    program: dict[str, ca.MX],
    tolerance: float,
    max_iterations: int,
    barrier_start: float,
    verbose: bool,
) -> ca.Function:
    options = {
        "tol": tolerance,
        "constr_viol_tol": tolerance,
        "max_iter": max_iterations,
        "mu_init": barrier_start,
        "print_level": 5 if verbose else 0,
        "sb": "yes",
    }
    given = {f"ipopt.{name}": value for name, value in options.items()}
    return ca.nlpsol("dmoc", IPOPT, program, given | {"print_time": False})


def _start(dsys: DiscreteSystem, guess: Trajectory) -> np.ndarray:
    """The variables (dx, u, z) of the program at the guess."""
    unknowns = [_unknowns(dsys, x, u) for x, u in zip(guess.states, guess.inputs)]
    no_change = np.zeros(len(guess) * dsys.ndx)
    return np.concatenate([no_change, guess.inputs.ravel(), *unknowns])


def _unknowns(dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Initial values of the unknowns of a step; zero, as for Newton's method, if no step is
    possible from the guess.
    """
    try:
        return dsys.unknowns(x, u)
    except StepFailed:
        return np.zeros(dsys.method.nz)


def _states(dsys: DiscreteSystem, guess: Trajectory, dx: ca.MX) -> ca.MX:
    """The guess's first state and `retract(guess_k, dx_k)` for the others, as columns."""
    x, d = ca.SX.sym("x", dsys.nx), ca.SX.sym("d", dsys.ndx)
    retract = ca.Function("retract", [x, d], [dsys.state_space.retract(x, d)]).map(len(guess))
    return ca.horzcat(ca.DM(guess.states[0]), retract(ca.DM(guess.states[1:].T), dx))


def _constraints(
    dsys: DiscreteSystem,
    X: ca.MX,
    U: ca.MX,
    Z: ca.MX,
    end: ArrayLike | None,
    fixed: Sequence[str] | None,
    limits: np.ndarray,
    places: tuple[np.ndarray, ca.MX | None],
) -> tuple[ca.MX, np.ndarray, np.ndarray, np.ndarray]:
    """Constraints, their bounds and stages: the equations of all steps, the end condition, the
    model's domain and the limits (nx, 2) of states.

    If the states of a guess and the variables dx about them are given, gaps are
    `dx - local(guess, g)` and come first: their stages are less by 1/2.
    """
    x, y = ca.SX.sym("x", dsys.nx), ca.SX.sym("y", dsys.nx)
    local = ca.Function("local", [x, y], [dsys.state_space.local(x, y)])
    equations = StepEquations(dsys.system, dsys.method, str(dsys))
    _, residual, _, readout, _ = equations.step
    steps = U.shape[1]
    p = ca.repmat(ca.DM(dsys.parameter_values), 1, steps)
    reached, domain = readout.map(steps)(X[:, :-1], U, Z, p)
    limited = np.flatnonzero(np.isfinite(limits).any(axis=1))
    nodes, (about, dx) = np.arange(float(steps)), places
    gaps: tuple[ca.MX, np.ndarray, float, float]
    if dx is None:
        gaps = local.map(steps)(X[:, 1:], reached), nodes, 0, 0
    else:
        gaps = dx - local.map(steps)(ca.DM(about[1:].T), reached), nodes - 0.5, 0, 0
    parts: list[tuple[ca.MX, np.ndarray, float, float]] = [
        (residual.map(steps)(X[:, :-1], U, Z, p), nodes, 0, 0),
        gaps,
        (_end_condition(dsys, X[:, -1], end, fixed), np.array([steps]), 0, 0),
        (domain[: equations.n_model_domain, :], nodes, 0, np.inf),
        *((X[int(i), 1:], nodes + 1, *limits[i]) for i in limited),
    ]
    lower, upper = (
        np.concatenate([np.full(part.numel(), bound[k]) for part, _, *bound in parts])
        for k in range(2)
    )
    nodes_of_rows = np.concatenate([np.repeat(where, part.shape[0]) for part, where, *_ in parts])
    return ca.veccat(*(part for part, *_ in parts)), lower, upper, nodes_of_rows


def _rows(
    dsys: DiscreteSystem, constraints: Sequence[Constraint], X: ca.MX, U: ca.MX
) -> tuple[ca.MX, np.ndarray, np.ndarray]:
    """The rows of constraints, >= 0, at the nodes where they hold, their weights and nodes."""
    x, u, steps = ca.SX.sym("x", dsys.nx), ca.SX.sym("u", dsys.nu), U.shape[1]
    values, weights = [ca.MX(0, 1)], [np.zeros(0)]
    nodes: list[np.ndarray] = [np.zeros(0)]
    for c in constraints:
        W = c.table(steps + 1, dsys.system.nrho).T
        w = ca.SX.sym("w", len(W))
        for row in rows_of(dsys, {}, [c], x, u, [w]):
            f = ca.Function("row", [x, u, w], [row.value])
            where = slice(0, steps) if row.mixed else slice(1, steps + 1)
            inputs = U if row.mixed else np.zeros((dsys.nu, steps))
            values.append(f.map(steps)(X[:, where], inputs, W[:, where]).T)
            weights.append(np.full(steps, row.weight))
            nodes.append(np.arange(steps + 1.0)[where])
    return ca.vertcat(*values), np.concatenate(weights), np.concatenate(nodes)


def resample(trajectory: Trajectory, h: float) -> Trajectory:
    """The trajectory on a grid of step h (s), as a guess that is not feasible: stored states are
    interpolated linearly, inputs are constant over the old steps.
    """
    steps = round(trajectory.duration / h)
    times = np.minimum(h * np.arange(steps + 1), trajectory.duration)
    states = np.stack(
        [np.interp(times, trajectory.times, column) for column in trajectory.states.T], axis=1
    )
    old_step = np.minimum((times[:-1] + h / 2) // trajectory.h, len(trajectory) - 1).astype(int)
    return Trajectory(
        h,
        states,
        trajectory.inputs[old_step],
        trajectory.state_names,
        trajectory.input_names,
        trajectory.name,
    )


def _total(dsys: DiscreteSystem, cost: Cost, X: ca.MX, U: ca.MX) -> ca.MX:
    x, u, w = ca.SX.sym("x", dsys.nx), ca.SX.sym("u", dsys.nu), ca.SX.sym("w", cost.n_parameters)
    stage, terminal = (
        ca.Function("stage", [x, u, w], [cost.stage(x, u, w)]),
        ca.Function("terminal", [x, w], [cost.terminal(x, w)]),
    )
    steps = U.shape[1]
    W = np.zeros((0, steps + 1)) if cost.parameters is None else np.asarray(cost.parameters).T
    if W.shape[1] != steps + 1:
        raise ValueError(f"{dsys}: the cost is over {W.shape[1] - 1} steps, the guess has {steps}")
    return ca.sum2(stage.map(steps)(X[:, :-1], U, W[:, :-1])) + terminal(X[:, -1], W[:, -1])


def _end_condition(
    dsys: DiscreteSystem, last: ca.MX, end: ArrayLike | None, fixed: Sequence[str] | None
) -> ca.MX:
    """`local(end, x_N)` in the coordinates named in `fixed`, (0) without an end."""
    if end is None:
        return ca.MX(0, 1)
    names = dsys.state_space.tangent_names
    unknown = [name for name in fixed or () if name not in names]
    if unknown or np.shape(end) != (dsys.nx,):
        raise ValueError(
            f"{dsys}: end must be a state of shape ({dsys.nx},) with coordinates fixed among "
            f"{list(names)}, got shape {np.shape(end)}, fixed {fixed}"
        )
    x = ca.SX.sym("x", dsys.nx)
    local = ca.Function("local", [x], [dsys.state_space.local(ca.SX(np.asarray(end)), x)])(last)
    return local if fixed is None else local[[names.index(name) for name in fixed]]


def _history(table: dict | None) -> tuple[Iteration, ...]:
    """IPOPT's iterations, if it began: cost, the larger of dual and primal infeasibility, and the
    primal step that led there.
    """
    if table is None:
        return ()
    rows = zip(table["obj"], table["inf_du"], table["inf_pr"], table["alpha_pr"])
    return tuple(
        Iteration(k, cost, max(dual, primal), "interior point", step)
        for k, (cost, dual, primal, step) in enumerate(rows)
    )
