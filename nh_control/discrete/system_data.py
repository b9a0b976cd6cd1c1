"""A system for the native step: its sizes, and its functions as addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from nh_control.numerics.contact_problem import Block, impulse_count, slip_count
from nh_control.numerics.library import library
from nh_control.numerics.virtual_machine import FunctionData

SIZES = ("n_x", "n_u", "n_p", "n_z", "n_rank", "n_dx", "n_columns", "n_domain", "n_turns")
CONTACT_SIZES = ("n_first", "n_impulses", "n_slips", "n_contacts")
STEP_FUNCTIONS = ("start", "residual", "jacobian", "readout", "terms", "contacts")
DERIVATIVES = ("first", "second")


class SystemData(ctypes.Structure):
    """`struct system` of system.h, for native code of one thread."""

    _fields_ = [
        *((name, ctypes.c_int) for name in (*SIZES, *CONTACT_SIZES)),
        ("blocks", ctypes.c_void_p),
        *((name, FunctionData) for name in (*STEP_FUNCTIONS, *DERIVATIVES)),
    ]
    kept: dict[str, Any]

    def set(self, name: str, function: FunctionData) -> None:
        """Set the function of this name."""
        setattr(self, name, function)
        self.kept[name] = function


def system_data(sizes: dict[str, int], first: int, blocks: Sequence[Block]) -> SystemData:
    """The sizes of a system, and its contacts, whose impulses begin at the place `first` among the
    unknowns; functions have to be set. The rank N_RANK of r_z is N_Z by default.
    """
    rows = np.array(blocks, dtype=np.int32).reshape(len(blocks), 4)
    contacts = first, impulse_count(blocks), slip_count(blocks), len(blocks)
    sizes = {"N_RANK": sizes.get("N_Z", 0)} | sizes
    numbers = (sizes.get(name.upper(), 0) for name in SIZES)
    data = SystemData(*numbers, *contacts, rows.ctypes.data)
    data.kept = {"blocks": rows}
    return data


def room(data: SystemData) -> int:
    """Numbers that a step needs for itself."""
    routine = library()["nh_room"]
    routine.restype = ctypes.c_longlong
    return int(routine(ctypes.byref(data)))
