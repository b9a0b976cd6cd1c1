"""A system's data for the native step: its sizes and the addresses of its functions."""

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
    """`struct system` of system.h, for native code in one thread."""

    _fields_ = [
        *((name, ctypes.c_int) for name in (*SIZES, *CONTACT_SIZES)),
        ("blocks", ctypes.c_void_p),
        *((name, FunctionData) for name in (*STEP_FUNCTIONS, *DERIVATIVES)),
    ]
    references: dict[str, Any]

    def set(self, name: str, function: FunctionData) -> None:
        """Set the function with the given name."""
        setattr(self, name, function)
        # the structure contains an address only: a reference keeps the function alive
        self.references[name] = function


def system_data(sizes: dict[str, int], first: int, blocks: Sequence[Block]) -> SystemData:
    """The sizes of a system and its contacts, whose impulses begin at the index `first` of the
    unknowns. The functions must be set afterwards. N_RANK, the rank of r_z, is N_Z by default.
    """
    rows = np.array(blocks, dtype=np.int32).reshape(len(blocks), 4)

    sizes = {"N_RANK": sizes.get("N_Z", 0)} | sizes
    data = SystemData(
        **{name: sizes.get(name.upper(), 0) for name in SIZES},
        n_first=first,
        n_impulses=impulse_count(blocks),
        n_slips=slip_count(blocks),
        n_contacts=len(blocks),
        blocks=rows.ctypes.data,
    )
    data.references = {"blocks": rows}
    return data


def workspace_size(data: SystemData) -> int:
    """The number of doubles in the workspace of a native step."""
    routine = library()["nh_room"]
    routine.restype = ctypes.c_longlong
    return int(routine(ctypes.byref(data)))
