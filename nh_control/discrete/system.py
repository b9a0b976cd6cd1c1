"""Discrete-time mechanical systems `x1 = f(x, u)`, derived from a residual and a read-out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.compiled_functions import Arrays, BoundFunctions, CompiledFunctions
from nh_control.discrete.composition import ComposedEngine, check_composition
from nh_control.discrete.engine import Engine, MakeKernel
from nh_control.discrete.failure import failure
from nh_control.discrete.method import Method
from nh_control.discrete.native_abi import NativeSystem
from nh_control.discrete.results import Conditioning, Linearization, SolvedStep, StepFailed
from nh_control.discrete.simulation import advance, input_rows
from nh_control.discrete.state_between import state_between
from nh_control.discrete.state_map import StateMap, checked_step, of_states
from nh_control.discrete.trajectory import Trajectory
from nh_control.discrete.workspace import Workspace, assign
from nh_control.geometry.spaces import Space
from nh_control.mechanics.parametric import by_field
from nh_control.mechanics.system import System
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.numerics.virtual_machine import FunctionData


class DiscreteSystem:
    """A mechanical system under an integrator with step `h` (s): `step`, exact `linearize` and
    `hessian`.

    A state x (nx) is (q, rho), configuration and discrete momenta at the same node; small changes
    dx (ndx) are in the local coordinates of `state_space`. The `state_map` makes and reads states.
    `step` and the others are pure functions. Raises ValueError for h <= 0 or not finite.
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
        """Take the values of the parameters and of h for the functions of `code`."""
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
        """System, method and step, in words."""
        return repr(self)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters of a step: the system's parameters, and h."""
        return (*self.system.parameter_names, "h")

    @property
    def parameter_values(self) -> np.ndarray:
        """Their values, (n)."""
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
        """State (nx) of configuration q (nq) and velocity v (nw), or (N, nx) of tables of them;
        the part of v outside the velocity constraints is dropped, orthogonally in the mass metric.

        A step under the inputs u (nu), by default without forces and with prescribed coordinates
        that move by v, gives a state what else its motion until now left there: the memory of a
        method like GNI (without it the sleigh's errors are 50 times as large), and the impulses of
        holonomic constraints in the momentum, `with_impulses_of_step`; none where it fails.
        Quaternions and directions of few digits are normalized. Raises ValueError for other
        numbers off their manifold or not finite, and for more than half a turn in one step;
        NotConsistent for a configuration that does not satisfy the holonomic constraints.
        """
        x = self.state_map.state(q, v, u)
        if not self.method.multipliers:
            return x
        inputs = np.broadcast_to(self._drifting(x) if u is None else u, (*x.shape[:-1], self.nu))
        rows = zip(np.atleast_2d(x), np.atleast_2d(inputs))
        return np.reshape([self._with_own_impulses(*row) for row in rows], x.shape)

    def with_impulses_of_step(self, x: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """The state x (nx) with the impulses of the holonomic constraints in its momentum that a
        step under u (nu) leaves there; raises as `step` does.

        No step depends on them, but derivatives at x do: a momentum M v has no impulse of the
        constraints until now, and the derivatives contain half of their force. At an equilibrium
        x = f(x, u) results, and the eigenvalues of A there are those of the motion.
        """
        if not self.method.multipliers:
            return np.array(x, dtype=float)
        return self.with_constraint_impulses(x, self.constraint_impulses(self.step(x, u)))

    def with_parameters(self, **changes: Any) -> DiscreteSystem:
        """The same discrete system with other physical parameters; compiled code is shared. Raises
        ValueError for an unknown name or a value of another structure.
        """
        return self._copy_with(system=self.system.with_parameters(**changes))

    def with_parameter_values(self, values: ArrayLike) -> DiscreteSystem:
        """The same discrete system with these values (n) of all `parameter_names`, among them the
        smoothing of contacts and h; compiled code is shared. Raises ValueError for a value that
        is out of range.
        """
        numbers, system = np.asarray(values, dtype=float), self.system
        changed = system.with_parameters(**by_field(system.parameters, numbers))
        if system.has_contacts:
            changed = changed.with_smoothing(numbers[-2])
        return self._copy_with(system=changed, h=checked_step(self.method, float(numbers[-1])))

    def with_step(self, h: float) -> DiscreteSystem:
        """The same system with another step h (s) > 0; compiled code is shared. Raises
        ValueError.
        """
        return self._copy_with(h=checked_step(self.method, h))

    def with_smoothing(self, smoothing: float) -> DiscreteSystem:
        """The same discrete system with another `smoothing` (J) of its contacts, the height of the
        barrier; compiled code is shared. Raises ValueError unless it is positive.
        """
        return self._copy_with(system=self.system.with_smoothing(smoothing))

    def composed(self, substeps: Sequence[float], name: str) -> DiscreteSystem:
        """The discrete system whose step is a sequence of this one's steps by fractions of h,
        which may be negative, under one input; compiled code is shared. Derivatives follow by the
        chain rule.

        Raises ValueError for fractions that are zero, not finite or do not add up to 1, for
        prescribed coordinates, for a method with memory, and for a composition.
        """
        check_composition(self, substeps)
        method = replace(self.method, name=name, substeps=tuple(map(float, substeps)))
        return self._copy_with(method=method)

    def step(self, x: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """Next state x1 (nx) from state x (nx) and input u (nu); raises StepFailed, and ValueError
        for a wrong shape or a value that is not finite.
        """
        return self._run(self.engine.step, x, u).x1.copy()

    def solve(self, x: ArrayLike, u: ArrayLike = ()) -> SolvedStep:
        """The step from x (nx) under u (nu) with its solution. Raises as `step` does."""
        work = self._run(self.engine.step, x, u)
        return SolvedStep(work.x1.copy(), work.z.copy(), int(work.info[0]))

    def unknowns(self, x: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """The unknowns z (nz) of the step from x (nx) under u (nu), see `solve`."""
        return self.solve(x, u).z

    def linearize(
        self, x: ArrayLike, u: ArrayLike = (), parameters: Sequence[str] = ()
    ) -> Linearization:
        """Exact first derivatives of the step, by some of `parameter_names`, too, if they are
        named: with w = (x, u, p), `dz = -r_z^{-1} r_w;  [A B P] = g_w + g_z dz`, by the implicit
        function theorem.

        Raises as `step` does, and ValueError for an unknown parameter.
        """
        engine, arrays = self._differentiated(parameters)
        work, n, m = self._run(engine.linearize, x, u, engine, arrays), self.ndx, self._multipliers
        ab, dz, first = work.ab.copy(), work.dz, self.method.substeps[0]
        by_x, by_u = slice(n), slice(n, n + self.nu)
        by_p, multipliers_by_p = self._no_parameters
        if parameters:
            columns = self._columns(parameters)
            by_p, multipliers_by_p = ab[:, columns], dz[m][:, columns] / first
        multipliers = self._no_multipliers
        if m.stop > m.start:
            multipliers = work.z[m] / first, dz[m, by_x] / first, dz[m, by_u] / first
        return Linearization(
            ab[:, by_x], ab[:, by_u], by_p, work.x1.copy(), self.h, *multipliers, multipliers_by_p
        )

    def hessian(
        self,
        x: ArrayLike,
        u: ArrayLike,
        lam: ArrayLike,
        multiplier_adjoint: ArrayLike | None = None,
        parameters: Sequence[str] = (),
    ) -> np.ndarray:
        """Second derivative of `lam . local(x1, f(retract(x, dx), u + du, p + dp))` at zero over
        (dx, du, dp), (ndx + nu + k, ndx + nu + k), for an adjoint lam (ndx) and the k parameters
        that are named; a `multiplier_adjoint` adds its product with the multipliers.
        Local coordinates that depend on parameters are those at p + dp.

        `mu = r_z^{-T} (g_z^T lam + lam_z);  H = P^T hess(lam . g - mu . r) P,  P = [I; dz]`, lam_z
        the `multiplier_adjoint` at the places of the multipliers in z. Raises as `linearize` does.
        """
        engine, arrays = self._differentiated(parameters)
        work, m = arrays.work, self._multipliers
        assign(work.lam, lam, self, "adjoint")
        work.lam_z[:] = 0
        if multiplier_adjoint is not None:
            assign(work.lam_z[m], multiplier_adjoint, self, "multiplier adjoint")
            work.lam_z[m] /= self.method.substeps[0]
        full = self._run(engine.hessian, x, u, engine, arrays).hessian
        if not parameters:
            return full.copy()
        kept = [*range(self.ndx + self.nu), *self._columns(parameters)]
        return full[np.ix_(kept, kept)]

    def multipliers(self, x: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """Multipliers (m) of the holonomic constraints, impulses at q0:
        `-Dh(q0)^T multipliers / h` is the constraints' force there [johnson2014 (28)]. A
        composition has those of its first substep, over the fraction of h.

        The first step from a momentum M v, as of a `measured_state`, has half of them, because M v
        contains no force before it. Energy-preserving methods have the mean force of the step, or
        the forces at the stages of a collocation, one below the other.
        """
        z = self._run(self.engine.step, x, u).z
        return z[self._multipliers] / self.method.substeps[0]

    def newton_iterations(self, x: ArrayLike, u: ArrayLike = ()) -> int:
        """Newton iterations of a step, see `solve`."""
        return self.solve(x, u).newton_iterations

    def conditioning(self, x: ArrayLike, u: ArrayLike = ()) -> Conditioning:
        """Condition numbers of the equations of the step from x under u, at its solution; of a
        composition, of the worst substep. A step that fails has them in its StepFailed.
        """
        jacobians = self.engine.jacobians(self._run(self.engine.linearize, x, u))
        equations = self.method.multipliers, self.nominal_masses, self.system.n_redundant
        substeps = [Conditioning.of(r_z, *equations) for r_z in jacobians]
        return max(substeps, key=lambda substep: substep.jacobian)

    def prepare(self, hessian: bool = False) -> DiscreteSystem:
        """Wait until the functions of steps and linearizations are compiled, and with `hessian`
        those of `hessian`, instead of evaluating them by CasADi's virtual machine meanwhile;
        returns this system. The second derivatives of a tree of bodies are never compiled.
        """
        code = self._functions.code
        code.engine.compile(hessian)
        code.state, code.node_functions or code.inertia  # noqa: B018  (made when asked for)
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
    ) -> Trajectory:
        """Trajectory from x0 (nx), with every `every`-th state. Inputs are a table (N, nu), each
        held for `every` steps; one input (nu) for all `steps`; or, without inputs, the number of
        steps.

        All steps run in one native call, which lets other threads run, with the same bits as
        single steps. Raises StepFailed with the number of the step, and ValueError for a wrong
        shape, a number of steps that is no multiple of `every`, or a value that is not finite.
        Logs a warning if states rotate something by half a turn or more in a step.
        """
        inputs = input_rows(self, inputs, steps, every)
        table = np.empty((len(inputs) + 1, self.nx))
        assign(table[0], x0, self, "x0")
        _, failure = self.steps_into(table, inputs, every)
        if failure is not None:
            raise failure
        self.state_map.warn_of_rotations(table, every)
        return Trajectory(every * self.h, table, inputs, self.state_names, self.inputs, name, self)

    def steps_into(
        self, table: np.ndarray, inputs: np.ndarray, every: int = 1
    ) -> tuple[int, StepFailed | ValueError | None]:
        """Write the states after inputs (N, nu), each held for `every` steps, into table[1:] from
        the state table[0]. Returns the number of steps, and the error that ended them early.
        """
        simulate, work = self.engine.simulate, self._arrays.work
        return advance(simulate, self.step, work, table, inputs, every)

    def state_from_configurations(
        self, q0: ArrayLike, q1: ArrayLike, u: ArrayLike = (), iterations: int = 20
    ) -> np.ndarray:
        """State at q1 whose step from q0 under u came closest to the configuration q1, by
        Gauss-Newton on rho0; exact to round-off for configurations that a step joins. Raises
        StepFailed, and ValueError if the iteration does not settle.
        """
        derivatives = lambda x: self.linearize(x, u)  # noqa: E731
        return state_between(self.state_map, derivatives, q0, q1, iterations)

    def state_function(self, name: str) -> FunctionData:
        """`local(x0, x1, p)` or `retract(x, dx, p)` for native code of one thread."""
        return self._functions.code.state.function(name)

    @property
    def substep_engine(self) -> Engine:
        """The engine of a step, of a composition that of its substeps."""
        return self._functions.code.engine

    def native(self) -> NativeSystem:
        """Data for native loops of this thread."""
        stepper, s = self.engine.stepper(self._arrays.work), self.system
        stepper.nq, stepper.n_prescribed = s.space.nq, len(s.prescribed)
        functions = map(self.state_function, ("local", "retract", "state"))
        return NativeSystem(stepper, self.state_map.motion.data, *functions)

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
        """Inputs (..., nu) of states (..., nx) without forces, with prescribed coordinates that
        keep their velocities.
        """
        u, n = self.idle(x), len(self.system.prescribed)
        if n:
            u[..., self.system.nu :] += self.h * self.velocity(x)[..., self.system.space.nw - n :]
        return u

    def _with_own_impulses(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        try:
            return self.with_impulses_of_step(x, u)
        except (StepFailed, np.linalg.LinAlgError):
            return x  # there is no step whose derivatives the impulses could change

    def _columns(self, parameters: Sequence[str]) -> list[int]:
        """Places of parameters among the variables (dx, du, p)."""
        names, first = self.parameter_names, self.ndx + self.nu
        if unknown := [name for name in parameters if name not in names]:
            raise ValueError(f"{self}: no parameters {unknown}, choose of {list(names)}")
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
        """The engine that steps: the kernel of trees, generated code, or a composition."""
        return self._functions.engine

    @cached_property
    def _arrays(self) -> Arrays:
        return self._functions.arrays

    @cached_property
    def _no_parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of the state and of the multipliers by none."""
        return np.zeros((self.ndx, 0)), np.zeros((len(self.method.multipliers), 0))

    @cached_property
    def _no_multipliers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Multipliers and their derivatives of a system without any."""
        return np.zeros(0), np.zeros((0, self.ndx)), np.zeros((0, self.nu))

    @cached_property
    def _multipliers(self) -> slice:
        return slice(self.method.multipliers.start, self.method.multipliers.stop)
