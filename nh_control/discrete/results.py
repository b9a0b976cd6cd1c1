"""Results of a step other than the next state: linearization, conditioning and failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nh_control.numerics import newton

if TYPE_CHECKING:
    from control import StateSpace


@dataclass(frozen=True)
class Conditioning:
    """Condition numbers for the equations of a step [johnson2014 VII]: `jacobian` for r_z; `mass`
    for its block M = D2 D1 Ld without constraints and multipliers; `constraint` for Dh(q1) M^{-1}
    Dh(q0)^T, which is 1 without holonomic constraints. A condition number is infinite for a
    singular matrix.

    Condition numbers do not depend on units. M is scaled such that every momentum has unit mass at
    the system's nominal configuration. Constraints have unit length in the metric of M, so a
    single constraint becomes singular if a step rotates it by a right angle. For r_z, and for M if
    a method solves for other unknowns, the number is the minimum over all units of equations and
    unknowns. This minimum is the spectral radius of `|a^{-1}| |a|` [bauer1963].
    """

    jacobian: float
    mass: float
    constraint: float

    @classmethod
    def of(
        cls,
        r_z: np.ndarray,
        multipliers: Sequence[int],
        masses: np.ndarray | None = None,
        redundant: int = 0,
    ) -> Conditioning:
        """Compute the condition numbers from r_z (nz, nz), the indices of the multipliers, the
        nominal masses (nrho) from `StateMap.nominal_masses`, and the number of redundant
        constraints to leave out.
        """
        # r_z = [[M, -Dh(q0)^T], [Dh(q1), 0]] up to factors
        m, n = list(multipliers), [i for i in range(len(r_z)) if i not in multipliers]
        mass, toward, impulse = r_z[np.ix_(n, n)], r_z[np.ix_(m, n)], r_z[np.ix_(n, m)]
        if masses is not None and len(masses) == len(n):
            unit = 1 / np.sqrt(masses)
            inner = _condition(unit[:, None] * mass * unit)
        else:
            inner = _least_condition(mass)
        # leave out redundant constraints: keep only independent rows of Dh(q1) M^{-1} Dh(q0)^T
        if redundant and inner < np.inf and np.isfinite(r_z).all():
            after = toward @ np.linalg.solve(mass, impulse)
            independent = sorted([*n, *(m[i] for i in newton.independent_rows(after, redundant))])
            places = [independent.index(i) for i in m if i in independent]
            return cls.of(r_z[np.ix_(independent, independent)], places, masses)
        if not m or inner == np.inf:
            return cls(_least_condition(r_z), inner, inner if m else 1.0)
        # lengths of the constraints in the metric of M, at both ends of the step
        after, before = (
            np.sqrt(np.abs(np.sum(end * np.linalg.solve(mass, end), axis=0)))
            for end in (toward.T, impulse)
        )
        with np.errstate(all="ignore"):  # NaN for a constraint of zero length
            turned = toward @ np.linalg.solve(mass, impulse) / np.outer(after, before)
        return cls(_least_condition(r_z), inner, _condition(turned, 1.0))


def _condition(a: np.ndarray, size: float = 0.0) -> float:
    """The largest singular value (or `size` if that is larger) divided by the smallest one."""
    if not np.isfinite(a).all():
        return np.inf
    # ratio of the extreme singular values
    values = np.linalg.svd(a, compute_uv=False)
    if not len(values):
        return 1.0
    return float(max(size, values[0]) / values[-1] if values[-1] > 0 else np.inf)


def _least_condition(a: np.ndarray) -> float:
    """The smallest condition number, in the maximum norm, of `diag(x) a diag(y)` over all x, y >
    0. It is the spectral radius of `|a^{-1}| |a|` [bauer1963].
    """
    if not np.isfinite(a).all():
        return np.inf
    if not len(a):
        return 1.0
    try:
        product = np.abs(np.linalg.inv(a)) @ np.abs(a)
    except np.linalg.LinAlgError:
        return np.inf
    return (
        float(np.abs(np.linalg.eigvals(product)).max()) if np.isfinite(product).all() else np.inf
    )


class StepFailed(RuntimeError):
    """Raised if the equations of a step cannot be solved. The attributes are the reason, the
    residual, the relative error, the number of iterations, the condition number of r_z and
    `conditioning` (both for the last Jacobian), the step and time if known, and the name of the
    `contact` that most likely caused the failure, or "". A step that was `solved` failed because
    its final state is not valid.
    """

    def __init__(
        self,
        system: str,
        h: float,
        reason: str,
        residual: float,
        error: float,
        iterations: int,
        conditioning: Conditioning,
        step: int | None = None,
        contact: str = "",
        remedy: str = "reduce h, or keep away from the singular configuration",
        solved: bool = False,
    ):
        self.reason, self.residual, self.error = reason, residual, error
        self.iterations, self.conditioning, self.step = iterations, conditioning, step
        self.condition = conditioning.jacobian
        self.time = None if step is None else step * h
        self.contact, self._remedy, self._solved = contact, remedy, solved
        self._system, self._h = system, h
        where = "" if step is None else f" at step {step} (t = {step * h:g} s)"
        numbers = (
            f": residual {residual:.1e} (relative {error:.1e}, tolerance {newton.TOLERANCE:.0e}) "
            f"after {iterations} Newton iterations, condition number {conditioning.jacobian:.1e} "
            f"(M {conditioning.mass:.1e}, Dh M^-1 Dh^T {conditioning.constraint:.1e}), h = {h:g}"
        )
        super().__init__(f"{system}{where}: {reason}{'' if solved else numbers}; {remedy}")

    def at_step(self, step: int) -> StepFailed:
        """The same failure, with the step number added."""
        return StepFailed(
            self._system,
            self._h,
            self.reason,
            residual=self.residual,
            error=self.error,
            iterations=self.iterations,
            conditioning=self.conditioning,
            step=step,
            contact=self.contact,
            remedy=self._remedy,
            solved=self._solved,
        )


class SolvedStep(NamedTuple):
    """The state x1 (nx) after a step, the solution z (nz) of the step's equations, and the number
    of Newton iterations. For a composition, z belongs to the first substep and the iterations to
    the last.
    """

    x1: np.ndarray
    z: np.ndarray
    newton_iterations: int


@dataclass(frozen=True, init=False)
class Linearization:
    """The linearization `local(x1, f(retract(x, dx), u + du, p + dp)) = A dx + B du + P dp` with A
    (ndx, ndx), B (ndx, nu), P (ndx, k) for k requested parameters, x1 = f(x, u, p) and the step h
    (s).

    The m multipliers of holonomic constraints change by
    `multipliers_x dx + multipliers_u du + multipliers_p dp`, with matrices (m, ndx), (m, nu) and
    (m, k).
    """

    A: np.ndarray
    B: np.ndarray
    P: np.ndarray
    x1: np.ndarray
    h: float
    multipliers: np.ndarray
    multipliers_x: np.ndarray
    multipliers_u: np.ndarray
    multipliers_p: np.ndarray

    def __init__(
        self,
        A: np.ndarray,
        B: np.ndarray,
        P: np.ndarray,
        x1: np.ndarray,
        h: float,
        multipliers: np.ndarray,
        multipliers_x: np.ndarray,
        multipliers_u: np.ndarray,
        multipliers_p: np.ndarray,
    ):
        # setting each field by a call, as dataclasses do, takes 10 % of a small linearization
        fields = self.__dict__
        fields["A"], fields["B"], fields["P"] = A, B, P
        fields["x1"], fields["h"] = x1, h
        fields["multipliers"], fields["multipliers_x"] = multipliers, multipliers_x
        fields["multipliers_u"], fields["multipliers_p"] = multipliers_u, multipliers_p

    def __repr__(self) -> str:
        more = f", P {self.P.shape}" if self.P.size else ""
        return f"Linearization(A {self.A.shape}, B {self.B.shape}{more}, h = {self.h:g} s)"

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.A, self.B))

    def to_ss(self) -> StateSpace:
        """The linearization as a discrete-time `control.StateSpace` with all states as outputs;
        raises ImportError if the package `control` is missing.
        """
        from control import ss  # imported here because it takes a second and may be missing

        n, m = self.B.shape
        return ss(self.A, self.B, np.eye(n), np.zeros((n, m)), self.h)
