"""The midpoint step and its derivatives for a tree of bodies, in time linear in the number of
bodies.
"""

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
from nh_control.multibody.tree_products import TreeProducts
from nh_control.multibody.tree_wheels import TreeWheels
from nh_control.numerics import newton
from nh_control.numerics.compiled import Functions
from nh_control.numerics.library import library

FOLDER = Path(__file__).parent / "native"
ARRAYS = (*step_shapes(0, 0, 0, 0, 0, 0), "tree", "memory", "slopes")
"""Arrays of a workspace, in order."""


class TreeEngine(Engine):
    """An `Engine` that solves the Newton equation for a step, and each column of A and B, in time
    linear in the number of bodies. The library's kernel reads the model as data. It performs a
    Riccati recursion from the leaves to the root of the tree, followed by a sweep back
    (native/factorization.c). Constraints add a dense system for their multipliers (native/kkt.c).
    Springs and dampers between points add a dense system for their forces
    (native/low_rank_update.c).

    The steps are equal to the steps of the generated equations up to round-off. Second derivatives
    use the kernel's first derivatives and the generated equations' second derivatives. The
    generated equations are built on demand and evaluated by CasADi's virtual machine. They need no
    compilation and are only slightly slower than compiled code (test/benchmark/tree_hessians.py).
    The `parametric` engine also has derivatives with respect to the parameters.
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
        self._system, self._method = system, method
        self._trees, self._make, self._data = library(), generated, data
        self._force_at_start = force_at_start
        self._n_z, self._nv = method.nz, system.space.nv
        self._free = self._nv - len(system.prescribed)
        self._n_constraints = system.n_holonomic_constraints + system.n_velocity_constraints
        self._n_rolling, self._n_redundant = system.n_velocity_constraints, system.n_redundant
        nx, ndx = system.mechanics.state_space.nq, system.mechanics.state_space.nv
        nu = system.nu + len(system.prescribed)
        # the kernel places the rolling impulses before the contact unknowns
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
        # the library computes the size of its memory from the header
        packed = self._packed(data)
        memory_size = self._trees["tree_data_size"](ctypes.c_void_p(packed.ctypes.data))
        self.shapes: Shapes = {
            **step_shapes(nx, nu, n_parameters, method.nz, ndx, n_columns),
            "system": self._functions,
            "tree": packed,
            "memory": (memory_size,),
        }

    def shapes_at(self, p: np.ndarray) -> Shapes:
        """The array shapes, with the model's data at the parameters p (n_parameters). The last
        parameter is the step.
        """
        if not self._n_constants:
            return self.shapes
        return self.shapes | {"tree": self._packed(TreeModel(self._model_at(p)))}

    def _model_at(self, p: np.ndarray) -> Multibody:
        constants = self._data.model.constants
        return constants.model_with(
            parametric.by_field(constants.parameters, p[: self._n_constants])
        )

    def _packed(self, data: TreeModel) -> np.ndarray:
        return data.packed(
            self._force_at_start, self._n_parameters, self._tree_contacts, self._wheels
        )

    def _functions(self) -> TreeFunctionsData:
        """The joint, contact and wheel functions for one thread."""
        return tree_functions(self._joint_code, self._tree_contacts, self._wheels)

    @cached_property
    def _joint_code(self) -> list[Functions]:
        kinds = zip(self._data.multi_dof_types, self.joint_functions)
        return [Functions(f"joint_{type(joint).__name__}", kind) for joint, kind in kinds]

    @property
    def joint_functions(self) -> list[tuple[ca.Function, ...]]:
        """The functions for each type of joint with several coordinates, in the order of
        `struct joint_functions`.
        """
        return [functions_of(joint) for joint in self._data.multi_dof_types]

    @property
    def nz(self) -> int:
        """Number of unknowns."""
        return self._n_z

    @cached_property
    def lane_code(self) -> str:
        """The reason why the kernel has no code for lanes, which is that it steps the runs one by
        one.
        """
        return "the kernel of trees steps one tree at a time"

    @cached_property
    def parametric(self) -> Engine:
        """The engine with derivatives with respect to the parameters and h. For models with
        constraints, wrenches, or springs and dampers between points, this engine is generated
        code, because the points where they act move with the placements of frames.
        """
        if not self._only_joints:
            return self._generated.parametric
        return ParametricTreeEngine(
            self._system, self._method, self._data, self._force_at_start, lambda: self._generated
        )

    @property
    def _native_step(self) -> ctypes._NamedFuncPointer:
        return self._trees["tree_step"]

    def prepare(self, work: Workspace, second: bool) -> None:
        """Do nothing, because the kernel computes the derivatives."""

    def _prepared(
        self, second: bool, routine: Callable[[Workspace], int]
    ) -> Callable[[Workspace], int]:
        return routine

    def compile(self, second: bool) -> None:
        """Start compiling the functions for joints and contacts."""
        self._functions()

    @property
    def is_compiled(self) -> bool:
        """Whether steps call compiled functions."""
        return all(code.is_compiled for code in self._joint_code)

    @property
    def hessian(self) -> Callable[[Workspace], int]:
        """A function that computes the step and the first derivatives with the kernel, then the
        contracted second derivatives. The first call builds the equations for the second
        derivatives. With contacts, generated code computes everything.
        """
        return self._hessian if self._tree_contacts is None else self._generated_hessian

    @property
    def with_second_derivatives(self) -> Engine:
        """The engine with fast second derivatives, which is the generated engine if there are
        contacts.
        """
        return self if self._tree_contacts is None else self._generated

    @property
    def exportable(self) -> Engine:
        """The engine for standalone code. It is the generated engine if there are contacts or
        wheels, because the kernel calls their functions by address.
        """
        return self if self._tree_contacts is None and self._wheels is None else self._generated

    def _generated_hessian(self, work: Workspace) -> int:
        shapes = self._generated.shapes
        if work.generated is None:
            # both engines read and write the same x, u, z, ... and differ only in their functions
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
        # mu = r_z^-T g_z^T lam, where the second pass removes the round-off in the kernel's
        # inverse
        for _ in range(2):
            slope = second.contraction("adjoint", *arguments, work.mu)[0][:, 0] + work.lam_z
            if r_z is None:
                work.mu -= self._by_rho(work).T @ slope
            else:
                work.mu += newton.solve(r_z.T, slope, self._n_redundant)
        return second.contract(work)

    def native_derivatives(self, second: bool) -> tuple[Any, Any, Any]:
        """The kernel's step and linearization. It has no second derivatives."""
        return self._native_step, self._native_linearize, None

    @property
    def _with_second(self) -> Engine:
        return self._generated

    def _by_rho(self, work: Workspace) -> np.ndarray:
        """dz/drho = -r_z^{-1} at the last linearization, without constraints."""
        # the balance is rho + ... = 0, so r_rho = 1 and dz/drho = -r_z^-1
        return work.dz[:, self._nv : self._nv + self._n_z]

    def jacobians(self, work: Workspace) -> Sequence[np.ndarray]:
        """r_z at the last linearization."""
        return [
            self._constrained(work) if self._has_multipliers else _inverse(-self._by_rho(work))
        ]

    @property
    def node_functions(self) -> NodeFunctions | None:
        """The kernel's functions, or None if coordinates are prescribed."""
        return self if self._nv == self._free else None

    def momentum(self, work: Workspace, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Momenta p (nv) at a configuration for the admissible part of a velocity."""
        work.x[: len(q)], work.z[: self._nv] = q, v
        if self._trees["tree_state"](work.list) != newton.CONVERGED:
            raise np.linalg.LinAlgError(f"the mass matrix is singular at {q.tolist()}")
        return work.x1[len(q) :].copy()

    def velocity(self, work: Workspace, x: np.ndarray) -> np.ndarray:
        """Velocity (nv) of a state. Raises numpy.linalg.LinAlgError if the mass matrix is
        singular.
        """
        work.x[:] = x
        if self._trees["tree_velocity"](work.list) != newton.CONVERGED:
            raise np.linalg.LinAlgError(f"the mass matrix is singular at {x.tolist()}")
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
        """r_z at the last evaluation of the residual."""
        if self._has_multipliers:
            return self._constrained(work)
        if self._trees["tree_derivatives"](work.list, work.ab.shape[1]) != newton.CONVERGED:
            work.dz[...] = 0.0
        return self.jacobians(work)[0]

    @property
    def _has_multipliers(self) -> bool:
        return bool(self._n_constraints) or self._tree_contacts is not None

    @property
    def _only_joints(self) -> bool:
        """Whether nothing but joints connects the bodies, and no wrenches act on them."""
        others = self._data.external_wrenches or any(self._data.point_forces)
        return not (self._has_multipliers or others)

    @property
    def products(self) -> Callable[[Workspace], int] | None:
        """The routine for the step and products with its derivatives in linear time. None for
        models with constraints, contacts, wheels, wrenches, or springs and dampers between points,
        whose derivatives contain dense systems.
        """
        return self._step_and_products if self._only_joints else None

    def _step_and_products(self, work: Workspace) -> int:
        status = self.step(work)
        if status == newton.CONVERGED:
            work.products = TreeProducts(self.shapes, work, 2 * self._nv, self._free)
            status = work.products.status
        return status

    def _constrained(self, work: Workspace) -> np.ndarray:
        """r_z with constraints or contacts. The kernel returns the rows and columns for all of its
        unknowns, with the leading block inverted.
        """
        r_z = np.empty((self._n_kernel, self._n_kernel))
        self._trees["tree_equations"](work.list, ctypes.c_void_p(r_z.ctypes.data))
        free = slice(self._free)
        # the kernel returns the inverse of the block for the momentum balance
        r_z[free, free] = _inverse(r_z[free, free])
        if not self._n_rolling:
            return r_z
        # remove the rolling impulses with X^T A^T = 0, and order the rows as in the generated
        # equations
        end = self._free + self._n_constraints
        rolling = slice(end - self._n_rolling, end)
        X = self._basis(work)
        rows = X.T @ r_z[free], r_z[rolling], r_z[self._free : rolling.start], r_z[end:]
        return np.delete(np.vstack(rows), rolling, axis=1)

    def _basis(self, work: Workspace) -> np.ndarray:
        """The basis X (n_free, nrho) of the admissible velocities at the step's initial state."""
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
    """A tree engine that also has derivatives with respect to the parameters."""

    _by_parameters = True

    def shapes_at(self, p: np.ndarray) -> Shapes:
        """The array shapes, with the model's data at the parameters and the derivatives of the
        data.
        """
        slopes = ParameterJacobian(self._data.model, self._model_at(p)).packed()
        return super().shapes_at(p) | {"slopes": slopes}

    @property
    def _with_second(self) -> Engine:
        return self._generated.parametric

    @cached_property
    def _native_linearize(self) -> ctypes._NamedFuncPointer:
        return self._trees["tree_linearize_parameters"]


def tree_engine(system: MultibodySystem, method: Method, force_at_start: float) -> Engine | None:
    """The kernel for the midpoint rule, where the fraction `force_at_start` of the forces acts at
    the beginning of a step. Returns None if the system does not use the functions of its model, or
    if the kernel does not support a part of the model.
    """
    model = system.model
    if model is None or not_a_tree(model) or any(c.bounces for c in system.contacts):
        return None
    generated = partial(generated_engine, system, method)
    return TreeEngine(system, method, TreeModel(model), force_at_start, generated)


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """The inverse, or NaN if the matrix is singular."""
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)
