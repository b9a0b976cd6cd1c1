"""The compiled functions for a system and a method, and the arrays on which they work."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from nh_control.discrete.composition import ComposedEngine
from nh_control.discrete.engine import Engine, MakeKernel, NodeFunctions, generated_engine
from nh_control.discrete.method import Method
from nh_control.discrete.workspace import Shapes, Workspace
from nh_control.geometry.spaces import Space
from nh_control.mechanics.lagrangian import inertia
from nh_control.mechanics.system import System
from nh_control.numerics.compiled import Functions


class CompiledFunctions:
    """The functions, which are the same for all steps h and all parameter values. Each function is
    generated when it is first used.
    """

    def __init__(
        self,
        system: System,
        method: Method,
        make_kernel: MakeKernel | None,
        step_space: Space | None,
        alpha: float,
    ):
        self._system, self._method, self._make_kernel = system, method, make_kernel
        self._step_space, self._alpha = step_space, alpha
        self.structures = Structures()

    @cached_property
    def engine(self) -> Engine:
        """The engine for steps, linearizations and Hessians: the kernel for trees or generated
        code.
        """
        return self._kernel or self.generated()

    @cached_property
    def node_functions(self) -> NodeFunctions | None:
        """The kernel's functions for momenta, velocities and energies; None without a kernel."""
        return None if self._kernel is None else self._kernel.node_functions

    @cached_property
    def _kernel(self) -> Engine | None:
        if self._make_kernel is None:
            return None
        return self._make_kernel(self._system, self._method)

    def generated(self) -> Engine:
        """The engine that runs code generated from the method's residual and read-out."""
        return generated_engine(self._system, self._method)

    @cached_property
    def inertia(self) -> Functions:
        """`inertia(x, p)` (see `mechanics.lagrangian.inertia`)."""
        return Functions(f"{self._system.name}_inertia", [inertia(self._system)])

    @cached_property
    def rolling(self) -> Functions:
        """`rolling(q, v, p)`, the residual A(q) v - b(q) in the velocity constraints at a node."""
        s = self._system
        q, v = ca.SX.sym("q", s.space.nq), ca.SX.sym("v", s.space.nw)
        residual = ca.densify(s.constraint_matrix(q) @ v - s.drift(q))
        f = ca.Function("rolling", [q, v, s.parameter_symbols], [residual])
        return Functions(f"{s.name}_rolling", [f])

    @cached_property
    def state(self) -> Functions:
        """Functions of the state and the system's parameters p."""
        s = self._system
        states, p = self._method.state_space(s), s.parameter_symbols
        x, x1, dx = (ca.SX.sym(n, k) for n, k in zip(("x", "x1", "dx"), _sizes(states)))
        h, v = ca.SX.sym("h"), ca.SX.sym("v", s.space.nw)
        q, q1 = x[: s.space.nq], x1[: s.space.nq]
        # discrete velocity constraint of a step: A(q_mid) w - h b(q_mid)
        middle, displacement = self._mean_motion(q, q1)
        residual = s.constraint_matrix(middle) @ displacement - h * s.drift(middle)
        outputs = {
            "energy": ([q, v], s.mechanics.energy(q, v)),
            "local": ([x, x1], states.local(x, x1)),
            "retract": ([x, dx], states.retract(x, dx)),
            "constraint": ([x, x1, h], residual),
        }
        if s.n_holonomic_constraints:
            mu = ca.SX.sym("mu", s.n_holonomic_constraints)
            outputs["add_impulses"] = [x, mu], s.mechanics.add_impulses(x, mu)
        functions = [
            ca.Function(name, [*arguments, p], [f]) for name, (arguments, f) in outputs.items()
        ]
        return Functions(f"{s.name}_state", [self.state_of_velocity, *functions])

    @cached_property
    def state_of_velocity(self) -> ca.Function:
        """`state(q, v, u, h, p) -> x`, the state with the velocity v under the inputs u."""
        s = self._system
        q, v, u = (ca.SX.sym(n, k) for n, k in zip("qvu", (s.space.nq, s.space.nw, s.nu)))
        h, p = ca.SX.sym("h"), s.parameter_symbols
        return ca.Function("state", [q, v, u, h, p], [self._state(q, v, u, h)])

    def _state(self, q: ca.SX, v: ca.SX, u: ca.SX, h: ca.SX) -> ca.SX:
        """The state with velocity v and the method's initial memory."""
        # x = (q, rho, memory) with rho = X^T dL/dv
        mechanics, method = self._system.mechanics, self._method
        rho, memory = mechanics.momentum(q, v), ca.SX(len(method.memory), 1)
        if method.start is not None:
            memory = method.start(q, rho, u, h)
        return mechanics.at_signs([mechanics.state_of(q, ca.vertcat(rho, memory))], q)[0]

    def _mean_motion(self, q: ca.SX, q1: ca.SX) -> tuple[ca.SX, ca.SX]:
        """The configuration at which a step evaluates the velocity constraints, and h times the
        mean velocity.
        """
        space = self._step_space
        if space is None:
            step = self._system.space.step_geometry(q, self._system.space.local(q, q1))
            return step.middle, step.w
        # q_mid = retract(q, alpha d) with d = local(q, q1)
        d = space.local(q, q1)
        return space.retract(q, self._alpha * d), d


class Structures(threading.local):
    """The structures of functions for native code in each thread (see `Workspace`)."""

    def __init__(self) -> None:
        self.by_routine = dict[Any, Any]()


class Arrays(threading.local):
    """A workspace for each thread, with the parameter values."""

    def __init__(self, shapes: Shapes, p: np.ndarray, structures: Structures):
        self.work = Workspace(shapes, structures.by_routine)
        self.work.p[:] = p


class BoundFunctions:
    """The engine that runs the compiled functions `code` for the `substeps` of a step, and the
    engine's workspaces. `p` (n_parameters) contains the parameter values and h.
    """

    def __init__(self, code: CompiledFunctions, substeps: Sequence[float], p: np.ndarray):
        self.code, self._substeps, self._p = code, substeps, p

    @cached_property
    def engine(self) -> Engine | ComposedEngine:
        """The engine for steps, linearizations and Hessians."""
        # a composition wraps the engine of its substeps
        engine = self.code.engine
        return engine if len(self._substeps) == 1 else ComposedEngine(engine, self._substeps)

    @cached_property
    def arrays(self) -> Arrays:
        """The engine's workspaces."""
        return Arrays(self.engine.shapes_at(self._p), self._p, self.code.structures)

    @cached_property
    def parametric_arrays(self) -> Arrays:
        """Workspaces for the engine that also differentiates with respect to the parameters."""
        shapes = self.engine.parametric.shapes_at(self._p)
        return Arrays(shapes, self._p, self.code.structures)


def _sizes(states: Space) -> tuple[int, int, int]:
    return states.nq, states.nq, states.nv
