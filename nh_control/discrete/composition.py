"""A composition: several steps by fractions of h that count as one step."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nh_control.discrete.engine import Engine
from nh_control.discrete.method import Method
from nh_control.discrete.native_abi import StepperData
from nh_control.discrete.simulation import simulate
from nh_control.discrete.workspace import Shapes, Workspace
from nh_control.mechanics.system import System
from nh_control.numerics import newton
from nh_control.numerics.expressions import Vector
from nh_control.numerics.library import library


class _Substep(NamedTuple):
    """The start of a substep, and its linearization."""

    x: np.ndarray
    ab: np.ndarray
    z: np.ndarray
    dz: np.ndarray


class ComposedEngine:
    """The `Engine` of a composition. Its step is a sequence of steps of another engine, by all
    `fractions` of h (some may be negative), under one input.

    With w = (dx, u, p) and W_i = d(x_i, u, p_i)/dw, p_i the parameters with the i-th fraction of
    h, `W_0 = 1,  W_{i+1} = ([A_i B_i P_i] W_i, u, p_{i+1})`; contracted with the adjoints `lam_i =
    A_i^T lam_{i+1}` the second derivative is `sum_i W_i^T H_i(lam_{i+1}) W_i`. Step and
    trajectories run natively in one call; if a substep fails there, other starts are tried. z, dz
    and lam_z belong to the first substep; `jacobians` (substeps, nz, nz) are the r_z of all. A
    step that fails leaves x where it began.
    """

    def __init__(self, part: Engine, fractions: Vector):
        self._part, self._fractions = part, np.array(fractions, dtype=float)
        self._jacobians: Shapes = {"jacobians": (len(fractions), part.nz, part.nz)}

    def shapes_at(self, p: np.ndarray) -> Shapes:
        """Shapes of a workspace for the parameters p (n_parameters)."""
        return {**self._part.shapes_at(p), **self._jacobians}

    @cached_property
    def parametric(self) -> ComposedEngine:
        """The engine that differentiates by the parameters, too."""
        return ComposedEngine(self._part.parametric, self._fractions)

    def step(self, work: Workspace) -> int:
        """All substeps; where one fails, from other starts."""
        return self._substeps(self.stepper(work).address) and self._step_from_others(work)

    @cached_property
    def _substeps(self) -> Callable[[ctypes.c_void_p], int]:
        return library()["nh_substeps"]

    def solve_by_continuation(
        self, routine: Callable[[Workspace], int], status: int, work: Workspace
    ) -> int:
        """The same status: every substep has tried other starts before."""
        return status

    def simulate(
        self, work: Workspace, inputs: np.ndarray, every: int, states: np.ndarray
    ) -> tuple[int, int]:
        """Trajectories as `Engine.simulate`."""
        return simulate(self.stepper(work), inputs, every, states)

    def stepper(self, work: Workspace) -> StepperData:
        """All substeps for native loops."""
        return self._part.stepper(work, self._fractions)

    def prepare(self, work: Workspace, second: bool) -> None:
        """Give work.system the functions of first or `second` derivatives."""
        self._part.prepare(work, second)

    def jacobians(self, work: Workspace) -> Sequence[np.ndarray]:
        """r_z of all substeps of the last linearization."""
        return list(work.jacobians)

    def last_jacobian(self, work: Workspace) -> np.ndarray:
        """r_z of the substep that failed."""
        return self._part.last_jacobian(work)

    def linearize(self, work: Workspace) -> int:
        """Step and first derivatives."""
        return self._linearized(work)[0]

    def hessian(self, work: Workspace) -> int:
        """Step, first and contracted second derivatives."""
        status, substeps = self._linearized(work)
        if status != newton.CONVERGED:
            return status
        h, lam, lam_z, total = work.p[-1], work.lam.copy(), work.lam_z.copy(), 0.0
        first = {name: getattr(work, name).copy() for name in ("x1", "ab", "z", "dz")}
        try:
            for i, derivative in reversed(list(enumerate(self._derivatives(work, substeps)[:-1]))):
                work.x[:], work.p[-1] = substeps[i].x, self._fractions[i] * h
                work.z[:], work.warm[:] = substeps[i].z, 1.0  # not to find another solution
                work.lam[:], work.lam_z[:] = lam, 0.0 if i else lam_z
                status = self._part.hessian(work)
                if status != newton.CONVERGED:
                    break
                total = total + derivative.T @ work.hessian @ derivative
                lam = substeps[i].ab[:, : len(lam)].T @ lam
        finally:
            work.x[:], work.p[-1], work.warm[:] = substeps[0].x, h, 0.0
            for name, array in first.items():  # of the whole step
                getattr(work, name)[...] = array
        work.hessian[...] = total
        return status

    def _linearized(self, work: Workspace) -> tuple[int, list[_Substep]]:
        """Write step and first derivatives; returns the linearized substeps."""
        substeps: list[_Substep] = []

        def keep(i: int) -> None:
            work.jacobians[i] = self._part.jacobians(work)[0]
            substeps.append(_Substep(*(getattr(work, name).copy() for name in _Substep._fields)))

        status = self._each(self._part.linearize, work, keep)
        if status == newton.CONVERGED:
            derivatives = self._derivatives(work, substeps)
            work.ab[...] = derivatives[-1][: len(work.ab)]
            work.z[:], work.dz[...] = substeps[0].z, substeps[0].dz @ derivatives[0]
        return status, substeps

    def _derivatives(self, work: Workspace, substeps: Sequence[_Substep]) -> list[np.ndarray]:
        """W_0, W_1, ... up to the state after the last substep."""
        ndx, n_columns = work.ab.shape
        by_step = n_columns > ndx + len(work.u)
        derivative, derivatives = np.eye(n_columns), []
        for fraction, substep in zip(self._fractions, substeps):
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
        """Run a routine on every substep, and `keep(i)` after each success. The start extrapolates
        the unknowns of the substeps before; if it fails, other starts are tried.
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
        """Mean velocities at the middles of the substeps' times, extrapolated."""
        f, last = self._fractions, solved[-1]
        ratio = (f[i] + f[i - 1]) / (f[i - 1] + f[i - 2]) if i > 1 else 0.0
        return last + ratio * (last - solved[-2]) if 0 < abs(ratio) <= newton.MAX_RATIO else last


def check_composition(where: Any, fractions: Sequence[float]) -> None:
    """Raises ValueError unless the steps of the discrete system `where` can be composed by
    fractions of h.
    """
    values = np.array(fractions, dtype=float)
    if not (len(values) > 1 and np.isfinite(values).all() and (values != 0).all()):
        raise ValueError(
            f"{where}: a composition needs at least 2 fractions of h, finite and not zero, got "
            f"{list(fractions)}"
        )
    if not abs(values.sum() - 1) <= 1e-14:
        raise ValueError(
            f"{where}: fractions of h must add up to 1, got 1 + {values.sum() - 1:.1e}"
        )
    if reason := cannot_be_composed(where.system, where.method):
        raise ValueError(f"{where} cannot be composed: it {reason}")


def cannot_be_composed(system: System, method: Method) -> str:
    """Why the steps of a method cannot be composed on a system, "" if they can."""
    if len(method.substeps) > 1:
        return "is a composition already; compose the method that it is made of"
    if method.contacts:
        return "has contacts, which open and close in steps forward only"
    if method.memory:
        return f"has memory {method.memory} that depends on the size of the last step"
    if system.prescribed:
        return f"has prescribed coordinates {system.prescribed}, whose next values are inputs"
    return ""
