"""Wrenches on bodies as records for the linear-time tree kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nh_control.multibody import kernel_layout
from nh_control.multibody.elements import WRENCH, ConstantWrench, Wrench
from nh_control.multibody.frames import ORIGIN, WORLD, Frame
from nh_control.multibody.kernel_layout import NONE
from nh_control.multibody.kinematics import Point
from nh_control.multibody.parts import MultibodyParts
from nh_control.multibody.point_forces import damped_frames


@dataclass(frozen=True)
class ExternalWrench:
    """One component of a wrench on the frame with the number `body`, in the kernel's axes. It is a
    torque, or a force at the point `at`, along `direction`. `turning` tells whether the direction
    is fixed in the body rather than in the world. `place` is the index of the input, or -1 for the
    constant `value`.
    """

    body: int
    torque: bool
    turning: bool
    place: int
    at: np.ndarray
    direction: np.ndarray
    value: float = 0.0

    def packed(self) -> np.ndarray:
        """The component packed as a record of type `struct external_wrench`."""
        return kernel_layout.WRENCH.record(
            body=self.body,
            torque=self.torque,
            body_fixed=self.turning,
            input=self.place,
            value=self.value,
            at=self.at,
            e=self.direction,
        )


def unknown_wrench(model: MultibodyParts) -> str:
    """A description of a wrench in the model that the kernel does not support, or "" if it
    supports all of them.
    """
    for entry in _wrenches(model):
        if not carriers_of(model, _frame_of(entry)):
            return f"a {type(entry).__name__} on the world"
        if entry.axes == "spatial":
            return f"a spatial {type(entry).__name__}"
    return ""


def carriers_of(model: MultibodyParts, name: str) -> list[Frame]:
    """The moving frames that carry a frame, from its anchor to the root."""
    tree, frames = model.tree, []
    anchor = tree.anchors[name][0]
    while anchor != WORLD:
        frames.append(tree.frames[anchor])
        anchor = tree.anchors[frames[-1].parent][0]
    return frames


def carriers(model: MultibodyParts) -> set[int]:
    """Indices of the velocities that move a body on which a wrench or a damper acts."""
    pushed = (_frame_of(entry) for entry in _wrenches(model))
    on = (*pushed, *damped_frames(model))
    frames = (frame for name in on for frame in carriers_of(model, name))
    # a follower moves with the velocity of its leader
    names = (frame.mimic.coordinate if frame.mimic else frame.coordinate for frame in frames)
    places = (model.tree.slices(name)[1] for name in names)
    return {v for place in places for v in range(place.start, place.stop)}


def external_wrenches(
    model: MultibodyParts, index: dict[str, int], axes: dict[str, np.ndarray]
) -> Iterator[ExternalWrench]:
    """The components of a model's wrenches, first the inputs in order, then the constant wrenches.
    `index` contains the numbers of the moving frames. `axes` contains the kernel's axes (3, 3) in
    each frame's axes.
    """
    place = 0
    for entry in model.inputs:
        if isinstance(entry, Wrench):
            for k, component in enumerate(entry.components):
                yield _component(model, index, axes, entry, WRENCH.index(component), place + k)
        # inputs that are not wrenches also occupy entries of u
        place += len(entry.names(model.tree))
    for element in model.elements:
        if isinstance(element, ConstantWrench):
            for number, value in enumerate((*element.torque, *element.force)):
                if value:
                    yield _component(model, index, axes, element, number, NONE, value)


def _component(
    model: MultibodyParts,
    index: dict[str, int],
    axes: dict[str, np.ndarray],
    entry: Wrench | ConstantWrench,
    number: int,
    place: int,
    value: float = 0.0,
) -> ExternalWrench:
    """The component with the given number in WRENCH."""
    frame = _frame_of(entry)
    point = entry.point.position if isinstance(entry.point, Point) else ORIGIN
    anchor, origin, rotation = model.tree.anchors[frame]
    position = axes[anchor].T @ (origin + rotation @ np.array(point))
    turning, direction = entry.axes == "body", np.eye(3)[number % 3]
    # r_anchor = o + R r_frame, or e^T r_anchor in the kernel's axes e for the anchor
    direction = axes[anchor].T @ rotation @ direction if turning else axes[WORLD].T @ direction
    return ExternalWrench(index[anchor], number < 3, turning, place, position, direction, value)


def _wrenches(model: MultibodyParts) -> list[Wrench | ConstantWrench]:
    parts = (*model.inputs, *model.elements)
    return [part for part in parts if isinstance(part, (Wrench, ConstantWrench))]


def _frame_of(entry: Wrench | ConstantWrench) -> str:
    return entry.point.frame if isinstance(entry.point, Point) else entry.point
