"""The visual model of a bicycle with a rider."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nh_control.multibody import WORLD
from nh_control.scenarios.declared_frames import Frame
from nh_control.scenarios.urdf_visual import frame_tree
from nh_control.scenarios.visual_model import (
    BLUE,
    ODOM,
    ORANGE,
    STEEL,
    WOOD,
    Color,
    Pose,
    Shape,
    VisualModel,
    wheel,
)
from nh_control.systems.bicycle import SADDLE, BicycleParameters, bicycle_model

TUBE_M, TIRE_M, LIMB_M, TORSO_M, HEAD_M, BAR_M = 0.035, 0.04, 0.12, 0.24, 0.22, 0.5
"""Diameters of tubes, tires, legs, torso and head, and width of the handlebar (m)."""
BOTTOM, SHOULDERS, KNEE = (0.42, 0.28), (0.38, 1.45), (0.58, 0.75)
"""Bottom bracket, shoulders and knees. Like SADDLE, they are (x, z) in m."""
CROWN_M, STEM_M = 0.68, 0.98
"""Heights (m) of the fork crown and of the handlebar."""


def visual_model(parameters: BicycleParameters) -> VisualModel:
    """A tubular frame with a rider who has no arms, a fork that turns with the handlebar, and
    wheels with spokes. The tubes depend only on the radii of the wheels, the wheelbase, the trail
    and the tilt.
    """
    model = bicycle_model(parameters)
    hub, front_hub = (
        np.array([0.0, parameters.rear_radius]),
        np.array([parameters.wheelbase, parameters.front_radius]),
    )

    def on_axis(z: float) -> np.ndarray:
        """The point (x, z) on the steering axis at the height z."""
        return np.array([parameters.wheelbase + parameters.trail - z * np.tan(parameters.tilt), z])

    crown, stem = on_axis(CROWN_M), on_axis(STEM_M)
    saddle, bottom, shoulders, knee = map(np.array, (SADDLE, BOTTOM, SHOULDERS, KNEE))
    tubes = [
        ("frame", hub, hub, bottom, TUBE_M, BLUE),
        ("frame", hub, hub, saddle - [0.0, 0.1], TUBE_M, BLUE),
        ("frame", hub, bottom, saddle, TUBE_M, BLUE),
        ("frame", hub, bottom, crown, TUBE_M, BLUE),
        ("frame", hub, saddle - [0.0, 0.1], on_axis(0.85), TUBE_M, BLUE),
        ("frame", hub, saddle, shoulders, TORSO_M, WOOD),
        ("frame", hub, saddle, knee, LIMB_M, WOOD),
        ("frame", hub, knee, bottom, LIMB_M, WOOD),
        ("fork", front_hub, front_hub, crown, TUBE_M, STEEL),
        ("fork", front_hub, crown, stem, TUBE_M, STEEL),
    ]
    frames, shapes = [], list[Shape]()
    for i, (frame, origin, start, end, diameter, color) in enumerate(tubes):
        middle, tube = _tube(f"tube{i}", frame, start - origin, end - origin, diameter, color)
        frames.append(middle)
        shapes.append(tube)
    head = shoulders + [0.05, HEAD_M / 2 + 0.12]
    bar = stem - front_hub
    shapes += [
        Shape("sphere", (HEAD_M,) * 3, WOOD, "frame", _in_plane(head - hub)),
        Shape("box", (0.26, 0.14, 0.05), ORANGE, "saddle"),
        Shape("box", (TUBE_M, BAR_M, TUBE_M), ORANGE, "fork", _in_plane(bar)),
        *wheel("rear_wheel", parameters.rear_radius, TIRE_M),
        *wheel("front_wheel", parameters.front_radius, TIRE_M),
    ]
    # The root of the model's tree is WORLD, which scenarios call "odom".
    tree = frame_tree(model, frames)
    rooted = [replace(f, parent=ODOM) if f.parent == WORLD else f for f in tree.frames]
    return VisualModel(ODOM, replace(tree, frames=rooted), tuple(shapes), trail="contact")


def _in_plane(point: np.ndarray) -> tuple[float, float, float]:
    return float(point[0]), 0.0, float(point[1])


def _tube(
    name: str, frame: str, start: np.ndarray, end: np.ndarray, diameter: float, color: Color
) -> tuple[Frame, Shape]:
    """A cylinder between two points (x, z) in a frame, and the cylinder's own frame, whose z axis
    is along the cylinder.
    """
    along = end - start
    length = float(np.hypot(along[0], along[1]))
    s, c = along / length
    # A rotation about y turns the z axis into the tube's direction (s, 0, c).
    turned = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    middle = Frame(name, frame, origin=Pose.at(_in_plane((start + end) / 2), turned))
    return middle, Shape("cylinder", (diameter, diameter, length), color, name)
