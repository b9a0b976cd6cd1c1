"""Equations of a step that are written in Python, solved by the native library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nh_control.discrete.engine import step_shapes
from nh_control.discrete.system_data import SystemData, system_data, workspace_size
from nh_control.discrete.workspace import Workspace
from nh_control.numerics.contact_problem import Block, impulse_count, slip_count
from nh_control.numerics.library import library
from nh_control.numerics.virtual_machine import FunctionData

DOUBLES = ctypes.POINTER(ctypes.c_double)
CALL = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(DOUBLES), ctypes.POINTER(DOUBLES)
)

Call = Callable[..., Sequence[Any]]


def function(call: Call, sizes: Sequence[int]) -> FunctionData:
    """A Python function of vectors of these sizes, whose results are arrays, for native code."""

    def routine(_: Any, ins: Any, outs: Any) -> int:
        arguments = [np.ctypeslib.as_array(ins[k], (n,)).copy() for k, n in enumerate(sizes)]
        with np.errstate(all="ignore"):
            results = call(*arguments)
        for k, result in enumerate(results):
            flat = np.ravel(np.asarray(result, dtype=float))
            if flat.size:
                np.ctypeslib.as_array(outs[k], (flat.size,))[:] = flat
        return 0

    pointer = CALL(routine)
    data = FunctionData(ctypes.cast(pointer, ctypes.c_void_p).value)
    data.kept = pointer
    return data


class Equations:
    """The equations r = 0 of a step with nz unknowns z, of a state without inputs; its parameters
    are `p`: functions residual(x, u, z, p) and jacobian(x, u, z, p), and with contacts others by
    their names. `fixed` are the sizes of the terms of r that do not depend on z.
    """

    def __init__(
        self,
        nz: int,
        fixed: Any = 0.0,
        p: Sequence[float] = (1.0,),
        first: int = 0,
        blocks: Sequence[Block] = (),
        *,
        residual: Call,
        jacobian: Call,
        **functions: Call,
    ):
        fixed, zero = np.broadcast_to(fixed, nz), np.zeros(nz)
        calls: dict[str, Call] = {
            "start": lambda x, u, p: (fixed, *residual(x, u, zero, p), *jacobian(x, u, zero, p)),
            "residual": residual,
            "jacobian": jacobian,
            "readout": lambda x, u, z, p: (x, ()),
            "terms": lambda x, u, z, p: (zero,),
            **functions,
        }
        sizes = {"N_X": 1, "N_P": len(p), "N_Z": nz, "N_DX": 1, "N_COLUMNS": 1}
        data: SystemData = system_data(sizes, first, blocks)
        for name, call in calls.items():
            data.set(
                name, function(call, (1, 0, len(p)) if name == "start" else (1, 0, nz, len(p)))
            )
        shapes = step_shapes(1, 0, len(p), nz, 1, 1)
        self.work = Workspace(shapes | {"system": lambda: data, "room": (workspace_size(data),)})
        self.work.p[:], self.work.sizes[:] = p, fixed
        self._routine = library()["nh_contact_step" if blocks else "nh_newton_step"]

    def solve(self, start: Any = None, warm: int = 1) -> int:
        """The status of a step from zero, or from unknowns to `start` with."""
        self.work.warm[:] = 0 if start is None else warm
        if start is not None:
            self.work.z[:] = start
        return int(self._routine(self.work.list))


def equations_of(
    residual: Callable[[np.ndarray], Any],
    jacobian: Callable[[np.ndarray], Any],
    nz: int = 1,
    fixed: Any = 1.0,
) -> Equations:
    """`r(z) = 0` with the Jacobian r_z."""
    return Equations(
        nz,
        fixed,
        residual=lambda x, u, z, p: (residual(z),),
        jacobian=lambda x, u, z, p: (jacobian(z),),
    )


class Impulses:
    """Impulses x (n), velocities w (n) and slip bounds psi of contacts: a guess where they are
    `known`, after `find` the solution.
    """

    def __init__(self, blocks: Sequence[Block]):
        n, slips = impulse_count(blocks), slip_count(blocks)
        self._data = system_data({"N_Z": n + slips}, 0, blocks)
        self._kept, self._room = np.zeros(2 * n + slips + 2), np.zeros(workspace_size(self._data))
        self.x, self.w, self.psi = np.split(self._kept[:-2], [n, 2 * n])

    @property
    def known(self) -> bool:
        """Whether the last problem was solved."""
        return bool(self._kept[-1])

    def find(self, G: Any, b: Any, friction: Any, bound: Any, kappa: float) -> bool:
        """Whether `w = G x + b` has been solved."""
        arrays = [np.ascontiguousarray(a, dtype=float) for a in (G, b, np.r_[friction, bound])]
        return not library()["nh_find_impulses"](
            ctypes.byref(self._data),
            *(ctypes.c_void_p(a.ctypes.data) for a in arrays),
            ctypes.c_double(kappa),
            *(ctypes.c_void_p(a.ctypes.data) for a in (self._kept, self._room)),
        )
