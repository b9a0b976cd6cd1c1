"""The physical constants of a `Multibody` by name (masses, centers, inertias, placements, joint
dampers, friction and springs), and as parameters of its system.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields, make_dataclass, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar, cast

import casadi as ca
import numpy as np

from nh_control.mechanics.parameters import parameter
from nh_control.multibody.bodies import Body
from nh_control.multibody.contacts import Contact
from nh_control.multibody.elements import JointDamper, JointFriction, JointSpring
from nh_control.multibody.frame_motion import constant
from nh_control.multibody.frames import Frame
from nh_control.multibody.parts import MultibodyParts
from nh_control.numerics.identifiers import identifier

MASS_SCALE = "mass_scale"
"""The constant of the whole model."""
FIELDS: dict[type, tuple[str, ...]] = {
    Body: ("mass", "center", "inertia"),
    Contact: ("friction", "restitution"),
    Frame: ("position",),
    JointDamper: ("damping",),
    JointFriction: ("friction", "friction_velocity"),
    JointSpring: ("stiffness", "rest"),
}
"""The fields of every kind of part that may be parameters."""
BOUNDS = {
    "mass": {"above": 0.0},
    MASS_SCALE: {"above": 0.0},
    "damping": {"at_least": 0.0},
    "friction": {"at_least": 0.0},
    "friction_velocity": {"above": 0.0},
    "restitution": {"at_least": 0.0},
}
"""Bounds of the fields that have some."""
PARTS = ("bodies", "frames", "elements", "contacts")
ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Row and column of the six parameters of an inertia tensor: xx, yy, zz, xy, xz, yz."""


class Location(NamedTuple):
    """Where a constant stands in a model: the list of parts, the index of the part, its field; no
    list for a field of the model itself.
    """

    parts: str
    part: int
    field: str


ModelT = TypeVar("ModelT", bound=MultibodyParts)
"""The kind of a model, whose copies are of the same kind."""


class ModelConstants(Generic[ModelT]):
    """The physical constants of a model by name: `<frame>_mass`, `<frame>_center` (3) and
    `<frame>_inertia` (6: xx, yy, zz, xy, xz, yz) of bodies, `<frame>_position` (3) of frames,
    `<coordinate>_damping`, `<coordinate>_friction`, `<coordinate>_friction_velocity`,
    `<coordinate>_stiffness` and `<coordinate>_rest` of joints, `<contact>_friction` and
    `<contact>_restitution` of contacts, and `mass_scale` of all masses.
    Names become identifiers, see `identifier`; repeated ones end with "_2", "_3", ...
    """

    def __init__(self, model: ModelT):
        self._model = model
        self.locations = {MASS_SCALE: Location("", 0, MASS_SCALE)}
        for parts in PARTS:
            for index, part in enumerate(getattr(model, parts)):
                for name in FIELDS.get(type(part), ()):
                    if name == "mass" and not part.mass:
                        continue  # of a rotor, or of a link with an inertia alone
                    self.locations[self._unused_name(part, name)] = Location(parts, index, name)

    @cached_property
    def parameters(self) -> Any:
        """The values of the model's `parameters` as a frozen dataclass, None without any; the
        dataclass raises ValueError for values that no part can have.
        """
        model = self._model
        if unknown := [name for name in model.parameters if name not in self.locations]:
            raise ValueError(
                f"{model.name}: no constants {unknown} to be parameters, choose of "
                f"{list(self.locations)}"
            )
        if not model.parameters:
            return None
        made = make_dataclass(
            "Parameters",
            [(name, Any, self._declared(name)) for name in model.parameters],
            frozen=True,
            namespace={"__post_init__": lambda p: self._parts(vars(p)) and None},
        )
        return made()

    def _declared(self, name: str) -> Any:
        """The field of a parameter, with its bounds, which identification keeps."""
        bounds: dict[str, Any] = BOUNDS.get(self.locations[name].field, {"above": -np.inf})
        return parameter(self.value(name), **bounds)

    def value(self, name: str) -> float | tuple[float, ...]:
        """The value of a constant in the model, a number or a tuple of numbers."""
        location = self.locations[name]
        owner: Any = self._model
        if location.parts:
            owner = getattr(owner, location.parts)[location.part]
        value = getattr(owner, location.field)
        if location.field == "inertia":
            return tuple(value[i][j] for i, j in ENTRIES)
        return value

    def model_with(self, values: Mapping[str, Any]) -> ModelT:
        """A copy of the model with other values of its parameters, numbers or expressions; with
        expressions the inertias of bodies on one frame are not added up.
        """
        model, parts = self._model, self._parts(values)
        scale = values[MASS_SCALE] if MASS_SCALE in model.parameters else model.mass_scale
        changed_model = copy.copy(model)
        for name in set(vars(model)) - {f.name for f in fields(model)}:
            del changed_model.__dict__[name]  # cached values follow from the old constants
        for name, changed in {**parts, "parameters": (), MASS_SCALE: scale}.items():
            object.__setattr__(changed_model, name, changed)
        if any(_symbolic(values[name]) for name in model.parameters):
            tree = copy.copy(model.tree)
            tree.frames = {frame.name: frame for frame in parts["frames"]}
            scaled = tuple(_scaled(body, scale) for body in parts["bodies"])
            changed_model.__dict__.update(tree=tree, spatial_inertias=scaled)
        return changed_model

    def _parts(self, values: Mapping[str, Any]) -> dict[str, tuple]:
        """The parts of the model with these values, by the names in PARTS."""
        changes: dict[tuple[str, int], dict[str, Any]] = {}
        model = self._model
        for name in model.parameters:
            location, value = self.locations[name], values[name]
            if not location.parts:
                require_scale(model.name, value)
            elif _symbolic(value) or value != self.value(name):
                changes.setdefault(location[:2], {})[location.field] = value
        parts = {name: list(getattr(self._model, name)) for name in PARTS}
        for (name, index), changed in changes.items():
            parts[name][index] = _changed(parts[name][index], changed)
        return {name: tuple(values) for name, values in parts.items()}

    def _unused_name(self, part: Any, name: str) -> str:
        is_named = name == "position" or isinstance(part, Contact)
        owner = part.name if is_named else getattr(part, "coordinate", "")
        first = identifier(f"{owner or part.frame}_{name}")
        unused, count = first, 1
        while unused in self.locations:
            count += 1
            unused = f"{first}_{count}"
        return unused


def require_scale(name: str, scale: Any) -> None:
    """Raises ValueError for a number that scales no masses; expressions pass."""
    if not _symbolic(scale) and not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"{name}: mass_scale must be positive and finite, got {scale}")


def _scaled(body: Body, scale: Any) -> Body:
    """A copy of the body with mass and inertia times a number or an expression."""
    changed, inertia = copy.copy(body), cast(Any, body.inertia)
    object.__setattr__(changed, "mass", scale * body.mass)
    object.__setattr__(changed, "inertia", scale * ca.SX(constant(inertia)))
    return changed


def _symbolic(value: Any) -> bool:
    entries = value if isinstance(value, tuple) else (value,)
    return any(isinstance(entry, ca.SX) for entry in entries)


def _changed(part: Any, changes: Mapping[str, Any]) -> Any:
    """A copy of the part with other values of some fields; numbers pass the checks of its
    constructor, expressions do not.
    """
    changes = dict(changes)
    symbolic = any(map(_symbolic, changes.values()))
    for name, value in changes.items():
        if name == "inertia":
            tensor = ca.SX(3, 3) if symbolic else np.zeros((3, 3))
            for (i, j), entry in zip(ENTRIES, value):
                tensor[i, j] = tensor[j, i] = entry
            changes[name] = tensor
        elif symbolic and isinstance(value, tuple):
            changes[name] = ca.vertcat(*value)
    if not symbolic:
        return replace(part, **changes)
    changed = copy.copy(part)
    for name, value in changes.items():
        object.__setattr__(changed, name, value)
    return changed
