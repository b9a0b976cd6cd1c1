"""Discrete-time mechanical systems `x1 = f(x, u)`, defined by a residual and a read-out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.compiled_functions import Arrays, BoundFunctions, CompiledFunctions
from nh_control.discrete.composition import ComposedEngine, check_composition
from nh_control.discrete.engine import Engine, MakeKernel
from nh_control.discrete.failure import failure
from nh_control.discrete.lanes import FEWEST, LaneTables, Vectorization
from nh_control.discrete.linearized_steps import LinearizedSteps, step_rows
from nh_control.discrete.method import Method
from nh_control.discrete.native_abi import NativeSystem
from nh_control.discrete.results import Conditioning, Linearization, SolvedStep, StepFailed
from nh_control.discrete.simulation import advance, input_rows
from nh_control.discrete.state_between import state_between
from nh_control.discrete.state_map import StateMap, checked_step, of_states
from nh_control.discrete.trajectory import Trajectory
from nh_control.discrete.workspace import Workspace, assign
from nh_control.geometry.spaces import Space
from nh_control.mechanics.lagrangian import inertia
from nh_control.mechanics.parametric import by_field
from nh_control.mechanics.system import System
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.numerics.virtual_machine import FunctionData

if TYPE_CHECKING:
    from nh_control.discrete.operators import LinearizationOperators


class DiscreteSystem:
    """A mechanical system under an integrator with step `h` (s): `step`, exact `linearize` and
    `hessian`.

    A state x (nx) is (q, rho), the configuration and the discrete momenta at the same node; small
    changes dx (ndx) are in the local coordinates of `state_space`. The `state_map` converts
    states. All methods are pure functions. Raises ValueError unless h is positive and finite.
    """

    def __init__(
        self,
        system: System,
        h: float,
        method: Method,
        step_space: Space | None = None,
        alpha: float = 0.5,
        make_kernel: MakeKernel | None = None,
    ):
        method.require_taken(system)
        code = CompiledFunctions(system, method, make_kernel, step_space, alpha)
        self._bind(system, checked_step(method, h), method, code)

    def _bind(
        self,
        system: System,
        h: float,
        method: Method,
        code: CompiledFunctions,
        space: Space | None = None,
    ) -> None:
        """Bind the functions of `code` to the parameter values and h."""
        if system.mechanics.default_basis is not None:  # local coordinates depend on parameters
            space = method.state_space(system.numeric)
        elif space is None:
            space = method.state_space(system)
        self.system, self.h, self.method, self.state_space = system, h, method, space
        self._functions = BoundFunctions(code, method.substeps, self.parameter_values)
        self.state_map = states = StateMap(system, h, method, space, self._functions)
        self.nx, self.ndx, self.nu = states.nx, states.ndx, states.nu
        self.state_names, self.inputs = space.names, states.inputs

    def __repr__(self) -> str:
        return repr(self.state_map)

    @property
    def name(self) -> str:
        """The names of the system and the method, and the step."""
        return repr(self)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of the step's parameters: the system's parameters, then h."""
        return (*self.system.parameter_names, "h")

    @property
    def parameter_values(self) -> np.ndarray:
        """The values (n) of the step's parameters, in the order of `parameter_names`."""
        return np.append(self.system.parameter_values, self.h)

    @property
    def nominal_masses(self) -> np.ndarray:
        """See `StateMap.nominal_masses`."""
        return self.state_map.nominal_masses

    measured_state = of_states(StateMap.measured_state)
    configuration = of_states(StateMap.configuration)
    velocity = of_states(StateMap.velocity)
    rotation_angles = of_states(StateMap.rotation_angles)
    constraint_impulses = of_states(StateMap.constraint_impulses)
    with_constraint_impulses = of_states(StateMap.with_constraint_impulses)
    idle = of_states(StateMap.idle)
    energy = of_states(StateMap.energy)
    energies = of_states(StateMap.energies)
    outputs = of_states(StateMap.outputs)
    local = of_states(StateMap.local)
    retract = of_states(StateMap.retract)
    constraint_residual = of_states(StateMap.constraint_residual)
    constraint_residuals = of_states(StateMap.constraint_residuals)

    def state(self, q: ArrayLike, v: ArrayLike, u: ArrayLike | None = None) -> np.ndarray:
        """The state (nx) with the configuration q (nq) and the velocity v (nw), or states (N, nx)
        for tables. v is projected onto the velocity constraints, orthogonally in the mass metric.

        A step under the inputs u (nu) determines the rest of the state. This is the memory of a
        method such as GNI (without it, the errors for the sleigh are 50 times as large), and the
        constraint impulses in the momentum (see `with_impulses_of_step`), which are zero if the
        step fails. By default, there are no forces, and prescribed coordinates move with v.

        Quaternions and directions with few digits are normalized. Raises ValueError for other
        values that are off their manifold or not finite, and for more than half a turn in one
        step. Raises NotConsistent for a configuration that violates the holonomic constraints.
        """
        x = self.state_map.state(q, v, u)
        if not self.method.multipliers:
            return x
        inputs = np.broadcast_to(self._drifting(x) if u is None else u, (*x.shape[:-1], self.nu))
        rows = zip(np.atleast_2d(x), np.atleast_2d(inputs))
        return np.reshape([self._with_step_impulses(x_k, u_k) for x_k, u_k in rows], x.shape)

    def with_impulses_of_step(self, x: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """The state x (nx) with the same impulses of the holonomic constraints in its momentum as
        after a step under u (nu). Raises the same errors as `step`.

        No step depends on the impulses, but derivatives at x do. With a momentum M v, which
        contains no constraint impulses, the derivatives contain only half of the constraint force.
        With the impulses, x = f(x, u) at an equilibrium, and the eigenvalues of A describe the
        motion.
        """
        if not self.method.multipliers:
            return np.array(x, dtype=float)
        return self.with_constraint_impulses(x, self.constraint_impulses(self.step(x, u)))

    def with_parameters(self, **changes: Any) -> DiscreteSystem:
        """The same discrete system with different physical parameters. It shares the compiled
        code. Raises ValueError for an unknown name and for a value with a different structure.
        """
        return self._copy_with(system=self.system.with_parameters(**changes))

    def with_parameter_values(self, values: ArrayLike) -> DiscreteSystem:
        """The same discrete system with these values (n) for all `parameter_names`, which include
        the smoothing of contacts and h. It shares the compiled code. Raises ValueError for a value
        that is out of range.
        """
        numbers, system = np.asarray(values, dtype=float), self.system
        # order: the system's parameters, then smoothing, then h
        changed = system.with_parameters(**by_field(system.parameters, numbers))
        if system.has_contacts:
            changed = changed.with_smoothing(numbers[-2])
        return self._copy_with(system=changed, h=checked_step(self.method, float(numbers[-1])))

    def with_step(self, h: float) -> DiscreteSystem:
        """The same discrete system with a different step h (s). It shares the compiled code.
        Raises ValueError unless h > 0.
        """
        return self._copy_with(h=checked_step(self.method, h))

    def with_smoothing(self, smoothing: float) -> DiscreteSystem:
        """The same discrete system with a different contact `smoothing` (J), which is the height
        of the barrier. It shares the compiled code. Raises ValueError unless the smoothing is
        positive.
        """
        return self._copy_with(system=self.system.with_smoothing(smoothing))

    def composed(self, substeps: Sequence[float], name: str) -> DiscreteSystem:
        """The discrete system whose step is a sequence of this system's steps by fractions of h,
        all under the same input. Fractions may be negative. The result shares the compiled code,
        and its derivatives follow from the chain rule.

        Raises ValueError if a fraction is zero or not finite, if the fractions do not add up to 1,
        and for systems with prescribed coordinates, methods with memory, and compositions.
        """
        check_composition(self, substeps)
        method = replace(self.method, name=name, substeps=tuple(map(float, substeps)))
        return self._copy_with(method=method)

    def step(self, x: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """The next state x1 (nx) after the state x (nx) under the input u (nu). Raises StepFailed
        if the step has no solution, and ValueError for a wrong shape or a value that is not
        finite.
        """
        return self._run(self.engine.step, x, u).x1.copy()

    def solve(self, x: ArrayLike, u: ArrayLike = ()) -> SolvedStep:
        """The step from x (nx) under u (nu), with its solution z; raises the same errors as
        `step`.
        """
        work = self._run(self.engine.step, x, u)
        return SolvedStep(work.x1.copy(), work.z.copy(), int(work.info[0]))

    def unknowns(self, x: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """The unknowns z (nz) of the step from x (nx) under u (nu); see `solve`."""
        return self.solve(x, u).z

    def linearize(
        self, x: ArrayLike, u: ArrayLike = (), parameters: Sequence[str] = ()
    ) -> Linearization:
        """Exact first derivatives of the step by the implicit function theorem, also with respect
        to `parameters`, a selection from `parameter_names`. With w = (x, u, p),
        `dz = -r_z^{-1} r_w` and `[A B P] = g_w + g_z dz`.

        Raises the same errors as `step`, and ValueError for an unknown parameter.
        """
        engine, arrays = self._differentiated(parameters)
        work, m = self._run(engine.linearize, x, u, engine, arrays), self._multipliers
        # multipliers are impulses in the first substep: its fraction of h scales them to h
        ab, dz, first = work.ab.copy(), work.dz, self.method.substeps[0]
        by_x, by_u = self._blocks
        by_p, multipliers_by_p = self._no_parameters
        if parameters:
            columns = self._columns(parameters)
            by_p, multipliers_by_p = ab[:, columns], dz[m][:, columns] / first
        multipliers, multipliers_by_x, multipliers_by_u = self._no_multipliers
        if m.stop > m.start:
            multipliers = work.z[m] / first
            multipliers_by_x, multipliers_by_u = dz[m][by_x] / first, dz[m][by_u] / first
        # keywords would take a twentieth of a small linearization
        return Linearization(
            ab[by_x],
            ab[by_u],
            by_p,
            work.x1.copy(),
            self.h,
            multipliers,
            multipliers_by_x,
            multipliers_by_u,
            multipliers_by_p,
        )

    def linearize_steps(self, x: ArrayLike, u: ArrayLike) -> LinearizedSteps:
        """The derivatives A (N, ndx, ndx) and B (N, ndx, nu) of the steps from the states x
        (N, nx) under the inputs u (N, nu), and the states x1 (N, nx) after them, as a named tuple.

        All steps run in one native call, which lets other threads run; the results are bitwise
        equal to those of `linearize`. Python linearizes compositions, one step after another.

        Raises StepFailed with the number of the failed step, and ValueError for a wrong shape or a
        value that is not finite.
        """
        x, u = step_rows(self, x, u)
        rows, n = len(x), self.ndx
        shapes = (rows, n, n), (rows, n, self.nu), (rows, self.nx)
        out, row = LinearizedSteps(*map(np.empty, shapes)), 0
        while row < rows:
            row = self.engine.linearize_rows(self._arrays.work, row, x, u, out)
            if row < rows:  # another initial guess may lead to a solution
                try:
                    lin = self.linearize(x[row], u[row])
                except StepFailed as failure:
                    raise failure.at_step(row) from None
                out.A[row], out.B[row], out.x1[row] = lin.A, lin.B, lin.x1
                row += 1
        return out

    def linearize_operator(self, x: ArrayLike, u: ArrayLike = ()) -> LinearizationOperators:
        """The linearization of the step, with A (ndx, ndx) and B (ndx, nu) as
        `scipy.sparse.linalg.LinearOperator`. They multiply vectors and blocks of vectors, and with
        `rmatvec`, `rmatmat` and `.T` also by A^T and B^T. The coordinates are those of
        `linearize`. Unpacks as `A, B`.

        For a tree, and for a composition of its steps, every product takes time linear in the
        number of bodies, and no matrix is formed. In all other systems the operators multiply by
        the matrices of `linearize`: systems that are not a `Multibody`, methods other than
        `midpoint`, and models with constraints, contacts, wheels, wrenches, or springs and dampers
        between points.

        Raises the same errors as `step`.
        """
        from nh_control.discrete.operators import LinearizationOperators  # slow to import

        routine = self.engine.products
        if routine is None:
            return LinearizationOperators.of_matrices(self.linearize(x, u))
        work = self._run(routine, x, u)
        return LinearizationOperators.of_products(work.products, work.x1.copy(), self.h)

    def hessian(
        self,
        x: ArrayLike,
        u: ArrayLike,
        lam: ArrayLike,
        multiplier_adjoint: ArrayLike | None = None,
        parameters: Sequence[str] = (),
    ) -> np.ndarray:
        """The second derivative (ndx + nu + k, ndx + nu + k) of
        `lam . local(x1, f(retract(x, dx), u + du, p + dp))` at zero with respect to (dx, du, dp),
        for an adjoint lam (ndx) and k `parameters`. A `multiplier_adjoint` adds its product with
        the multipliers to this function.

        `mu = r_z^{-T} (g_z^T lam + lam_z);  H = P^T hess(lam . g - mu . r) P,  P = [I; dz]`, where
        lam_z contains the `multiplier_adjoint` at the indices of the multipliers. Local
        coordinates that depend on parameters are those at p + dp. Raises the same errors as
        `linearize`.
        """
        engine, arrays = self._differentiated(parameters)
        work, m = arrays.work, self._multipliers
        assign(work.lam, lam, self, "adjoint")
        # lam_z is zero except at the multipliers, which scale with the first fraction of h
        work.lam_z[:] = 0
        if multiplier_adjoint is not None:
            assign(work.lam_z[m], multiplier_adjoint, self, "multiplier adjoint")
            work.lam_z[m] /= self.method.substeps[0]
        full = self._run(engine.hessian, x, u, engine, arrays).hessian
        if not parameters:
            return full.copy()
        variables = [*range(self.ndx + self.nu), *self._columns(parameters)]
        return full[np.ix_(variables, variables)]

    def multipliers(self, x: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """The multipliers (m) of the holonomic constraints, which are impulses at q0: the
        constraint force there is `-Dh(q0)^T multipliers / h` [johnson2014 (28)]. For a
        composition, they belong to the first substep and are divided by its fraction of h.

        The first step from a momentum M v, for example of a `measured_state`, returns half of the
        multipliers, because M v contains no earlier force. Energy-preserving methods return the
        mean force of the step, or the stacked forces at the stages of a collocation.
        """
        z = self._run(self.engine.step, x, u).z
        return z[self._multipliers] / self.method.substeps[0]

    def newton_iterations(self, x: ArrayLike, u: ArrayLike = ()) -> int:
        """The number of Newton iterations in a step (see `solve`)."""
        return self.solve(x, u).newton_iterations

    def conditioning(self, x: ArrayLike, u: ArrayLike = ()) -> Conditioning:
        """Condition numbers for the equations of the step from x under u at its solution; for a
        composition, those for the worst substep. If the step fails, StepFailed contains them.
        """
        jacobians = self.engine.jacobians(self._run(self.engine.linearize, x, u))
        multipliers, masses = self.method.multipliers, self.nominal_masses
        redundant = self.system.n_redundant
        substeps = [Conditioning.of(r_z, multipliers, masses, redundant) for r_z in jacobians]
        return max(substeps, key=lambda substep: substep.jacobian)

    @property
    def vectorization(self) -> Vectorization:
        """The number of runs, `lanes`, that the next `nh.rollout` or batch of environments steps
        at once with the processor's vector instructions. It is 4 or 8, or 1 with a `reason` if
        there is no such code or the code is not compiled yet. Results are bitwise identical in all
        cases.
        """
        code = self.substep_engine.lane_code
        return Vectorization(1, code) if isinstance(code, str) else code.vectorization

    def prepare(self, hessian: bool = False, lanes: bool = False) -> DiscreteSystem:
        """Wait until the functions for steps and linearizations are compiled; until then, CasADi's
        virtual machine evaluates them. With `hessian`, also wait for second derivatives, and with
        `lanes`, for the code that steps several runs at once (see `vectorization`). Returns this
        system. The second derivatives of a tree of bodies are never compiled.
        """
        code = self._functions.code
        code.engine.compile(hessian)
        if lanes:
            code.engine.lane_code  # noqa: B018  (access starts the compilation)
        code.state, code.node_functions or code.inertia  # noqa: B018  (the same)
        wait_for_compiler()
        return self

    def simulate(
        self,
        x0: ArrayLike,
        inputs: ArrayLike | int = (),
        *,
        name: str = "",
        steps: int | None = None,
        every: int = 1,
        extrapolate: bool = False,
    ) -> Trajectory:
        """The trajectory from x0 (nx), with every `every`-th state. `inputs` is a table (N, nu) of
        inputs, each applied for `every` steps, one input (nu) for all `steps`, or, for a system
        without inputs, the number of steps.

        All steps run in one native call, which lets other threads run; the results are bitwise
        equal to those of single steps. With `extrapolate`, Newton's iteration starts from the
        unknowns of the three steps before, extrapolated by a parabola. Smooth motion then takes
        half the iterations. The results depend only on x0 and the inputs, and equal those of
        single steps up to round-off, but not bitwise, if the motion is smooth. If a step has
        several solutions, for example after jumps of inputs in fast motion, extrapolation may lead
        to another solution, or to none.

        Raises StepFailed with the number of the failed step, and ValueError for a wrong shape, a
        number of steps that is not a multiple of `every`, a value that is not finite, or
        `extrapolate` for a composition or a system with contacts. Logs a warning if a step rotates
        a body or a direction by half a turn or more.
        """
        inputs = input_rows(self, inputs, steps, every)
        if extrapolate and (len(self.method.substeps) > 1 or self.method.contacts is not None):
            raise ValueError(
                f"{self}: extrapolate=True needs a method without substeps and a system without "
                "contacts; leave it out"
            )
        table = np.empty((len(inputs) + 1, self.nx))
        assign(table[0], x0, self, "x0")
        _, failure = self.steps_into(table, inputs, every, extrapolate)
        if failure is not None:
            raise failure
        self.state_map.warn_of_rotations(table, every)
        return Trajectory(every * self.h, table, inputs, self.state_names, self.inputs, name, self)

    def steps_into(
        self, table: np.ndarray, inputs: np.ndarray, every: int = 1, extrapolate: bool = False
    ) -> tuple[int, StepFailed | ValueError | None]:
        """Write the states after inputs (N, nu), each applied for `every` steps from the state
        table[0], into table[1:], with extrapolated initial guesses if `extrapolate` is set.
        Returns the number of steps and, if they stopped early, the error.
        """
        simulate: Callable[..., tuple[int, int]] = self.engine.simulate
        if extrapolate:
            simulate = partial(simulate, extrapolate=True)
        work = self._arrays.work
        return advance(simulate, self.step, work, table, inputs, every)

    def steps_in_lanes(self, tables: LaneTables) -> None:
        """Step several runs at once, with the arrays of this thread. Does nothing for fewer than
        FEWEST runs, or if there is no compiled code for lanes.
        """
        # a string is the reason why there is no such code
        code = self.substep_engine.lane_code if len(tables.x) >= FEWEST else ""
        if not isinstance(code, str):
            code.simulate(self.engine.stepper(self._arrays.work), tables)

    def state_from_configurations(
        self, q0: ArrayLike, q1: ArrayLike, u: ArrayLike = (), iterations: int = 20
    ) -> np.ndarray:
        """The state at q1 after the step from q0 under u that ends closest to the configuration
        q1. Gauss-Newton iterations on rho0 find it, up to round-off if a step leads from q0 to q1.
        Raises StepFailed if a step fails, and ValueError if the iterations do not converge.
        """
        derivatives = lambda x: self.linearize(x, u)  # noqa: E731
        return state_between(self.state_map, derivatives, q0, q1, iterations)

    def state_function(self, name: str) -> FunctionData:
        """`local(x0, x1, p)` or `retract(x, dx, p)`, for native code in one thread."""
        return self._functions.code.state.function(name)

    @property
    def code(self) -> CompiledFunctions:
        """The functions, which are the same for all steps h and all parameter values."""
        return self._functions.code

    @property
    def substep_engine(self) -> Engine:
        """The engine for steps or, in a composition, for substeps."""
        return self._functions.code.engine

    @property
    def node_equations(self) -> tuple[ca.Function, ca.Function]:
        """`state(q, v, u, h, p) -> x`, and `inertia(x, p)`, which determines velocities."""
        return self._functions.code.state_of_velocity, inertia(self.system)

    def serialized_step(self) -> list[str]:
        """The generated functions of a substep and its first derivatives. Systems with equal
        functions, substeps, parameter values and h take the same steps.
        """
        code = self._functions.code
        engine = code.engine if code.node_functions is None else code.generated()
        return [f.serialize() for f in engine.functions]

    def native(self) -> NativeSystem:
        """The data for native loops in this thread."""
        stepper, s = self.engine.stepper(self._arrays.work), self.system
        stepper.nq, stepper.n_prescribed = s.space.nq, len(s.prescribed)
        return NativeSystem(
            stepper=stepper,
            motion=self.state_map.motion.data,
            local=self.state_function("local"),
            retract=self.state_function("retract"),
            state=self.state_function("state"),
        )

    def _run(
        self,
        routine: Callable[[Workspace], int],
        x: ArrayLike,
        u: ArrayLike,
        engine: Engine | ComposedEngine | None = None,
        arrays: Arrays | None = None,
    ) -> Workspace:
        work = (self._arrays if arrays is None else arrays).work
        assign(work.x, x, self, "state")
        assign(work.u, u, self, "input")
        status = routine(work)
        if status:
            engine = self.engine if engine is None else engine
            if status := engine.solve_by_continuation(routine, status, work):
                raise failure(self.state_map, engine, status, work)
        return work

    def _drifting(self, x: np.ndarray) -> np.ndarray:
        """Inputs (..., nu) with zero forces for states (..., nx). Prescribed coordinates continue
        at their current velocities.
        """
        # s1 = s0 + h v_s for prescribed coordinates s
        u, n = self.idle(x), len(self.system.prescribed)
        if n:
            u[..., self.system.nu :] += self.h * self.velocity(x)[..., self.system.space.nw - n :]
        return u

    def _with_step_impulses(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        try:
            return self.with_impulses_of_step(x, u)
        except (StepFailed, np.linalg.LinAlgError):
            return x  # the step fails, so there are no derivatives that the impulses would change

    def _columns(self, parameters: Sequence[str]) -> list[int]:
        """The indices of parameters among the variables (dx, du, p)."""
        names, first = self.parameter_names, self.ndx + self.nu
        if unknown := [name for name in parameters if name not in names]:
            raise ValueError(f"{self}: no parameters {unknown}, choose from {list(names)}")
        return [first + names.index(name) for name in parameters]

    def _differentiated(self, parameters: Sequence[str]) -> tuple[Engine | ComposedEngine, Arrays]:
        if parameters:
            return self.engine.parametric, self._functions.parametric_arrays
        return self.engine, self._arrays

    def _copy_with(self, **changed: Any) -> DiscreteSystem:
        copied = copy.copy(self)
        copied.__dict__.clear()
        values: dict[str, Any] = {"system": self.system, "h": self.h, "method": self.method}
        copied._bind(**values | changed, space=self.state_space, code=self._functions.code)
        return copied

    @cached_property
    def engine(self) -> Engine | ComposedEngine:
        """The engine for steps: the kernel for trees, generated code, or a composition."""
        return self._functions.engine

    @cached_property
    def _arrays(self) -> Arrays:
        return self._functions.arrays

    @cached_property
    def _blocks(self) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
        """The indices of A and B in a table of derivatives."""
        every, n = slice(None), self.ndx
        return (every, slice(n)), (every, slice(n, n + self.nu))

    @cached_property
    def _no_parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of the state and of the multipliers with respect to no parameters."""
        return np.zeros((self.ndx, 0)), np.zeros((len(self.method.multipliers), 0))

    @cached_property
    def _no_multipliers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The multipliers and their derivatives for a system without multipliers."""
        return np.zeros(0), np.zeros((0, self.ndx)), np.zeros((0, self.nu))

    @cached_property
    def _multipliers(self) -> slice:
        return slice(self.method.multipliers.start, self.method.multipliers.stop)
