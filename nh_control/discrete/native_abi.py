"""Structures that native loops use to step a discrete system."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from nh_control.discrete.workspace import Workspace
from nh_control.numerics.virtual_machine import FunctionData


def address(array: np.ndarray) -> ctypes.c_void_p:
    """The address of the data of a contiguous array, for native code."""
    return ctypes.c_void_p(array.ctypes.data)


class MotionData(ctypes.Structure):
    """`struct motion` of motion.h."""

    _fields_ = [
        *((name, FunctionData) for name in ("inertia", "add_impulses")),
        ("p", ctypes.c_void_p),
        *((name, ctypes.c_longlong) for name in ("nx", "nw", "nrho", "n_impulses", "rank")),
        ("room", ctypes.c_void_p),
    ]
    references: Any


class StepperData(ctypes.Structure):
    """`struct stepper` of stepper.h, for one thread's workspace."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("step", "arrays", "fractions")),
        *((name, ctypes.c_void_p) for name in ("x", "u", "h", "z", "x1", "warm", "room")),
        *((name, ctypes.c_longlong) for name in ("n", "nx", "nu", "nz", "nq", "n_prescribed")),
    ]
    references: Any
    routine: Any
    address: ctypes.c_void_p

    @classmethod
    def of(cls, step: Any, work: Workspace, fractions: np.ndarray) -> StepperData:
        """The data for the native routine `step` with these fractions of h, without nq and
        n_prescribed.
        """
        # native substeps save the first state and up to three vectors of unknowns here
        workspace = np.empty(len(work.x) + 3 * len(work.z))
        data = cls(
            step=ctypes.cast(step, ctypes.c_void_p).value,
            arrays=ctypes.addressof(work.list),
            fractions=address(fractions),
            x=address(work.x),
            u=address(work.u),
            h=address(work.p[-1:]),
            z=address(work.z),
            x1=address(work.x1),
            warm=address(work.warm),
            room=address(workspace),
            n=len(fractions),
            nx=len(work.x),
            nu=len(work.u),
            nz=len(work.z),
        )
        data.references, data.routine = (work, fractions, workspace), step
        data.address = ctypes.c_void_p(ctypes.addressof(data))
        return data


class NativeSystem(NamedTuple):
    """A discrete system for native loops in one thread: its steps, its velocities, and the
    functions local(x0, x1, p), retract(x, dx, p) and state(q, v, u, h, p).
    """

    stepper: StepperData
    motion: MotionData
    local: FunctionData
    retract: FunctionData
    state: FunctionData
