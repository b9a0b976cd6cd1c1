"""Constraints of a scenario's motions, and the options of its predictive tracker."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nh_control.control.constraints import Constraint
from nh_control.discrete.system import DiscreteSystem
from nh_control.scenarios.declared_frames import ORIGIN, FrameTree, fixed
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.visual_model import Pose, Shape, VisualModel

ALL = "auto"
"""Stands for all constraints of a reference."""
OBSTACLES = "obstacles"
"""Frame of the shapes of constraints, at the origin."""


@dataclass(frozen=True)
class ScenarioConstraint:
    """A constraint of a scenario: `make(model)` is the soft `nh.Constraint`, in `unit`. It holds
    along these `references`, or along all if none is named; its `shapes`, on the frame OBSTACLES,
    are drawn with them.
    """

    make: Callable[[DiscreteSystem], Constraint]
    unit: str = ""
    references: tuple[str, ...] = ()
    shapes: tuple[Shape, ...] = ()

    def holds_along(self, reference: str) -> bool:
        """Whether it holds along the reference of this name."""
        return not self.references or reference in self.references


@dataclass(frozen=True)
class MpcOptions:
    """Options of an `nh.MpcTracker` for a scenario: its horizon (s; 0 is the scenario's), its
    `iterations`, the names of its `constraints` (ALL stands for those of the reference), and the
    share of its plans that are `late`, drawn with a `seed`, for studies.

    Raises ValueError for a negative horizon, fewer than one iteration and another share.
    """

    horizon_s: float = 0.0
    iterations: int = 3
    constraints: tuple[str, ...] = (ALL,)
    late: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.horizon_s) and self.horizon_s >= 0 and self.iterations >= 1):
            raise ValueError(
                f"MpcOptions: expected a horizon >= 0 s, 0 for the scenario's, and at least 1 "
                f"iteration, got {self.horizon_s} s and {self.iterations}"
            )
        if not 0 <= self.late <= 1:
            raise ValueError(f"MpcOptions.late must be a share in [0, 1], got {self.late}")

    @staticmethod
    def of(values: Mapping[str, Any]) -> MpcOptions:
        """The options from plain values by name."""
        return MpcOptions(**{**values, "constraints": tuple(values["constraints"])})

    def is_late(self, k: int) -> bool:
        """Whether the plan of step k is late."""
        return self.late > 0 and np.random.default_rng((self.seed, k)).random() < self.late


def chosen(
    declared: Mapping[str, ScenarioConstraint], reference: str, names: tuple[str, ...] = (ALL,)
) -> dict[str, ScenarioConstraint]:
    """The declared constraints of these names (ALL stands for those of the reference); raises
    UnknownName.
    """
    for name in names:
        if name != ALL and name not in declared:
            raise UnknownName("constraint", name, (ALL, *declared))
    return {
        name: one
        for name, one in declared.items()
        if name in names or (ALL in names and one.holds_along(reference))
    }


def with_obstacles(
    visual: VisualModel, declared: Mapping[str, ScenarioConstraint], reference: str
) -> VisualModel:
    """The visual model with the shapes of the constraints that hold along a reference."""
    shapes = [s for one in chosen(declared, reference).values() for s in one.shapes]
    if not shapes:
        return visual

    shapes = [*visual.shapes, *shapes]
    if isinstance(tree := visual.poses, FrameTree):
        frames = *tree.frames, fixed(OBSTACLES, tree.root or visual.parent)
        return replace(visual, poses=replace(tree, frames=frames), shapes=tuple(shapes))

    def poses(parameters: Any, q: np.ndarray) -> dict[str, Pose]:
        return {**visual.poses(parameters, q), OBSTACLES: Pose.at(ORIGIN)}

    return replace(visual, poses=poses, shapes=tuple(shapes))
