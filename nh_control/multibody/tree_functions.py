"""The functions that the kernel of trees calls, for native code of one thread."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from nh_control.multibody.tree_contacts import TreeContacts
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

    _fields_ = [("joints", ctypes.c_void_p), ("contacts", ctypes.c_void_p)]
    kept: Any


def tree_functions(
    joints: Sequence[Functions], contacts: TreeContacts | None
) -> TreeFunctionsData:
    """The functions of all kinds of joints with several coordinates, and of the contacts."""
    functions = [[kind.function(name) for name in JOINT_FUNCTIONS] for kind in joints]
    records = (_JointFunctionsData * len(functions))(
        *(_JointFunctionsData(*kind) for kind in functions)
    )
    contact_data = None if contacts is None else contacts.data()
    data = TreeFunctionsData(
        ctypes.addressof(records),
        None if contact_data is None else ctypes.addressof(contact_data),
    )
    data.kept = functions, records, contact_data
    return data
