"""Trajectory optimization by direct collocation of the discrete equations (DMOC): states, inputs and the steps' unknowns together in one nonlinear program."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from nh_control.control.costs import Cost, Limits, bounds
from nh_control.control.optimize import Iteration, Optimum
from nh_control.discrete import DiscreteSystem, StepFailed
from nh_control.equations import StepEquations
from nh_control.trajectory import Trajectory


def collocate(
    dsys: DiscreteSystem,
    cost: Cost,
    guess: Trajectory,
    end=None,
    fixed: Sequence[str] | None = None,
    limits: Limits | None = None,
    tolerance: float = 1e-9,
    max_iterations: int = 500,
    barrier_start: float = 0.1,
    verbose: bool = False,
) -> Optimum:
    """Minimize the cost subject to `r(x_k, u_k, z_k) = 0, x_{k+1} = g(x_k, u_k, z_k)`, the guess's first state and the limits, by IPOPT.

    With a state `end` (nx) the last state must have `local(end, x_N) = 0` in the tangent coordinates `fixed` (all if not given). The guess need not be
    feasible; from one close to the optimum a small `barrier_start` (weight of IPOPT's barrier) saves iterations. The result satisfies the equations to
    `tolerance`; if IPOPT did not converge the `reason` is what it returned, and the trajectory is where it stopped, feasible or not. Limits, and the
    domain of the model, hold from the second state on. IPOPT is silent unless `verbose`. Raises ValueError for unknown names and wrong shapes.
    """
    if guess.states.shape[1] != dsys.nx or guess.inputs.shape[1] != dsys.nu:
        raise ValueError(f"{dsys}: the guess has {guess.states.shape[1]} states and {guess.inputs.shape[1]} inputs, expected {dsys.nx} and {dsys.nu}")
    program, greatest = _program(dsys, cost, len(guess), end, fixed)
    options = {
        "ipopt.tol": tolerance,
        "ipopt.constr_viol_tol": tolerance,
        "ipopt.max_iter": max_iterations,
        "ipopt.mu_init": barrier_start,
        "ipopt.print_level": 5 if verbose else 0,
        "ipopt.sb": "yes",
        "print_time": False,
    }
    solver = ca.nlpsol("dmoc", "ipopt", program, options)
    lower, upper = bounds(dsys, limits or {})[0].T
    unknowns = [_unknowns(dsys, x, u) for x, u in zip(guess.states, guess.inputs)]
    start = np.concatenate([guess.states.ravel(), guess.inputs.ravel(), *unknowns])
    solution = solver(x0=start, lbx=_box(dsys, guess, lower, -np.inf), ubx=_box(dsys, guess, upper, np.inf), lbg=0, ubg=greatest)
    stats = solver.stats()
    states, inputs, _ = np.split(np.asarray(solution["x"]).ravel(), [guess.states.size, guess.states.size + guess.inputs.size])
    trajectory = Trajectory(dsys.h, states.reshape(-1, dsys.nx), inputs.reshape(-1, dsys.nu), dsys.state_names, dsys.inputs, guess.name)
    return Optimum(trajectory, float(solution["f"]), bool(stats["success"]), f"IPOPT: {stats['return_status']}", _history(stats["iterations"]))


def _program(dsys: DiscreteSystem, cost: Cost, steps: int, end, fixed) -> tuple[dict, np.ndarray]:
    """The nonlinear program over all states, inputs and unknowns, and the upper bounds of its constraints, whose lower bounds are zero."""
    X, U, Z = (ca.MX.sym(name, n, count) for name, n, count in (("X", dsys.nx, steps + 1), ("U", dsys.nu, steps), ("Z", dsys.method.n_z, steps)))
    _, residual, _, readout = StepEquations(dsys.system, dsys.method, str(dsys)).step
    reached, domain = readout.map(steps)(X[:, :-1], U, Z)
    equations = ca.vertcat(ca.vec(residual.map(steps)(X[:, :-1], U, Z)), ca.vec(X[:, 1:] - reached), _end_condition(dsys, X[:, -1], end, fixed))
    program = {"x": ca.vertcat(ca.vec(X), ca.vec(U), ca.vec(Z)), "f": _total(dsys, cost, X, U), "g": ca.vertcat(equations, ca.vec(domain))}
    return program, np.repeat([0.0, np.inf], [equations.shape[0], domain.numel()])


def _box(dsys: DiscreteSystem, guess: Trajectory, bound: np.ndarray, free: float) -> np.ndarray:
    """Bounds of the program's variables: the first state is given, the unknowns are free."""
    steps = len(guess)
    return np.concatenate([guess.states[0], np.tile(bound[: dsys.nx], steps), np.tile(bound[dsys.nx :], steps), np.full(dsys.method.n_z * steps, free)])


def resample(trajectory: Trajectory, h: float) -> Trajectory:
    """The trajectory on a grid of step h (s): stored states interpolated, inputs held; a guess, not feasible."""
    steps = round(trajectory.duration / h)
    at = np.minimum(h * np.arange(steps + 1), trajectory.duration)
    states = np.stack([np.interp(at, trajectory.times, column) for column in trajectory.states.T], axis=1)
    held = np.minimum((at[:-1] + h / 2) // trajectory.h, len(trajectory) - 1).astype(int)
    return Trajectory(h, states, trajectory.inputs[held], trajectory.state_names, trajectory.input_names, trajectory.name)


def _unknowns(dsys: DiscreteSystem, x, u) -> np.ndarray:
    """The unknowns with which to start a step; zero, where Newton starts as well, if the guess is where no step is possible."""
    try:
        return dsys.unknowns(x, u)
    except StepFailed:
        return np.zeros(dsys.method.n_z)


def _total(dsys: DiscreteSystem, cost: Cost, X, U) -> ca.MX:
    x, u, w = ca.SX.sym("x", dsys.nx), ca.SX.sym("u", dsys.nu), ca.SX.sym("w", cost.n_w)
    stage, terminal = ca.Function("stage", [x, u, w], [cost.stage(x, u, w)]), ca.Function("terminal", [x, w], [cost.terminal(x, w)])
    steps = U.shape[1]
    W = np.zeros((0, steps + 1)) if cost.parameters is None else np.asarray(cost.parameters).T
    if W.shape[1] != steps + 1:
        raise ValueError(f"{dsys}: the cost is over {W.shape[1] - 1} steps, the guess has {steps}")
    return ca.sum2(stage.map(steps)(X[:, :-1], U, W[:, :-1])) + terminal(X[:, -1], W[:, -1])


def _end_condition(dsys: DiscreteSystem, last, end, fixed: Sequence[str] | None) -> ca.MX:
    """`local(end, x_N)` in the coordinates named in `fixed`, (0) without an end."""
    if end is None:
        return ca.MX(0, 1)
    names = dsys.state_space.tangent_names
    unknown = [name for name in fixed or () if name not in names]
    if unknown or np.shape(end) != (dsys.nx,):
        raise ValueError(
            f"{dsys}: end must be a state of shape ({dsys.nx},) with coordinates fixed among {list(names)}, got shape {np.shape(end)}, fixed {fixed}"
        )
    x = ca.SX.sym("x", dsys.nx)
    local = ca.Function("local", [x], [dsys.state_space.local(ca.SX(end), x)])(last)
    return local if fixed is None else local[[names.index(name) for name in fixed]]


def _history(table: dict) -> tuple[Iteration, ...]:
    """IPOPT's iterations: cost, the larger of dual and primal infeasibility, and the primal step that led there."""
    rows = zip(table["obj"], table["inf_du"], table["inf_pr"], table["alpha_pr"])
    return tuple(Iteration(k, cost, max(dual, primal), "interior point", step) for k, (cost, dual, primal, step) in enumerate(rows))
