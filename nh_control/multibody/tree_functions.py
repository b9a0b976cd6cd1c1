"""The functions that the tree kernel calls in one thread of native code."""

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
"""Names of the functions of `JointFunctions`, in the order of `struct joint_functions`."""


class _JointFunctionsData(ctypes.Structure):
    """`struct joint_functions` in tree_data.h."""

    _fields_ = [(name, FunctionData) for name in JOINT_FUNCTIONS]


class TreeFunctionsData(ctypes.Structure):
    """`struct tree_functions` in tree_data.h. `owners` are the objects that must stay alive as
    long as native code calls the functions.
    """

    _fields_ = [(name, ctypes.c_void_p) for name in ("joints", "contacts", "wheels")]
    owners: Any


def tree_functions(
    joints: Sequence[Functions], contacts: TreeContacts | None, wheels: TreeWheels | None
) -> TreeFunctionsData:
    """The functions for all types of joints with several coordinates, for the contacts, and for
    the wheels.
    """
    functions = [{name: kind.function(name) for name in JOINT_FUNCTIONS} for kind in joints]
    records = (_JointFunctionsData * len(functions))(
        *(_JointFunctionsData(**kind) for kind in functions)
    )
    data = TreeFunctionsData(joints=ctypes.addressof(records))
    contact_data = None if contacts is None else contacts.data()
    wheel_data = None if wheels is None else wheels.data()
    if contact_data is not None:
        data.contacts = ctypes.addressof(contact_data)
    if wheel_data is not None:
        data.wheels = ctypes.addressof(wheel_data)
    # native code keeps raw addresses of these objects
    data.owners = functions, records, contact_data, wheel_data
    return data
