"""Configurations, velocities and equilibria that agree with a system's holonomic constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space

from nh_control.mechanics.lagrangian import inertia
from nh_control.mechanics.system import System
from nh_control.numerics import newton

TOLERANCE = 1e-12
"""Tolerance of IPOPT for the constraints, and for the balance of forces relative to the forces."""

OPTIONS: dict[str, Any] = {
    "ipopt": {"tol": TOLERANCE, "constr_viol_tol": TOLERANCE, "print_level": 0, "sb": "yes"},
    "print_time": False,
}

SETTLED = 1e-8
"""Largest change, in local coordinates, when a minimum is searched again from itself."""

SINGULAR = 1e12
"""Condition number above which constraints count as dependent."""

CONSISTENT, CLOSE = 1e-8, 1e-10
"""Bounds for a configuration that counts as satisfying the constraints: residuals relative to the
sizes of their terms, and its distance from the constraints relative to the distance from the
origin.
"""

FLAT, NUDGE, MAX_ROUNDS = 1e-9, 1e-2, 10
"""Curvature relative to the largest that counts as zero; length of the step off a maximum, in
local coordinates; largest number of solutions.
"""


class NotConsistent(ValueError):
    """Constraints or an equilibrium could not be met; carries the `residual` (of
    every equation) and the configuration `q` reached.
    """

    def __init__(self, message: str, residual: np.ndarray, q: np.ndarray):
        super().__init__(message)
        self.residual, self.q = residual, q


def satisfy_constraints(
    system: System,
    q: ArrayLike,
    fixed: Sequence[str] | None = None,
    scale: Mapping[str, float] | None = None,
) -> np.ndarray:
    """Configuration closest to q (nq) that satisfies the constraints,
    `min |local(q, q1) / scale|^2 / 2  subject to  h(q1) = 0`.

    Coordinates named in `fixed` (None: the prescribed ones) keep their values; `scale` has their
    typical changes by name, 1 m or 1 rad where it has none: a system of 1 um or 1 km needs it.
    Raises NotConsistent with the residuals, ValueError for an unknown name or a scale of 0 or
    less.
    """
    start, sizes = ca.SX(_configuration(system, q)), _sizes(system, scale)
    return _minimum(
        system,
        q,
        fixed,
        scale,
        "no configuration satisfies the constraints",
        lambda q1: ca.sumsqr(system.space.local(start, q1) / sizes) / 2,
    )


def minimize_potential_energy(
    system: System,
    q: ArrayLike,
    fixed: Sequence[str] | None = None,
    scale: Mapping[str, float] | None = None,
) -> np.ndarray:
    """Configuration of least potential energy near q (nq),
    `min V(q1) = -L(q1, 0)  subject to  h(q1) = 0`: a stable equilibrium without forces.

    From a maximum or a saddle it moves along the most negative second derivative; a direction
    without one, such as at a maximum of `-q^4`, is not left. Coordinates named in `fixed` (None:
    the prescribed ones) keep their values; `scale` is as for `satisfy_constraints`; q need not
    satisfy the constraints. Raises NotConsistent with the residuals where there is no minimum,
    ValueError for an unknown name or a scale of 0 or less.
    """
    rest = ca.SX.zeros(system.space.nw)
    return _minimum(
        system,
        q,
        fixed,
        scale,
        "no equilibrium found",
        lambda q1: -system.numeric.lagrangian_at(q1, rest),
    )


def consistent_velocity(system: System, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Projection of a velocity v (nw) onto the constraints in the mass metric, `Dh v = Dh_dyn
    v_dyn + Dh_kin v_kin = 0`; prescribed velocities stay.

    The result is `v_dyn + M^{-1} Dh_dyn^T mu`. The momenta of both velocities differ by impulses
    of the constraints, which do not change a step. Raises NotConsistent with h(q) if q (nq) does
    not satisfy the constraints, or if they are dependent.
    """
    q, v = _configuration(system, q), np.array(v, dtype=float)
    if v.shape != (system.space.nw,) or not np.isfinite(v).all():
        raise ValueError(
            f"{system.name}: velocity must be {system.space.nw} finite numbers, got {v.tolist()}"
        )
    q_, v_ = ca.SX.sym("q", len(q)), ca.SX.sym("v", len(v))
    fixed = system.numeric
    state = fixed.mechanics.state_of(q_, fixed.mechanics.momentum(q_, v_))
    (state,) = fixed.mechanics.at_signs([state], q_)
    x, h = ca.Function("state", [q_, v_], [state, fixed.holonomic(q_)])(q, v)
    values = inertia(fixed)(x, [])
    matrix, momentum, basis, prescribed = (np.asarray(value) for value in values)
    h, n = np.asarray(h)[:, 0], system.nrho
    require_consistent(system, q)
    inverse = matrix[n:, :n] @ np.linalg.solve(matrix[:n, :n], matrix[:n, n:])
    condition = _condition(inverse, system.n_redundant)
    if not condition <= SINGULAR:
        raise NotConsistent(
            f"{system.name}: the constraints are dependent at q, condition number of Dh M^-1 "
            f"Dh^T {condition:.1e}; drop some",
            h,
            q,
        )
    return (basis @ newton.solve(matrix, momentum, system.n_redundant) + prescribed)[:, 0]


def _condition(s: np.ndarray, redundant: int) -> float:
    """Condition number of `S = Dh M^-1 Dh^T` without redundant rows and columns. Constraints have
    unit length in the metric of M, `S_ij / sqrt(S_ii S_jj)`, so that their units do not matter;
    infinite where one has none.
    """
    if not len(s):
        return 1.0
    if redundant and np.isfinite(s).all():
        kept = newton.independent_rows(s, redundant)
        s = s[np.ix_(kept, kept)]
    lengths = np.sqrt(np.abs(np.diag(s)))
    if not (np.isfinite(s).all() and (lengths > 0).all()):
        return np.inf
    return float(np.linalg.cond(s / np.outer(lengths, lengths)))


def require_consistent(system: System, q: np.ndarray) -> None:
    """Raise NotConsistent unless q (nq) satisfies the constraints: every residual is at most
    CONSISTENT times the sizes of its terms, with `|q_i|` and 1 rad; or the distance from the
    constraints is less than CLOSE times the distance from the origin, in the metric of M.
    """
    values = system.mechanics.consistency(q, system.parameter_values)
    h, sizes = (np.asarray(value)[:, 0] for value in values)
    if np.isfinite(h).all() and (np.abs(h) <= CONSISTENT * sizes).all():
        return
    distance, largest = _lengths(system, q, h)
    if distance <= CLOSE * largest:
        return
    raise NotConsistent(
        f"{system.name}: q does not satisfy the constraints, h = {h.tolist()}; start from "
        f"satisfy_constraints(system, q)",
        h,
        q,
    )


def _lengths(system: System, q: np.ndarray, h: np.ndarray) -> tuple[float, float]:
    """Lengths in the metric of M of the least motion from q that keeps h to first order,
    `h^T (Dh M^{-1} Dh^T)^{-1} h` squared, and of the motion from the origin to q.
    """
    fixed, n = system.numeric, system.nrho
    rest = np.zeros(system.mechanics.state_space.nq - len(q))
    matrix, _, basis, _ = map(np.asarray, inertia(fixed)(np.concatenate([q, rest]), []))
    toward, mass = matrix[n:, :n], matrix[:n, :n]
    space = fixed.space
    displacement = space.frame(ca.SX(q)) @ space.local(ca.SX(space.origin), ca.SX(q))
    along = np.linalg.lstsq(basis[:, :n], np.asarray(ca.evalf(displacement)), rcond=None)[0][:, 0]
    try:
        inverse = toward @ np.linalg.solve(mass, matrix[:n, n:])
        squared = h @ newton.solve(inverse, h, system.n_redundant)
    except np.linalg.LinAlgError:
        return np.inf, 0.0
    return float(np.sqrt(np.abs(squared))), float(np.sqrt(np.abs(along @ mass @ along)))


def _configuration(system: System, q: ArrayLike) -> np.ndarray:
    q = np.array(q, dtype=float)
    if q.shape != (system.space.nq,) or not np.isfinite(q).all():
        raise ValueError(
            f"{system.name}: configuration must be {system.space.nq} finite numbers, got "
            f"{q.tolist()}"
        )
    return q


def _minimum(
    system: System,
    q: ArrayLike,
    fixed: Sequence[str] | None,
    scale: Mapping[str, float] | None,
    failure: str,
    objective: Callable[[ca.SX], ca.SX],
) -> np.ndarray:
    """Minimum of the objective over h = 0 by IPOPT with exact derivatives, in local coordinates
    over their scales, centered anew until nothing moves.
    """
    q, names = _configuration(system, q), system.space.tangent_names
    fixed = system.prescribed if fixed is None else tuple(fixed)
    if unknown := [name for name in fixed if name not in names]:
        raise ValueError(f"{system.name}: cannot keep {unknown}, choose of {list(names)}")
    free = [i for i, name in enumerate(names) if name not in fixed]
    base, e = ca.SX.sym("base", len(q)), ca.SX.sym("e", len(free))
    d, sizes = ca.SX(system.space.nv, 1), _sizes(system, scale)[free]
    d[free] = sizes * e
    moved = system.space.retract(base, d)
    f, h = objective(moved), system.numeric.holonomic(moved)
    if scale is not None:
        f, h = _without_units(f, h, e, base, q)
    if system.n_redundant:  # IPOPT asks for fewer equations than unknowns
        slopes = np.asarray(ca.Function("slopes", [e, base], [ca.jacobian(h, e)])(0, q))
        h = h[newton.independent_rows(slopes @ slopes.T, system.n_redundant)]
    mu = ca.SX.sym("mu", h.shape[0])
    solver = ca.nlpsol("minimum", "ipopt", {"x": e, "p": base, "f": f, "g": h}, OPTIONS)
    curvature = ca.Function(
        "curvature", [e, base, mu], [ca.hessian(f + ca.dot(mu, h), e)[0], ca.jacobian(h, e)]
    )
    failures = 0
    for _ in range(MAX_ROUNDS):
        solution = solver(x0=0, p=q, lbg=0, ubg=0)
        step, residual = (np.asarray(solution[name])[:, 0] for name in ("x", "g"))
        stats = solver.stats()
        settled = np.abs(step).max(initial=0.0) <= SETTLED
        if settled and stats["success"]:
            hessian, jacobian = curvature(step, q, solution["lam_g"])
            descent = _descent(np.asarray(hessian), np.asarray(jacobian))
            if descent is None:
                if system.n_redundant:
                    require_consistent(system, q)
                return q
            step = descent
        change = np.zeros(system.space.nv)
        change[free] = sizes * step
        q = system.space.retract(q, change)
        # IPOPT may end just above its tolerances; from there it starts once more
        failures += not stats["success"]
        if failures > 1:
            break
    raise NotConsistent(
        f"{system.name}: {failure} near q with {list(fixed)} kept: IPOPT says "
        f"{stats['return_status']}, h = {residual.tolist()}; "
        "start closer, or keep fewer coordinates",
        residual,
        q,
    )


def _sizes(system: System, scale: Mapping[str, float] | None) -> np.ndarray:
    """Typical changes (nv) of the coordinates, 1 where `scale` has none."""
    return typical_sizes(system.name, system.space.tangent_names, scale)


def typical_sizes(
    name: str, coordinates: Sequence[str], scale: Mapping[str, float] | None
) -> np.ndarray:
    """Typical sizes of the coordinates, 1 where `scale` has none.

    Raises ValueError, which begins with `name`, for an unknown coordinate and for a size that is
    not positive.
    """
    scale = {} if scale is None else scale
    if unknown := [c for c in scale if c not in coordinates]:
        raise ValueError(f"{name}: cannot scale {unknown}, choose of {list(coordinates)}")
    sizes = np.array([float(scale.get(c, 1.0)) for c in coordinates])
    if wrong := [c for c, size in zip(coordinates, sizes) if not 0 < size < np.inf]:
        raise ValueError(
            f"{name}: scales must be positive and finite, got { {c: scale[c] for c in wrong} }"
        )
    return sizes


def _without_units(
    f: ca.SX, h: ca.SX, e: ca.SX, base: ca.SX, q: np.ndarray
) -> tuple[ca.SX, ca.SX]:
    """Objective over its largest second derivative at q, constraints over the lengths of their
    gradients there; with e over its scales, IPOPT's absolute tolerances do not know units.
    """
    derivatives = ca.Function("d", [e, base], [ca.hessian(f, e)[0], ca.jacobian(h, e)])
    hessian, jacobian = (np.asarray(value) for value in derivatives(0, q))
    curvature = np.abs(hessian).max(initial=0.0)
    lengths = np.linalg.norm(jacobian, axis=1)
    return f / (curvature or 1.0), h / np.where(lengths > 0, lengths, 1.0)


def _descent(hessian: np.ndarray, jacobian: np.ndarray) -> np.ndarray | None:
    """A small step along the constraints in the direction of most negative curvature; None at a
    minimum.
    """
    tangent = null_space(jacobian) if len(jacobian) else np.eye(len(hessian))
    values, directions = np.linalg.eigh(tangent.T @ hessian @ tangent)
    if not len(values) or values[0] >= -FLAT * np.abs(hessian).max():
        return None
    return NUDGE * tangent @ directions[:, 0]
