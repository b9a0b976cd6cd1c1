"""Stick figures that show motions, for scenarios that only have joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from nh_control.figures import style
from nh_control.runs.experiment import Result
from nh_control.scenarios.visual_model import Pose, VisualModel

SHOWN = 6
ELEVATION, AZIMUTH = np.radians([15.0, 40.0])
"""Viewing direction (rad) of an orthographic projection."""
GAP_M, POINTS_PER_IN, CABLE = 0.15, 72.0, 0.6
"""Gap between stick figures (m), points per inch, and width of a cable (pt)."""

Snapshot: TypeAlias = tuple[str, Mapping[str, Pose], Mapping[str, Pose] | None]
"""A title, the poses of the run, and the poses of the reference (or None)."""


def path(result: Result) -> Figure:
    """Draw the system at equal time intervals, side by side, with the reference in dashed
    lines.
    """
    scenario, trajectory = result.experiment.scenario, result.loop.trajectory
    configuration = result.experiment.model.configuration
    visual = scenario.visual_model(reference=result.experiment.tracker.reference.name)
    nodes = np.unique(np.linspace(0, len(trajectory), SHOWN).round().astype(int))
    figure = draw(
        visual,
        [
            (
                f"t = {trajectory.times[k]:.1f} s",
                visual.poses(scenario.parameters, configuration(trajectory.states[k])),
                visual.poses(scenario.parameters, configuration(result.targets[k])),
            )
            for k in nodes
        ],
    )
    figure.suptitle(
        f"{style.title(result)}: {style.run_label(result)}, dashed: reference",
        x=0.02,
        ha="left",
        fontsize=10,
    )
    return figure


def draw(visual: VisualModel, snapshots: Sequence[Snapshot]) -> Figure:
    """Draw stick figures side by side. Each shape becomes a stick along its longest axis, with its
    color and width, and each cable is also a stick.
    """
    flat = [
        [None if poses is None else _flat(visual, poses) for poses in pair]
        for _, *pair in snapshots
    ]
    everything = np.vstack(
        [ends.reshape(-1, 2) for pair in flat for ends in pair if ends is not None]
    )
    low, size = everything.min(axis=0), np.ptp(everything, axis=0) + GAP_M
    figure = Figure(
        figsize=(style.WIDTH, style.WIDTH * size[1] / (len(flat) * size[0]) + 0.6),
        layout="constrained",
    )
    axes = figure.add_subplot(aspect="equal", xlim=(0, len(flat) * size[0]), ylim=(0, size[1]))
    axes.set_axis_off()
    # Line widths are in points, so the scale of the figure converts them from meters.
    points_per_m = POINTS_PER_IN * style.WIDTH / (len(flat) * size[0])
    widths = [
        max(CABLE, points_per_m * sorted(shape.extents)[1]) for shape in visual.line_shapes
    ] + [CABLE] * len(visual.cables)
    colors = [shape.color for shape in visual.line_shapes] + [style.TARGET] * len(visual.cables)
    for i, ((title, *_), (ends, ghost)) in enumerate(zip(snapshots, flat)):
        corner = np.array([i * size[0] + GAP_M / 2, GAP_M / 2]) - low
        axes.add_collection(
            LineCollection(ends + corner, colors=colors, linewidths=widths, capstyle="round")
        )
        if ghost is not None:
            axes.add_collection(
                LineCollection(
                    ghost + corner, colors=style.TARGET, linewidths=0.7, linestyles=[(0, (2, 2))]
                )
            )
        axes.annotate(title, ((i + 0.5) * size[0], size[1]), ha="center", va="top", fontsize=8)
    return figure


def _flat(visual: VisualModel, poses: Mapping[str, Pose]) -> np.ndarray:
    """Return the ends (n, 2, 2) of the sticks in the view plane, as coordinates (m) to the right
    and up.
    """
    sticks = []
    for shape in visual.line_shapes:
        pose, extents = poses[shape.frame], np.array(shape.extents)
        *_, width, length = np.sort(extents)
        # The round ends of a line make it longer by its width.
        half = np.where(np.arange(3) == np.argmax(extents), (length - width) / 2, 0.0)
        sticks.append(
            [
                pose.position + pose.rotation @ (np.array(shape.offset) + sign * half)
                for sign in (-1, 1)
            ]
        )
    sticks += [[poses[cable.start].position, poses[cable.end].position] for cable in visual.cables]
    # Orthographic projection onto the directions that point right and up in the view.
    (ce, ca), (se, sa) = np.cos([ELEVATION, AZIMUTH]), np.sin([ELEVATION, AZIMUTH])
    return np.array(sticks) @ np.array([[-sa, ca, 0.0], [-se * ca, -se * sa, ce]]).T
