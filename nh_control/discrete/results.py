"""Results of a step beside the next state: its linearization, its condition, its failure."""

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
    """Condition numbers of a step's equations: of r_z (`jacobian`); of its part M = D2 D1 Ld
    without constraints and multipliers (`mass`); of Dh(q1) M^{-1} Dh(q0)^T (`constraint`), 1
    without holonomic constraints [johnson2014 VII]. Infinite if a matrix is singular.

    They do not depend on units. M is scaled so that every momentum has unit mass at the system's
    nominal configuration. Constraints have unit length in the metric of M: a single constraint is
    singular if a step turns it by a right angle. For r_z, and for M if a method solves for other
    unknowns, it is the least condition number in any units of equations and unknowns, the spectral
    radius of `|a^{-1}| |a|` [bauer1963].
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
        """From r_z (nz, nz), the places of the multipliers, the nominal masses (nrho), see
        `StateMap.nominal_masses`, and the number of redundant constraints, which are left out.
        """
        m, n = list(multipliers), [i for i in range(len(r_z)) if i not in multipliers]
        mass, toward, impulse = r_z[np.ix_(n, n)], r_z[np.ix_(m, n)], r_z[np.ix_(n, m)]
        if masses is not None and len(masses) == len(n):
            unit = 1 / np.sqrt(masses)
            inner = _condition(unit[:, None] * mass * unit)
        else:
            inner = _least_condition(mass)
        if redundant and inner < np.inf and np.isfinite(r_z).all():
            after = toward @ np.linalg.solve(mass, impulse)
            kept = sorted([*n, *(m[i] for i in newton.independent_rows(after, redundant))])
            places = [kept.index(i) for i in m if i in kept]
            return cls.of(r_z[np.ix_(kept, kept)], places, masses)
        if not m or inner == np.inf:
            return cls(_least_condition(r_z), inner, inner if m else 1.0)
        after, before = (
            np.sqrt(np.abs(np.sum(end * np.linalg.solve(mass, end), axis=0)))
            for end in (toward.T, impulse)
        )
        with np.errstate(all="ignore"):  # a constraint without a length is no number
            turned = toward @ np.linalg.solve(mass, impulse) / np.outer(after, before)
        return cls(_least_condition(r_z), inner, _condition(turned, 1.0))


def _condition(a: np.ndarray, size: float = 0.0) -> float:
    """Largest singular value, at least `size`, over the smallest."""
    if not np.isfinite(a).all():
        return np.inf
    values = np.linalg.svd(a, compute_uv=False)
    if not len(values):
        return 1.0
    return float(max(size, values[0]) / values[-1] if values[-1] > 0 else np.inf)


def _least_condition(a: np.ndarray) -> float:
    """The least condition number, in the maximum norm, of `diag(x) a diag(y)` for all x, y > 0:
    the spectral radius of `|a^{-1}| |a|` [bauer1963].
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
    """A step's equations could not be solved. It carries the reason, residual, relative error,
    iterations, condition number of r_z and `conditioning` (both of the last Jacobian), the step
    and time if they are known, and the name of the `contact` that most likely caused the failure
    of a step without impulses, else "". A step that is `solved` fails because of where it ends.
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
        self._about = (system, h, reason, residual, error, iterations, conditioning)
        where = "" if step is None else f" at step {step} (t = {step * h:g} s)"
        numbers = (
            f": residual {residual:.1e} (relative {error:.1e}, tolerance {newton.TARGET:.0e}) "
            f"after {iterations} Newton iterations, condition number {conditioning.jacobian:.1e} "
            f"(M {conditioning.mass:.1e}, Dh M^-1 Dh^T {conditioning.constraint:.1e}), h = {h:g}"
        )
        super().__init__(f"{system}{where}: {reason}{'' if solved else numbers}; {remedy}")

    def at_step(self, step: int) -> StepFailed:
        """The same failure with the step's number."""
        return StepFailed(*self._about, step, self.contact, self._remedy, self._solved)


class SolvedStep(NamedTuple):
    """The state x1 (nx) after a step, the unknowns z (nz) that solve its residual, of a
    composition those of its first substep, and the Newton iterations, of its last one.
    """

    x1: np.ndarray
    z: np.ndarray
    newton_iterations: int


@dataclass(frozen=True, init=False)
class Linearization:
    """`local(x1, f(retract(x, dx), u + du, p + dp)) = A dx + B du + P dp` to first order: A (ndx,
    ndx), B (ndx, nu), x1 = f(x, u, p), step h in s; P (ndx, k) for the k parameters asked for.

    The m multipliers of holonomic constraints change by
    `multipliers_x dx + multipliers_u du + multipliers_p dp`, (m, ndx), (m, nu) and (m, k).
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
        # a call for every field, as dataclasses make it, is a tenth of a small robot's A and B
        self.__dict__.update(
            A=A,
            B=B,
            P=P,
            x1=x1,
            h=h,
            multipliers=multipliers,
            multipliers_x=multipliers_x,
            multipliers_u=multipliers_u,
            multipliers_p=multipliers_p,
        )

    def __repr__(self) -> str:
        more = f", P {self.P.shape}" if self.P.size else ""
        return f"Linearization(A {self.A.shape}, B {self.B.shape}{more}, h = {self.h:g} s)"

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.A, self.B))

    def to_ss(self) -> StateSpace:
        """The linearization as a discrete-time `control.StateSpace` with all states as outputs;
        raises ImportError without the package `control`.
        """
        from control import ss  # takes a second to import, and rosdep may not know it

        n, m = self.B.shape
        return ss(self.A, self.B, np.eye(n), np.zeros((n, m)), self.h)
