"""Trajectory optimization by direct collocation of the discrete equations (DMOC). The states, the
inputs and the unknowns of all steps are the variables of one nonlinear program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.constraints import Constraint, bounds_of, rows_of
from nh_control.control.costs import Cost, LimitsByName, compile_cost, limit_bounds
from nh_control.control.guesses import on_manifold, require_fitting
from nh_control.control.optimal.fatrop import Staged, Stages
from nh_control.control.optimum import Iteration, Optimum
from nh_control.discrete.equations import StepEquations
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.numerics.interrupts import reraise_signals
from nh_control.numerics.result_cache import cached_result

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
    cached: bool = False,
) -> Optimum:
    """Minimize the cost subject to `r(x_k, u_k, z_k) = 0, local(x_{k+1}, g(x_k, u_k, z_k)) = 0`,
    the limits and the `constraints`. IPOPT solves the problem (DMOC: Ober-Bloebaum, Junge and
    Marsden 2011). The first state is that of the guess.

    The states are `x_k = retract(guess_k, dx_k)` with variables dx_k, so they stay on their
    manifold. If a state `end` (nx) is passed, the last state must satisfy `local(end, x_N) = 0` in
    the tangent coordinates `fixed` (by default, all of them). The guess need not be feasible. If
    it is near the optimum, a small `barrier_start` (the initial weight of IPOPT's barrier) saves
    iterations. The result satisfies the equations to within `tolerance`. If IPOPT does not
    converge, `reason` is its return status, and the trajectory is the last iterate, which may not
    be feasible. The limits and the domain of the model apply to all states except the first. The
    result satisfies them, but the iterates may not. `verbose` prints IPOPT's iterations. The
    `solver` "fatrop" solves the same program stage by stage (Vanroye, Sathya, De Schutter and
    Decre 2023) and starts with IPOPT's default barrier. With `cached`, a converged result is
    stored, and is loaded again if the program, the initial values and the options are the same. A
    log message announces a long search. Raises ValueError for unknown names, wrong shapes and
    guesses whose states are not on the manifold.
    """
    if solver not in SOLVERS:
        raise ValueError(f"unknown solver {solver!r}, choose one of {SOLVERS}")
    require_fitting(dsys, guess)
    guess = on_manifold(dsys, guess)
    program = _program(dsys, cost, guess, end, fixed, limits or {}, constraints, solver)
    solve = partial(_solve, program, solver, tolerance, max_iterations, barrier_start, verbose)
    solution: Mapping[str, np.ndarray]
    if cached:
        variables, (f, g) = program.problem["x"], (program.problem[name] for name in "fg")
        text = ca.Function("program", [variables], [f, g]).serialize()
        key: list[str | np.ndarray] = [
            text,
            solver,
            repr((tolerance, max_iterations, barrier_start, verbose)),
            program.start,
            *program.bounds.values(),
        ]
        solution = cached_result("optimum", key, solve, _announcement(dsys, guess, program))
    else:
        solution = solve()
    states, inputs = map(np.asarray, program.trajectory(solution["x"]))
    # f includes the price of violated soft constraints, which is not part of the cost
    return Optimum(
        Trajectory(dsys.h, states, inputs, dsys.state_names, dsys.inputs, guess.name, dsys),
        compile_cost(dsys, cost)(states, inputs) if constraints else float(solution["f"]),
        bool(solution["success"]),
        f"{solver.upper()}: {solution['status']}",
        _history(solution["iterations"]),
    )


ITERATION_S, ITERATIONS, LONG_S = 2e-5, (20, 160), 10.0
"""Time (s) per iteration and variable on a processor from 2024; minimum and maximum number of
iterations in the package's scenarios; duration (s) above which a search is announced.
"""


def _announcement(dsys: DiscreteSystem, guess: Trajectory, program: _Program) -> str:
    """The message that announces a long search and its duration; "" for a short search."""
    least_s, most_s = (n * ITERATION_S * len(program.start) for n in ITERATIONS)
    if most_s < LONG_S:
        return ""
    return (
        f"{dsys}: optimizing a motion of {len(guess)} steps; this takes about {least_s:.0f} to "
        f"{most_s:.0f} s of processor time"
    )


def _solve(
    program: _Program,
    solver: str,
    tolerance: float,
    max_iterations: int,
    barrier_start: float,
    verbose: bool,
) -> dict[str, np.ndarray]:
    """The solution as arrays: x, f, whether the solver succeeded, its return status, and a table
    of the iterations.
    """
    if solver == IPOPT:
        run: Any = _by_ipopt(program.problem, tolerance, max_iterations, barrier_start, verbose)
    else:
        options = {"tol": tolerance, "max_iter": max_iterations, "print_level": 10 * verbose}
        equal = program.bounds["lbg"] == program.bounds["ubg"]
        run = Staged(program.problem, program.stages, equal, options)
    with reraise_signals():
        solution = run(x0=program.start, **program.bounds)
    stats = run.stats()
    table = stats.get("iterations") or {}
    columns = [table.get(name, ()) for name in ("obj", "inf_du", "inf_pr", "alpha_pr")]
    return {
        "x": np.asarray(solution["x"]),
        "f": np.asarray(solution["f"]).reshape(()),
        "success": np.array(bool(stats["success"])),
        "status": np.array(stats["return_status"]),
        "iterations": np.array(columns, dtype=float).T,
    }


class _Program(NamedTuple):
    """A nonlinear program: the expressions x, f and g, the `bounds` lbx, ubx, lbg and ubg, the
    initial values `start`, the `stages` of x and g, and the CasADi function `trajectory(x)`, which
    returns states and inputs.
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
    """The nonlinear program of `collocate`, with the variables (dx, u, z, t)."""
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
    # hard rows are >= 0; soft rows are >= -t, with t >= 0 at the price `weights . t`
    soft = np.flatnonzero(np.isfinite(weights))
    spread = ca.DM(len(weights), 1)
    spread[soft] = 1.0
    price = ca.dot(ca.DM(np.where(np.isfinite(weights), weights, 0.0)), t)
    # bounds of the variables: limits of the inputs, and t >= 0
    box = np.full((w.numel(), 2), [-np.inf, np.inf])
    box[x.numel() : x.numel() + u.numel()] = np.tile(of_inputs, (len(guess), 1))
    box[w.numel() - t.numel() :] = [0.0, np.inf]
    # the node of each variable, for solvers that use the stages
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
    prefixed = {f"ipopt.{name}": value for name, value in options.items()}
    return ca.nlpsol("dmoc", IPOPT, program, prefixed | {"print_time": False})


def _start(dsys: DiscreteSystem, guess: Trajectory) -> np.ndarray:
    """The variables (dx, u, z) of the program at the guess."""
    unknowns = [_unknowns(dsys, x, u) for x, u in zip(guess.states, guess.inputs)]
    # dx = 0 at the guess, z from the steps of the guess
    no_change = np.zeros(len(guess) * dsys.ndx)
    return np.concatenate([no_change, guess.inputs.ravel(), *unknowns])


def _unknowns(dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Initial values of the unknowns of a step. They are zero, as in Newton's method, if no step
    from the guess is possible.
    """
    try:
        return dsys.unknowns(x, u)
    except StepFailed:
        return np.zeros(dsys.method.nz)


def _states(dsys: DiscreteSystem, guess: Trajectory, dx: ca.MX) -> ca.MX:
    """The states as columns: the first state of the guess, then `retract(guess_k, dx_k)`."""
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
    """The constraints with their bounds and stages: the equations of all steps, the end condition,
    the model's domain and the limits (nx, 2) of the states.

    If `places` contains the variables dx about the states of the guess, the gaps between the steps
    are `dx - local(guess, g)`. The stage numbers of gaps are smaller by 1/2, so the gaps come
    first.
    """
    x, y = ca.SX.sym("x", dsys.nx), ca.SX.sym("y", dsys.nx)
    local = ca.Function("local", [x, y], [dsys.state_space.local(x, y)])
    equations = StepEquations(dsys.system, dsys.method, str(dsys))
    _, residual, _, readout, _ = equations.step
    steps = U.shape[1]
    parameters = ca.repmat(ca.DM(dsys.parameter_values), 1, steps)
    reached, domain = readout.map(steps)(X[:, :-1], U, Z, parameters)
    limited = np.flatnonzero(np.isfinite(limits).any(axis=1))
    nodes, (about, dx) = np.arange(float(steps)), places
    # constraints with their nodes and lower and upper bounds; gaps local(x_{k+1}, g_k) = 0
    gaps: tuple[ca.MX, np.ndarray, float, float]
    if dx is None:
        gaps = local.map(steps)(X[:, 1:], reached), nodes, 0, 0
    else:
        gaps = dx - local.map(steps)(ca.DM(about[1:].T), reached), nodes - 0.5, 0, 0
    parts: list[tuple[ca.MX, np.ndarray, float, float]] = [
        (residual.map(steps)(X[:, :-1], U, Z, parameters), nodes, 0, 0),
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
    """The rows of the constraints, which must be >= 0, with their weights and nodes."""
    x, u, steps = ca.SX.sym("x", dsys.nx), ca.SX.sym("u", dsys.nu), U.shape[1]
    values, weights = [ca.MX(0, 1)], [np.zeros(0)]
    nodes: list[np.ndarray] = [np.zeros(0)]
    unlimited = np.zeros((dsys.nx, 2), dtype=bool)
    for c in constraints:
        W = c.table(steps + 1, dsys.system.nrho).T
        w = ca.SX.sym("w", len(W))
        rows, counts = rows_of(dsys, unlimited, [c], x, u, [w])
        # offsets of the rows, value + offset >= 0
        bounds = bounds_of(dsys, [c], counts, np.zeros((0, 2)))
        for row in rows:
            f = ca.Function("row", [x, u, w], [row.value + row.offset(bounds)])
            # rows that depend on inputs apply at all nodes but the last, other rows at all but the
            # first
            where = slice(0, steps) if row.mixed else slice(1, steps + 1)
            inputs = U if row.mixed else np.zeros((dsys.nu, steps))
            values.append(f.map(steps)(X[:, where], inputs, W[:, where]).T)
            weights.append(np.full(steps, bounds[row.place, 2]))
            nodes.append(np.arange(steps + 1.0)[where])
    return ca.vertcat(*values), np.concatenate(weights), np.concatenate(nodes)


def resample(trajectory: Trajectory, h: float) -> Trajectory:
    """The trajectory on a grid with step h (s), for use as a guess. It is not feasible. States are
    interpolated linearly, and inputs are constant during each old step.
    """
    steps = round(trajectory.duration / h)
    times = np.minimum(h * np.arange(steps + 1), trajectory.duration)
    states = np.stack(
        [np.interp(times, trajectory.times, column) for column in trajectory.states.T], axis=1
    )
    # the midpoint of a new step determines the old step, and so the input
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
        raise ValueError(f"{dsys}: the cost covers {W.shape[1] - 1} steps, the guess has {steps}")
    return ca.sum2(stage.map(steps)(X[:, :-1], U, W[:, :-1])) + terminal(X[:, -1], W[:, -1])


def _end_condition(
    dsys: DiscreteSystem, last: ca.MX, end: ArrayLike | None, fixed: Sequence[str] | None
) -> ca.MX:
    """`local(end, x_N)` in the coordinates named in `fixed`; empty if `end` is None."""
    if end is None:
        return ca.MX(0, 1)
    names = dsys.state_space.tangent_names
    unknown = [name for name in fixed or () if name not in names]
    if unknown or np.shape(end) != (dsys.nx,):
        raise ValueError(
            f"{dsys}: end must be a state of shape ({dsys.nx},), and fixed must contain names "
            f"among {list(names)}; got shape {np.shape(end)}, fixed {fixed}"
        )
    x = ca.SX.sym("x", dsys.nx)
    # e = local(end, x_N)
    local = ca.Function("local", [x], [dsys.state_space.local(ca.SX(np.asarray(end)), x)])(last)
    return local if fixed is None else local[[names.index(name) for name in fixed]]


def _history(table: np.ndarray) -> tuple[Iteration, ...]:
    """IPOPT's iterations, from rows that contain the cost, the dual infeasibility, the primal
    infeasibility, and the length of the preceding primal step. Each iteration contains the larger
    of the two infeasibilities.
    """
    return tuple(
        Iteration(k, cost, max(dual, primal), "interior point", step)
        for k, (cost, dual, primal, step) in enumerate(table.tolist())
    )
