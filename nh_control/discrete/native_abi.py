"""Data with which native loops make the steps of a discrete system."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

from nh_control.discrete.workspace import Workspace


def address(array: np.ndarray) -> ctypes.c_void_p:
    """The address of the numbers of a contiguous array, for native code."""
    return ctypes.c_void_p(array.ctypes.data)


class MotionData(ctypes.Structure):
    """`struct motion` of motion.h."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("inertia", "p")),
        *((name, ctypes.c_longlong) for name in ("nx", "nq", "nw", "nrho", "n_impulses")),
        ("room", ctypes.c_void_p),
    ]


class Substeps(NamedTuple):
    """Address of nh_substeps and the fractions of the step that it takes."""

    routine: int
    fractions: np.ndarray

    @classmethod
    def of(cls, library: ctypes.CDLL | None, fractions: np.ndarray) -> Substeps | None:
        """The substeps by the `nh_substeps` of a library; None without a library or
        the routine.
        """
        if library is None:
            return None
        routine = ctypes.cast(library["nh_substeps"], ctypes.c_void_p).value
        return None if routine is None else cls(routine, fractions)


class StepperData(ctypes.Structure):
    """`struct stepper` of closed_loop.c, on one thread's workspace."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("substeps", "arrays", "fractions")),
        ("n", ctypes.c_longlong),
        *((name, ctypes.c_void_p) for name in ("x", "u", "x1")),
        *((name, ctypes.c_longlong) for name in ("nx", "nu", "nq", "n_prescribed")),
    ]

    @classmethod
    def of(cls, substeps: Substeps, work: Workspace, nq: int, n_prescribed: int) -> StepperData:
        """The data for a system with nq coordinates; the last `n_prescribed` are prescribed."""
        data = cls(
            substeps.routine,
            ctypes.addressof(work.list),
            address(substeps.fractions),
            len(substeps.fractions),
            *(address(array) for array in (work.x, work.u, work.x1)),
            *(len(work.x), len(work.u), nq, n_prescribed),
        )
        data.kept = substeps, work
        return data


class NativeSystem(NamedTuple):
    """A discrete system for native loops of one thread: its steps and velocities, and the
    addresses of local(x0, x1, p), retract(x, dx, p) and state(q, v, u, h, p).
    """

    stepper: StepperData
    motion: MotionData
    local: int
    retract: int
    state: int
