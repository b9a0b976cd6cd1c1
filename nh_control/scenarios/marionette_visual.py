"""The visual model of the marionette."""

from __future__ import annotations

from functools import cache

from nh_control.multibody import Distance, Point
from nh_control.scenarios.urdf_visual import frame_tree
from nh_control.scenarios.visual_model import (
    BLUE,
    ODOM,
    ORANGE,
    RUBBER,
    WOOD,
    Cable,
    Shape,
    VisualModel,
)
from nh_control.systems.marionette import MarionetteParameters, marionette_model, model_data

STRING_M, CONTROL_M = 0.008, 0.05
"""Diameters (m), as drawn, of a string and of the hand that holds the string's upper end."""

_model = cache(marionette_model)


def visual_model(parameters: MarionetteParameters) -> VisualModel:
    """The wooden limbs with their published lengths, the trunk, the head, and the strings that
    connect the controlling hands with the hooks.
    """
    model = _model(parameters)
    # The strings are the model's distance constraints.
    strings = [
        (_frame(string.a), _frame(string.b))
        for string in model.constraints
        if isinstance(string, Distance)
    ]
    parts = [
        Shape(
            "box",
            (0.16, 0.12, _size("upper_torso_length")),
            BLUE,
            "pelvis",
            (0.0, 0.0, _size("upper_torso_length") / 2),
        ),
        Shape("box", (_size("lhip_width") + _size("rhip_width"), 0.1, 0.08), BLUE, "pelvis"),
        Shape(
            "box",
            (_size("lshoulder_width") + _size("rshoulder_width"), 0.06, 0.06),
            BLUE,
            "spine_top",
        ),
        Shape("sphere", (0.16, 0.16, 0.2), WOOD, "head_center"),
        Shape("box", (0.03, 0.05, 0.03), ORANGE, "head_center", (0.0, 0.1, 0.0)),
        *(part for side in ("left", "right") for part in _limbs(side)),
        *(Shape("sphere", (CONTROL_M,) * 3, ORANGE, hand) for _, hand in strings),
        *(Shape("sphere", (CONTROL_M / 2,) * 3, RUBBER, hook) for hook, _ in strings),
    ]
    cables = tuple(Cable(hook, hand, diameter=STRING_M) for hook, hand in strings)
    return VisualModel(ODOM, frame_tree(model), shapes=tuple(parts), trail="pelvis", cables=cables)


def _frame(point: Point | str) -> str:
    return point if isinstance(point, str) else point.frame


def _limbs(name: str) -> list[Shape]:
    """The thigh, shin, foot, upper arm, forearm and hand on one side, and their hooks."""
    side = name[0]
    hanging = (
        ("femur", 0.07),
        ("tibia", 0.06),
        ("humerus", 0.05),
        ("radius", 0.045),
        ("hand", 0.04),
    )
    lengths = [_size(f"{side}{part}_length") for part, _ in hanging]
    limbs = [
        Shape("cylinder", (d, d, length), WOOD, f"{side}{part}", (0.0, 0.0, -length / 2))
        for (part, d), length in zip(hanging, lengths)
    ]
    # The hooks are offset from the limbs, as in the published model.
    ties = (model_data()["strings"][f"{name}_{limb}_string"] for limb in ("leg", "arm"))
    hooks = [_along_y(tie["attached_to_frame"], tie["offset_xyz"][1], STRING_M) for tie in ties]
    return [*limbs, *hooks, _along_y(f"{side}foot", _size(f"{side}foot_length"), 0.05)]


def _along_y(frame: str, length: float, width: float) -> Shape:
    return Shape("box", (width, length, width), RUBBER, frame, (0.0, length / 2, 0.0))


def _size(name: str) -> float:
    return model_data()["dimensions"][name]
