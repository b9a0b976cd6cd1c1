"""The figures of a run and their files; matplotlib draws with Agg."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from nh_control.figures import attitude, common, contacts, kept, planar, spatial, stick_figures
from nh_control.figures.scene import tracks
from nh_control.figures.style import SCREEN, save
from nh_control.runs.experiment import Result
from nh_control.runs.kept_constraints import declared_constraints
from nh_control.scenarios import Scenario

FLAT_M = 1e-9
"""Tracks whose points lie this close to a vertical plane are drawn in that plane."""
Draw = Callable[..., Figure]
SPLIT: dict[Draw, Callable[[Result], list[list[int]]]] = {
    planar.states: planar.state_pages,
    planar.joints: planar.joint_pages,
    common.inputs: common.input_pages,
    common.outputs: common.output_pages,
}
"""The contents of every page, for figures that may need several; `draw(result, page=i)` draws page
i.
"""


def path(result: Result) -> Figure:
    """Draw the path over the reference's path, with the system at equal intervals of time.

    The view follows from the motion: planar bodies from above, motion in a vertical plane from its
    side, joints as stick figures, bodies that only rotate side by side, other bodies in space.
    """
    experiment = result.experiment
    run, target = (
        tracks(experiment, states) for states in (result.loop.trajectory.states, result.targets)
    )
    if experiment.scenario.body is not None:
        return planar.path(result, run, target, (0, 1))
    if experiment.scenario.to_bodies is not None and attitude.only_rotates(run, target):
        return attitude.path(result)
    flat = len(run) == 1 and all(
        np.ptp(track[:, 1]) < FLAT_M for track in (*run.values(), *target.values())
    )
    if flat:
        return planar.path(result, run, target, (0, 2))
    return (
        stick_figures.path(result)
        if experiment.scenario.to_bodies is None
        else spatial.path(result, run, target)
    )


def figures(scenario: Scenario, outputs: bool = False) -> dict[str, Draw]:
    """Return the figures of a scenario's runs by name, with that of declared `outputs` where its
    system has some; there is no path where nothing can be drawn.
    """
    drawn: dict[str, Draw] = {}
    if scenario.body or scenario.to_bodies or scenario.visual_model().shapes:
        drawn["path"] = path
    drawn["states"] = planar.states if scenario.to_bodies is None else spatial.states
    if scenario.to_bodies and scenario.joints:
        drawn["joints"] = planar.joints
    drawn |= {"inputs": common.inputs, "energy": common.energy, "error": common.error}
    if outputs:
        drawn["outputs"] = common.outputs
    if scenario.monitor is not None:
        drawn[scenario.monitor.title.replace(" ", "_")] = partial(
            common.monitored, monitor=scenario.monitor
        )
    return drawn


def _pages(result: Result) -> dict[str, Draw]:
    """Return all figures of a run with their further pages: `states`, `states_2`, ..."""
    drawn: dict[str, Draw] = {}
    e = result.experiment
    every = figures(e.scenario, bool(e.plant.system.outputs))
    if result.contacts is not None:
        every["contacts"] = contacts.contacts
    if declared_constraints(result):
        every["constraints"] = kept.constraints
    if not e.model.nu:
        del every["inputs"]
        if not result.loop.errors.any():
            del every["error"]
    for name, draw in every.items():
        drawn[name] = draw
        further = range(1, len(SPLIT[draw](result)) if draw in SPLIT else 1)
        drawn |= {f"{name}_{i + 1}": partial(draw, page=i) for i in further}
    return drawn


def save_all(
    result: Result,
    folder: Path,
    progress: Callable[[str], None] = lambda name: None,
    formats: Sequence[str] = ("png",),
    style: str = SCREEN,
) -> dict[str, str]:
    """Draw every figure into `folder` in every format (png, svg, pdf) for a "screen", or for a
    "paper" with the width of a column or "paper-wide" of two; returns {name: file}, of the first
    format. `progress(name)` is called before each figure.
    """
    files: dict[str, str] = {}
    for name, draw in _pages(result).items():
        progress(name)
        for kind in formats:
            file = folder / f"{name}.{kind}"
            save(partial(draw, result), file, style)
            files.setdefault(name, str(file))
    return files
