"""Runs the equations of a step: natively, one call each for step, linearization and Hessian, or in
CasADi's virtual machine.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cached_property
from importlib import resources

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

from nh_control.discrete.equations import StepEquations
from nh_control.numerics import newton
from nh_control.numerics.compiled import Functions, Native

CONSTANTS = (
    "TARGET",
    "ACCEPT",
    "SMALL",
    "REFRESH",
    "MAX_ITERATIONS",
    "MAX_HALVINGS",
    *newton.STATUS,
)


class Workspace:
    """One thread's arrays by name, and `list`, the addresses of all of them in their order."""

    def __init__(self, shapes: dict[str, tuple[int, ...]]):
        self.__dict__.update({name: np.zeros(shape) for name, shape in shapes.items()})
        self.list = (ctypes.c_void_p * len(shapes))(
            *(getattr(self, name).ctypes.data for name in shapes)
        )


class _Threads(threading.local):
    def __init__(self, shapes: dict[str, tuple[int, ...]]):
        self.work = Workspace(shapes)


class Engine:
    """`step(work)`, `linearize(work)` and `hessian(work)` on the arrays of a `Workspace`; all
    return a status of `newton`.

    step: x, u -> z, x1, info (iterations, relative error, largest |r|), and r_z of the last
    Jacobian it took; linearize: also r_z, dz = dz/d(dx, u) and
    ab = [A B]; hessian: also lam, nu -> hessian, the second derivative of
    `lam . local(x1, f(retract(x, dx), u + du)) + nu . z`. A library that cannot be had is replaced
    by CasADi's virtual machine and NumPy.
    """

    def __init__(self, equations: StepEquations):
        e, self.equations = equations, equations
        n, nw = e.n_z, e.ndx + e.nu
        step = {
            "x": (e.nx,),
            "u": (e.nu,),
            "z": (n,),
            "x1": (e.nx,),
            "info": (3,),
            "r_z": (n, n),
            "factors": (n, n),
            "pivots": (n,),
        }
        first = {"dz": (n, nw), "ab": (e.ndx, nw), "g_z": (e.ndx, n)}
        second = {
            "lam": (e.ndx,),
            "nu": (n,),
            "mu": (n,),
            "full": (nw + n, nw + n),
            "g": (n, nw),
            "half": (nw, nw),
            "hessian": (nw, nw),
        }
        self._shapes = {**step, **first, **second}
        self._threads = _Threads(self._shapes)

    @property
    def work(self) -> Workspace:
        """The arrays of this thread."""
        return self._threads.work

    @cached_property
    def step(self) -> Callable[[Workspace], int]:
        """Solves the step's equations and reads the next state out."""
        native = self._native_step
        return self._interpreted_step if native is None else lambda work: native(work.list)

    @cached_property
    def linearize(self) -> Callable[[Workspace], int]:
        """Step and first derivatives."""
        step, native = self._native_step, self._native_linearize
        return (
            self._interpreted_linearize if native is None else lambda work: native(step, work.list)
        )

    @cached_property
    def hessian(self) -> Callable[[Workspace], int]:
        """Step, first and contracted second derivatives."""
        step, linearize, native = self._native_step, self._native_linearize, self._native_hessian
        return (
            self._interpreted_hessian
            if native is None
            else lambda work: native(linearize, step, work.list)
        )

    @cached_property
    def _native_step(self):
        return self._routine("step", self.equations.step, "newton.c")

    @cached_property
    def _native_linearize(self):
        return (
            None
            if self._native_step is None
            else self._routine("linearize", [self.equations.first], "linearize.c")
        )

    @cached_property
    def _native_hessian(self):
        return (
            None
            if self._native_linearize is None
            else self._routine("hessian", [self.equations.second], "hessian.c")
        )

    def _routine(self, name: str, functions, file: str):
        e = self.equations
        sizes = {
            "N_X": e.nx,
            "N_U": e.nu,
            "N_Z": e.n_z,
            "N_DX": e.ndx,
            "N_W": e.ndx + e.nu,
            "N_DOMAIN": e.n_domain,
        }
        places = {array.upper(): k for k, array in enumerate(self._shapes)}
        constants = {constant: getattr(newton, constant) for constant in CONSTANTS}
        text = "".join(f"#define {k} {v!r}\n" for k, v in {**sizes, **places, **constants}.items())
        folder = resources.files("nh_control.numerics").joinpath("native")
        source = (
            "\n"
            + text
            + folder.joinpath("linear_algebra.c").read_text()
            + folder.joinpath(file).read_text()
        )
        library = Native(f"{e.system.name}_{name}", functions, source).library
        return None if library is None else library[f"nh_{name}"]

    @cached_property
    def _step_functions(self) -> Functions:
        return Functions(f"{self.equations.system.name}_step_functions", self.equations.step)

    @cached_property
    def _first(self) -> Functions:
        return Functions(f"{self.equations.system.name}_first", [self.equations.first])

    @cached_property
    def _second(self) -> Functions:
        return Functions(f"{self.equations.system.name}_second", [self.equations.second])

    def _interpreted_step(self, work: Workspace) -> int:
        x, u, call = work.x, work.u, self._step_functions
        scale, r, work.r_z[...] = call("start", x, u)
        work.z[:] = 0
        result = newton.newton(
            lambda z: call("residual", x, u, z)[0][:, 0],
            lambda z: call("jacobian", x, u, z)[0],
            scale[:, 0],
            r[:, 0],
            work.r_z,
            work.z,
        )
        work.info[:] = result.iterations, result.error, result.residual
        if result.status != newton.CONVERGED:
            return result.status
        end, domain = call("readout", x, u, work.z)
        work.x1[:] = end[:, 0]
        if not np.isfinite(work.x1).all():
            return newton.NOT_FINITE
        return newton.CONVERGED if (domain > 0).all() else newton.OUTSIDE

    def _interpreted_linearize(self, work: Workspace) -> int:
        status = self.step(work)
        if status != newton.CONVERGED:
            return status
        work.r_z[...], r_w, g_w, work.g_z[...] = self._first(
            "first", work.x, work.u, work.z, work.x1
        )
        if len(work.z):
            factors, pivots, singular = dgetrf(work.r_z)
            if singular:
                return newton.SINGULAR
            work.dz[...] = dgetrs(factors, pivots, -r_w)[0]
        work.ab[...] = g_w + work.g_z @ work.dz
        return newton.CONVERGED

    def _interpreted_hessian(self, work: Workspace) -> int:
        status = self.linearize(work)
        if status != newton.CONVERGED:
            return status
        if len(work.z):
            work.mu[:] = np.linalg.solve(work.r_z.T, work.g_z.T @ work.lam + work.nu)
        (full,) = self._second("second", work.x, work.u, work.z, work.x1, work.lam, work.mu)
        p = np.vstack([np.eye(work.dz.shape[1]), work.dz])
        work.hessian[...] = p.T @ full @ p
        return newton.CONVERGED
