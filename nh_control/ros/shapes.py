"""What scenarios look like: solids on the body and on its joints, for markers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nh_control.scenarios import Scenario
from nh_control.systems import SnakeboardParameters

Color = tuple[float, float, float]

WOOD, STEEL, RUBBER, ORANGE = (0.55, 0.35, 0.17), (0.65, 0.67, 0.7), (0.12, 0.12, 0.13), (0.95, 0.5, 0.1)


@dataclass(frozen=True)
class Shape:
    """A "box", "cylinder" (axis along z) or "sphere" of the given extents (m) at `offset` (m) from its hinge.

    The hinge is at `hinge` (m) in the body frame and turns about z with the joint named `joint`, if there is one; `roll` (rad) turns the shape
    about x.
    """

    kind: str
    extents: tuple[float, float, float]
    color: Color
    hinge: tuple[float, float, float] = (0.0, 0.0, 0.0)
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    roll: float = 0.0
    joint: str = ""


def shapes(scenario: Scenario) -> tuple[Shape, ...]:
    """Shapes of a scenario; a ball, if nothing better is known."""
    return _SHAPES.get(scenario.name, lambda parameters: (Shape("sphere", (0.3, 0.3, 0.3), ORANGE),))(scenario.parameters)


def _snakeboard(parameters: SnakeboardParameters) -> tuple[Shape, ...]:
    """Board of length 2 l, a truck with two wheels under either end, the rotor's bar above the middle; all scale with l."""
    l = parameters.l
    wheel, gauge, height = 0.1 * l, 0.3 * l, 0.14 * l
    parts = [
        Shape("box", (2.0 * l, 0.12 * l, 0.03 * l), WOOD, offset=(0.0, 0.0, height)),
        Shape("cylinder", (0.06 * l, 0.06 * l, 0.16 * l), STEEL, offset=(0.0, 0.0, height + 0.08 * l)),
        Shape("box", (0.9 * l, 0.08 * l, 0.05 * l), ORANGE, offset=(0.0, 0.0, height + 0.18 * l), joint="rotor_joint"),
    ]
    for x, joint in ((-l, "rear_truck_joint"), (l, "front_truck_joint")):
        hinge = (x, 0.0, 0.0)
        parts.append(Shape("box", (0.3 * l, 0.36 * l, 0.03 * l), WOOD, hinge, (0.0, 0.0, height), joint=joint))
        parts.append(Shape("box", (0.05 * l, gauge, 0.03 * l), STEEL, hinge, (0.0, 0.0, wheel / 2), joint=joint))
        for side in (-1, 1):
            place = (0.0, side * gauge / 2, wheel / 2)
            parts.append(Shape("cylinder", (wheel, wheel, 0.05 * l), RUBBER, hinge, place, roll=1.5707963267948966, joint=joint))
    return tuple(parts)


_SHAPES: dict[str, Callable[[object], tuple[Shape, ...]]] = {"snakeboard": _snakeboard}
