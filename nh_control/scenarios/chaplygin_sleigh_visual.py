"""The visual model of a Chaplygin sleigh."""

from __future__ import annotations

from nh_control.multibody import Body
from nh_control.scenarios.declared_frames import FrameTree, fixed, planar
from nh_control.scenarios.visual_model import ORANGE, STEEL, WOOD, Shape, VisualModel
from nh_control.systems import ChaplyginSleighParameters


def frame_tree(parameters: ChaplyginSleighParameters) -> FrameTree:
    """The body and the skate. The origin of the body is on the ground below its center of mass."""
    return FrameTree(
        ("theta", "x", "y"),
        (planar("body", "odom"), fixed("skate", "body", (-parameters.a, 0.0, 0.0))),
        (Body("body", parameters.m, inertia=(parameters.I / 2, parameters.I / 2, parameters.I)),),
    )


def visual_model(parameters: ChaplyginSleighParameters) -> VisualModel:
    """A board that rests on the blade of the skate at the rear and on two sliding feet at the
    front. A mark shows the center of mass. All sizes are proportional to a.
    """
    a = parameters.a
    shapes = [
        Shape("box", (1.6 * a, 0.2 * a, 0.06 * a), WOOD, "body", (-0.3 * a, 0.0, 0.2 * a)),
        Shape("box", (0.2 * a, 1.0 * a, 0.06 * a), WOOD, "body", (0.4 * a, 0.0, 0.2 * a)),
        Shape("cylinder", (0.3 * a, 0.3 * a, 0.1 * a), ORANGE, "body", (0.0, 0.0, 0.28 * a)),
        Shape("box", (0.5 * a, 0.03 * a, 0.18 * a), STEEL, "skate", (0.0, 0.0, 0.09 * a)),
    ]
    for side in (-0.45 * a, 0.45 * a):
        shapes.append(Shape("sphere", (0.17 * a,) * 3, STEEL, "body", (0.4 * a, side, 0.085 * a)))
    return VisualModel("odom", frame_tree(parameters), tuple(shapes), trail="skate")
