"""A step and its derivatives for native algorithms, on a workspace of their own."""

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
    """Addresses of the native step, its linearization and, for `second` derivatives, the Hessian
    of a system, on the arrays of `work`; `parametric` ones have all parameters, and h, among the
    variables of their derivatives.

    Python computes what has no native code, such as second derivatives of trees and derivatives of
    compositions; `check` raises the errors of these calls after the native algorithm.
    `takes_solutions` says whether derivatives need only z and x1 in the arrays, after a step that
    does nothing, `are_native` whether Python computes nothing.
    """

    def __init__(self, dsys: DiscreteSystem, second: bool, parametric: bool = False):
        self._engine = dsys.engine.parametric if parametric else dsys.engine
        if second and isinstance(self._engine, Engine):
            self._engine = self._engine.with_second_derivatives
        self._error = list[BaseException]()
        self.dsys, p = dsys, dsys.parameter_values
        self.work = Workspace(self._engine.shapes_at(p))
        self.work.p[:] = p
        self._engine.prepare(self.work, second)
        engine, native = self._engine, None
        if not isinstance(engine, ComposedEngine):
            native = engine.native_derivatives(second)
        if native is None:
            step, linearize = STEP(self._call("step")), LINEARIZE(self._call("linearize"))
            hessian: Any = HESSIAN(self._call("hessian")) if second else None
        else:
            step, linearize, hessian = native
            if second and hessian is None:
                hessian = HESSIAN(self._call("hessian"))
        self.takes_solutions = type(engine) is Engine and native is not None
        self.are_native = native is not None and (not second or native[2] is not None)
        self.kept = step, linearize, hessian
        self.step, self.linearize, self.hessian = map(_address, self.kept)

    def unknowns(self, k: int, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The unknowns (nz) of step k from x under u, found from no guess; raises as
        `DiscreteSystem.step` does, with the number of the step.
        """
        work = self.work
        work.x[:], work.u[:], work.warm[:] = x, u, 0.0
        if self._engine.step(work) == newton.CONVERGED:
            return work.z.copy()
        return self.dsys.unknowns(x, u)

    def check(self) -> None:
        """Raise the error of a call from native code since the last check."""
        if self._error:
            raise self._error.pop()

    def _call(self, name: str) -> Callable[..., int]:
        def call(*_: Any) -> int:
            if self._error:
                return newton.NOT_FINITE
            try:
                return int(getattr(self._engine, name)(self.work))
            except BaseException as error:  # ctypes would drop it
                self._error.append(error)
                return newton.NOT_FINITE

        return call


def _address(routine: Any) -> int:
    return 0 if routine is None else ctypes.cast(routine, ctypes.c_void_p).value or 0


def has_fast_hessian(dsys: DiscreteSystem) -> bool:
    """Whether second derivatives of steps are native, without compiling them."""
    return type(dsys.engine) is Engine
