"""Constraints on a scenario's motions, and the options of its predictive tracker."""

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
"""Name that stands for all constraints that hold along a reference."""
OBSTACLES = "obstacles"
"""Frame that contains the shapes of constraints. It coincides with the root frame."""


@dataclass(frozen=True)
class ScenarioConstraint:
    """A constraint in a scenario. `make(model)` returns the soft `nh.Constraint`, measured in
    `unit`. The constraint holds along the given `references`, or along all references if the tuple
    is empty. Its `shapes`, in the frame OBSTACLES, are drawn along the same references.
    """

    make: Callable[[DiscreteSystem], Constraint]
    unit: str = ""
    references: tuple[str, ...] = ()
    shapes: tuple[Shape, ...] = ()

    def holds_along(self, reference: str) -> bool:
        """Whether the constraint holds along the reference with the given name."""
        return not self.references or reference in self.references


@dataclass(frozen=True)
class MpcOptions:
    """The options of an `nh.MpcTracker` for a scenario: its horizon (s; 0 selects the scenario's
    horizon), its `iterations`, and the names of its `constraints` (ALL stands for all constraints
    along the reference). Studies can also set the share of plans that are `late`. The late plans
    are drawn at random with a `seed`.

    Raises ValueError for a negative horizon, fewer than one iteration, or a share outside [0, 1].
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
        """Return the options with the given plain values by name."""
        return MpcOptions(**{**values, "constraints": tuple(values["constraints"])})

    def is_late(self, k: int) -> bool:
        """Whether the plan for step k is late."""
        # The draw depends only on the seed and the step, so runs are reproducible.
        return self.late > 0 and np.random.default_rng((self.seed, k)).random() < self.late


def chosen(
    declared: Mapping[str, ScenarioConstraint], reference: str, names: tuple[str, ...] = (ALL,)
) -> dict[str, ScenarioConstraint]:
    """The declared constraints with the given names. ALL stands for all constraints along the
    reference. Raises UnknownName.
    """
    for name in names:
        if name != ALL and name not in declared:
            raise UnknownName("constraint", name, (ALL, *declared))
    return {
        name: constraint
        for name, constraint in declared.items()
        if name in names or (ALL in names and constraint.holds_along(reference))
    }


def with_obstacles(
    visual: VisualModel, declared: Mapping[str, ScenarioConstraint], reference: str
) -> VisualModel:
    """The visual model, including the shapes of the constraints that hold along a reference."""
    shapes = [s for c in chosen(declared, reference).values() for s in c.shapes]
    if not shapes:
        return visual

    shapes = [*visual.shapes, *shapes]
    # A tree of declared frames gets an additional fixed frame, and a function for poses is
    # wrapped.
    if isinstance(tree := visual.poses, FrameTree):
        frames = *tree.frames, fixed(OBSTACLES, tree.root or visual.parent)
        return replace(visual, poses=replace(tree, frames=frames), shapes=tuple(shapes))

    def poses(parameters: Any, q: np.ndarray) -> dict[str, Pose]:
        return {**visual.poses(parameters, q), OBSTACLES: Pose.at(ORIGIN)}

    return replace(visual, poses=poses, shapes=tuple(shapes))
