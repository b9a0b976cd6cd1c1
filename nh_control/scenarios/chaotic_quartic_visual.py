"""The visual model of the chaotic quartic system: a planar bead for each pair, and a slider."""

from __future__ import annotations

from nh_control.scenarios.declared_frames import FrameTree, fixed, floating, prismatic
from nh_control.scenarios.visual_model import BLUE, ORANGE, STEEL, Pose, Shape, VisualModel
from nh_control.systems import ChaoticQuarticParameters

RAIL = -3.0
"""The y coordinate (m) of the slider's rail."""


def frame_tree(parameters: ChaoticQuarticParameters) -> FrameTree:
    """Bead i is at (w_i, z_i), and the slider is at x on its rail."""
    numbers = range(1, parameters.n + 1)
    beads = (
        floating(f"bead_{i}", "odom", (f"w_{i}", f"z_{i}"), lambda c: Pose.planar(0.0, c[0], c[1]))
        for i in numbers
    )
    return FrameTree(
        ("x", *(f"{name}_{i}" for name in "wz" for i in numbers)),
        (
            fixed("rail", "odom", (0.0, RAIL, 0.0)),
            prismatic("slider", "odom", "x", position=(0.0, RAIL, 0.0)),
            *beads,
        ),
    )


def visual_model(parameters: ChaoticQuarticParameters) -> VisualModel:
    """The beads and the slider. The first bead leaves a trail."""
    beads = (
        Shape("sphere", (0.2, 0.2, 0.2), ORANGE if i == 0 else BLUE, f"bead_{i + 1}")
        for i in range(parameters.n)
    )
    shapes = (
        Shape("box", (5.0, 0.05, 0.05), STEEL, "rail"),
        Shape("box", (0.3, 0.2, 0.2), STEEL, "slider"),
    )
    return VisualModel("odom", frame_tree(parameters), (*shapes, *beads), trail="bead_1")
