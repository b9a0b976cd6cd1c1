"""The physical constants of a `Multibody`, by name and as parameters of its system. They are
masses, centers, inertias, placements, and joint dampers, friction and springs.
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
"""Name of the constant that scales all masses."""
FIELDS: dict[type, tuple[str, ...]] = {
    Body: ("mass", "center", "inertia"),
    Contact: ("friction", "restitution"),
    Frame: ("position",),
    JointDamper: ("damping",),
    JointFriction: ("friction", "friction_velocity"),
    JointSpring: ("stiffness", "rest"),
}
"""The fields of each type of part that may be parameters."""
BOUNDS = {
    "mass": {"above": 0.0},
    MASS_SCALE: {"above": 0.0},
    "damping": {"at_least": 0.0},
    "friction": {"at_least": 0.0},
    "friction_velocity": {"above": 0.0},
    "restitution": {"at_least": 0.0},
}
"""Bounds of fields. Fields without an entry have none."""
PARTS = ("bodies", "frames", "elements", "contacts")
ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Rows and columns of the six inertia parameters xx, yy, zz, xy, xz, yz in the tensor."""


class Location(NamedTuple):
    """The location of a constant in a model. It consists of the name of the list of parts, the
    index of the part, and the name of the field. The list name is empty for a field of the model
    itself.
    """

    parts: str
    part: int
    field: str


ModelT = TypeVar("ModelT", bound=MultibodyParts)
"""The class of a model. Copies have the same class."""


class ModelConstants(Generic[ModelT]):
    """The physical constants of a model by name. They are `<frame>_mass`, `<frame>_center` (3) and
    `<frame>_inertia` (6: xx, yy, zz, xy, xz, yz) of bodies, `<frame>_position` (3) of frames,
    `<coordinate>_damping`, `<coordinate>_friction`, `<coordinate>_friction_velocity`,
    `<coordinate>_stiffness` and `<coordinate>_rest` of joints, `<contact>_friction` and
    `<contact>_restitution` of contacts, and `mass_scale` for all masses. Names are converted to
    identifiers (see `identifier`). Repeated names end with "_2", "_3", ...
    """

    def __init__(self, model: ModelT):
        self._model = model
        self.locations = {MASS_SCALE: Location("", 0, MASS_SCALE)}
        for parts in PARTS:
            for index, part in enumerate(getattr(model, parts)):
                for name in FIELDS.get(type(part), ()):
                    if name == "mass" and not part.mass:
                        continue  # a rotor, or a link with an inertia only
                    self.locations[self._unused_name(part, name)] = Location(parts, index, name)

    @cached_property
    def parameters(self) -> Any:
        """The values of the model's `parameters` as a frozen dataclass, or None if there are none.
        The dataclass raises ValueError for values that a part does not accept.
        """
        model = self._model
        if unknown := [name for name in model.parameters if name not in self.locations]:
            raise ValueError(
                f"{model.name}: no constants {unknown} to be parameters, choose from "
                f"{list(self.locations)}"
            )
        if not model.parameters:
            return None
        values_class = make_dataclass(
            "Parameters",
            [(name, Any, self._declared(name)) for name in model.parameters],
            frozen=True,
            # the constructors of the parts check the values
            namespace={"__post_init__": lambda values: self._parts(vars(values)) and None},
        )
        return values_class()

    def _declared(self, name: str) -> Any:
        """The field of a parameter with its bounds. Identification respects them."""
        bounds: dict[str, Any] = BOUNDS.get(self.locations[name].field, {"above": -np.inf})
        return parameter(self.value(name), **bounds)

    def value(self, name: str) -> float | tuple[float, ...]:
        """The value of a constant in the model, as a number or a tuple of numbers."""
        location = self.locations[name]
        owner: Any = self._model
        if location.parts:
            owner = getattr(owner, location.parts)[location.part]
        value = getattr(owner, location.field)
        if location.field == "inertia":
            return tuple(value[i][j] for i, j in ENTRIES)
        return value

    def model_with(self, values: Mapping[str, Any]) -> ModelT:
        """A copy of the model with new values for its parameters, as numbers or expressions. If
        the values are expressions, the inertias of bodies on the same frame are not added up.
        """
        model, parts = self._model, self._parts(values)
        scale = values[MASS_SCALE] if MASS_SCALE in model.parameters else model.mass_scale
        changed_model = copy.copy(model)
        for name in set(vars(model)) - {f.name for f in fields(model)}:
            del changed_model.__dict__[name]  # cached values depend on the old constants
        for name, changed in {**parts, "parameters": (), MASS_SCALE: scale}.items():
            object.__setattr__(changed_model, name, changed)
        if any(_symbolic(values[name]) for name in model.parameters):
            # the tree's names and space do not depend on constants, so only replace its frames
            tree = copy.copy(model.tree)
            tree.frames = {frame.name: frame for frame in parts["frames"]}
            scaled = tuple(_scaled(body, scale) for body in parts["bodies"])
            changed_model.__dict__.update(tree=tree, spatial_inertias=scaled)
        return changed_model

    def _parts(self, values: Mapping[str, Any]) -> dict[str, tuple]:
        """The parts of the model with the given values, by the names in PARTS."""
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
    """Raises ValueError for a number that is not positive and finite. Expressions are accepted."""
    if not _symbolic(scale) and not (np.isfinite(scale) and scale > 0):
        raise ValueError(f"{name}: mass_scale must be positive and finite, got {scale}")


def _scaled(body: Body, scale: Any) -> Body:
    """A copy of the body whose mass and inertia are multiplied by a number or an expression."""
    changed, inertia = copy.copy(body), cast(Any, body.inertia)
    object.__setattr__(changed, "mass", scale * body.mass)
    object.__setattr__(changed, "inertia", scale * ca.SX(constant(inertia)))
    return changed


def _symbolic(value: Any) -> bool:
    entries = value if isinstance(value, tuple) else (value,)
    return any(isinstance(entry, ca.SX) for entry in entries)


def _changed(part: Any, changes: Mapping[str, Any]) -> Any:
    """A copy of the part with new values for some fields. The constructor of the part checks
    numbers but not expressions.
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
    # constructors accept numbers only, so set the fields of a copy
    changed = copy.copy(part)
    for name, value in changes.items():
        object.__setattr__(changed, name, value)
    return changed
