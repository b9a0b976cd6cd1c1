"""Visual model of the chaotic quartic system: a bead in the plane for every pair, and a slider."""

from __future__ import annotations

import numpy as np

from nh_control.scenarios.visual_model import BLUE, ORANGE, STEEL, Pose, Shape, VisualModel
from nh_control.systems import ChaoticQuarticParameters

RAIL = -3.0
"""Where the slider's rail lies in y."""


def poses(parameters: ChaoticQuarticParameters, q: np.ndarray) -> dict[str, Pose]:
    """Bead i at (w_i, z_i), and the slider at x on its rail, at configuration (x, w, z)."""
    n, still = parameters.n, np.eye(3)
    beads = zip(q[1 : n + 1], q[n + 1 :])
    return {
        "rail": Pose(np.array([0.0, RAIL, 0.0]), still),
        "slider": Pose(np.array([q[0], RAIL, 0.0]), still),
        **{f"bead_{i + 1}": Pose(np.array([w, z, 0.0]), still) for i, (w, z) in enumerate(beads)},
    }


def visual_model(parameters: ChaoticQuarticParameters) -> VisualModel:
    """Beads and a slider; the first bead leaves a trail."""
    beads = (
        Shape("sphere", (0.2, 0.2, 0.2), ORANGE if i == 0 else BLUE, f"bead_{i + 1}")
        for i in range(parameters.n)
    )
    shapes = (
        Shape("box", (5.0, 0.05, 0.05), STEEL, "rail"),
        Shape("box", (0.3, 0.2, 0.2), STEEL, "slider"),
    )
    return VisualModel("odom", poses, (*shapes, *beads), trail="bead_1")
