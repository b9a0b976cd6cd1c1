"""The midpoint step of a tree of bodies, and its derivatives, in time linear in the bodies."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from nh_control.discrete.engine import (
    Engine,
    NodeFunctions,
    generated_engine,
    step_shapes,
)
from nh_control.discrete.method import Method
from nh_control.discrete.workspace import Shapes, Workspace
from nh_control.mechanics import parametric
from nh_control.multibody.model import Multibody, MultibodySystem
from nh_control.multibody.parameter_jacobian import ParameterJacobian
from nh_control.multibody.rotation_joints import functions_of
from nh_control.multibody.supported_trees import not_a_tree
from nh_control.multibody.tree_contacts import TreeContacts
from nh_control.multibody.tree_functions import TreeFunctionsData, tree_functions
from nh_control.multibody.tree_model import TreeModel
from nh_control.multibody.tree_wheels import TreeWheels
from nh_control.numerics import newton
from nh_control.numerics.compiled import Functions
from nh_control.numerics.library import library

FOLDER = Path(__file__).parent / "native"
ARRAYS = (*step_shapes(0, 0, 0, 0, 0, 0), "tree", "memory", "slopes")
"""Arrays of a workspace in their order."""


class TreeEngine(Engine):
    """An `Engine` for which Newton's equation of a step costs time linear in the bodies, and every
    column of A and B, too: a Riccati recursion from the leaves of the tree and a sweep back
    (native/factorization.c), by the library's kernel, which reads the model as numbers.
    Constraints add a dense system of their multipliers (native/kkt.c), springs and dampers between
    points one of their forces (native/low_rank_update.c).

    Steps equal those of the generated equations to round-off. Second derivatives, over the
    kernel's first ones, are these equations' own, made when they are asked for and evaluated by
    CasADi's virtual machine: they begin at once, and cost little more than compiled ones
    (test/benchmark/tree_hessians.py). The `parametric` engine has the parameters among the
    variables of its derivatives.
    """

    _by_parameters = False
    """Whether the parameters are among the variables of the first derivatives."""

    def __init__(
        self,
        system: MultibodySystem,
        method: Method,
        data: TreeModel,
        force_at_start: float,
        generated: Callable[[], Engine],
    ):
        self._of = system, method, data, force_at_start
        self._trees, self._make, self._data = library(), generated, data
        self._force_at_start = force_at_start
        self._n_z, self._nv = method.nz, system.space.nv
        self._free = self._nv - len(system.prescribed)
        self._n_constraints = system.n_holonomic_constraints + system.n_velocity_constraints
        self._n_rolling, self._n_redundant = system.n_velocity_constraints, system.n_redundant
        nx, ndx = system.mechanics.state_space.nq, system.mechanics.state_space.nv
        nu = system.nu + len(system.prescribed)
        # the kernel has the impulses of rolling in front of the unknowns of contacts
        self._n_kernel = method.nz + self._n_rolling
        self._contacts, self._tree_contacts = method.contacts, None
        if contacts := method.contacts:
            contacts = replace(contacts, first=contacts.first + self._n_rolling)
            self._tree_contacts = TreeContacts(system, contacts, self._n_kernel)
        self._wheels: TreeWheels | None = None
        if data.model.wheels:
            self._wheels = TreeWheels(system, len(data.rows), self._n_kernel)
        self._n_constants = len(parametric.names(data.model.constants.parameters))
        self._n_parameters = n_parameters = len(system.parameter_values) + 1
        n_columns = ndx + nu + (n_parameters if self._by_parameters else 0)
        packed = self._packed(data)
        room = self._trees["tree_data_size"](ctypes.c_void_p(packed.ctypes.data))
        self.shapes: Shapes = {
            **step_shapes(nx, nu, n_parameters, method.nz, ndx, n_columns),
            "system": self._functions,
            "tree": packed,
            "memory": (room,),
        }

    def shapes_at(self, p: np.ndarray) -> Shapes:
        """The shapes, and the model's numbers at the parameters p (n_parameters) with the step."""
        if not self._n_constants:
            return self.shapes
        return self.shapes | {"tree": self._packed(TreeModel(self._model_at(p)))}

    def _model_at(self, p: np.ndarray) -> Multibody:
        constants = self._data.model.constants
        return constants.model_with(
            parametric.by_field(constants.parameters, p[: self._n_constants])
        )

    def _packed(self, data: TreeModel) -> np.ndarray:
        others = self._tree_contacts, self._wheels
        return data.packed(self._force_at_start, self._n_parameters, *others)

    def _functions(self) -> TreeFunctionsData:
        """The functions of joints, contacts and wheels, for one thread."""
        return tree_functions(self._joint_code, self._tree_contacts, self._wheels)

    @cached_property
    def _joint_code(self) -> list[Functions]:
        kinds = zip(self._data.multi_dof_types, self.joint_functions)
        return [Functions(f"joint_{type(joint).__name__}", kind) for joint, kind in kinds]

    @property
    def joint_functions(self) -> list[tuple[ca.Function, ...]]:
        """The functions of every kind of joints with several coordinates, in the order of
        `struct joint_functions`.
        """
        return [functions_of(joint) for joint in self._data.multi_dof_types]

    @property
    def nz(self) -> int:
        """Number of unknowns."""
        return self._n_z

    @cached_property
    def parametric(self) -> Engine:
        """The engine with derivatives by the parameters and h. It is generated code for models
        with constraints, wrenches, or springs and dampers between points, because these move with
        the placements of frames.
        """
        others = self._data.external_wrenches or any(self._data.point_forces)
        if self._n_constraints or self._tree_contacts is not None or others:
            return self._generated.parametric
        return ParametricTreeEngine(*self._of, lambda: self._generated)

    @property
    def _native_step(self) -> ctypes._NamedFuncPointer:
        return self._trees["tree_step"]

    def prepare(self, work: Workspace, second: bool) -> None:
        """Do nothing: the kernel has the derivatives itself."""

    def _prepared(
        self, second: bool, routine: Callable[[Workspace], int]
    ) -> Callable[[Workspace], int]:
        return routine

    def compile(self, second: bool) -> None:
        """Begin to compile the functions of joints and contacts."""
        self._functions()

    @property
    def is_compiled(self) -> bool:
        """Whether steps call compiled functions."""
        return all(code.is_compiled for code in self._joint_code)

    @property
    def hessian(self) -> Callable[[Workspace], int]:
        """Step and first derivatives by the kernel, then the contracted second ones, whose
        equations are made at the first call; with contacts all by generated code.
        """
        return self._hessian if self._tree_contacts is None else self._generated_hessian

    @property
    def with_second_derivatives(self) -> Engine:
        """The engine whose second derivatives are fast: with contacts the generated one."""
        return self if self._tree_contacts is None else self._generated

    @property
    def exportable(self) -> Engine:
        """The engine for code that stands alone: generated where the kernel calls functions of
        contacts or wheels by their addresses.
        """
        return self if self._tree_contacts is None and self._wheels is None else self._generated

    def _generated_hessian(self, work: Workspace) -> int:
        shapes = self._generated.shapes
        if work.generated is None:
            shared = {name: work.__dict__[name] for name in {*shapes} - {"system", "room"}}
            work.generated = Workspace(shapes | shared)
        return self._generated.hessian(work.generated)

    def _hessian(self, work: Workspace) -> int:
        status = self.linearize(work)
        if status != newton.CONVERGED:
            return status
        second = self._with_second
        arguments = work.x, work.u, work.z, work.p, work.x1, work.lam
        r_z = self._constrained(work) if self._n_constraints else None
        work.mu[:] = 0.0
        for _ in range(2):  # the second time takes round-off of the kernel's inverse away
            slope = second.contraction("adjoint", *arguments, work.mu)[0][:, 0] + work.lam_z
            if r_z is None:
                work.mu -= self._by_rho(work).T @ slope
            else:
                work.mu += newton.solve(r_z.T, slope, self._n_redundant)
        return second.contract(work)

    def native_derivatives(self, second: bool) -> tuple[Any, Any, Any]:
        """The kernel's step and linearization; it has no second derivatives."""
        return self._native_step, self._native_linearize, None

    @property
    def _with_second(self) -> Engine:
        return self._generated

    def _by_rho(self, work: Workspace) -> np.ndarray:
        """dz/drho = -r_z^{-1} of the last linearization without constraints."""
        return work.dz[:, self._nv : self._nv + self._n_z]

    def jacobians(self, work: Workspace) -> Sequence[np.ndarray]:
        """r_z of the last linearization."""
        return [
            self._constrained(work) if self._has_multipliers else _inverse(-self._by_rho(work))
        ]

    @property
    def node_functions(self) -> NodeFunctions | None:
        """The kernel's own; None where coordinates are prescribed."""
        return self if self._nv == self._free else None

    def momentum(self, work: Workspace, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Momenta p (nv) of a configuration and the admissible part of a velocity."""
        work.x[: len(q)], work.z[: self._nv] = q, v
        if self._trees["tree_state"](work.list) != newton.CONVERGED:
            raise np.linalg.LinAlgError(f"singular mass matrix at {q.tolist()}")
        return work.x1[len(q) :].copy()

    def velocity(self, work: Workspace, x: np.ndarray) -> np.ndarray:
        """Velocity (nv) of a state; raises numpy.linalg.LinAlgError where the mass matrix is
        singular.
        """
        work.x[:] = x
        if self._trees["tree_velocity"](work.list) != newton.CONVERGED:
            raise np.linalg.LinAlgError(f"singular mass matrix at {x.tolist()}")
        return work.z[: self._nv].copy()

    def energy(self, work: Workspace, x: np.ndarray, v: np.ndarray) -> float:
        """Energy (J) of a state with the velocity v."""
        work.x[:], work.z[: self._nv] = x, v
        return float(self._energy(work.list))

    @cached_property
    def _energy(self) -> ctypes._NamedFuncPointer:
        routine = self._trees["tree_energy"]
        routine.restype = ctypes.c_double
        return routine

    def last_jacobian(self, work: Workspace) -> np.ndarray:
        """r_z where the last residual was taken."""
        if self._has_multipliers:
            return self._constrained(work)
        if self._trees["tree_derivatives"](work.list, work.ab.shape[1]) != newton.CONVERGED:
            work.dz[...] = 0.0
        return self.jacobians(work)[0]

    @property
    def _has_multipliers(self) -> bool:
        return bool(self._n_constraints) or self._tree_contacts is not None

    def _constrained(self, work: Workspace) -> np.ndarray:
        """r_z with constraints or contacts; the kernel returns its leading block inverted, and
        rows and columns of all its unknowns.
        """
        r_z = np.empty((self._n_kernel, self._n_kernel))
        self._trees["tree_equations"](work.list, ctypes.c_void_p(r_z.ctypes.data))
        free = slice(self._free)
        r_z[free, free] = _inverse(r_z[free, free])
        if not self._n_rolling:
            return r_z
        # without the impulses of rolling, and in the generated order of the rows
        end = self._free + self._n_constraints
        rolling = slice(end - self._n_rolling, end)
        X = self._basis(work)
        rows = X.T @ r_z[free], r_z[rolling], r_z[self._free : rolling.start], r_z[end:]
        return np.delete(np.vstack(rows), rolling, axis=1)

    def _basis(self, work: Workspace) -> np.ndarray:
        """The basis X (n_free, nrho) of the admissible velocities at the state of the step."""
        basis = np.empty((self._free, self._free - self._n_rolling))
        self._trees["tree_basis"](work.list, ctypes.c_void_p(basis.ctypes.data))
        return basis

    @cached_property
    def _generated(self) -> Engine:
        return self._make()

    @cached_property
    def _native_linearize(self) -> ctypes._NamedFuncPointer:
        return self._trees["tree_linearize"]


class ParametricTreeEngine(TreeEngine):
    """The engine with the parameters among the variables of its derivatives."""

    _by_parameters = True

    def shapes_at(self, p: np.ndarray) -> Shapes:
        """The shapes, with the model's numbers at the parameters and their derivatives."""
        slopes = ParameterJacobian(self._data.model, self._model_at(p)).packed()
        return super().shapes_at(p) | {"slopes": slopes}

    @property
    def _with_second(self) -> Engine:
        return self._generated.parametric

    @cached_property
    def _native_linearize(self) -> ctypes._NamedFuncPointer:
        return self._trees["tree_linearize_parameters"]


def tree_engine(system: MultibodySystem, method: Method, force_at_start: float) -> Engine | None:
    """The kernel of the midpoint rule with the part `force_at_start` of the forces at the start of
    a step. None if the functions of the system are not its model's, and if the kernel does not
    support a part of the model.
    """
    model = system.model
    if model is None or not_a_tree(model) or any(c.bounces for c in system.contacts):
        return None
    generated = partial(generated_engine, system, method)
    return TreeEngine(system, method, TreeModel(model), force_at_start, generated)


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """The inverse, not a number where there is none."""
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)
