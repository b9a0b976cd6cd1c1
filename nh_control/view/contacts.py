"""Contacts in pages and films: curves, and arrows of their forces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nh_control.discrete.contact_forces import ContactReadout
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.scenarios.visual_model import Arrow, VisualModel
from nh_control.view.animation import Curves, Poses, largest_first
from nh_control.view.camera import extent

LONGEST, GRAVITY = 0.5, 9.81
"""Length of the arrow of the largest force, as a fraction of the plant's extent; and m/s^2."""
FELT, EXAMPLES = 1e-3, 60
"""Fraction of the weight below which a reference counts as one without contact; and the least
number of its steps whose forces are looked at.
"""


@dataclass(frozen=True)
class ContactArrows:
    """Arrows of contact forces (N, n, 3) at positions (N, n, 3): arrows along the z axes of
    additional frames.
    """

    names: tuple[str, ...]
    positions: np.ndarray
    forces: np.ndarray

    @staticmethod
    def of(arrays: Mapping[str, np.ndarray], rows: np.ndarray) -> ContactArrows:
        """The contacts with a position in a run's arrays, at some of its N + 1 nodes."""
        if "contact_names" not in arrays or not len(arrays["contact_force"]):
            return ContactArrows((), np.zeros((len(rows), 0, 3)), np.zeros((len(rows), 0, 3)))
        steps = np.minimum(rows, len(arrays["contact_force"]) - 1)
        positions, forces = (arrays[f"contact_{what}"][steps] for what in ("position", "force"))
        placed = np.isfinite(forces).all(axis=(0, 2))
        names = arrow_frames(arrays["contact_names"][placed])
        return ContactArrows(names, positions[:, placed], forces[:, placed])

    def shown_by(self, visual: VisualModel) -> VisualModel:
        """The visual model with these arrows after its own."""
        return replace(
            visual, arrows=(*visual.arrows, *(Arrow(name, name, 1.0) for name in self.names))
        )

    def with_frames(self, poses: Poses) -> Poses:
        """The poses with the frames of the arrows after their own."""
        if not self.names:
            return poses
        size = np.linalg.norm(self.forces, axis=2, keepdims=True)
        z = np.where(size > 0, self.forces / np.where(size > 0, size, 1), [0.0, 0.0, 1.0])
        # the shortest rotation from (0, 0, 1) to z; downwards about x
        half = np.concatenate([1 + z[..., 2:], -z[..., 1:2], z[..., :1], 0 * size], axis=2)
        half[z[..., 2] < -1 + 1e-9] = [0.0, 1.0, 0.0, 0.0]
        wxyz = half / np.linalg.norm(half, axis=2, keepdims=True)
        return Poses(
            (*poses.names, *self.names),
            np.concatenate([poses.position, self.positions], axis=1),
            np.concatenate([poses.wxyz, wxyz], axis=1),
        )

    def lengths(self, visual: VisualModel, poses: Poses) -> np.ndarray:
        """Lengths (N, n) in m of the arrows beside a plant in these poses."""
        size = np.linalg.norm(self.forces, axis=2)
        largest = _largest(self.forces)
        longest = LONGEST * extent(visual, poses)
        return np.minimum(size * longest / largest, 4 * longest) if largest else size


def arrow_frames(contacts: Iterable[str]) -> tuple[str, ...]:
    """Names of the frames of the arrows of contacts."""
    return tuple(f"contact {name}" for name in contacts)


def arrow_scale(
    visual: VisualModel, parameters: Any, dsys: DiscreteSystem, reference: Trajectory
) -> float:
    """Length (m) for 1 N of the arrow of a contact of a running plant. The largest force along the
    reference has the longest arrow; that of the weight has it where the reference touches nothing.
    """
    start = Poses.of(visual, parameters, reference.states[:1, : dsys.system.space.nq])
    longest = LONGEST * extent(visual, start)
    if dsys.method.contacts is None:
        return longest
    every = max(1, len(reference) // EXAMPLES)
    steps = reference.states[:-1:every], reference.inputs[::every]
    try:
        largest = _largest(ContactReadout(dsys).table(*steps).force)
    except StepFailed:  # a reference that the model does not follow
        largest = 0.0
    weight = GRAVITY * float(np.max(dsys.nominal_masses, initial=1e-9))
    return longest / (largest if largest > FELT * weight else weight)


def _largest(forces: np.ndarray) -> float:
    """The largest size (N) of the known forces (N, n, 3), without rare peaks."""
    size = np.linalg.norm(forces, axis=2)
    known = size[np.isfinite(size)]
    return float(np.percentile(known, 98)) if len(known) else 0.0


def contact_curves(arrays: Mapping[str, np.ndarray], rows: np.ndarray) -> list[Curves]:
    """Forces and margins of friction of the contacts in a run's arrays."""
    if "contact_names" not in arrays or not len(arrays["contact_normal"]):
        return []
    steps = np.minimum(rows, len(arrays["contact_normal"]) - 1)
    names = tuple(str(name) for name in arrays["contact_names"])
    normal, margin = (arrays[f"contact_{what}"][steps] for what in ("normal", "margin"))
    friction = np.linalg.norm(arrays["contact_friction"][steps], axis=2)
    curves = {
        "normal force": ("N", normal, normal.any(axis=0)),
        "friction": ("N", friction, friction.any(axis=0)),
        "margin of friction": ("", margin, np.isfinite(margin).all(axis=0)),
    }
    return [
        largest_first(Curves(title, unit, tuple(np.array(names)[some]), values[:, some]))
        for title, (unit, values, some) in curves.items()
        if some.any()
    ]
