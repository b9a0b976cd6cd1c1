"""Where a robot must stay to be commanded: ranges of what is measured, and how close to its
reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.space import Space
from nh_control.scenarios import Scenario
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.scenario import BodyState

SYNTAX = "NAME:LOW:HIGH"
"""How a range is written, in m and rad."""
FARTHER, LEAST_ERROR = 10.0, 0.5
"""How much larger than its scenario's initial error a tracking error may become, and what it may
become in any case (m, rad).
"""
UPRIGHT = "tilt"
"""The angle between a body's z axis and that of its parent."""

Quantity = Callable[[np.ndarray], float]
"""A number of a configuration (nq)."""


@dataclass(frozen=True)
class Range:
    """`low <= name <= high` in m or rad."""

    name: str
    low: float
    high: float


def parse(text: str) -> Range:
    """The range that a text stands for; raises ValueError."""
    name, *bounds = (part.strip() for part in text.split(":"))
    try:
        low, high = map(float, bounds)
    except ValueError:
        raise ValueError(
            f"a range is written {SYNTAX}, e.g. cart_joint:-1:1, got {text!r}"
        ) from None
    if not low < high:
        raise ValueError(f"the range {text!r} is empty: expected two numbers, LOW < HIGH")
    return Range(name, low, high)


def quantities(scenario: Scenario, space: Space) -> dict[str, Quantity]:
    """What may have a range, by name: every joint; `<frame>.x`, `<frame>.y` and `<frame>.heading`
    of a planar body; `<frame>.x`, `.y`, `.z` and `.tilt` of bodies in space.
    """
    found: dict[str, Quantity] = {}
    for joint in scenario.joints:
        at = space.names.index(joint.coordinate)
        found[joint.name] = partial(_number, at, joint.sign)
    if (body := scenario.body) is not None:
        for kind, name in zip(("heading", "x", "y"), body.coordinates):
            at = space.names.index(name)
            found[f"{body.frame}.{kind}"] = partial(_number, at, 1.0)
    if (to_bodies := scenario.to_bodies) is not None:
        see = partial(to_bodies, scenario.parameters)
        for i, one in enumerate(scenario.resting_bodies(space)):
            for kind, of in _OF_BODY.items():
                found[f"{one.frame}.{kind}"] = partial(_seen, see, i, of, space.nw)
    return found


def _number(at: int, sign: float, q: np.ndarray) -> float:
    return float(sign * q[at])


def _seen(
    see: Callable[[np.ndarray, np.ndarray], Sequence[BodyState]],
    i: int,
    of: Callable[[BodyState], float],
    nw: int,
    q: np.ndarray,
) -> float:
    return of(see(q, np.zeros(nw))[i])


def _tilt(body: BodyState) -> float:
    _, x, y, _ = body.quaternion_wxyz
    return 2 * math.asin(min(1.0, math.hypot(x, y)))


_OF_BODY: dict[str, Callable[[BodyState], float]] = {
    "x": lambda body: float(body.position[0]),
    "y": lambda body: float(body.position[1]),
    "z": lambda body: float(body.position[2]),
    UPRIGHT: _tilt,
}


def error_limit(scenario: Scenario, dsys: DiscreteSystem, reference: Trajectory) -> float:
    """Tracking error (m, rad) beyond which a robot is not under control: that of the scenario's
    limits, or else FARTHER times the largest tracked number of its initial error, and at least
    LEAST_ERROR.
    """
    if scenario.limits.error:
        return scenario.limits.error
    x, space = reference.states[0], dsys.system.space
    error = dsys.local(x, scenario.perturb(dsys, x, scenario.perturbation))[: space.nv]
    largest = np.abs(error[scenario.tracked(space)]).max(initial=0.0)
    return max(LEAST_ERROR, FARTHER * float(largest))


class SafeRange:
    """Ranges of what a scenario's configurations show; raises UnknownName, ValueError."""

    def __init__(self, scenario: Scenario, space: Space, texts: Sequence[str] = ()):
        self._ranges = [parse(text) for text in texts if text.strip()]
        known = quantities(scenario, space) if self._ranges else {}
        for one in self._ranges:
            if one.name not in known:
                raise UnknownName(f"{scenario.name} quantity with a range", one.name, known)
        self._quantities = {one.name: known[one.name] for one in self._ranges}

    def violation(self, q: np.ndarray) -> str:
        """Which range a configuration (nq) is not in, "" if it is in all."""
        for one in self._ranges:
            value = self._quantities[one.name](q)
            if not one.low <= value <= one.high:
                return f"{one.name} = {value:.4g} is not in {one.low:g} ... {one.high:g}"
        return ""
