"""The numbers of a `Multibody` as parameters of its system: masses, centers, inertias, placements,
dampers and springs of joints.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import field, fields, make_dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from nh_control.multibody.bodies import Body
from nh_control.multibody.elements import JointDamper, JointSpring
from nh_control.multibody.frames import Frame

if TYPE_CHECKING:
    from nh_control.multibody.model import Multibody

FIELDS: dict[type, tuple[str, ...]] = {
    Body: ("mass", "center", "inertia"),
    Frame: ("position",),
    JointDamper: ("damping",),
    JointSpring: ("stiffness", "rest"),
}
"""What of a part may change."""
PARTS = ("bodies", "frames", "elements")
ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Places in an inertia tensor of its parameters: xx, yy, zz, xy, xz, yz."""


class Location(NamedTuple):
    """Where a parameter stands: a list of the model's parts, the part's place, its field."""

    parts: str
    part: int
    field: str


class ModelConstants:
    """The numbers of a model by name: `<frame>_mass`, `<frame>_center` (3), `<frame>_inertia` (6:
    xx, yy, zz, xy, xz, yz) of bodies, `<frame>_position` (3) of frames, `<coordinate>_damping`,
    `<coordinate>_stiffness` and `<coordinate>_rest`. What is no letter in a name is a "_"; names
    that are taken end with "_2", "_3", ...
    """

    def __init__(self, model: Multibody):
        self._model = model
        self.locations: dict[str, Location] = {}
        for parts in PARTS:
            for at, part in enumerate(getattr(model, parts)):
                for name in FIELDS.get(type(part), ()):
                    self.locations[self._free(part, name)] = Location(parts, at, name)

    @cached_property
    def parameters(self) -> Any:
        """The model's `parameters` with their values, a frozen dataclass that refuses, by
        ValueError, numbers that no part can have; None without any.
        """
        model = self._model
        if unknown := [name for name in model.parameters if name not in self.locations]:
            raise ValueError(
                f"{model.name}: no numbers {unknown} to be parameters, choose of "
                f"{list(self.locations)}"
            )
        if not model.parameters:
            return None
        made = make_dataclass(
            "Parameters",
            [(name, Any, field(default=self.value(name))) for name in model.parameters],
            frozen=True,
            namespace={"__post_init__": lambda p: self._parts(vars(p)) and None},
        )
        return made()

    def value(self, name: str) -> float | tuple[float, ...]:
        """A number, or several, as the model has them."""
        place = self.locations[name]
        value = getattr(getattr(self._model, place.parts)[place.part], place.field)
        if place.field == "inertia":
            return tuple(value[i][j] for i, j in ENTRIES)
        return value

    def model_with(self, values: Mapping[str, Any]) -> Multibody:
        """The model with other values of its parameters, numbers or expressions; with expressions
        every body is one of its own.
        """
        model, parts = self._model, self._parts(values)
        twin = copy.copy(model)
        for name in set(vars(model)) - {f.name for f in fields(model)}:
            del twin.__dict__[name]  # what follows from the numbers
        for name, changed in (parts | {"parameters": ()}).items():
            object.__setattr__(twin, name, changed)
        if any(_symbolic(values[name]) for name in model.parameters):
            tree = copy.copy(model.tree)
            tree.frames = {frame.name: frame for frame in parts["frames"]}
            twin.__dict__.update(tree=tree, spatial_inertias=parts["bodies"])
        return twin

    def _parts(self, values: Mapping[str, Any]) -> dict[str, tuple]:
        """The model's parts with these values."""
        changes: dict[tuple[str, int], dict[str, Any]] = {}
        for name in self._model.parameters:
            place, value = self.locations[name], values[name]
            if _symbolic(value) or value != self.value(name):
                changes.setdefault(place[:2], {})[place.field] = value
        parts = {name: list(getattr(self._model, name)) for name in PARTS}
        for (name, at), changed in changes.items():
            parts[name][at] = _changed(parts[name][at], changed)
        return {name: tuple(chosen) for name, chosen in parts.items()}

    def _free(self, part: Any, name: str) -> str:
        owner = getattr(part, "coordinate", "") if name != "position" else part.name
        wanted = re.sub(r"\W", "_", f"{owner or part.frame}_{name}")
        found, count = wanted, 1
        while found in self.locations:
            count += 1
            found = f"{wanted}_{count}"
        return found


def _symbolic(value: Any) -> bool:
    entries = value if isinstance(value, tuple) else (value,)
    return any(isinstance(entry, ca.SX) for entry in entries)


def _changed(part: Any, changes: Mapping[str, Any]) -> Any:
    """The part with other values of some fields, by its constructor unless they are
    expressions.
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
    twin = copy.copy(part)
    for name, value in changes.items():
        object.__setattr__(twin, name, value)
    return twin
