"""A tree's contacts as functions that the linear-time kernel calls. Functions generated for the
model evaluate rows and velocities, and `numerics/native/impulse_library.c` computes impulses.
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
    "nh_add_near",
    "nh_gap_impulses",
    "nh_far_impulses",
    "nh_follow_path",
)
"""Names of the functions and of the library's routines, in the order of
`struct contact_functions`.
"""


class ContactFunctionsData(ctypes.Structure):
    """`struct contact_functions` in free_step.h. `owners` are the objects that must stay alive as
    long as native code calls the functions.
    """

    _fields_ = [
        *((name, FunctionData) for name in FUNCTIONS),
        *((name, ctypes.c_void_p) for name in (*ROUTINES, "sizes")),
    ]
    owners: Any


@dataclass(frozen=True)
class TreeContacts:
    """A tree's contacts as `RowFunctions` of the kernel's `n_unknowns` unknowns. The momentum
    balance is `r + J(q0)^T i = 0`, and the values are the velocities conjugate to the impulses i.
    `values` also returns the coefficients and bounds of friction.
    """

    system: MultibodySystem
    unknowns: ContactUnknowns
    n_unknowns: int

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes in the header of the kernel's model."""
        blocks = self.unknowns.blocks
        return {
            "n_contacts": len(blocks),
            "n_impulses": impulse_count(blocks),
            "n_slips": slip_count(blocks),
            "n_contact_rates": len(self.rates),
            "impulse_room": self._workspace_size,
        }

    @property
    def rates(self) -> np.ndarray:
        """Indices (n) of the unknowns on which the contact velocities depend."""
        return self._rows.rates

    def data(self) -> ContactFunctionsData:
        """The functions for native code in one thread."""
        functions = {name: self._code.function(name) for name in FUNCTIONS}
        routines = {name: routine(library(), name) for name in ROUTINES}
        sizes = ctypes.addressof(self._sizes)
        data = ContactFunctionsData(**functions, **routines, sizes=sizes)
        # native code keeps raw addresses of these objects
        data.owners = functions, self
        return data

    @property
    def _workspace_size(self) -> int:
        """Size of the routines' workspace, in doubles."""
        # the library computes the size from the number of contacts and the number of unknowns
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
            free = n_free - len(self.system.prescribed)  # prescribed ones have no balance
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
