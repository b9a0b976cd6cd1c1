"""The engine that solves and differentiates steps in native code. It calls functions that are
compiled for the system or evaluated by CasADi's virtual machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import casadi as ca
import numpy as np

from nh_control.discrete.continuation import solve_by_continuation
from nh_control.discrete.equations import StepEquations
from nh_control.discrete.lanes import FUNCTIONS, LaneCode, obstacle
from nh_control.discrete.linearized_steps import LinearizedSteps, linearize_rows
from nh_control.discrete.method import Method
from nh_control.discrete.native_abi import StepperData
from nh_control.discrete.native_text import native_text
from nh_control.discrete.simulation import simulate
from nh_control.discrete.system_data import SystemData, system_data, workspace_size
from nh_control.discrete.workspace import Shapes, Workspace
from nh_control.mechanics.system import System
from nh_control.numerics import newton
from nh_control.numerics.compiled import Functions
from nh_control.numerics.contact_problem import Block
from nh_control.numerics.library import library

SINGLE_SUBSTEP = np.ones(1)
"""The fractions of h for a step without substeps."""


def step_shapes(
    nx: int, nu: int, n_parameters: int, n: int, ndx: int, n_columns: int, rank: int | None = None
) -> Shapes:
    """Shapes of the arrays for a step with n unknowns and n_columns columns of derivatives, in the
    order of a workspace's list. The rank of r_z is n by default.
    """
    # complete pivoting, which a rank-deficient r_z needs, permutes rows and columns
    pivots = n if rank in (None, n) else 2 * n
    w = n_columns
    step: Shapes = {"x": (nx,), "u": (nu,), "p": (n_parameters,), "z": (n,), "x1": (nx,)}
    newtons: Shapes = {"warm": (1,), "sizes": (n,), "info": (3,), "r_z": (n, n)}
    first: Shapes = {"factors": (n, n), "pivots": (pivots,), "dz": (n, w), "ab": (ndx, w)}
    adjoints: Shapes = {"g_z": (ndx, n), "lam": (ndx,), "lam_z": (n,), "mu": (n,)}
    second: Shapes = {"full": (w + n,) * 2, "g": (n, w), "half": (w,) * 2, "hessian": (w, w)}
    return {**step, **newtons, **first, **adjoints, **second, "system": (1,), "room": (1,)}


class NodeFunctions(Protocol):
    """Functions that some engines provide for momenta, velocities and energies at a node."""

    def momentum(self, work: Workspace, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Momenta for a configuration and a velocity."""

    def velocity(self, work: Workspace, x: np.ndarray) -> np.ndarray:
        """Velocity of a state."""

    def energy(self, work: Workspace, x: np.ndarray, v: np.ndarray) -> float:
        """Energy (J) of a state with the given velocity."""


class Engine:
    """The routines `step(work)`, `linearize(work)` and `hessian(work)`, which work on the arrays
    of a `Workspace` and return one of the `newton` statuses.

    The routines in the package's library call the functions in work.system. If a compiler is
    available, the same routines are also compiled for the sizes of a system without contacts. When
    these are ready, they take over between two calls.

    - step: x, u, p -> z, x1, info (iterations, relative error, largest |r|), and r_z, the last
      Jacobian. `warm` is one of `newton.STARTS`. If it is not zero, the step starts from the guess
      in z and uses the `sizes` of the last step without a guess.
    - linearize: also r_z, dz = dz/d(dx, u) and ab = [A B], or [A B P] for a `parametric` engine.
    - hessian: also lam, lam_z -> hessian, the second derivative of
      `lam . local(x1, f(retract(x, dx), u + du)) + lam_z . z`.
    """

    def __init__(self, equations: StepEquations, narrow: Engine | None = None):
        e, self.equations, self._narrow = equations, equations, narrow
        self._contacts = e.method.contacts
        self._parameters = narrow is not None
        self.shapes = step_shapes(
            e.nx, e.nu, e.n_parameters, e.nz, e.ndx, e.n_columns(self._parameters), e.rank
        )
        size = workspace_size(self._sized_system())
        self.shapes |= {"system": self._system_data, "room": (size,)}

    def shapes_at(self, p: np.ndarray) -> Shapes:
        """Shapes of a workspace's arrays for the parameters p (n_parameters)."""
        return self.shapes

    @cached_property
    def parametric(self) -> Engine:
        """The engine for the same steps that also differentiates with respect to the
        parameters.
        """
        return Engine(self.equations, self)

    @cached_property
    def step(self) -> Callable[[Workspace], int]:
        """The routine that solves the equations of a step and evaluates the next state."""
        step = self._native_step
        return lambda work: step(work.list)

    def simulate(
        self,
        work: Workspace,
        inputs: np.ndarray,
        every: int,
        states: np.ndarray,
        extrapolate: bool = False,
    ) -> tuple[int, int]:
        """Compute the steps from work.x under inputs (N, nu), each applied for `every` steps, with
        extrapolated initial guesses if `extrapolate` is set. Writes the states (N, nx) and returns
        a status and the number of steps.
        """
        return simulate(self.stepper(work), inputs, every, states, extrapolate)

    def stepper(self, work: Workspace, fractions: np.ndarray = SINGLE_SUBSTEP) -> StepperData:
        """The data for steps by these fractions of h in native loops. A workspace keeps the data
        until a compiled routine takes over.
        """
        if work.stepper is None or work.stepper.routine is not self._native_step:
            work.stepper = StepperData.of(self._native_step, work, fractions)
        return work.stepper

    @cached_property
    def lane_code(self) -> LaneCode | str:
        """The code that steps several runs at once, or the reason why there is no such code."""
        functions = [f for f in self.equations.step if f.name() in FUNCTIONS]
        # lanes require scalar operations, without contacts or complete pivoting
        reason = obstacle(functions, self.sizes, self._contacts is not None)
        name = f"{self.equations.system.name}_lanes"
        return reason or LaneCode(name, functions, self.sizes, [*self.shapes])

    @cached_property
    def linearize(self) -> Callable[[Workspace], int]:
        """The routine for the step and its first derivatives."""
        step, linearize = self._native_step, self._native_linearize
        return self._prepared(False, lambda work: linearize(step, work.list))

    def linearize_rows(
        self, work: Workspace, first: int, x: np.ndarray, u: np.ndarray, out: LinearizedSteps
    ) -> int:
        """Linearize the steps from the rows `first`, first + 1, ... of x (N, nx) under those of u
        (N, nu) into `out`, up to the first step that fails. Returns its row, or N.
        """
        self.prepare(work, False)
        return linearize_rows(self._native_linearize, self.stepper(work), first, x, u, out)

    @cached_property
    def hessian(self) -> Callable[[Workspace], int]:
        """The routine for the step, its first derivatives and its contracted second
        derivatives.
        """
        step, linearize = self._native_step, self._native_linearize
        hessian = self._native_hessian
        return self._prepared(True, lambda work: hessian(linearize, step, work.list))

    @property
    def products(self) -> Callable[[Workspace], int] | None:
        """The routine for the step that leaves products with its derivatives, without matrices,
        in work.products; None if there is no faster way than the matrices.
        """
        return None

    def _prepared(
        self, second: bool, routine: Callable[[Workspace], int]
    ) -> Callable[[Workspace], int]:
        """The routine. Unless the functions for the first or `second` derivatives are compiled
        into it, the routine sets them in the workspace before each call.
        """
        functions = self._second if second else self._first
        # compiled routines contain the functions for their derivatives
        if functions.is_compiled and self._contacts is None:
            return routine

        def prepared(work: Workspace) -> int:
            self.prepare(work, second)
            return routine(work)

        return prepared

    def prepare(self, work: Workspace, second: bool) -> None:
        """Set the functions for the first or `second` derivatives in work.system. These functions
        are generated when they are first needed.
        """
        if "first" not in work.system.references:
            work.system.set("first", self._first.function("first"))
        if second and "second" not in work.system.references:
            work.system.set("second", self._second.function("second"))

    def compile(self, second: bool) -> None:
        """Begin to compile the functions for a step, for its first derivatives and, if requested,
        for its `second` derivatives, which take the longest.
        """
        self._step_functions, self._first  # noqa: B018  (access starts the compilation)
        if second:
            self._second  # noqa: B018

    def solve_by_continuation(
        self, routine: Callable[[Workspace], int], status: int, work: Workspace
    ) -> int:
        """The status of a failed routine after more attempts (see `continuation`)."""
        touches = self._contacts is not None
        return solve_by_continuation(self.step, routine, status, work, touches)

    @property
    def is_compiled(self) -> bool:
        """Whether steps call compiled functions."""
        return self._step_functions.is_compiled

    @property
    def with_second_derivatives(self) -> Engine:
        """The engine that computes second derivatives fast."""
        return self

    @property
    def node_functions(self) -> NodeFunctions | None:
        """The engine's functions for momenta, velocities and energies; None if generated code
        computes them.
        """
        return None

    @property
    def nz(self) -> int:
        """Number of unknowns."""
        return self.equations.nz

    def jacobians(self, work: Workspace) -> Sequence[np.ndarray]:
        """r_z in the last linearization; a composition returns several matrices."""
        return [work.r_z]

    def last_jacobian(self, work: Workspace) -> np.ndarray:
        """The last r_z that a failed step evaluated."""
        return work.r_z

    def native_derivatives(self, second: bool) -> tuple[Any, Any, Any]:
        """The native routines for the step, its linearization and, if `second`, its Hessian (None
        if Python computes it). Call `prepare` before calling them.
        """
        hessian = self._native_hessian if second else None
        return self._native_step, self._native_linearize, hessian

    @cached_property
    def _native_step(self) -> Any:
        return self._routine(self._step_functions, self.step_routine)

    @cached_property
    def _native_linearize(self) -> Any:
        return self._routine(self._first, "nh_linearize")

    @cached_property
    def _native_hessian(self) -> Any:
        return self._routine(self._second, "nh_hessian")

    def _routine(self, functions: Functions, name: str) -> Any:
        """A routine from the library, or the same routine compiled with these functions for the
        sizes of this system.
        """
        compiled = functions.is_compiled and self._contacts is None
        return (functions if compiled else library())[name]

    def _compiled(self, name: str, functions: Sequence[ca.Function], file: str) -> Functions:
        """Compile the functions and a routine that calls them. When both are compiled, they
        replace the library's routines. Returns the functions.
        """
        text = "" if self._contacts is not None else native_text(self.sizes, self.shapes, file)
        # routines are replaced: all cached ones must be looked up again
        compiled = Functions(f"{self.equations.system.name}_{name}", functions, text)
        compiled.when_ready(lambda _: self._forget_routines())
        return compiled

    def _forget_routines(self) -> None:
        for name in ("step", "linearize", "hessian"):
            self.__dict__.pop(f"_native_{name}", None)
            self.__dict__.pop(name, None)

    def _sized_system(self) -> SystemData:
        first, blocks = self.contact_blocks
        return system_data(self.sizes, first, blocks)

    def _system_data(self) -> SystemData:
        """The system's data for one thread, with the functions for a step."""
        data = self._sized_system()
        for f in self.equations.step:
            data.set(f.name(), self._step_functions.function(f.name()))
        return data

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that system.h defines."""
        e = self.equations
        sizes = {"N_X": e.nx, "N_U": e.nu, "N_P": e.n_parameters, "N_Z": e.nz, "N_RANK": e.rank}
        sizes |= {
            "N_DX": e.ndx,
            "N_COLUMNS": e.n_columns(self._parameters),
            "N_DOMAIN": e.n_domain,
        }
        return sizes | {"N_TURNS": e.n_turns}

    @property
    def contact_blocks(self) -> tuple[int, Sequence[Block]]:
        """The index of the first impulse in z, and the contact blocks."""
        contacts = self._contacts
        return (0, ()) if contacts is None else (contacts.first, contacts.blocks)

    @property
    def step_routine(self) -> str:
        """The name of the native step routine."""
        return "nh_newton_step" if self._contacts is None else "nh_contact_step"

    @property
    def step_file(self) -> str:
        """The C file that contains the step."""
        return "newton_step.c" if self._contacts is None else "contact_step.c"

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
        # both engines share the functions for a step
        if self._narrow is not None:
            functions = self._narrow._step_functions
            functions.when_ready(lambda _: self._forget_routines())
            return functions
        return self._compiled("step", self.equations.step, self.step_file)

    @cached_property
    def _first(self) -> Functions:
        return self._compiled("linearize", [self._first_function], "linearize.c")

    @cached_property
    def _second(self) -> Functions:
        return self._compiled("hessian", [self._second_function], "hessian.c")

    @cached_property
    def contraction(self) -> Functions:
        """The functions `adjoint` and `second` of the equations, which only the virtual machine
        evaluates.
        """
        functions = [self.equations.adjoint, self._second_function]
        return Functions(f"{self.equations.system.name}_second", functions, compiled=False)

    def contract(self, work: Workspace) -> int:
        """Compute the contracted second derivative of a linearized step from the adjoint mu."""
        (full,) = self.contraction(
            "second", work.x, work.u, work.z, work.p, work.x1, work.lam, work.mu
        )
        # H = P^T hess(lam . y - mu . r) P with P = [1; dz]
        p = np.vstack([np.eye(work.dz.shape[1]), work.dz])
        with np.errstate(all="ignore"):
            work.hessian[...] = p.T @ full @ p
        return newton.CONVERGED if np.isfinite(work.hessian).all() else newton.NOT_FINITE


MakeKernel: TypeAlias = Callable[[System, Method], Engine | None]
"""Returns an engine that replaces the generated engine for a system and a method, or None if it
does not support them.
"""


def generated_engine(system: System, method: Method) -> Engine:
    """The engine that runs code generated from the method's residual and read-out."""
    return Engine(StepEquations(system, method, f"{system.name} by {method.name}"))
