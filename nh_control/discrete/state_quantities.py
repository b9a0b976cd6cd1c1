"""Velocities, energies and constraint impulses of states."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from nh_control.discrete.compiled_functions import CompiledFunctions
from nh_control.discrete.native_abi import MotionData, address
from nh_control.mechanics.system import System
from nh_control.numerics.library import library, releasing_library
from nh_control.numerics.virtual_machine import FunctionData


class StateQuantities(threading.local):
    """Velocities, energies and impulses of states (nx) of a system with the inertia
    `M y = b, v = X y + c` (see `mechanics.lagrangian.inertia`), at the system's parameter values.

    Every thread has separate arrays. All methods raise LinAlgError if M is singular.
    """

    def __init__(self, system: System, nx: int, code: CompiledFunctions):
        self._system, self._nx, self._code = system, nx, code
        self._p = np.array(system.parameter_values, dtype=float)

    def velocity(self, x: np.ndarray) -> np.ndarray:
        """The velocity (nw) of a state (nx)."""
        # the addresses are fixed: only the numbers change from call to call
        velocity = self._velocity
        velocity.x[...] = x
        if velocity.run():
            raise self._singular(x)
        return velocity.v.copy()

    def energies(self, states: np.ndarray) -> np.ndarray:
        """The energies `v . dL/dv - L` (N) in J of states (N, nx)."""
        out, workspace = np.empty(len(states)), np.empty(self._system.space.nw)
        if releasing_library()["nh_energies"](
            self._data,
            ctypes.byref(self._state_functions["energy"]),
            ctypes.c_longlong(len(states)),
            address(states),
            address(workspace),
            address(out),
        ):
            raise self._singular(states)
        return out

    def constraint_residuals(self, before: np.ndarray, after: np.ndarray, h: float) -> np.ndarray:
        """The values of the function "constraint" (N, n_velocity_constraints) for steps of h (s)
        between the states `before` and `after` (N, nx), which must be contiguous.
        """
        out, step = np.empty((len(before), self._system.n_velocity_constraints)), np.array([h])
        rows, count = out.shape
        releasing_library()["nh_constraints"](
            self._data,
            ctypes.byref(self._state_functions["constraint"]),
            address(step),
            ctypes.c_longlong(rows),
            ctypes.c_longlong(count),
            address(before),
            address(after),
            address(out),
        )
        return out

    def pairs(self, name: str, a: np.ndarray, b: np.ndarray, size: int) -> np.ndarray:
        """The values (N, size) of the function `name` (local or retract) for all rows of a
        and b.
        """
        function = self._state_functions[name]
        a, b, out = np.ascontiguousarray(a), np.ascontiguousarray(b), np.empty((len(a), size))
        releasing_library()["nh_pairs"](
            ctypes.byref(function),
            address(self._p),
            ctypes.c_longlong(len(a)),
            ctypes.c_longlong(a.shape[1]),
            address(a),
            ctypes.c_longlong(b.shape[1]),
            address(b),
            ctypes.c_longlong(size),
            address(out),
        )
        return out

    def takes(self, name: str, a: np.ndarray, b: np.ndarray) -> bool:
        """Whether the state function `name` accepts rows of these lengths."""
        sizes = [self._code.state.size_in(name, k) for k in range(2)]
        return sizes == [a.shape[1], b.shape[1]]

    def impulses(self, x: np.ndarray) -> np.ndarray:
        """The constraint impulses mu (n_holonomic_constraints): the part of the momentum on which
        the velocity does not depend.
        """
        x, mu = np.ascontiguousarray(x), np.empty(self._system.n_holonomic_constraints)
        if library()["nh_impulses"](self._data, address(x), address(mu)):
            raise self._singular(x)
        return mu

    def with_impulses(self, x: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """The state with the same velocity and with mu (n_holonomic_constraints) in its
        momentum.
        """
        x, mu, x1 = np.ascontiguousarray(x), np.ascontiguousarray(mu), x.copy()
        if library()["nh_with_impulses"](self._data, address(x), address(mu), address(x1)):
            raise self._singular(x)
        return x1

    def _singular(self, x: np.ndarray) -> np.linalg.LinAlgError:
        return np.linalg.LinAlgError(
            f"{self._system.name}: the mass matrix is singular at {x.tolist()}"
        )

    @cached_property
    def data(self) -> MotionData:
        """This thread's arrays and functions for native loops."""
        # workspace of native code: M, b, X, c and 2 n integers
        s, code = self._system, self._code
        n, nw = s.nrho + s.n_holonomic_constraints, s.space.nw
        workspace = np.empty(n * n + n + nw * n + nw + n)
        inertia, add_impulses = code.inertia.function("inertia"), FunctionData()
        # x1 = (q, rho + X^T Dh^T mu)
        if s.n_holonomic_constraints:
            add_impulses = code.state.function("add_impulses")
        data = MotionData(
            inertia=inertia,
            add_impulses=add_impulses,
            p=address(self._p),
            nx=self._nx,
            nw=nw,
            nrho=s.nrho,
            n_impulses=s.n_holonomic_constraints,
            rank=n - s.n_redundant,
            room=address(workspace),
        )
        data.references = inertia, add_impulses, self._p, workspace
        return data

    @property
    def _data(self) -> Any:
        return ctypes.byref(self.data)

    @cached_property
    def _state_functions(self) -> dict[str, FunctionData]:
        names = "energy", "constraint", "local", "retract"
        return {name: self._code.state.function(name) for name in names}

    @cached_property
    def _velocity(self) -> _Velocity:
        """nh_velocity with fixed arguments, which saves time because every step calls it."""
        x, v = np.empty(self._nx), np.empty(self._system.space.nw)
        return _Velocity(
            x, v, partial(library()["nh_velocity"], self._data, address(x), address(v))
        )


class _Velocity(NamedTuple):
    """Arrays at fixed addresses; `run()` computes v (nw) from x (nx) and returns 0 on success."""

    x: np.ndarray
    v: np.ndarray
    run: Callable[[], int]
