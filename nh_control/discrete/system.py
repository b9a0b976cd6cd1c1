"""Discrete-time mechanical systems `x1 = f(x, u)` given by a residual and a read-out, with
everything else derived from these two.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.discrete.compiled_functions import Arrays
from nh_control.discrete.composed import ComposedEngine, check_composition
from nh_control.discrete.engine import Engine
from nh_control.discrete.failure import failure
from nh_control.discrete.native_abi import NativeSystem, StepperData
from nh_control.discrete.results import Conditioning, Linearization, StepFailed
from nh_control.discrete.simulation import input_rows
from nh_control.discrete.state_map import StateMap, checked_step
from nh_control.discrete.trajectory import Trajectory
from nh_control.discrete.workspace import Workspace
from nh_control.mechanics.states import rotation_problem

log = logging.getLogger(__name__)

WATCHED = 1000
"""Number of states of a trajectory that are asked for their rotations: a velocity costs as much as
a step.
"""


class DiscreteSystem(StateMap):
    """A mechanical system under an integrator with step `h` (s): `step`, exact `linearize` and
    `hessian`.

    A state x (nx) is (q, rho), configuration and discrete momenta at the same node; small changes
    dx (ndx) are in the local coordinates of `state_space`.
    `step` and the others are pure functions. Raises ValueError for h <= 0 or not finite.
    """

    def with_parameters(self, **changes: Any) -> DiscreteSystem:
        """The same discrete system with other physical parameters; compiled code is shared.

        Raises ValueError for an unknown name or a value that asks for another structure.
        """
        return self._copy_with(system=self.system.with_parameters(**changes))

    def with_step(self, h: float) -> DiscreteSystem:
        """The same discrete system with another step h (s); compiled code is shared.

        Raises ValueError for h <= 0 or not finite.
        """
        return self._copy_with(h=checked_step(self.method, h))

    def composed(self, substeps: Sequence[float], name: str) -> DiscreteSystem:
        """The discrete system whose step is this one's by fractions of h in turn, negative ones
        among them, under one input; compiled code is shared. Derivatives follow by the chain
        rule.

        Raises ValueError where fractions are zero, not finite or do not add up to 1, for inputs
        that are next values of prescribed coordinates, for a method with memory, which would have
        to know the last step's size, and for a composition.
        """
        check_composition(self, substeps)
        method = replace(self.method, name=name, substeps=tuple(map(float, substeps)))
        return self._copy_with(method=method)

    def step(self, x: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """Next state x1 (nx) from state x (nx) and input u (nu); raises StepFailed, and ValueError
        for a wrong shape or a value that is not finite.
        """
        return self._run(self._engine.step, x, u).x1.copy()

    def unknowns(self, x: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """The unknowns z (nz) that solve the step's residual at x (nx), u (nu), of a composition
        those of its first substep; raises as `step` does.
        """
        return self._run(self._engine.step, x, u).z.copy()

    def linearize(
        self, x: ArrayLike, u: ArrayLike = (), parameters: Sequence[str] = ()
    ) -> Linearization:
        """Exact first derivatives of the step, by some of `parameter_names`, too, if they are
        named: with w = (x, u, p), `dz = -r_z^{-1} r_w;  [A B P] = g_w + g_z dz`, by the implicit
        function theorem.

        Raises as `step` does, and ValueError for an unknown parameter.
        """
        engine, arrays = self._differentiated(parameters)
        work, n, m = self._run(engine.linearize, x, u, arrays), self._ndx, self._multipliers
        ab, dz, first = work.ab.copy(), work.dz, self.method.substeps[0]
        by_x, by_u = slice(n), slice(n, n + self._nu)
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

        `mu = r_z^{-T} (g_z^T lam + lam_z);  H = P^T hess(lam . g - mu . r) P,  P = [I; dz]`, lam_z
        the `multiplier_adjoint` at the places of the multipliers in z. Raises as `linearize` does.
        """
        engine, arrays = self._differentiated(parameters)
        work, m = arrays.work, self._multipliers
        _assign(work.lam, lam, self, "adjoint")
        work.lam_z[:] = 0
        if multiplier_adjoint is not None:
            _assign(work.lam_z[m], multiplier_adjoint, self, "multiplier adjoint")
            work.lam_z[m] /= self.method.substeps[0]
        full = self._run(engine.hessian, x, u, arrays).hessian
        if not parameters:
            return full.copy()
        kept = [*range(self._ndx + self._nu), *self._columns(parameters)]
        return full[np.ix_(kept, kept)]

    def multipliers(self, x: ArrayLike, u: ArrayLike = ()) -> np.ndarray:
        """Multipliers (m) of the holonomic constraints, impulses at q0:
        `-Dh(q0)^T multipliers / h` is the constraints' force there [johnson2014 (28)].

        A first step from a momentum M v, which knows of no force before, has half of it. Those of
        a composition are its first substep's, over the fraction of h.
        """
        z = self._run(self._engine.step, x, u).z
        return z[self._multipliers] / self.method.substeps[0]

    def newton_iterations(self, x: ArrayLike, u: ArrayLike = ()) -> int:
        """Iterations that the step from x under u takes, of a composition those of its last
        substep; raises as `step` does.
        """
        return int(self._run(self._engine.step, x, u).info[0])

    def conditioning(self, x: ArrayLike, u: ArrayLike = ()) -> Conditioning:
        """Condition numbers of the equations of the step from x under u, at its solution, of a
        composition those of the worst substep; a step that fails has them in its StepFailed.
        """
        jacobians = self._engine.jacobians(self._run(self._engine.linearize, x, u))
        equations = self.method.multipliers, self.nominal_masses
        substeps = [Conditioning.of(r_z, *equations) for r_z in jacobians]
        return max(substeps, key=lambda substep: substep.jacobian)

    def prepare(self) -> DiscreteSystem:
        """Compile or load everything at once, which the first calls would do otherwise, but the
        second derivatives of a model with an engine of its own; returns this system.
        """
        code = self._code
        code.engine.hessian, code.state  # noqa: B018  (made when asked for)
        code.node_functions or code.inertia  # noqa: B018
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
        """Trajectory from x0 (nx), of which each `every`-th state is kept: under inputs (N, nu),
        each held for `every` steps; under one input (nu) for all `steps`; or under a number of
        steps alone for a system without inputs.

        All steps run in one native call, the same to the bit as one by one, which lets other
        threads run. Raises StepFailed with the number of the step, and ValueError for a wrong
        shape, a number of steps that is no multiple of `every` or a value that is not finite; logs
        a warning where states rotate something by half a turn or more in a step.
        """
        inputs = input_rows(self, inputs, steps, every)
        table = np.empty((len(inputs) + 1, self.nx))
        _assign(table[0], x0, self, "x0")
        _, failure = self.steps_into(table, inputs, every)
        if failure is not None:
            raise failure
        self._warn_of_rotations(table, every)
        return Trajectory(every * self.h, table, inputs, self.state_names, self.inputs, name, self)

    def _warn_of_rotations(self, table: np.ndarray, every: int) -> None:
        """Say when half a turn in one step is first seen, in one of some WATCHED states."""
        stride = 1 + len(table) // WATCHED
        for row, angle in enumerate(self.rotation_angles(table[::stride])):
            if message := rotation_problem(angle, self.h):
                log.warning("%s: at step %d %s", self, row * stride * every, message)
                return

    def steps_into(
        self, table: np.ndarray, inputs: np.ndarray, every: int = 1
    ) -> tuple[int, StepFailed | ValueError | None]:
        """Write the states after inputs (N, nu), each held for `every` steps, into table[1:]
        (at least N, nx) from the state table[0]. Returns the number of steps, and the error that
        ended them before the last one.
        """
        simulate, work, row = self._engine.simulate, self._arrays.work, 0
        while row < len(inputs):
            work.x[:] = table[row]
            _, done = simulate(work, inputs[row:], every, table[row + 1 :])
            row += done // every
            if row < len(inputs):  # a step that failed may have a solution from another start
                try:
                    table[row + 1] = self._steps(table[row], inputs[row], every, row * every)
                except StepFailed as failure:
                    return row * every if failure.step is None else failure.step, failure
                except ValueError as problem:
                    return row * every, problem
                row += 1
        return every * len(inputs), None

    def _steps(self, x: np.ndarray, u: np.ndarray, count: int, first: int) -> np.ndarray:
        """The state after `count` steps under one input, the first of number `first`."""
        for k in range(first, first + count):
            try:
                x = self.step(x, u)
            except StepFailed as failure:
                raise failure.at(k) from None
        return x

    def state_from_configurations(
        self, q0: ArrayLike, q1: ArrayLike, u: ArrayLike = (), iterations: int = 20
    ) -> np.ndarray:
        """State at q1 whose step from q0 under u came closest to the configuration q1:
        Gauss-Newton on rho0 with the exact linearization.

        For configurations that a step joins the result is exact to round-off. Raises StepFailed,
        and ValueError if the iteration does not settle.
        """
        space, n = self.system.space, self.system.space.nv
        q1 = np.asarray(q1, dtype=float)
        x0 = self.measured_state(q0, space.velocity(np.asarray(q0), q1) / self.h)
        at_rest = np.append(space.origin, np.zeros(self.nx - len(q1)))
        for _ in range(iterations):
            lin = self.linearize(x0, u)
            target = np.concatenate([q1, lin.x1[len(q1) :]])
            A = lin.A[:n, n:]
            # columns of unit length: the momenta that count do not depend on their units
            lengths = np.linalg.norm(A, axis=0)
            lengths[lengths == 0] = 1.0
            wanted = self.local(lin.x1, target)[:n], self.local(at_rest, target)[:n]
            scaled = np.linalg.lstsq(A / lengths, np.column_stack(wanted), rcond=None)[0]
            change, from_origin = scaled.T / lengths
            x0 = self.retract(x0, np.concatenate([np.zeros(n), change]))
            # sizes of the momenta, and of those that move the origin to q1: a body may be at rest
            size = np.abs(x0[len(q1) :]).max(initial=0.0) + np.abs(from_origin).max(initial=0.0)
            if np.abs(change).max(initial=0.0) <= 1e-12 * size:
                x1 = self.step(x0, u)
                return np.concatenate([q1, x1[len(q1) :]])
        raise ValueError(
            f"{self}: no momentum found that joins the configurations {np.asarray(q0).tolist()} "
            f"and {q1.tolist()} in one step"
        )

    def native(self) -> NativeSystem | None:
        """What native loops of this thread need; None where there is no native code."""
        substeps, motion, s = self._engine.substeps, self._motion.data, self.system
        if substeps is None or motion is None:
            return None
        work, n_prescribed = self._arrays.work, len(s.prescribed)
        stepper = StepperData.of(substeps, work, s.space.nq, n_prescribed)
        functions = (self._code.state.address(f) for f in ("local", "retract", "state"))
        return NativeSystem(stepper, motion, *(f or 0 for f in functions))

    def _run(
        self,
        routine: Callable[[Workspace], int],
        x: ArrayLike,
        u: ArrayLike,
        arrays: Arrays | None = None,
    ) -> Workspace:
        work = (self._arrays if arrays is None else arrays).work
        _assign(work.x, x, self, "state")
        _assign(work.u, u, self, "input")
        status = routine(work)
        if status and (status := self._engine.solve_by_continuation(routine, status, work)):
            raise failure(self, self._engine, status, work)
        return work

    def _columns(self, parameters: Sequence[str]) -> list[int]:
        """Places of parameters among the variables (dx, du, p)."""
        names, first = self.parameter_names, self._ndx + self._nu
        if unknown := [name for name in parameters if name not in names]:
            raise ValueError(f"{self}: no parameters {unknown}, choose of {list(names)}")
        return [first + names.index(name) for name in parameters]

    def _differentiated(self, parameters: Sequence[str]) -> tuple[Engine | ComposedEngine, Arrays]:
        if parameters:
            return self._engine.parametric, self._parametric_arrays
        return self._engine, self._arrays

    def _copy_with(self, **changed: Any) -> DiscreteSystem:
        copied = copy.copy(self)
        for name in ("_arrays", "_parametric_arrays", "_engine", "_motion"):
            copied.__dict__.pop(name, None)
        copied.__dict__.update(changed)
        return copied

    @cached_property
    def _parametric_arrays(self) -> Arrays:
        return Arrays(
            self._engine.parametric.shapes_at(self.parameter_values), self.parameter_values
        )

    @cached_property
    def _ndx(self) -> int:
        return self.ndx

    @cached_property
    def _nu(self) -> int:
        return self.nu

    @cached_property
    def _no_parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of the state and of the multipliers by none."""
        return np.zeros((self.ndx, 0)), np.zeros((len(self.method.multipliers), 0))

    @cached_property
    def _no_multipliers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Multipliers and their derivatives of a system without any."""
        return np.zeros(0), np.zeros((0, self._ndx)), np.zeros((0, self._nu))

    @cached_property
    def _multipliers(self) -> slice:
        places = self.method.multipliers
        return slice(places.start, places.stop)


def _assign(array: np.ndarray, value: ArrayLike, where: object, what: str) -> None:
    shape = value.shape if type(value) is np.ndarray else np.shape(value)
    if shape != array.shape and (shape or array.shape != (1,)):  # a number will do for one
        raise ValueError(f"{where}: {what} must have shape {array.shape}, got {np.shape(value)}")
    array[...] = value
