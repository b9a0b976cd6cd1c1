"""Parameters carry unit, meaning and bounds, and refuse values outside by name."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from refusals import refusal

from nh_control.mechanics import parametric
from nh_control.mechanics.parameters import Parameters, declarations, parameter


@dataclass(frozen=True)
class Arm(Parameters):
    """Of a robot's arm."""

    mass: float = parameter(1.2, "kg", "mass of the link")
    lengths: tuple[float, ...] = parameter((0.3, 0.4), "m", "of the links")
    friction: float = parameter(0.0, "N m s", "of the joint", at_least=0.0)
    offset: float = parameter(-0.1, "rad", "where the encoder reads 0", above=-math.inf)
    seed: int = parameter(-1, description="-1 = none", at_least=-1)
    plain: float = 3.0


def test_a_declaration_tells_what_the_field_was_made_with():
    mass, lengths, friction, offset, seed, plain = declarations(Arm(mass=2.0))
    assert (mass.name, mass.value, mass.unit, mass.description, mass.bound) == (
        ("mass", 2.0, "kg", "mass of the link", "> 0")
    )
    assert lengths.value == (0.3, 0.4) and friction.bound == ">= 0" and offset.bound == ""
    assert seed.is_integer and not plain.is_integer
    assert (plain.unit, plain.description, plain.bound) == ("", "", "")


def test_a_value_outside_is_refused_by_class_field_value_and_unit(snapshot):
    wrong = (
        ("mass", 0.0),
        ("mass", math.nan),
        ("mass", "heavy"),
        ("mass", True),
        ("mass", (1.0, 2.0)),
        ("lengths", (0.3, -0.4)),
        ("lengths", ()),
        ("lengths", 0.3),
        ("lengths", "03"),
        ("friction", -1e-9),
        ("offset", math.inf),
        ("seed", -2),
        ("seed", 1.5),
        ("plain", math.nan),
    )
    assert [refusal(lambda: Arm(**{field: value})) for field, value in wrong] == snapshot
    with pytest.raises(ValueError, match="Arm.mass"):
        replace(Arm(), mass=0.0)


@dataclass(frozen=True)
class Chain:
    """With types that are names, as `from __future__ import annotations` makes them, and not."""

    links: "int" = 2
    stiff: "bool" = True
    kind: "str" = "steel"
    count: int = 3
    open: bool = False
    name: str = "chain"
    length: "float" = 0.5
    masses: tuple[float, ...] = (1.0, 2.0)
    mixed: tuple = (1.0, "two")
    drag: float = 1


def test_numbers_are_parameters_and_what_says_how_a_system_is_built_is_none():
    chain = Chain()
    names = "length", "masses[0]", "masses[1]", "drag"
    assert parametric.names(chain) == names and parametric.names(None) == ()
    assert parametric.values(chain).tolist() == [0.5, 1.0, 2.0, 1.0]
    fields = parametric.by_field(chain, np.array([5.0, 6.0, 7.0, 8.0]))
    assert fields == {"length": 5.0, "masses": (6.0, 7.0), "drag": 8.0}
    symbols, twin = parametric.symbolic(chain)
    assert [str(symbols[i]) for i in range(4)] == list(names)
    assert (twin.links, twin.kind, twin.mixed) == (2, "steel", (1.0, "two"))
    assert (chain.length, chain.masses) == (0.5, (1.0, 2.0))
    other = parametric.changed("me", chain, {"masses": (3.0, 4.0), "length": 1.0})
    assert (other.masses, other.length, other.links) == ((3.0, 4.0), 1.0, 2)
    assert parametric.changed("me", chain, {}) is chain
    for wrong in ({"links": 3}, {"kind": "wood"}, {"width": 1.0}):
        with pytest.raises(
            ValueError, match="me: no parameter .* to change, choose from .'length'"
        ):
            parametric.changed("me", chain, wrong)
    with pytest.raises(ValueError, match="me: no parameter 'x' to change, it declares none"):
        parametric.changed("me", None, {"x": 1.0})
    with pytest.raises(ValueError, match="different structure"):
        parametric.changed("me", chain, {"masses": (1.0, 2.0, 3.0)})
