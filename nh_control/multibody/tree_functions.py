"""The functions that the kernel of trees calls, for native code of one thread."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from nh_control.multibody.tree_contacts import TreeContacts
from nh_control.multibody.tree_wheels import TreeWheels
from nh_control.numerics.compiled import Functions
from nh_control.numerics.virtual_machine import FunctionData

JOINT_FUNCTIONS = (
    "midpoint",
    "midpoint_by_z",
    "endpoint",
    "row_by_z",
    "derivatives",
    "derivatives_by_h",
    "pose",
    "end",
)
"""The functions of `JointFunctions` in the order of `struct joint_functions`."""


class _JointFunctionsData(ctypes.Structure):
    """`struct joint_functions` of tree_data.h."""

    _fields_ = [(name, FunctionData) for name in JOINT_FUNCTIONS]


class TreeFunctionsData(ctypes.Structure):
    """`struct tree_functions` of tree_data.h; `kept` must live as long as native code calls
    them.
    """

    _fields_ = [(name, ctypes.c_void_p) for name in ("joints", "contacts", "wheels")]
    kept: Any


def tree_functions(
    joints: Sequence[Functions], contacts: TreeContacts | None, wheels: TreeWheels | None
) -> TreeFunctionsData:
    """The functions of all kinds of joints with several coordinates, of the contacts, and of the
    wheels.
    """
    functions = [[kind.function(name) for name in JOINT_FUNCTIONS] for kind in joints]
    records = (_JointFunctionsData * len(functions))(
        *(_JointFunctionsData(*kind) for kind in functions)
    )
    others = [None if part is None else part.data() for part in (contacts, wheels)]
    places = (None if part is None else ctypes.addressof(part) for part in others)
    data = TreeFunctionsData(ctypes.addressof(records), *places)
    data.kept = functions, records, others
    return data
