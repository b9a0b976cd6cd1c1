"""Checks whether the loops of a mechanism can close at the end of a failed step."""

from __future__ import annotations

import casadi as ca
import numpy as np

from nh_control.mechanics.consistent_states import CONSISTENT
from nh_control.mechanics.system import System

SPREADS = 0.0, 0.05
"""Sizes of the random changes to the configuration from which the searches start."""
TOLERANCE, MAX_EVALUATIONS = 1e-13, 200
"""Tolerance and maximum number of evaluations for a search, which takes about 10 ms."""

REMEDY = (
    "end the prescribed motion earlier, start from a configuration that satisfies the "
    "constraints, or change lengths so that the loop closes"
)


def open_loops(system: System, q: np.ndarray, prescribed: np.ndarray) -> str:
    """A sentence about the holonomic constraints that no configuration near q (nq) satisfies
    together with the `prescribed` coordinates; "" if a configuration satisfies all constraints or
    no search converges.

    The searches minimize `|h(q1)|^2`, starting at q and near it.
    """
    n = system.space.nq - len(prescribed)
    # the configuration at the end of the step, before the search
    q = np.append(q[:n], prescribed)
    if not system.n_holonomic_constraints or _open_rows(system, q)[0].size == 0:
        return ""
    best = _closest(system, q)
    if best is None:
        return ""
    # no open rows: the loops can close, and the failure has another cause
    rows, gaps = _open_rows(system, best)
    if not rows.size:
        return ""
    values = [f"{name} = {value:.6g}" for name, value in zip(system.prescribed, prescribed)]
    driven = f"the mechanism is locked at {', '.join(values)}: " if values else ""
    return (
        f"the loop cannot close, {driven}no configuration nearby satisfies "
        f"{system.named_rows(rows.tolist())} at the end of the step, "
        f"they stay {np.abs(gaps).max():.2g} from zero"
    )


def _open_rows(system: System, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the constraints that q does not satisfy, and their values."""
    values = system.mechanics.consistency(q, system.parameter_values)
    h, sizes = (np.asarray(value)[:, 0] for value in values)
    rows = np.flatnonzero(~(np.abs(h) <= CONSISTENT * sizes))
    return rows, h[rows]


def _closest(system: System, q: np.ndarray) -> np.ndarray | None:
    """The configuration with the smallest sum of squared constraints that the searches from q and
    near it find, with the same prescribed coordinates. None if no search converges.
    """
    from scipy.optimize import least_squares  # slow to import

    space, n = system.space, system.space.nv - len(system.prescribed)
    e, base = ca.SX.sym("e", n), ca.SX.sym("q", space.nq)
    moved = space.retract(base, ca.vertcat(e, ca.SX.zeros(len(system.prescribed))))
    h = system.numeric.holonomic(moved)
    constraints = ca.Function("constraints", [e, base], [h, ca.densify(ca.jacobian(h, e))])
    at_end = ca.Function("moved", [e, base], [moved])
    # min |h(retract(q, (e, 0)))|^2 over the free coordinates e
    rng, solutions = np.random.default_rng(0), []
    for spread in SPREADS:
        start = spread * rng.normal(size=n)
        if not all(np.isfinite(np.asarray(value)).all() for value in constraints(start, q)):
            continue
        result = least_squares(
            lambda e: np.asarray(constraints(e, q)[0])[:, 0],
            start,
            lambda e: np.asarray(constraints(e, q)[1]),
            x_scale="jac",
            max_nfev=MAX_EVALUATIONS,
            **dict.fromkeys(("ftol", "xtol", "gtol"), TOLERANCE),
        )
        if result.status > 0:
            solutions.append((result.cost, np.asarray(at_end(result.x, q))[:, 0]))
    return min(solutions, key=lambda each: each[0])[1] if solutions else None
