"""The contacts of a tree as functions that the linear-time kernel calls: rows and velocities by
functions of the model, impulses by `numerics/native/impulse_library.c`.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from nh_control.discrete.method import ContactUnknowns
from nh_control.discrete.system_data import SystemData, system_data
from nh_control.mechanics.contact_rows import ContactRows
from nh_control.multibody.model import MultibodySystem
from nh_control.multibody.row_functions import RowFunctions
from nh_control.numerics.compiled import Functions
from nh_control.numerics.contact_problem import impulse_count, slip_count
from nh_control.numerics.library import library
from nh_control.numerics.virtual_machine import FunctionData, routine

FUNCTIONS = "rows", "values", "derivatives"
ROUTINES = (
    "nh_find_impulses",
    "nh_settle_impulses",
    "nh_is_inside",
    "nh_impulse_equations",
    "nh_follow_path",
)
"""The functions and the library's routines in the order of `struct contact_functions`."""


class ContactFunctionsData(ctypes.Structure):
    """`struct contact_functions` of free_step.h; `kept` must live as long as native code calls
    them.
    """

    _fields_ = [
        *((name, FunctionData) for name in FUNCTIONS),
        *((name, ctypes.c_void_p) for name in (*ROUTINES, "sizes")),
    ]
    kept: Any


@dataclass(frozen=True)
class TreeContacts:
    """The contacts of a tree as `RowFunctions` of `n_unknowns` unknowns of the kernel: the balance
    of momenta is `r + J(q0)^T i = 0`, the values are the velocities that go with the impulses i,
    and `values` also gives the coefficients and bounds of friction.
    """

    system: MultibodySystem
    unknowns: ContactUnknowns
    n_unknowns: int

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers in the header of the kernel's model."""
        blocks = self.unknowns.blocks
        return {
            "n_contacts": len(blocks),
            "n_impulses": impulse_count(blocks),
            "n_slips": slip_count(blocks),
            "n_contact_rates": len(self.rates),
            "impulse_room": self._room,
        }

    @property
    def rates(self) -> np.ndarray:
        """The unknowns (n) on which velocities of contacts depend."""
        return self._rows.rates

    def data(self) -> ContactFunctionsData:
        """The functions for native code of one thread."""
        functions = [self._code.function(name) for name in FUNCTIONS]
        routines = (routine(library(), name) for name in ROUTINES)
        data = ContactFunctionsData(*functions, *routines, ctypes.addressof(self._sizes))
        data.kept = functions, self
        return data

    @property
    def _room(self) -> int:
        """Numbers of memory that the routines need."""
        size = library()["nh_impulse_room"]
        size.restype = ctypes.c_longlong
        return int(size(ctypes.byref(self._sizes), self.system.space.nv, len(self.rates)))

    @cached_property
    def _sizes(self) -> SystemData:
        n_parameters = self._rows.symbols[3].numel()
        sizes = {"N_Z": self.n_unknowns, "N_RANK": self.n_unknowns, "N_P": n_parameters}
        return system_data(sizes, self.unknowns.first, self.unknowns.blocks)

    @cached_property
    def _code(self) -> Functions:
        return Functions(f"{self.system.name}_contacts", self._rows.functions)

    @cached_property
    def _rows(self) -> RowFunctions:
        laws, n_free = ContactRows(self.system.mechanics).laws, self.system.space.nv

        def jacobian(q: ca.SX) -> ca.SX:
            rows = ca.vertcat(*(law.rows(q) for law in laws))
            free = n_free - len(self.system.prescribed)  # prescribed coordinates have no balance
            return ca.horzcat(rows[:, :free], ca.SX(rows.shape[0], n_free - free))

        unknowns = self.unknowns
        return RowFunctions(
            self.system,
            self.n_unknowns,
            unknowns.first,
            jacobian,
            unknowns.velocities,
            unknowns.coefficients,
        )
