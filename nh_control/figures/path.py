"""The path of a run, seen as suits it: planar bodies from above, what moves in a vertical plane
from its side, joints as stick figures, bodies in space, those that only turn side by side.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from nh_control.figures import planar, spatial, sticks, turning
from nh_control.figures.scene import tracks
from nh_control.runs.experiment import Result

FLAT_M = 1e-9


def path(result: Result) -> Figure:
    """Paths over the reference's and the system at equal intervals of time."""
    experiment = result.experiment
    run, target = (
        tracks(experiment, states) for states in (result.loop.trajectory.states, result.targets)
    )
    if experiment.scenario.body is not None:
        return planar.path(result, run, target, (0, 1))
    if experiment.scenario.to_bodies is not None and turning.turns(run, target):
        return turning.path(result)
    flat = len(run) == 1 and all(
        np.ptp(track[:, 1]) < FLAT_M for track in (*run.values(), *target.values())
    )
    if flat:
        return planar.path(result, run, target, (0, 2))
    return (
        sticks.path(result)
        if experiment.scenario.to_bodies is None
        else spatial.path(result, run, target)
    )
