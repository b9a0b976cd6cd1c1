"""Compositions, which combine several steps by fractions of h into one step."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nh_control.discrete.engine import Engine
from nh_control.discrete.linearized_steps import LinearizedSteps
from nh_control.discrete.method import Method
from nh_control.discrete.native_abi import StepperData
from nh_control.discrete.products import ComposedProducts, Products
from nh_control.discrete.simulation import simulate
from nh_control.discrete.workspace import Shapes, Workspace
from nh_control.mechanics.system import System
from nh_control.numerics import newton
from nh_control.numerics.expressions import Vector
from nh_control.numerics.library import library


class _Substep(NamedTuple):
    """The initial state of a substep, its linearization and its unknowns."""

    x: np.ndarray
    ab: np.ndarray
    z: np.ndarray
    dz: np.ndarray


class ComposedEngine:
    """The `Engine` of a composition. Its step is a sequence of another engine's steps by the
    `fractions` of h, all under the same input. Some fractions may be negative.

    With w = (dx, u, p) and W_i = d(x_i, u, p_i)/dw, where p_i are the parameters with the i-th
    fraction of h, `W_0 = 1,  W_{i+1} = ([A_i B_i P_i] W_i, u, p_{i+1})`. Contracted with the
    adjoints `lam_i = A_i^T lam_{i+1}`, the second derivative is `sum_i W_i^T H_i(lam_{i+1}) W_i`.
    A step or a trajectory runs in one native call. If a substep fails in this call, other initial
    guesses are tried. z, dz and lam_z belong to the first substep; `jacobians` (substeps, nz, nz)
    contains r_z for every substep. A failed step leaves x unchanged.
    """

    def __init__(self, part: Engine, fractions: Vector):
        self._part, self._fractions = part, np.array(fractions, dtype=float)
        self._jacobians: Shapes = {"jacobians": (len(fractions), part.nz, part.nz)}

    def shapes_at(self, p: np.ndarray) -> Shapes:
        """Shapes of a workspace's arrays for the parameters p (n_parameters)."""
        return {**self._part.shapes_at(p), **self._jacobians}

    @cached_property
    def parametric(self) -> ComposedEngine:
        """The engine that also differentiates with respect to the parameters."""
        return ComposedEngine(self._part.parametric, self._fractions)

    def step(self, work: Workspace) -> int:
        """Solve all substeps; if one fails, try other initial guesses."""
        return self._substeps(self.stepper(work).address) and self._step_from_others(work)

    @cached_property
    def _substeps(self) -> Callable[[ctypes.c_void_p], int]:
        return library()["nh_substeps"]

    def solve_by_continuation(
        self, routine: Callable[[Workspace], int], status: int, work: Workspace
    ) -> int:
        """Return `status`: every substep has already tried other initial guesses."""
        return status

    def simulate(
        self, work: Workspace, inputs: np.ndarray, every: int, states: np.ndarray
    ) -> tuple[int, int]:
        """Compute a trajectory (see `Engine.simulate`)."""
        return simulate(self.stepper(work), inputs, every, states)

    def stepper(self, work: Workspace) -> StepperData:
        """The data for all substeps in native loops."""
        return self._part.stepper(work, self._fractions)

    def prepare(self, work: Workspace, second: bool) -> None:
        """Set the functions for the first or `second` derivatives in work.system."""
        self._part.prepare(work, second)

    def jacobians(self, work: Workspace) -> Sequence[np.ndarray]:
        """r_z for every substep in the last linearization."""
        return list(work.jacobians)

    def last_jacobian(self, work: Workspace) -> np.ndarray:
        """r_z for the substep that failed."""
        return self._part.last_jacobian(work)

    def linearize(self, work: Workspace) -> int:
        """Compute the step and its first derivatives."""
        return self._linearized(work)[0]

    def linearize_rows(
        self, work: Workspace, first: int, x: np.ndarray, u: np.ndarray, out: LinearizedSteps
    ) -> int:
        """Return `first`: Python linearizes a composition."""
        return first

    def hessian(self, work: Workspace) -> int:
        """Compute the step, its first derivatives and its contracted second derivatives."""
        status, substeps = self._linearized(work)
        if status != newton.CONVERGED:
            return status
        # keep the results of the linearization: the sweep overwrites the arrays
        h, lam, lam_z, total = work.p[-1], work.lam.copy(), work.lam_z.copy(), 0.0
        first = {name: getattr(work, name).copy() for name in ("x1", "ab", "z", "dz")}
        # backward sweep: H += W_i^T H_i(lam_{i+1}) W_i, then lam_i = A_i^T lam_{i+1}
        try:
            for i, derivative in reversed(list(enumerate(self._derivatives(work, substeps)[:-1]))):
                work.x[:], work.p[-1] = substeps[i].x, self._fractions[i] * h
                work.z[:], work.warm[:] = substeps[i].z, 1.0  # find the same solution again
                work.lam[:], work.lam_z[:] = lam, 0.0 if i else lam_z
                status = self._part.hessian(work)
                if status != newton.CONVERGED:
                    break
                total = total + derivative.T @ work.hessian @ derivative
                lam = substeps[i].ab[:, : len(lam)].T @ lam
        finally:
            work.x[:], work.p[-1], work.warm[:] = substeps[0].x, h, 0.0
            for name, array in first.items():  # restore the values for the whole step
                getattr(work, name)[...] = array
        work.hessian[...] = total
        return status

    @property
    def products(self) -> Callable[[Workspace], int] | None:
        """The routine for the step and products with its derivatives (see `Engine.products`)."""
        part = self._part.products
        if part is None:
            return None

        def routine(work: Workspace) -> int:
            substeps = list[Products]()
            status = self._each(part, work, lambda _: substeps.append(work.products))
            if status == newton.CONVERGED:
                work.products = ComposedProducts(substeps)
            return status

        return routine

    def _linearized(self, work: Workspace) -> tuple[int, list[_Substep]]:
        """Write the step and its first derivatives; return the linearized substeps."""
        substeps: list[_Substep] = []

        def keep(i: int) -> None:
            work.jacobians[i] = self._part.jacobians(work)[0]
            substeps.append(_Substep(work.x.copy(), work.ab.copy(), work.z.copy(), work.dz.copy()))

        status = self._each(self._part.linearize, work, keep)
        if status == newton.CONVERGED:
            derivatives = self._derivatives(work, substeps)
            work.ab[...] = derivatives[-1][: len(work.ab)]
            # d z/d(dx, u, p) of the first substep, by the chain rule with W_0
            work.z[:], work.dz[...] = substeps[0].z, substeps[0].dz @ derivatives[0]
        return status, substeps

    def _derivatives(self, work: Workspace, substeps: Sequence[_Substep]) -> list[np.ndarray]:
        """W_0, W_1, ..., up to the one for the state after the last substep."""
        ndx, n_columns = work.ab.shape
        by_step = n_columns > ndx + len(work.u)
        derivative, derivatives = np.eye(n_columns), []
        for fraction, substep in zip(self._fractions, substeps):
            # dp_i/dp: the last parameter of substep i is its fraction of h
            if by_step:
                derivative[-1, -1] = fraction
            derivatives.append(derivative)
            derivative = np.vstack([substep.ab @ derivative, np.eye(n_columns)[ndx:]])
        return [*derivatives, derivative]

    def _step_from_others(self, work: Workspace) -> int:
        first = np.empty_like(work.z)

        def keep(i: int) -> None:
            if i == 0:
                first[:] = work.z

        status = self._each(self._part.step, work, keep)
        if status == newton.CONVERGED:
            work.z[:] = first
        return status

    def _each(
        self, routine: Callable[[Workspace], int], work: Workspace, keep: Callable[[int], None]
    ) -> int:
        """Run a routine on every substep, and call `keep(i)` after each success. The initial guess
        extrapolates the unknowns of the previous substeps. If it fails, other guesses are tried.
        """
        h, start = work.p[-1], work.x.copy()
        status, solved = newton.CONVERGED, list[np.ndarray]()
        try:
            for i, fraction in enumerate(self._fractions):
                if i:
                    work.x[:], work.warm[:] = work.x1, 1.0
                    work.z[:] = self._guess(i, solved)
                work.p[-1] = fraction * h
                status = routine(work)
                if status and (status := self._part.solve_by_continuation(routine, status, work)):
                    work.x[:] = start
                    break
                solved.append(work.z.copy())
                keep(i)
        finally:
            work.p[-1], work.warm[:] = h, 0.0
        return status

    def _guess(self, i: int, solved: Sequence[np.ndarray]) -> np.ndarray:
        """The unknowns of substep i, extrapolated linearly in the midpoint times of the
        substeps.
        """
        # z_i = z_{i-1} + ratio (z_{i-1} - z_{i-2})
        f, last = self._fractions, solved[-1]
        ratio = (f[i] + f[i - 1]) / (f[i - 1] + f[i - 2]) if i > 1 else 0.0
        return last + ratio * (last - solved[-2]) if 0 < abs(ratio) <= newton.MAX_RATIO else last


def check_composition(where: Any, fractions: Sequence[float]) -> None:
    """Raise ValueError unless steps of the discrete system `where` can be composed with these
    fractions of h.
    """
    values = np.array(fractions, dtype=float)
    if not (len(values) > 1 and np.isfinite(values).all() and (values != 0).all()):
        raise ValueError(
            f"{where}: a composition needs at least 2 fractions of h, finite and not zero, got "
            f"{list(fractions)}"
        )
    # consistency: the fractions of a step of h add up to h
    if not abs(values.sum() - 1) <= 1e-14:
        raise ValueError(
            f"{where}: fractions of h must add up to 1, got 1 + {values.sum() - 1:.1e}"
        )
    if reason := cannot_be_composed(where.system, where.method):
        raise ValueError(f"{where} cannot be composed: it {reason}")


def cannot_be_composed(system: System, method: Method) -> str:
    """The reason why a method's steps cannot be composed for a system; "" if they can."""
    if len(method.substeps) > 1:
        return "is already a composition; compose the method of its substeps"
    if method.contacts:
        return "has contacts, which open and close only in forward steps"
    if method.memory:
        return f"has memory {method.memory} that depends on the size of the last step"
    if system.prescribed:
        return f"has prescribed coordinates {system.prescribed}, whose next values are inputs"
    return ""
