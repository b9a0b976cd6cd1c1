"""Configurations, velocities and equilibria that satisfy a system's holonomic constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.geometry.space import rotation_hint
from nh_control.mechanics.lagrangian import inertia
from nh_control.mechanics.system import System
from nh_control.numerics import newton

TOLERANCE = 1e-12
"""IPOPT's tolerance for the constraints, and for the sum of the forces relative to the forces."""

OPTIONS: dict[str, Any] = {
    "ipopt": {"tol": TOLERANCE, "constr_viol_tol": TOLERANCE, "print_level": 0, "sb": "yes"},
    "print_time": False,
}

SETTLED = 1e-8
"""Maximum change, in local coordinates, when the search is restarted at a minimum."""

SINGULAR = 1e12
"""Condition number above which constraints are considered dependent."""

CONSISTENT, CLOSE = 1e-8, 1e-10
"""Tolerances for a configuration that satisfies the constraints. CONSISTENT limits the residuals
relative to the sizes of their terms. CLOSE limits the distance from the constraints relative to
the distance from the origin.
"""

FLAT, NUDGE, MAX_ROUNDS = 1e-9, 1e-2, 10
"""Curvature, relative to the largest one, that counts as zero; length of the step away from a
maximum, in local coordinates; maximum number of solutions.
"""


class NotConsistent(ValueError):
    """Raised if the constraints cannot be satisfied or if there is no equilibrium. The attributes
    are the `residual` of every equation and the last configuration `q`.
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
    """The configuration closest to q (nq) that satisfies the constraints,
    `min |local(q, q1) / scale|^2 / 2  subject to  h(q1) = 0`.

    Coordinates in `fixed` (by default the prescribed ones) keep their values. `scale` contains
    typical changes of the coordinates by name, by default 1 m or 1 rad. A system with a size of 1
    um or 1 km needs it. Raises NotConsistent with the residuals, and ValueError for an unknown
    name or a scale that is not positive.
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
    """A configuration of minimal potential energy near q (nq), which is a stable equilibrium in
    the absence of forces: `min V(q1) = -L(q1, 0)  subject to  h(q1) = 0`.

    The search leaves a maximum or a saddle along the most negative second derivative, but not
    along a direction in which the second derivative is zero, as at the maximum of `-q^4`.
    Coordinates in `fixed` (by default the prescribed ones) keep their values. For `scale`, see
    `satisfy_constraints`. q need not satisfy the constraints. Raises NotConsistent with the
    residuals if there is no minimum, and ValueError for an unknown name or a scale that is not
    positive.
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
    """The projection of a velocity v (nw) onto the constraints
    `Dh v = Dh_dyn v_dyn + Dh_kin v_kin = 0` in the mass metric. Prescribed velocities do not
    change.

    The result is `v_dyn + M^{-1} Dh_dyn^T mu`. The momenta for the two velocities differ by
    constraint impulses, which do not affect a step. Raises NotConsistent with h(q) if q (nq) does
    not satisfy the constraints or if the constraints are dependent.
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
    # S = Dh M^{-1} Dh^T from the blocks of the KKT matrix of the inertia
    inverse = matrix[n:, :n] @ np.linalg.solve(matrix[:n, :n], matrix[:n, n:])
    condition = _condition(inverse, system.n_redundant)
    if not condition <= SINGULAR:
        raise NotConsistent(
            f"{system.name}: the constraints are dependent at q, Dh M^-1 Dh^T has the condition "
            f"number {condition:.1e}; drop some constraints",
            h,
            q,
        )
    return (basis @ newton.solve(matrix, momentum, system.n_redundant) + prescribed)[:, 0]


def _condition(s: np.ndarray, redundant: int) -> float:
    """The condition number of `S = Dh M^-1 Dh^T` without redundant rows and columns. Constraints
    are scaled to unit length in the metric of M, `S_ij / sqrt(S_ii S_jj)`, so their units do not
    matter. The number is infinite if a constraint has zero length.
    """
    if not len(s):
        return 1.0
    if redundant and np.isfinite(s).all():
        independent = newton.independent_rows(s, redundant)
        s = s[np.ix_(independent, independent)]
    lengths = np.sqrt(np.abs(np.diag(s)))
    if not (np.isfinite(s).all() and (lengths > 0).all()):
        return np.inf
    return float(np.linalg.cond(s / np.outer(lengths, lengths)))


def require_consistent(system: System, q: np.ndarray) -> None:
    """Raise NotConsistent unless q (nq) satisfies the constraints. Either every residual must be
    at most CONSISTENT times the sizes of its terms, computed from `|q_i|` and 1 rad, or the
    distance from the constraints must be at most CLOSE times the distance from the origin, in the
    metric of M.
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
    """Two lengths in the metric of M. The first is the length of the shortest motion from q that
    satisfies h to first order; its square is `h^T (Dh M^{-1} Dh^T)^{-1} h`. The second is the
    length of the motion from the origin to q.
    """
    # KKT blocks from the inertia at rest
    fixed, n = system.numeric, system.nrho
    rest = np.zeros(system.mechanics.state_space.nq - len(q))
    matrix, _, basis, _ = map(np.asarray, inertia(fixed)(np.concatenate([q, rest]), []))
    toward, mass = matrix[n:, :n], matrix[:n, :n]
    space = fixed.space
    # local(origin, q) in the basis of the admissible velocities, by least squares
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
            f"{q.tolist()}{rotation_hint(system.space.names, q.size)}"
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
    """The minimum of the objective subject to h = 0, found by IPOPT with exact derivatives in
    scaled local coordinates. These coordinates are centered at each solution until the solution no
    longer moves.
    """
    q, names = _configuration(system, q), system.space.tangent_names
    fixed = system.prescribed if fixed is None else tuple(fixed)
    if unknown := [name for name in fixed if name not in names]:
        raise ValueError(f"{system.name}: cannot fix {unknown}, choose from {list(names)}")
    free = [i for i, name in enumerate(names) if name not in fixed]
    base, e = ca.SX.sym("base", len(q)), ca.SX.sym("e", len(free))
    d, sizes = ca.SX(system.space.nv, 1), _sizes(system, scale)[free]
    d[free] = sizes * e
    moved = system.space.retract(base, d)
    f, h = objective(moved), system.numeric.holonomic(moved)
    if scale is not None:
        f, h = _without_units(f, h, e, base, q)
    if system.n_redundant:  # IPOPT needs fewer equations than unknowns
        slopes = np.asarray(ca.Function("slopes", [e, base], [ca.jacobian(h, e)])(0, q))
        h = h[newton.independent_rows(slopes @ slopes.T, system.n_redundant)]
    # min f(retract(base, sizes e)) subject to h = 0, and the curvature of f + mu . h at the
    # solution
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
            # a critical point that is not a minimum has a direction of negative curvature
            descent = _descent(np.asarray(hessian), np.asarray(jacobian))
            if descent is None:
                if system.n_redundant:
                    require_consistent(system, q)
                return q
            step = descent
        # center the coordinates at the solution
        change = np.zeros(system.space.nv)
        change[free] = sizes * step
        q = system.space.retract(q, change)
        # IPOPT may stop just above its tolerances: restart it once from there
        failures += not stats["success"]
        if failures > 1:
            break
    raise NotConsistent(
        f"{system.name}: {failure} near q with fixed {list(fixed)}: IPOPT reports "
        f"{stats['return_status']}, h = {residual.tolist()}; "
        "start closer, or fix fewer coordinates",
        residual,
        q,
    )


def _sizes(system: System, scale: Mapping[str, float] | None) -> np.ndarray:
    """The typical changes (nv) in the coordinates, by default 1."""
    return typical_sizes(system.name, system.space.tangent_names, scale)


def typical_sizes(
    name: str, coordinates: Sequence[str], scale: Mapping[str, float] | None
) -> np.ndarray:
    """The typical sizes of the coordinates, by default 1.

    Raises ValueError, with a message that begins with `name`, for an unknown coordinate and for a
    size that is not positive.
    """
    scale = {} if scale is None else scale
    if unknown := [c for c in scale if c not in coordinates]:
        raise ValueError(f"{name}: cannot scale {unknown}, choose from {list(coordinates)}")
    sizes = np.array([float(scale.get(c, 1.0)) for c in coordinates])
    if wrong := [c for c, size in zip(coordinates, sizes) if not 0 < size < np.inf]:
        raise ValueError(
            f"{name}: scales must be positive and finite, got { {c: scale[c] for c in wrong} }"
        )
    return sizes


def _without_units(
    f: ca.SX, h: ca.SX, e: ca.SX, base: ca.SX, q: np.ndarray
) -> tuple[ca.SX, ca.SX]:
    """The objective divided by its largest second derivative at q, and the constraints divided by
    the lengths of their gradients at q. If e is also scaled, IPOPT's absolute tolerances do not
    depend on units.
    """
    derivatives = ca.Function("d", [e, base], [ca.hessian(f, e)[0], ca.jacobian(h, e)])
    hessian, jacobian = (np.asarray(value) for value in derivatives(0, q))
    curvature = np.abs(hessian).max(initial=0.0)
    lengths = np.linalg.norm(jacobian, axis=1)
    return f / (curvature or 1.0), h / np.where(lengths > 0, lengths, 1.0)


def _descent(hessian: np.ndarray, jacobian: np.ndarray) -> np.ndarray | None:
    """A small step along the constraints in the direction of the most negative curvature; None at
    a minimum.
    """
    from scipy.linalg import null_space  # slow to import

    # smallest eigenvalue of T^T H T, with T a basis of the null space of Dh
    tangent = null_space(jacobian) if len(jacobian) else np.eye(len(hessian))
    values, directions = np.linalg.eigh(tangent.T @ hessian @ tangent)
    if not len(values) or values[0] >= -FLAT * np.abs(hessian).max():
        return None
    return NUDGE * tangent @ directions[:, 0]
