"""Velocity, energy and constraint impulses of a state."""

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


class Motion(threading.local):
    """Velocities, energies and impulses of states (nx) of a system with the inertia `M y = b,
    v = X y + c`, see `Mechanics.inertia`, at its parameters' values.

    Every thread has arrays of its own. All raise LinAlgError where M is singular.
    """

    def __init__(self, system: System, nx: int, code: CompiledFunctions):
        self._system, self._nx, self._code = system, nx, code
        self._p = np.array(system.parameter_values, dtype=float)

    def velocity(self, x: np.ndarray) -> np.ndarray:
        """Velocity (nw) of a state (nx)."""
        velocity = self._velocity
        velocity.x[...] = x
        if velocity.run():
            raise self._singular(x)
        return velocity.v.copy()

    def energies(self, states: np.ndarray) -> np.ndarray:
        """Energies (rows) of states (rows, nx), `v . dL/dv - L` in J."""
        out, room = np.empty(len(states)), np.empty(self._system.space.nw)
        rows = ctypes.c_longlong(len(states)), address(states)
        function = ctypes.byref(self._state_functions["energy"])
        if releasing_library()["nh_energies"](
            self._data, function, *rows, address(room), address(out)
        ):
            raise self._singular(states)
        return out

    def constraint_residuals(self, before: np.ndarray, after: np.ndarray, h: float) -> np.ndarray:
        """The function "constraint" of steps of h s, (rows, n_velocity_constraints), from states
        `before` to those `after` (rows, nx), contiguous ones.
        """
        out, step = np.empty((len(before), self._system.n_velocity_constraints)), np.array([h])
        function = ctypes.byref(self._state_functions["constraint"])
        sizes = (ctypes.c_longlong(n) for n in out.shape)
        arrays = (address(array) for array in (before, after, out))
        releasing_library()["nh_constraints"](self._data, function, address(step), *sizes, *arrays)
        return out

    def pairs(self, name: str, a: np.ndarray, b: np.ndarray, size: int) -> np.ndarray:
        """The function `name` of states, local or retract, of every row of a and of b, (rows,
        size).
        """
        function = self._state_functions[name]
        a, b, out = np.ascontiguousarray(a), np.ascontiguousarray(b), np.empty((len(a), size))
        sizes = ctypes.c_longlong(a.shape[1]), ctypes.c_longlong(b.shape[1])
        releasing_library()["nh_pairs"](
            *(ctypes.byref(function), address(self._p), ctypes.c_longlong(len(a))),
            *(sizes[0], address(a), sizes[1], address(b)),
            *(ctypes.c_longlong(size), address(out)),
        )
        return out

    def takes(self, name: str, a: np.ndarray, b: np.ndarray) -> bool:
        """Whether the function `name` of states takes rows of these lengths."""
        sizes = [self._code.state.size_in(name, k) for k in range(2)]
        return sizes == [a.shape[1], b.shape[1]]

    def impulses(self, x: np.ndarray) -> np.ndarray:
        """Constraint impulses mu (n_holonomic_constraints), the part of the momentum on which the
        velocity does not depend.
        """
        x, mu = np.ascontiguousarray(x), np.empty(self._system.n_holonomic_constraints)
        if library()["nh_impulses"](self._data, address(x), address(mu)):
            raise self._singular(x)
        return mu

    def with_impulses(self, x: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """The state of the same velocity with mu (n_holonomic_constraints) in its momentum."""
        x, mu, x1 = np.ascontiguousarray(x), np.ascontiguousarray(mu), x.copy()
        if library()["nh_with_impulses"](self._data, address(x), address(mu), address(x1)):
            raise self._singular(x)
        return x1

    def _singular(self, x: np.ndarray) -> np.linalg.LinAlgError:
        return np.linalg.LinAlgError(f"{self._system.name}: singular mass matrix at {x.tolist()}")

    @cached_property
    def data(self) -> MotionData:
        """This thread's arrays and functions for native loops."""
        s, code = self._system, self._code
        n, nw = s.nrho + s.n_holonomic_constraints, s.space.nw
        room = np.empty(n * n + n + nw * n + nw + n)
        inertia, add_impulses = code.inertia.function("inertia"), FunctionData()
        if s.n_holonomic_constraints:
            add_impulses = code.state.function("add_impulses")
        sizes = self._nx, nw, s.nrho, s.n_holonomic_constraints, n - s.n_redundant
        data = MotionData(inertia, add_impulses, address(self._p), *sizes, address(room))
        data.kept = inertia, add_impulses, self._p, room
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
        """nh_velocity; every step calls it."""
        x, v = np.empty(self._nx), np.empty(self._system.space.nw)
        return _Velocity(
            x, v, partial(library()["nh_velocity"], self._data, address(x), address(v))
        )


class _Velocity(NamedTuple):
    """`run()` computes v (nw) from x (nx), in arrays at fixed addresses; it returns 0
    on success.
    """

    x: np.ndarray
    v: np.ndarray
    run: Callable[[], int]
