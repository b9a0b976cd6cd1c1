"""The step and its derivatives for native algorithms, with a separate workspace."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from nh_control.discrete.composition import ComposedEngine
from nh_control.discrete.engine import Engine
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.workspace import Workspace
from nh_control.numerics import newton

STEP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
LINEARIZE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
HESSIAN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class StepRoutines:
    """The addresses of a system's native step, its linearization and, if `second`, its Hessian.
    These routines work on the arrays of `work`. If `parametric`, derivatives are also taken with
    respect to all parameters and h.

    Python computes routines without native code, such as second derivatives of trees and
    derivatives of compositions. After the native algorithm, `check` raises the errors that
    occurred in these routines. `takes_solutions` says whether derivatives can be computed from z
    and x1 in the arrays without a step. `are_native` says whether all routines run without Python.
    """

    def __init__(self, dsys: DiscreteSystem, second: bool, parametric: bool = False):
        self._engine = dsys.engine.parametric if parametric else dsys.engine
        if second and isinstance(self._engine, Engine):
            self._engine = self._engine.with_second_derivatives
        self._error, self._second = list[BaseException](), second
        self.dsys, p = dsys, dsys.parameter_values
        self.work = Workspace(self._engine.shapes_at(p))
        self.work.p[:] = p
        self._engine.prepare(self.work, second)
        engine, native = self._engine, self._native
        # callbacks into Python for a composition
        if native is None:
            step, linearize = STEP(self._call("step")), LINEARIZE(self._call("linearize"))
            hessian: Any = HESSIAN(self._call("hessian")) if second else None
        else:
            step, linearize, hessian = native
            if second and hessian is None:
                hessian = HESSIAN(self._call("hessian"))
        self.takes_solutions = type(engine) is Engine and native is not None
        self.are_native = native is not None and (not second or native[2] is not None)
        self.references = step, linearize, hessian
        self.step, self.linearize, self.hessian = map(_address, self.references)

    @property
    def _native(self) -> tuple[Any, Any, Any] | None:
        """The engine's native routines; None if Python computes them."""
        if isinstance(self._engine, ComposedEngine):
            return None
        return self._engine.native_derivatives(self._second)

    @property
    def are_current(self) -> bool:
        """Whether these are still the engine's routines, which compiled routines replace when
        ready.
        """
        pairs = zip(self._native or (), self.references)
        return all(
            routine is None or routine is here or _address(routine) == _address(here)
            for routine, here in pairs
        )

    def reset(self) -> None:
        """Reset the arrays to their initial values."""
        self.work.reset()
        self.work.p[:] = self.dsys.parameter_values

    def unknowns(self, k: int, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The unknowns (nz) of the step from x under u, computed without an initial guess. Raises
        the same errors as `DiscreteSystem.step`.
        """
        work = self.work
        work.x[:], work.u[:], work.warm[:] = x, u, 0.0
        if self._engine.step(work) == newton.CONVERGED:
            return work.z.copy()
        return self.dsys.unknowns(x, u)

    def check(self) -> None:
        """Raise the error of any Python routine that native code has called since the last
        check.
        """
        if self._error:
            raise self._error.pop()

    def _call(self, name: str) -> Callable[..., int]:
        def call(*_: Any) -> int:
            if self._error:
                return newton.NOT_FINITE
            try:
                return int(getattr(self._engine, name)(self.work))
            except BaseException as error:  # ctypes would ignore it
                self._error.append(error)
                return newton.NOT_FINITE

        return call


def _address(routine: Any) -> int:
    return 0 if routine is None else ctypes.cast(routine, ctypes.c_void_p).value or 0


def has_fast_hessian(dsys: DiscreteSystem) -> bool:
    """Whether second derivatives of steps are native; compiles nothing."""
    return type(dsys.engine) is Engine
