"""Derivatives of an optimum, computed from the factorized Newton equation at the optimum."""

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
"""Minimum barrier. A smaller one would make active rows so stiff that the factors lose digits."""
DIFFERENCE = 1e-3
"""Relative change of a parameter in fourth-order finite differences."""


@dataclass(frozen=True)
class OptimumDerivatives:
    """Derivatives of an optimum with respect to the n quantities `names`: the derivatives of the
    states in local coordinates (N + 1, ndx, n), of the inputs (N, nu, n), and of the cost (n).
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
    """Derivatives of an optimum from `nh.optimize` with respect to the data of its problem.

    `by` names local coordinates of the first state, physical parameters, or the step "h" with a
    constant number of steps. The derivatives are `dz/dtheta = -F_z^-1 F_theta` for the first-order
    conditions F(z, theta) = 0 at a small barrier. The other arguments define the problem. Only its
    steps may depend on physical parameters and h. The Riccati recursion factorizes F_z, with exact
    curvature; F_theta follows from differences of exact first derivatives. At a point where a
    constraint changes between active and inactive, the result lies between the derivatives on the
    two sides. Raises ValueError for unknown names, and for an optimum that has not converged, has
    no multipliers or is not strictly convex.
    """
    multipliers, errors, n = optimum.multipliers, optimum.errors, len(optimum.trajectory)
    if not optimum.converged or multipliers is None or errors is None:
        raise ValueError(f"{dsys}: the optimum must have converged, got {optimum}")
    coordinates, parameters = dsys.state_space.tangent_names, dsys.system.parameter_names
    unknown = [b for b in by if b not in (*coordinates, *parameters, STEP)]
    if unknown:
        raise ValueError(
            f"{dsys}: unknown quantities {unknown}, choose from coordinates of the first state, "
            f"{list(coordinates)}, parameters, {list(parameters)}, and {STEP!r}"
        )
    problem = Problem(dsys, cost, n, limits or {}, constraints, end, fixed)
    at = _Conditions(optimum, multipliers, max(errors.complementarity, LEAST_BARRIER))
    native = at.native(problem)
    if native.call("nh_ocp_factorize") != Outcome.GOES_ON:
        raise ValueError(f"{dsys}: the Hessian at the optimum must be positive definite")
    # right-hand sides F_theta; the first column is subtracted from the others
    here = native.array("gap").copy(), native.array("g").copy()
    columns = [_column(native, here, np.zeros(dsys.ndx))]
    # gradient of the cost with respect to the first state
    value, slopes = native.array("p_start").copy(), list[float]()
    for name in by:
        if name in coordinates:
            start = np.eye(dsys.ndx)[coordinates.index(name)]
            columns.append(_column(native, here, start))
            slopes.append(float(value @ start))
            continue
        gap, g, slope = at.slopes(problem, name)
        columns.append(_column(native, (here[0] + gap, here[1] + g), np.zeros(dsys.ndx)))
        slopes.append(slope)
    states, inputs = (np.stack([c[i] - columns[0][i] for c in columns[1:]], -1) for i in (0, 1))
    return OptimumDerivatives(tuple(by), states, inputs, np.array(slopes))


def _column(
    native: Transcription, at: tuple[np.ndarray, np.ndarray], start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The Newton step (dx, du) for given gaps, gradients and a change of the first state."""
    native.array("gap")[...], native.array("g")[...] = at
    native.array("start")[:] = start
    before = native.array("nu").copy()
    native.call("nh_ocp_substitute")
    # repeat from these multipliers, which squares the error that their regularization causes
    native.array("nu")[:] = native.array("nu_next")
    native.call("nh_ocp_substitute")
    native.array("nu")[:] = before
    return native.array("dx").copy(), native.array("du").copy()


@dataclass(frozen=True)
class _Conditions:
    """The first-order conditions at an optimum, with the barrier mu."""

    optimum: Optimum
    multipliers: Multipliers
    mu: float

    def native(self, problem: Problem) -> Transcription:
        """A solver with the derivatives of the problem at the optimum."""
        native = Transcription(problem)
        native.record.mu = native.record.mu_end = self.mu
        native.record.widest = interior_point.WIDEST
        interior_point.start(native, self.optimum.trajectory, self.multipliers)
        native.call("nh_ocp_measure")
        return native

    def slopes(self, problem: Problem, name: str) -> tuple[np.ndarray, np.ndarray, float]:
        """Derivatives of the gaps, of the Lagrangian's gradients and of the Lagrangian with
        respect to a parameter, by fourth-order finite differences.
        """
        d, pi = problem.dsys, self.multipliers.costates
        names, values = (*d.system.parameter_names, STEP), d.parameter_values
        i = names.index(name)
        e = DIFFERENCE * (abs(values[i]) or 1.0)
        gap, g = np.zeros(pi.shape), np.zeros((len(pi), d.ndx + d.nu))
        # df/dtheta = (8 (f(e) - f(-e)) - (f(2 e) - f(-2 e))) / (12 e)
        for times, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
            changed = values.copy()
            changed[i] += times * e
            native = self.native(replace(problem, dsys=d.with_parameter_values(changed)))
            gap += weight * native.array("gap") / (12 * e)
            g += weight * np.einsum("kij,ki->kj", native.array("ab"), pi) / (12 * e)
        return gap, g, float(np.sum(gap * pi))
