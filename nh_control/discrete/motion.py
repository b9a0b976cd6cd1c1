"""Velocity, energy and constraint impulses of a state."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache, cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nh_control.discrete.compiled_functions import CompiledFunctions
from nh_control.discrete.native_abi import MotionData, address
from nh_control.mechanics.system import System
from nh_control.numerics import compiled, newton
from nh_control.numerics.amalgamation import amalgamation


def loops() -> ctypes.PyDLL | None:
    """The library of closed_loop.c, the same for all systems; None without a compiler."""
    return _made_by(compiled.compiler(), compiled.cache_directory())


@cache
def _made_by(compiler: str | None, cache_directory: Path) -> ctypes.PyDLL | None:
    return compiled.Native(
        "closed_loop", [], amalgamation(["motion.c", "closed_loop.c"], {})
    ).library


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
        kept = self._velocity
        if kept is not None:
            kept.x[...] = x
            if not kept.run():
                return kept.v.copy()
        mass, momentum, basis, prescribed = self._inertia(x)
        return (basis @ newton.solve(mass, momentum) + prescribed)[:, 0]

    def energies(self, states: np.ndarray) -> np.ndarray:
        """Energies (rows) of states (rows, nx), `v . dL/dv - L` in J."""
        out, energy = np.empty(len(states)), self._code.state.address("energy")
        rows = ctypes.c_void_p(energy), ctypes.c_longlong(len(states))
        if self._native("nh_energies", *rows, address(states), address(out)):
            return out
        for i, x in enumerate(states):
            arguments = x[: self._system.space.nq], self.velocity(x), self._p
            out[i] = self._code.state("energy", *arguments)[0][0, 0]
        return out

    def constraint_residuals(self, before: np.ndarray, after: np.ndarray, h: float) -> np.ndarray:
        """The function "constraint" of steps of h s, (rows, n_velocity_constraints), from states
        `before` to those
        `after` (rows, nx), contiguous ones.
        """
        out, step = np.empty((len(before), self._system.n_velocity_constraints)), np.array([h])
        function = ctypes.c_void_p(self._code.state.address("constraint"))
        sizes = (ctypes.c_longlong(n) for n in out.shape)
        arrays = (address(array) for array in (before, after, out))
        if not self._native("nh_constraints", function, address(step), *sizes, *arrays):
            for i, pair in enumerate(zip(before, after)):
                out[i] = self._code.state("constraint", *pair, step, self._p)[0][:, 0]
        return out

    def pairs(self, name: str, a: np.ndarray, b: np.ndarray, size: int) -> np.ndarray | None:
        """The function `name` of states, local or retract, of every row of a and of b, (rows,
        size); None without native code.
        """
        library, function = loops(), self._code.state.address(name)
        takes = [self._code.state.size_in(name, k) for k in range(2)]
        if library is None or function is None or takes != [a.shape[1], b.shape[1]]:
            return None
        a, b, out = np.ascontiguousarray(a), np.ascontiguousarray(b), np.empty((len(a), size))
        sizes = ctypes.c_longlong(a.shape[1]), ctypes.c_longlong(b.shape[1])
        library["nh_pairs"](
            *(ctypes.c_void_p(function), address(self._p), ctypes.c_longlong(len(a))),
            *(sizes[0], address(a), sizes[1], address(b)),
            *(ctypes.c_longlong(size), address(out)),
        )
        return out

    def impulses(self, x: np.ndarray) -> np.ndarray:
        """Constraint impulses mu (n_holonomic_constraints), the part of the momentum on which the
        velocity does not depend.
        """
        mass, momentum, _, _ = self._inertia(x)
        return newton.solve(mass, momentum)[self._system.nrho :, 0]

    def with_impulses(self, x: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """The state of the same velocity with mu (n_holonomic_constraints) in its momentum."""
        x1 = x.copy()
        if self._native("nh_with_impulses", address(x), address(mu), address(x1)):
            return x1
        mass, _, basis, _ = self._inertia(x)
        n = self._system.nrho
        change = basis[:, :n] @ mass[:n, n:] @ (mu - self.impulses(x))
        x1[self._system.space.nq :][: len(change)] += change
        return x1

    @cached_property
    def data(self) -> MotionData | None:
        """This thread's arrays for native loops, None without native code."""
        inertia, s = self._code.inertia.address("inertia"), self._system
        if inertia is None or loops() is None:
            return None
        n, nw = s.nrho + s.n_holonomic_constraints, s.space.nw
        self._room = np.empty(2 * n * n + n + nw * n + nw)
        sizes = self._nx, s.space.nq, nw, s.nrho, s.n_holonomic_constraints
        return MotionData(inertia, self._p.ctypes.data, *sizes, self._room.ctypes.data)

    @cached_property
    def _velocity(self) -> _Velocity | None:
        """nh_velocity, None without native code; every step calls it."""
        library, data = loops(), self.data
        if library is None or data is None:
            return None
        x, v = np.empty(self._nx), np.empty(self._system.space.nw)
        arguments = ctypes.byref(data), address(x), address(v)
        return _Velocity(x, v, partial(library["nh_velocity"], *arguments))

    def _native(self, routine: str, *arguments: ctypes.c_void_p | ctypes.c_longlong) -> bool:
        """Call a routine of motion.c; returns whether it exists and succeeded."""
        library, data = loops(), self.data
        if library is None or data is None:
            return False
        return not getattr(library, routine)(ctypes.byref(data), *arguments)

    def _inertia(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        return self._code.inertia("inertia", x[: self._system.mechanics.state_space.nq], self._p)


class _Velocity(NamedTuple):
    """`run()` computes v (nw) from x (nx), in arrays at fixed addresses; it returns 0
    on success.
    """

    x: np.ndarray
    v: np.ndarray
    run: Callable[[], int]
