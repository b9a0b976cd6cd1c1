"""Visual model of a Chaplygin sleigh."""

from __future__ import annotations

from nh_control.multibody import Body
from nh_control.scenarios.declared_frames import FrameTree, fixed, planar
from nh_control.scenarios.visual_model import ORANGE, STEEL, WOOD, Shape, VisualModel
from nh_control.systems import ChaplyginSleighParameters


def frame_tree(parameters: ChaplyginSleighParameters) -> FrameTree:
    """The body, below its center of mass, and the skate."""
    p = parameters
    return FrameTree(
        ("theta", "x", "y"),
        (planar("body", "odom"), fixed("skate", "body", (-p.a, 0.0, 0.0))),
        (Body("body", p.m, inertia=(p.I / 2, p.I / 2, p.I)),),
    )


def visual_model(parameters: ChaplyginSleighParameters) -> VisualModel:
    """A board on the skate's blade behind and two sliding feet in front, the center of mass
    marked; all scale with a.
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
