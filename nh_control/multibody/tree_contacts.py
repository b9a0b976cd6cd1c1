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

from nh_control.discrete.method import ContactUnknowns, Method, StepSymbols
from nh_control.discrete.system_data import SystemData, system_data
from nh_control.mechanics.contact_rows import ContactRows
from nh_control.multibody.model import MultibodySystem
from nh_control.numerics.compiled import Functions
from nh_control.numerics.contact_problem import impulse_count, slip_count
from nh_control.numerics.library import library
from nh_control.numerics.virtual_machine import FunctionData, routine

FUNCTIONS = "rows", "velocities", "derivatives"
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
    """The contacts of a tree under a method, as functions of the state x, the input u, the
    unknowns z and the parameters p with the step h. i (k) are the impulses in z.

    - `rows -> J` (k, nv): the balance of momenta is `r + J(q0)^T i = 0`
    - `velocities -> w, w_y, friction`: the velocities w (k), their derivatives by the unknowns
      `rates`, and the coefficients and bounds of friction
    - `derivatives -> w_s, (J^T i)_q`: derivatives by s = (dx, u) and by the configuration
    """

    system: MultibodySystem
    method: Method
    unknowns: ContactUnknowns

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

    @cached_property
    def rates(self) -> np.ndarray:
        """The unknowns (n) on which velocities of contacts depend."""
        by_y = ca.jacobian(self._velocities, self._symbols[2][: self.unknowns.first])
        return np.unique(by_y.sparsity().get_triplet()[1]).astype(np.int32)

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
        sizes = {"N_Z": self.method.nz, "N_RANK": self.method.nz, "N_P": self._symbols[3].numel()}
        return system_data(sizes, self.unknowns.first, self.unknowns.blocks)

    @cached_property
    def _code(self) -> Functions:
        return Functions(f"{self.system.name}_contacts", self._functions)

    @cached_property
    def _symbols(self) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """x, u, z and p."""
        system = self.system
        nu, nx = system.nu + len(system.prescribed), system.mechanics.state_space.nq
        x, u, z = (ca.SX.sym(name, n) for name, n in zip("xuz", (nx, nu, self.method.nz)))
        return x, u, z, ca.vertcat(system.parameter_symbols, ca.SX.sym("h"))

    def _step(self, x: ca.SX) -> StepSymbols:
        _, u, z, p = self._symbols
        nq = self.system.space.nq
        return StepSymbols(x[:nq], x[nq:], u, z, p[-1], _no_gradients)

    @cached_property
    def _velocities(self) -> ca.SX:
        return self.unknowns.velocities(self._step(self._symbols[0]))

    @property
    def _functions(self) -> list[ca.Function]:
        x, u, z, p = arguments = self._symbols
        first, rows = self.unknowns.first, ContactRows(self.system.mechanics)
        q, impulses = x[: self.system.space.nq], z[first : first + rows.n_impulses]
        # the balance of momenta is linear in the impulses; prescribed coordinates have none
        fixed = ca.SX(len(self.system.prescribed), 1)
        J = ca.jacobian(ca.vertcat(rows.impulse(q, impulses), fixed), impulses).T
        by_y = ca.jacobian(self._velocities, z[:first])[:, self.rates.tolist()]
        friction = self.unknowns.coefficients(self._step(x))
        # derivatives by (dx, u) at dx = 0
        space = self.system.mechanics.state_space
        dx = ca.SX.sym("dx", space.nv)
        moved = space.retract(x, dx)
        step, variables = self._step(moved), ca.vertcat(dx, u)
        force = ca.vertcat(rows.impulse(moved[: self.system.space.nq], impulses), fixed)
        slopes = [
            ca.jacobian(self.unknowns.velocities(step), variables),
            ca.jacobian(force, dx[: self.system.space.nv]),
        ]
        derivatives = ca.substitute(slopes, [dx], [ca.SX.zeros(space.nv)])
        velocities = [ca.densify(e) for e in (self._velocities, by_y, friction)]
        return [
            ca.Function("rows", arguments, ca.cse([J])),
            ca.Function("velocities", arguments, ca.cse(velocities)),
            ca.Function("derivatives", arguments, ca.cse(derivatives)),
        ]


def _no_gradients(q: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
    raise TypeError("contacts do not depend on the Lagrangian")
