"""Runs the equations of a step, natively or in CasADi's virtual machine."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import casadi as ca
import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

from nh_control.discrete.contact_solution import solve_in_contact
from nh_control.discrete.continuation import solve_by_continuation
from nh_control.discrete.equations import StepEquations
from nh_control.discrete.method import ContactUnknowns, Method
from nh_control.discrete.native_abi import Substeps
from nh_control.discrete.native_text import contact_sizes, native_text
from nh_control.discrete.simulation import native_simulation, python_simulation
from nh_control.discrete.workspace import Shapes, Workspace
from nh_control.mechanics.system import System
from nh_control.numerics import newton
from nh_control.numerics.compiled import Functions, Native

SINGLE_SUBSTEP = np.ones(1)
"""The fractions of h of a step without substeps: h itself."""


def step_shapes(nx: int, nu: int, n_parameters: int, n: int, ndx: int, n_columns: int) -> Shapes:
    """Shapes of a step with n unknowns and n_columns columns of derivatives, in the order of a
    workspace's list.
    """
    w = n_columns
    step: Shapes = {"x": (nx,), "u": (nu,), "p": (n_parameters,), "z": (n,), "x1": (nx,)}
    newtons: Shapes = {"warm": (1,), "sizes": (n,), "info": (3,), "r_z": (n, n)}
    first: Shapes = {"factors": (n, n), "pivots": (n,), "dz": (n, w), "ab": (ndx, w)}
    adjoints: Shapes = {"g_z": (ndx, n), "lam": (ndx,), "lam_z": (n,), "mu": (n,)}
    second: Shapes = {"full": (w + n,) * 2, "g": (n, w), "half": (w,) * 2, "hessian": (w, w)}
    return {**step, **newtons, **first, **adjoints, **second}


class NodeFunctions(Protocol):
    """Momenta, velocities and energies of states at a node, as some engines compute them."""

    def momentum(self, work: Workspace, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Momenta of a configuration and a velocity."""

    def velocity(self, work: Workspace, x: np.ndarray) -> np.ndarray:
        """Velocity of a state."""

    def energy(self, work: Workspace, x: np.ndarray, v: np.ndarray) -> float:
        """Energy (J) of a state with its velocity."""


class Engine:
    """`step(work)`, `linearize(work)` and `hessian(work)` on the arrays of a `Workspace`, each
    with a status of `newton`. Without a library, CasADi's virtual machine and NumPy do the same.

    - step: x, u, p -> z, x1, info (iterations, relative error, largest |r|), and r_z of its last
      Jacobian. If `warm`, one of `newton.STARTS`, is not zero it starts from the guess in z, with
      the `sizes` of the last step without a guess.
    - linearize: also r_z, dz = dz/d(dx, u) and ab = [A B], by p as well if it is `parametric`.
    - hessian: also lam, lam_z -> hessian, the second derivative of `lam . local(x1, f(retract(x,
      dx), u + du)) + lam_z . z`.
    """

    def __init__(self, equations: StepEquations, narrow: Engine | None = None):
        e, self.equations, self._narrow = equations, equations, narrow
        self._contacts = e.method.contacts
        self._parameters = narrow is not None
        self.shapes = step_shapes(
            e.nx, e.nu, e.n_parameters, e.nz, e.ndx, e.n_columns(self._parameters)
        )

    def shapes_at(self, p: np.ndarray) -> Shapes:
        """Shapes of a workspace for the parameters p (n_parameters)."""
        return self.shapes

    @cached_property
    def parametric(self) -> Engine:
        """The engine with derivatives by the parameters as well; its steps are the same."""
        return Engine(self.equations, self)

    @cached_property
    def step(self) -> Callable[[Workspace], int]:
        """Solves the step's equations and reads the next state out."""
        native = self._native_step
        return self._interpreted_step if native is None else lambda work: native(work.list)

    @cached_property
    def simulate(self) -> Callable[..., tuple[int, int]]:
        """`simulate(work, inputs, every, states)`: steps from work.x under inputs (N, nu), each
        held for `every` steps, write states (N, nx). It returns a status and the number of steps.
        """
        if self.step_library is None:
            return python_simulation(self.step)
        return native_simulation(self.step_library, SINGLE_SUBSTEP)

    @property
    def substeps(self) -> Substeps | None:
        """The step for native loops, None without a compiler."""
        return Substeps.of(self.step_library, SINGLE_SUBSTEP)

    @cached_property
    def linearize(self) -> Callable[[Workspace], int]:
        """Step and first derivatives."""
        step, native = self._native_step, self._native_linearize
        if native is None:
            return self._interpreted_linearize
        return lambda work: native(step, work.list)

    @cached_property
    def hessian(self) -> Callable[[Workspace], int]:
        """Step, first and contracted second derivatives."""
        step, linearize, native = self._native_step, self._native_linearize, self._native_hessian
        if native is None:
            return self._interpreted_hessian
        return lambda work: native(linearize, step, work.list)

    def solve_by_continuation(
        self, routine: Callable[[Workspace], int], status: int, work: Workspace
    ) -> int:
        """The status of a routine that failed, after further attempts, see `continuation`."""
        touches = self._contacts is not None
        return solve_by_continuation(self.step, routine, status, work, touches)

    @property
    def with_second_derivatives(self) -> Engine:
        """The engine whose second derivatives are fast."""
        return self

    @property
    def node_functions(self) -> NodeFunctions | None:
        """The engine's own momenta, velocities and energies; None to generate them."""
        return None

    @property
    def nz(self) -> int:
        """Number of unknowns."""
        return self.equations.nz

    def jacobians(self, work: Workspace) -> Sequence[np.ndarray]:
        """r_z of the last linearization; a composition has several."""
        return [work.r_z]

    def last_jacobian(self, work: Workspace) -> np.ndarray:
        """r_z as a failed step evaluated it last."""
        return work.r_z

    def native_derivatives(self, second: bool) -> tuple[Any, Any, Any] | None:
        """nh_step, nh_linearize and, for `second` derivatives, nh_hessian (None if Python computes
        these); None without a compiler.
        """
        if self._native_linearize is None:
            return None
        hessian = self._native_hessian if second else None
        return self._native_step, self._native_linearize, hessian

    @cached_property
    def _native_step(self) -> Any:
        return None if self.step_library is None else self.step_library["nh_step"]

    @cached_property
    def step_library(self) -> ctypes.CDLL | None:
        """The library with nh_step and the loops around it, None without a compiler."""
        if self._narrow is not None:
            return self._narrow.step_library
        return self._library("step", self.equations.step, self.step_file, "simulate.c")

    @cached_property
    def _native_linearize(self) -> Any:
        if self._native_step is None:
            return None
        library = self._library("linearize", [self._first_function], "linearize.c")
        return None if library is None else library["nh_linearize"]

    @cached_property
    def _native_hessian(self) -> Any:
        if self._native_linearize is None:
            return None
        library = self._library("hessian", [self._second_function], "hessian.c")
        return None if library is None else library["nh_hessian"]

    def _library(
        self, name: str, functions: Sequence[ca.Function], *files: str
    ) -> ctypes.CDLL | None:
        text = native_text(self.sizes, self.shapes, *files, given=self.headers)
        return Native(f"{self.equations.system.name}_{name}", functions, text).library

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that system.h defines."""
        e = self.equations
        sizes = {"N_X": e.nx, "N_U": e.nu, "N_P": e.n_parameters, "N_Z": e.nz, "N_DX": e.ndx}
        sizes |= {"N_COLUMNS": e.n_columns(self._parameters), "N_DOMAIN": e.n_domain}
        return sizes | {"N_TURNS": e.n_turns}

    @property
    def step_file(self) -> str:
        """The C file with nh_step."""
        return "newton_step.c" if self._contacts is None else "contact_step.c"

    @property
    def headers(self) -> dict[str, str]:
        """Further headers of that file by their names."""
        return {} if self._contacts is None else {"contact_sizes.h": contact_sizes(self._contacts)}

    @property
    def functions(self) -> list[ca.Function]:
        """The generated functions that a step and its first derivatives call."""
        return [*self.equations.step, self._first_function]

    @cached_property
    def _first_function(self) -> ca.Function:
        return self.equations.first(self._parameters)

    @cached_property
    def _second_function(self) -> ca.Function:
        return self.equations.second(self._parameters)

    @cached_property
    def _step_functions(self) -> Functions:
        return Functions(f"{self.equations.system.name}_step_functions", self.equations.step)

    @cached_property
    def _first(self) -> Functions:
        return Functions(f"{self.equations.system.name}_first", [self._first_function])

    @cached_property
    def contraction(self) -> Functions:
        """`adjoint` and `second` of the equations, which nothing compiles."""
        functions = [self.equations.adjoint, self._second_function]
        return Functions(f"{self.equations.system.name}_second", functions, compiled=False)

    def _interpreted_step(self, work: Workspace) -> int:
        if self._narrow is not None:
            return self._narrow._interpreted_step(work)
        x, u, p, call = work.x, work.u, work.p, self._step_functions
        contacts = self._contacts
        result = self._solved(work) if contacts is None else self._in_contact(work, contacts)
        work.info[:] = result.iterations, result.error, result.residual
        if result.status != newton.CONVERGED:
            return result.status
        end, domain = call("readout", x, u, work.z, p)
        work.x1[:] = end[:, 0]
        if not np.isfinite(work.x1).all():
            return newton.NOT_FINITE
        outside = np.flatnonzero(~(domain[:, 0] > 0))
        if not len(outside):
            return newton.CONVERGED
        places = len(domain) - self.equations.n_turns
        return newton.OUTSIDE if outside[0] < places else newton.HALF_TURN

    def _solved(self, work: Workspace) -> newton.NewtonResult:
        """Newton's iteration from a guess, from zero and, patiently, once more."""
        result = self._newton(work, bool(work.warm[0]))
        if work.warm[0] and result.status != newton.CONVERGED:
            result = self._newton(work)
        if result.status in (newton.STALLED, newton.EXHAUSTED):
            result = self._newton(work, patient=True)
        return result

    def _in_contact(self, work: Workspace, contacts: ContactUnknowns) -> newton.NewtonResult:
        """Newton's iteration from impulses, with the `sizes` of the terms at its start."""
        x, u, p = work.x, work.u, work.p

        def call(name: str, z: np.ndarray, kappa: float) -> Sequence[np.ndarray]:
            return self._step_functions(name, x, u, z, np.hstack([p[:-2], kappa, p[-1]]))

        def iterate(patient: bool) -> newton.NewtonResult:
            if not patient:
                work.sizes[:] = self._step_functions("terms", x, u, work.z, p)[0][:, 0]
            return self._newton(work, warm=True, patient=patient)

        kappa, start = float(p[-2]), int(work.warm[0])
        return solve_in_contact(call, iterate, contacts, kappa, work.z, start)

    def _newton(
        self, work: Workspace, warm: bool = False, patient: bool = False
    ) -> newton.NewtonResult:
        x, u, p, call = work.x, work.u, work.p, self._step_functions
        if warm:
            r, work.r_z[...] = (call(f, x, u, work.z, p)[0] for f in ("residual", "jacobian"))
        else:
            scale, r, work.r_z[...] = call("start", x, u, p)
            work.sizes[:] = np.where(np.isfinite(scale[:, 0]), scale[:, 0], 0.0)
            work.z[:] = 0.0
        return newton.newton(
            lambda z: call("residual", x, u, z, p)[0][:, 0],
            lambda z: call("jacobian", x, u, z, p)[0],
            work.sizes,
            r[:, 0],
            work.r_z,
            work.z,
            patient,
            lambda z: call("terms", x, u, z, p)[0][:, 0],
        )

    def _interpreted_linearize(self, work: Workspace) -> int:
        status = self.step(work)
        if status != newton.CONVERGED:
            return status
        work.r_z[...], r_w, g_w, work.g_z[...] = self._first(
            "first", work.x, work.u, work.z, work.p, work.x1
        )
        if len(work.z):
            factors, pivots, singular = dgetrf(work.r_z)
            if singular:
                return newton.SINGULAR
            work.dz[...] = dgetrs(factors, pivots, -r_w)[0]
        with np.errstate(all="ignore"):
            work.ab[...] = g_w + work.g_z @ work.dz
        finite = np.isfinite(work.ab).all() and np.isfinite(work.dz).all()
        return newton.CONVERGED if finite else newton.NOT_FINITE

    def _interpreted_hessian(self, work: Workspace) -> int:
        status = self.linearize(work)
        if status != newton.CONVERGED:
            return status
        if len(work.z):
            work.mu[:] = np.linalg.solve(work.r_z.T, work.g_z.T @ work.lam + work.lam_z)
        return self.contract(work)

    def contract(self, work: Workspace) -> int:
        """The contracted second derivative of a step that is linearized, by its adjoint mu."""
        (full,) = self.contraction(
            "second", work.x, work.u, work.z, work.p, work.x1, work.lam, work.mu
        )
        p = np.vstack([np.eye(work.dz.shape[1]), work.dz])
        with np.errstate(all="ignore"):
            work.hessian[...] = p.T @ full @ p
        return newton.CONVERGED if np.isfinite(work.hessian).all() else newton.NOT_FINITE


MakeKernel: TypeAlias = Callable[[System, Method], Engine | None]
"""Makes an engine that steps a system by a method instead of the generated one; None where it
cannot.
"""


def generated_engine(system: System, method: Method) -> Engine:
    """The engine of code that is generated from the method's residual and read-out."""
    return Engine(StepEquations(system, method, f"{system.name} by {method.name}"))
