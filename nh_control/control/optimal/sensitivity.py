"""Derivatives of an optimum, by the factors of Newton's equation there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.constraints import Constraint
from nh_control.control.costs import Cost, LimitsByName
from nh_control.control.optimal import interior_point
from nh_control.control.optimal.extended import STEP
from nh_control.control.optimal.layout import Outcome
from nh_control.control.optimal.transcription import Problem, Transcription
from nh_control.control.optimum import Multipliers, Optimum
from nh_control.discrete.system import DiscreteSystem

LEAST_BARRIER = 1e-9
"""A smaller barrier would make active rows so stiff that the factors lose digits."""
DIFFERENCE = 1e-3
"""Part of a parameter by which it moves in differences of fourth order."""


@dataclass(frozen=True)
class OptimumDerivatives:
    """Derivatives of an optimum by n quantities of these `names`: of its states in local
    coordinates (N + 1, ndx, n), its inputs (N, nu, n), and of its cost (n).
    """

    names: tuple[str, ...]
    states: np.ndarray
    inputs: np.ndarray
    cost: np.ndarray


def differentiate_optimum(
    dsys: DiscreteSystem,
    cost: Cost,
    optimum: Optimum,
    by: Sequence[str],
    *,
    limits: LimitsByName | None = None,
    constraints: Sequence[Constraint] = (),
    end: ArrayLike | None = None,
    fixed: Sequence[str] | None = None,
) -> OptimumDerivatives:
    """Derivatives of an optimum of `nh.optimize` by its data, `dz/dp = -F_z^-1 F_p` for the
    conditions of first order F(z, p) = 0, at a small barrier: by local coordinates of the first
    state, by physical parameters, and by the step "h" at the same number of steps.

    The other arguments state the problem, of which only the steps depend on physical
    parameters and h. F_z is factorized by the Riccati recursion, with exact curvature; F_p comes
    from differences of exact first derivatives. Where a constraint changes between active and
    not, the derivative is one between those of both sides. Raises ValueError for an optimum that
    has not converged, without multipliers or not strictly convex, and for unknown names.
    """
    multipliers, errors, n = optimum.multipliers, optimum.errors, len(optimum.trajectory)
    if not optimum.converged or multipliers is None or errors is None:
        raise ValueError(f"{dsys}: the optimum must have converged, got {optimum}")
    coordinates, parameters = dsys.state_space.tangent_names, dsys.system.parameter_names
    unknown = [b for b in by if b not in (*coordinates, *parameters, STEP)]
    if unknown:
        raise ValueError(
            f"{dsys}: unknown quantities {unknown}, choose coordinates of the first state, "
            f"{list(coordinates)}, parameters, {list(parameters)}, or {STEP!r}"
        )
    problem = Problem(dsys, cost, n, limits or {}, constraints, end, fixed)
    at = _Conditions(optimum, multipliers, max(errors.complementarity, LEAST_BARRIER))
    native = at.native(problem)
    if native.call("nh_ocp_factorize") != Outcome.GOES_ON:
        raise ValueError(f"{dsys}: the optimum is not strict, its Hessian not positive definite")
    here = native.array("gap").copy(), native.array("g").copy()
    columns = [_column(native, here, np.zeros(dsys.ndx))]
    value, slopes = native.array("p_start").copy(), list[float]()
    for name in by:
        if name in coordinates:
            start = np.eye(dsys.ndx)[coordinates.index(name)]
            columns.append(_column(native, here, start))
            slopes.append(float(value @ start))
            continue
        gap, g, slope = at.slopes(problem, name)
        moved = here[0] + gap, here[1] + g
        columns.append(_column(native, moved, np.zeros(dsys.ndx)))
        slopes.append(slope)
    states, inputs = (np.stack([c[i] - columns[0][i] for c in columns[1:]], -1) for i in (0, 1))
    return OptimumDerivatives(tuple(by), states, inputs, np.array(slopes))


def _column(
    native: Transcription, at: tuple[np.ndarray, np.ndarray], start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Newton's step (dx, du) for gaps, gradients and a move of the first state."""
    native.array("gap")[...], native.array("g")[...] = at
    native.array("start")[:] = start
    before = native.array("nu").copy()
    native.call("nh_ocp_substitute")
    # once more from these multipliers, which leaves of their regularization its square
    native.array("nu")[:] = native.array("nu_next")
    native.call("nh_ocp_substitute")
    native.array("nu")[:] = before
    return native.array("dx").copy(), native.array("du").copy()


@dataclass(frozen=True)
class _Conditions:
    """The conditions of first order at an optimum, at the barrier mu."""

    optimum: Optimum
    multipliers: Multipliers
    mu: float

    def native(self, problem: Problem) -> Transcription:
        """The solver with the derivatives of the problem there."""
        native, given = Transcription(problem), self.optimum.trajectory
        native.record.mu = native.record.mu_end = self.mu
        native.record.widest = interior_point.WIDEST
        interior_point.start(native, given, self.multipliers)
        native.call("nh_ocp_measure")
        return native

    def slopes(self, problem: Problem, name: str) -> tuple[np.ndarray, np.ndarray, float]:
        """Derivatives of gaps, of the Lagrangian's gradients and of the Lagrangian by a parameter,
        by differences of fourth order.
        """
        d, pi = problem.dsys, self.multipliers.costates
        names, values = (*d.system.parameter_names, STEP), d.parameter_values
        i = names.index(name)
        e = DIFFERENCE * (abs(values[i]) or 1.0)
        gap, g = np.zeros(pi.shape), np.zeros((len(pi), d.ndx + d.nu))
        for times, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
            moved = values.copy()
            moved[i] += times * e
            native = self.native(replace(problem, dsys=d.with_parameter_values(moved)))
            gap += weight * native.array("gap") / (12 * e)
            g += weight * np.einsum("kij,ki->kj", native.array("ab"), pi) / (12 * e)
        return gap, g, float(np.sum(gap * pi))
