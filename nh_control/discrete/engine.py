"""Runs the equations of a step: natively, by functions that are compiled for the system or that
CasADi's virtual machine evaluates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import casadi as ca
import numpy as np

from nh_control.discrete.continuation import solve_by_continuation
from nh_control.discrete.equations import StepEquations
from nh_control.discrete.method import Method
from nh_control.discrete.native_abi import StepperData
from nh_control.discrete.native_text import native_text
from nh_control.discrete.simulation import simulate
from nh_control.discrete.system_data import SystemData, room, system_data
from nh_control.discrete.workspace import Shapes, Workspace
from nh_control.mechanics.system import System
from nh_control.numerics import newton
from nh_control.numerics.compiled import Functions
from nh_control.numerics.contact_problem import Block
from nh_control.numerics.library import library

SINGLE_SUBSTEP = np.ones(1)
"""The fractions of h of a step without substeps: h itself."""


def step_shapes(
    nx: int, nu: int, n_parameters: int, n: int, ndx: int, n_columns: int, rank: int | None = None
) -> Shapes:
    """Shapes of a step with n unknowns and n_columns columns of derivatives, in the order of a
    workspace's list; the rank of r_z is n by default.
    """
    pivots = n if rank in (None, n) else 2 * n
    w = n_columns
    step: Shapes = {"x": (nx,), "u": (nu,), "p": (n_parameters,), "z": (n,), "x1": (nx,)}
    newtons: Shapes = {"warm": (1,), "sizes": (n,), "info": (3,), "r_z": (n, n)}
    first: Shapes = {"factors": (n, n), "pivots": (pivots,), "dz": (n, w), "ab": (ndx, w)}
    adjoints: Shapes = {"g_z": (ndx, n), "lam": (ndx,), "lam_z": (n,), "mu": (n,)}
    second: Shapes = {"full": (w + n,) * 2, "g": (n, w), "half": (w,) * 2, "hessian": (w, w)}
    return {**step, **newtons, **first, **adjoints, **second, "system": (1,), "room": (1,)}


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
    with a status of `newton`.

    The routines are those of the package's library, which call the functions of work.system. With
    a compiler, a system without contacts has the same routines compiled for its sizes, which take
    over between two calls when they are ready.

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
            e.nx, e.nu, e.n_parameters, e.nz, e.ndx, e.n_columns(self._parameters), e.rank
        )
        self.shapes |= {"system": self._system_data, "room": (room(self._sized_system()),)}

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
        step = self._native_step
        return lambda work: step(work.list)

    def simulate(
        self, work: Workspace, inputs: np.ndarray, every: int, states: np.ndarray
    ) -> tuple[int, int]:
        """Steps from work.x under inputs (N, nu), each held for `every` steps; writes states
        (N, nx) and returns a status and the number of steps.
        """
        return simulate(self.stepper(work), inputs, every, states)

    def stepper(self, work: Workspace, fractions: np.ndarray = SINGLE_SUBSTEP) -> StepperData:
        """The step by these fractions of h for native loops, for a workspace the same until
        another routine takes over.
        """
        if work.stepper is None or work.stepper.routine is not self._native_step:
            work.stepper = StepperData.of(self._native_step, work, fractions)
        return work.stepper

    @cached_property
    def linearize(self) -> Callable[[Workspace], int]:
        """Step and first derivatives."""
        step, linearize = self._native_step, self._native_linearize
        return self._prepared(False, lambda work: linearize(step, work.list))

    @cached_property
    def hessian(self) -> Callable[[Workspace], int]:
        """Step, first and contracted second derivatives."""
        step, linearize = self._native_step, self._native_linearize
        hessian = self._native_hessian
        return self._prepared(True, lambda work: hessian(linearize, step, work.list))

    def _prepared(
        self, second: bool, routine: Callable[[Workspace], int]
    ) -> Callable[[Workspace], int]:
        """A routine that gives the workspace the functions of first or `second` derivatives before
        each call, where they are not compiled into the routine.
        """
        functions = self._second if second else self._first
        if functions.is_compiled and self._contacts is None:
            return routine

        def prepared(work: Workspace) -> int:
            self.prepare(work, second)
            return routine(work)

        return prepared

    def prepare(self, work: Workspace, second: bool) -> None:
        """Give work.system the functions of first or `second` derivatives, which are made when
        they are first needed.
        """
        if "first" not in work.system.kept:
            work.system.set("first", self._first.function("first"))
        if second and "second" not in work.system.kept:
            work.system.set("second", self._second.function("second"))

    def compile(self, second: bool) -> None:
        """Begin to compile the functions of a step, its first and, if asked for, its `second`
        derivatives, of which those take the longest.
        """
        self._step_functions, self._first  # noqa: B018  (made when asked for)
        if second:
            self._second  # noqa: B018

    def solve_by_continuation(
        self, routine: Callable[[Workspace], int], status: int, work: Workspace
    ) -> int:
        """The status of a routine that failed, after further attempts, see `continuation`."""
        touches = self._contacts is not None
        return solve_by_continuation(self.step, routine, status, work, touches)

    @property
    def is_compiled(self) -> bool:
        """Whether steps call compiled functions."""
        return self._step_functions.is_compiled

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

    def native_derivatives(self, second: bool) -> tuple[Any, Any, Any]:
        """The native step, its linearization and, for `second` derivatives, the Hessian, None if
        Python computes these. `prepare` comes before their first call.
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
        """A routine of the library, or the same one compiled with these functions for the sizes of
        this system.
        """
        compiled = functions.is_compiled and self._contacts is None
        return (functions if compiled else library())[name]

    def _compiled(self, name: str, functions: Sequence[ca.Function], file: str) -> Functions:
        """The functions with a routine that calls them. When both are compiled, routines are taken
        anew.
        """
        text = "" if self._contacts is not None else native_text(self.sizes, self.shapes, file)
        compiled = Functions(f"{self.equations.system.name}_{name}", functions, text)
        compiled.when_ready(lambda _: self._forget_routines())
        return compiled

    def _forget_routines(self) -> None:
        for name in ("step", "linearize", "hessian"):
            self.__dict__.pop(f"_native_{name}", None)
            self.__dict__.pop(name, None)

    def _sized_system(self) -> SystemData:
        return system_data(self.sizes, *self.contact_blocks)

    def _system_data(self) -> SystemData:
        """The system for one thread, with the functions of its step."""
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
        """The place of the first impulse among the unknowns, and the rows of the contacts."""
        contacts = self._contacts
        return (0, ()) if contacts is None else (contacts.first, contacts.blocks)

    @property
    def step_routine(self) -> str:
        """The name of the native step."""
        return "nh_newton_step" if self._contacts is None else "nh_contact_step"

    @property
    def step_file(self) -> str:
        """The C file of the step."""
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
        """`adjoint` and `second` of the equations, which nothing compiles."""
        functions = [self.equations.adjoint, self._second_function]
        return Functions(f"{self.equations.system.name}_second", functions, compiled=False)

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
