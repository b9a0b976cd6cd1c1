"""Data with which native loops make the steps of a discrete system."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from nh_control.discrete.workspace import Workspace
from nh_control.numerics.virtual_machine import FunctionData


def address(array: np.ndarray) -> ctypes.c_void_p:
    """The address of the numbers of a contiguous array, for native code."""
    return ctypes.c_void_p(array.ctypes.data)


class MotionData(ctypes.Structure):
    """`struct motion` of motion.h."""

    _fields_ = [
        *((name, FunctionData) for name in ("inertia", "add_impulses")),
        ("p", ctypes.c_void_p),
        *((name, ctypes.c_longlong) for name in ("nx", "nw", "nrho", "n_impulses", "rank")),
        ("room", ctypes.c_void_p),
    ]
    kept: Any


class StepperData(ctypes.Structure):
    """`struct stepper` of stepper.h, on one thread's workspace."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("step", "arrays", "fractions")),
        *((name, ctypes.c_void_p) for name in ("x", "u", "h", "z", "x1", "warm", "room")),
        *((name, ctypes.c_longlong) for name in ("n", "nx", "nu", "nz", "nq", "n_prescribed")),
    ]
    kept: Any
    routine: Any
    address: ctypes.c_void_p

    @classmethod
    def of(cls, step: Any, work: Workspace, fractions: np.ndarray) -> StepperData:
        """The native routine `step` by these fractions of h; nq and n_prescribed are not set."""
        room = np.empty(len(work.x) + 3 * len(work.z))
        data = cls(
            ctypes.cast(step, ctypes.c_void_p).value,
            ctypes.addressof(work.list),
            address(fractions),
            *(address(array) for array in (work.x, work.u, work.p[-1:], work.z, work.x1)),
            *(address(array) for array in (work.warm, room)),
            *(len(array) for array in (fractions, work.x, work.u, work.z)),
        )
        data.kept, data.routine = (work, fractions, room), step
        data.address = ctypes.c_void_p(ctypes.addressof(data))
        return data


class NativeSystem(NamedTuple):
    """A discrete system for native loops of one thread: its steps and velocities, and the
    functions local(x0, x1, p), retract(x, dx, p) and state(q, v, u, h, p).
    """

    stepper: StepperData
    motion: MotionData
    local: FunctionData
    retract: FunctionData
    state: FunctionData
