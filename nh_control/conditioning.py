"""Singularities of the linearization: condition numbers of the matrices that a constrained variational step inverts [johnson2014 VII]."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import casadi as ca
import numpy as np

from nh_control.discrete import DiscreteSystem
from nh_control.trajectory import Trajectory

log = logging.getLogger(__name__)

ILL_CONDITIONED, SINGULAR = 1e8, 1e12
"""Condition numbers that are warned of and that are refused: derivatives lose as many digits as they have."""

REMEDIES = {
    "M": "the configurations are singular in these coordinates, or the step is too coarse for them: choose other coordinates, or reduce h",
    "Dh M^-1 Dh^T": "constraints are dependent, or the step turns one by a right angle: drop redundant ones, or reduce h",
}


class SingularStep(ArithmeticError):
    """A step about which the dynamics cannot be linearized; carries its `conditioning` and the `step`."""

    def __init__(self, message: str, conditioning: Conditioning, step: int):
        super().__init__(message)
        self.conditioning, self.step = conditioning, step


@dataclass(frozen=True)
class Conditioning:
    """Condition numbers of a step: `mass` of `M = D2 D1 Ld + D2 F-` and `constraint` of `Dh(q1) M^{-1} Dh(q0)^T` (1 without constraints).

    A 1 x 1 matrix can be singular, too, so the smallest singular value is compared with the size of M or of the continuous `M(q) / h`, whichever is larger, and
    with 1 for the constraints, each of which is scaled to the length 1 in the metric of M.
    """

    mass: float
    constraint: float

    @property
    def worst(self) -> tuple[str, float]:
        """The worse of the two: which matrix, and its condition number; M if that is singular already."""
        return ("M", self.mass) if self.mass >= min(self.constraint, SINGULAR) else ("Dh M^-1 Dh^T", self.constraint)


class ConditionMonitor:
    """Watches the matrices that the derivatives of a variational integrator invert; ValueError for a method with velocity constraints, which has others."""

    def __init__(self, dsys: DiscreteSystem):
        system, space = dsys.system, dsys.system.space
        n = system.n_rho
        if system.m or dsys.method.n_z != n + system.n_holonomic:
            raise ValueError(f"{dsys}: conditioning is that of the variational integrators for systems without velocity constraints")
        self.dsys, self._n = dsys, n
        x, u, x1 = ca.SX.sym("x", dsys.nx), ca.SX.sym("u", dsys.nu), ca.SX.sym("x1", dsys.nx)
        q, rho, z = x[: space.nq], x[space.nq :], ca.SX.sym("z", dsys.method.n_z)
        jacobian = ca.jacobian(dsys.method.residual(q, rho, u, z, system.gradients), z)
        mean = ca.vertcat(space.local(q, x1[: space.nq])[:n] / dsys.h, ca.SX.zeros(system.n_holonomic))
        mass = system.inertia(q, rho)[0][:n, :n]
        self._matrices = ca.Function("matrices", [x, u, x1], [ca.substitute(jacobian, z, mean) / dsys.h, mass / dsys.h])

    def conditioning(self, x, u, x1) -> Conditioning:
        """Conditioning of the step from x (nx) under u (nu) to x1 (nx)."""
        jacobian, mass = (np.asarray(value) for value in self._matrices(x, u, x1))
        n = self._n
        m, forward, back = jacobian[:n, :n], jacobian[n:, :n], -self.dsys.h * jacobian[:n, n:]
        size = _condition(m, np.linalg.norm(mass, 2))
        if not len(forward) or not size < 1 / np.finfo(float).eps:
            return Conditioning(size, 1.0)
        after, before = (np.sqrt(np.abs(np.sum(end.T * np.linalg.solve(m, end.T), axis=0))) for end in (forward, back.T))
        return Conditioning(size, _condition(forward @ np.linalg.solve(m, back) / np.outer(after, before), 1.0))


def require_regular(dsys: DiscreteSystem, trajectory: Trajectory) -> Conditioning:
    """Worst conditioning along a trajectory, so that linearizations about it can be trusted.

    Raises SingularStep at the first step with a condition number above SINGULAR; logs a warning, with step and remedy, for the worst one above ILL_CONDITIONED.
    """
    monitor, worst, at = ConditionMonitor(dsys), Conditioning(1.0, 1.0), 0
    for k, (x, u) in enumerate(zip(trajectory.states, trajectory.inputs)):
        found = monitor.conditioning(x, u, trajectory.states[k + 1])
        if not found.worst[1] <= SINGULAR:
            raise SingularStep(_report(dsys, found, k, "singular"), found, k)
        if found.worst[1] > worst.worst[1]:
            worst, at = found, k
    if worst.worst[1] > ILL_CONDITIONED:
        log.warning(_report(dsys, worst, at, "ill-conditioned"))
    return worst


def _report(dsys: DiscreteSystem, found: Conditioning, k: int, how: str) -> str:
    matrix, number = found.worst
    return f"{dsys} at step {k} (t = {k * dsys.h:g} s): {matrix} is {how}, condition number {number:.1e}: {REMEDIES[matrix]}"


def _condition(matrix: np.ndarray, size: float) -> float:
    """Largest singular value, at least `size`, over the smallest."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return float(max(size, values[0]) / values[-1]) if values[-1] > 0 else np.inf
