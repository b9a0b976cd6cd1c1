"""Contacts in pages and films: their curves, and arrows that show their forces."""

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
"""Length of the arrow for the largest force, as a fraction of the plant's extent, and
gravitational acceleration (m/s^2).
"""
FELT, EXAMPLES = 1e-3, 60
"""Fraction of the weight below which the forces along a reference are ignored, and approximate
number of steps for which these forces are computed.
"""


@dataclass(frozen=True)
class ContactArrows:
    """Arrows for contact forces (N, n, 3) at positions (N, n, 3). Each arrow points along the z
    axis of an additional frame.
    """

    names: tuple[str, ...]
    positions: np.ndarray
    forces: np.ndarray

    @staticmethod
    def of(arrays: Mapping[str, np.ndarray], rows: np.ndarray) -> ContactArrows:
        """Return the arrows at the nodes in `rows` for the contacts in a run's arrays that have
        positions.
        """
        if "contact_names" not in arrays or not len(arrays["contact_force"]):
            return ContactArrows((), np.zeros((len(rows), 0, 3)), np.zeros((len(rows), 0, 3)))
        # Forces belong to steps, so the last node shows the forces in the last step.
        steps = np.minimum(rows, len(arrays["contact_force"]) - 1)
        positions, forces = (arrays[f"contact_{what}"][steps] for what in ("position", "force"))
        placed = np.isfinite(forces).all(axis=(0, 2))
        names = arrow_frames(arrays["contact_names"][placed])
        return ContactArrows(names, positions[:, placed], forces[:, placed])

    def shown_by(self, visual: VisualModel) -> VisualModel:
        """The visual model with these arrows added after its existing arrows."""
        return replace(
            visual, arrows=(*visual.arrows, *(Arrow(name, name, 1.0) for name in self.names))
        )

    def with_frames(self, poses: Poses) -> Poses:
        """The poses with the frames of the arrows added after the existing frames."""
        if not self.names:
            return poses
        size = np.linalg.norm(self.forces, axis=2, keepdims=True)
        z = np.where(size > 0, self.forces / np.where(size > 0, size, 1), [0.0, 0.0, 1.0])
        # The shortest rotation from e_z to z is (1 + z_z, -z_y, z_x, 0), normalized. For -e_z it
        # is a half turn about x.
        half = np.concatenate([1 + z[..., 2:], -z[..., 1:2], z[..., :1], 0 * size], axis=2)
        half[z[..., 2] < -1 + 1e-9] = [0.0, 1.0, 0.0, 0.0]
        wxyz = half / np.linalg.norm(half, axis=2, keepdims=True)
        return Poses(
            (*poses.names, *self.names),
            np.concatenate([poses.position, self.positions], axis=1),
            np.concatenate([poses.wxyz, wxyz], axis=1),
        )

    def lengths(self, visual: VisualModel, poses: Poses) -> np.ndarray:
        """The lengths (N, n) in m of the arrows for a plant in the given poses."""
        size = np.linalg.norm(self.forces, axis=2)
        largest = _largest(self.forces)
        longest = LONGEST * extent(visual, poses)
        return np.minimum(size * longest / largest, 4 * longest) if largest else size


def arrow_frames(contacts: Iterable[str]) -> tuple[str, ...]:
    """The names of the frames to which contact arrows are attached."""
    return tuple(f"contact {name}" for name in contacts)


def arrow_scale(
    visual: VisualModel, parameters: Any, dsys: DiscreteSystem, reference: Trajectory
) -> float:
    """The length (m) of a running plant's contact arrows for a force of 1 N. The longest arrow
    represents the largest force along the reference or, if the reference has no contact forces,
    the weight.
    """
    start = Poses.of(visual, parameters, reference.states[:1, : dsys.system.space.nq])
    longest = LONGEST * extent(visual, start)
    if dsys.method.contacts is None:
        return longest
    every = max(1, len(reference) // EXAMPLES)
    states, inputs = reference.states[:-1:every], reference.inputs[::every]
    try:
        largest = _largest(ContactReadout(dsys).table(states, inputs).force)
    except StepFailed:  # the reference is not a motion of the model
        largest = 0.0
    weight = GRAVITY * float(np.max(dsys.nominal_masses, initial=1e-9))
    return longest / (largest if largest > FELT * weight else weight)


def _largest(forces: np.ndarray) -> float:
    """The largest magnitude (N) of the known forces (N, n, 3). Rare peaks are ignored."""
    size = np.linalg.norm(forces, axis=2)
    known = size[np.isfinite(size)]
    return float(np.percentile(known, 98)) if len(known) else 0.0


def contact_curves(arrays: Mapping[str, np.ndarray], rows: np.ndarray) -> list[Curves]:
    """The forces and friction margins of the contacts in a run's arrays."""
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
