"""The layout of the data that Python passes to the tree kernel. Each struct and enum is declared
once for Python and C.

Python packs records by the names of these fields. `native/tree_layout.h` declares the fields for C
and asserts all offsets and sizes. `python test/core/test_native_files.py` writes that header.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

PADDING = "unused"
"""Name of fields that only pad a struct."""
INT, REAL, VECTOR = "int32_t", "double", "v4"
TYPES: dict[str, tuple[str, tuple[int, ...]]] = {
    INT: ("i4", ()),
    REAL: ("f8", ()),
    VECTOR: ("f8", (4,)),
}
LINE = 32
"""Bytes of a vector. Arrays begin and structs end at multiples of this size."""
NONE = -1
"""The frame number of the world. As the number of a coordinate, it means that there is no
coordinate.
"""


class JointType(IntEnum):
    """Types of joints. A joint with several rates has GENERATED + the number of its functions."""

    REVOLUTE = 0
    PRISMATIC = 1
    GENERATED = 2


class JointMode(IntEnum):
    """How the coordinate of a joint moves."""

    MIMIC = -2  # by the coordinate of another joint, which is free
    SHARED = -1  # freely, and other joints follow it
    FREE = 0
    PRESCRIBED = 1
    IDLE = 2  # prescribed, and the joint carries no mass


class Quaternion(IntEnum):
    """Whether the coordinates of a joint begin with a quaternion."""

    NO_QUATERNION = 0
    QUATERNION = 1
    QUATERNION_PLACED = 2  # velocities of the origin are in the axes of the placement


class ConstraintType(IntEnum):
    """Rows of the constraints, with s from a point of body a to one of body b."""

    DISTANCE = 0  # |s|^2 - value^2
    ALONG_AXIS = 1  # e_a . s
    AXES_COSINE = 2  # e_a . e_b - value
    SCREW = 3  # e_a . s - value * (angle from e_zero to e_b about e_a)


class JointQuantity(IntEnum):
    """Numbers of a joint that parameters change: the first of each; there are N_QUANTITIES."""

    BY_MASS = 0
    BY_FIRST = 1  # first moment, 3
    BY_INERTIA = 4  # xx, yy, zz, xy, xz, yz
    BY_POSITION = 10  # in the parent, 3
    BY_STIFFNESS = 13
    BY_REST_FORCE = 14
    BY_DAMPING = 15
    BY_FRICTION = 16
    BY_FRICTION_VELOCITY = 17
    N_QUANTITIES = 18


ENUMS: tuple[type[IntEnum], ...] = (
    JointType,
    JointMode,
    Quaternion,
    ConstraintType,
    JointQuantity,
)


@dataclass(frozen=True)
class Field:
    """A field of a struct: `count` entries of the type `kind`, and a comment for the header."""

    name: str
    kind: str = INT
    count: int = 1
    comment: str = ""


class Struct:
    """A C struct and the NumPy dtype of its records. `name` is the name of the struct in C."""

    def __init__(self, name: str, comment: str, *fields: Field):
        self.name, self.comment, self.fields = name, comment, fields
        formats = []
        for field in fields:
            scalar, shape = TYPES[field.kind]
            counts = (field.count,) if field.count > 1 else ()
            formats.append((field.name, scalar, (*counts, *shape)))
        # NumPy's aligned layout is the same as the C compiler's; the assertions in the header
        # check it
        self.dtype = np.dtype(formats, align=True)

    def record(self, **values: Any) -> np.ndarray:
        """One record with the given values of all fields except padding, by name. Raises TypeError
        for a missing or unknown field.
        """
        record = np.zeros((), self.dtype)
        kinds = {field.name: field.kind for field in self.fields if field.name != PADDING}
        if wrong := {*values} ^ {*kinds}:
            raise TypeError(f"struct {self.name}: fields {sorted(wrong)} are missing or unknown")
        for name, kind in kinds.items():
            if kind == VECTOR:
                # a v4 holds a vector with three components in four doubles, for aligned SIMD loads
                record[name][..., :3] = values[name]
            else:
                record[name] = values[name]
        return record

    def declaration(self) -> str:
        """The C declaration of the struct, with assertions about its layout."""
        lines = [f"/* {self.comment} */", f"struct {self.name} {{"]
        for field in self.fields:
            count = f"[{field.count}]" if field.count > 1 else ""
            comment = f" /* {field.comment} */" if field.comment else ""
            lines.append(f"    {field.kind} {field.name}{count};{comment}")
        lines.append("};")
        struct = f"struct {self.name}"
        for field in self.fields:
            place = f"offsetof({struct}, {field.name}) == {self._offset(field.name)}"
            lines.append(f'_Static_assert({place}, "{field.name}");')
        lines.append(f'_Static_assert(sizeof({struct}) == {self.dtype.itemsize}, "{self.name}");')
        return "\n".join(lines) + "\n"

    def _offset(self, name: str) -> int:
        return dict(self.dtype.fields or {})[name][1]


JOINT = Struct(
    "joint",
    "A joint and the body that it moves.",
    Field("parent", comment="number of the body that carries it, -1: the world"),
    Field("type", comment="enum joint_type, or GENERATED + number of its functions"),
    Field("q_index", comment="where its coordinates begin"),
    Field("v_index", comment="where its rates begin; rates of mimic joints follow at nv"),
    Field("n_dof", comment="number of its rates"),
    Field("rate_index", comment="v_index of the joint that it follows, or its own"),
    Field("quaternion", comment="enum quaternion"),
    Field("mode", comment="enum joint_mode"),
    Field("multi_dof_index", comment="its number among joints with several rates"),
    Field("constrained", comment="whether constraints depend on it"),
    Field("mass", REAL),
    Field("carried_mass", REAL, comment="mass of everything that it carries"),
    Field("stiffness", REAL),
    Field("rest_force", REAL, comment="stiffness times rest"),
    Field("damping", REAL),
    Field("friction", REAL, comment="largest dry friction"),
    Field("friction_velocity", REAL, comment="rate over which it changes its sign"),
    Field("ratio", REAL, comment="of its coordinate to that of the joint that it follows"),
    Field("pitch", REAL, comment="translation of a REVOLUTE joint along its axis per radian"),
    Field("n_knots", comment="knots of the spline that is its nonlinear spring, 0: there is none"),
    Field("spline", comment="where the numbers of the spline begin"),
    Field(PADDING, REAL, 1),
    Field("column", VECTOR, 3, "columns of the rotation of the placement in the parent"),
    Field("p", VECTOR, 1, "position of the placement"),
    Field("first_moment", VECTOR, 1, "mass times center"),
    Field("inertia", VECTOR, 3, "rows of the inertia about the origin of the frame"),
)
CONSTRAINT = Struct(
    "constraint_row",
    "One row of the holonomic constraints (constraints.c).",
    Field("type", comment="enum constraint_type"),
    Field("a", comment="number of a body, -1: the world"),
    Field("b"),
    Field("body_fixed", comment="whether e_a is fixed in body a, not in the world"),
    Field("length_q", comment="coordinate that is the distance, -1: it is `value`"),
    Field("length_v", comment="its rate"),
    Field("value", REAL),
    Field("at_a", VECTOR, 1, "points in the axes of the bodies"),
    Field("at_b", VECTOR),
    Field("e_a", VECTOR, 1, "directions"),
    Field("e_b", VECTOR),
    Field("e_zero", VECTOR, comment="of a SCREW, in body a"),
)
WRENCH = Struct(
    "external_wrench",
    "One component of a wrench that an input applies (external_wrenches.c).",
    Field("body"),
    Field("torque", comment="whether it is a torque, not a force"),
    Field("body_fixed", comment="whether e is fixed in the body, not in the world"),
    Field("input", comment="number of its input, -1: it is `value`"),
    Field("value", REAL),
    Field("at", VECTOR, 1, "the point in the axes of the body"),
    Field("e", VECTOR, 1, "the direction"),
)
POINT_FORCE = Struct(
    "point_force",
    "A spring or a damper between points of two bodies (point_forces.c).",
    Field("a", comment="number of a body, -1: the world"),
    Field("b"),
    Field("stiffness", REAL),
    Field("rest", REAL, comment="rest length"),
    Field("damping", REAL),
    Field("at_a", VECTOR, 1, "points in the axes of the bodies"),
    Field("at_b", VECTOR),
)
PARAMETER_DERIVATIVE = Struct(
    "parameter_derivative",
    "The derivative of a joint's number with respect to a parameter. Parameter -1 ends the list.",
    Field("parameter"),
    Field("joint"),
    Field("quantity", comment="enum joint_quantity"),
    Field(PADDING),
    Field("value", REAL),
)
TREE = Struct(
    "tree_header",
    "The beginning of a[TREE]. Offsets of arrays are in bytes from its start.",
    Field("n_bodies"),
    Field("nq"),
    Field("nv"),
    Field("n_free", comment="rates that are not prescribed"),
    Field("n_parameters", comment="parameters and the step h"),
    Field("n_inputs", comment="forces, and ends of prescribed coordinates"),
    Field("n_multi_dof", comment="joints with several rates"),
    Field("n_constraints", comment="of closures, then of wheels"),
    Field("n_redundant", comment="constraints that follow from the others"),
    Field("n_shared", comment="coordinates that several joints share"),
    Field("n_mimic", comment="joints that follow others"),
    Field("n_wrenches"),
    Field("n_force_rates", comment="rates that carry a body on which a wrench or damper acts"),
    Field("planar", comment="whether everything moves in a plane, whose normal is the world's z"),
    Field("n_springs"),
    Field("n_dampers"),
    Field("n_contacts"),
    Field("n_impulses", comment="impulses of contacts"),
    Field("n_slips", comment="slip bounds of contacts with friction"),
    Field("n_contact_rates", comment="unknowns on which velocities of contacts depend"),
    Field("impulse_room", comment="doubles of memory for the impulse library"),
    Field("n_wheel_rows", comment="constraints of wheels: heights, then rolling"),
    Field("n_rolling", comment="velocity constraints among these, the last ones"),
    Field("n_wheel_rates", comment="unknowns on which the constraints of wheels depend"),
    Field("joints", comment="struct joint (n_bodies)"),
    Field("actuated_rates", comment="int32_t (forces): the rate on which a force acts, or -1"),
    Field("constraints", comment="struct constraint_row: the closures"),
    Field("wrenches", comment="struct external_wrench (n_wrenches)"),
    Field("point_forces", comment="struct point_force: springs, then dampers"),
    Field("splines", comment="double: splines of nonlinear springs (tree_data.h)"),
    Field("contact_rates", comment="int32_t (n_contact_rates)"),
    Field("wheel_rates", comment="int32_t (n_wheel_rates)"),
    Field("start_fraction", REAL, comment="part of the forces that acts at the start of a step"),
    Field("energy_at_rest", REAL, comment="sum of stiffness rest^2 of all joint springs"),
    Field("gravity", VECTOR),
)
STRUCTS = (JOINT, CONSTRAINT, WRENCH, POINT_FORCE, PARAMETER_DERIVATIVE, TREE)


def tree(arrays: Mapping[str, np.ndarray], **values: Any) -> np.ndarray:
    """A header with `values`, followed by the `arrays`, as the doubles of a[TREE]. The header
    contains the offset of each array.
    """
    contents = {name: array.tobytes() for name, array in arrays.items()}
    # offsets in bytes from the beginning of the header
    places, offset = dict[str, int](), _padded(TREE.dtype.itemsize)
    for name, content in contents.items():
        places[name], offset = offset, offset + _padded(len(content))
    header = TREE.record(**values, **places).tobytes()
    packed = bytearray(offset)
    packed[: len(header)] = header
    for name, content in contents.items():
        packed[places[name] : places[name] + len(content)] = content
    return np.frombuffer(bytes(packed), dtype=float)


def _padded(size: int) -> int:
    return -(-size // LINE) * LINE


def header() -> str:
    """The text of `native/tree_layout.h`."""
    text = [
        "#ifndef NH_TREE_LAYOUT_H\n#define NH_TREE_LAYOUT_H\n/* Written by "
        "kernel_layout.py: `header`. */\n"
        '#include <stddef.h>\n#include <stdint.h>\n\n#include "vectors.h"\n\n'
    ]
    for kind in ENUMS:
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in kind.__name__)[1:]
        members = "".join(f"    {member.name} = {member.value},\n" for member in kind)
        text.append(f"/* {kind.__doc__} */\nenum {name} {{\n{members}}};\n\n")
    text += [struct.declaration() + "\n" for struct in STRUCTS]
    return "".join(text) + "#endif\n"
