"""The figures of a run and their files, drawn with matplotlib's Agg backend."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import current_process, get_context
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from nh_control.control.rollout import processors
from nh_control.figures import (
    attitude,
    common,
    constraints,
    contacts,
    planar,
    spatial,
    stick_figures,
)
from nh_control.figures.scene import tracks
from nh_control.figures.style import SCREEN, save
from nh_control.runs.experiment import Result
from nh_control.scenarios import Scenario

FLAT_M = 1e-9
"""Maximum distance (m) from a vertical plane at which a track is still drawn in this plane."""
Draw = Callable[..., Figure]
SPLIT: dict[Draw, Callable[[Result], list[list[int]]]] = {
    planar.states: planar.state_pages,
    planar.joints: planar.joint_pages,
    common.inputs: common.input_pages,
    common.outputs: common.output_pages,
}
"""Figures that may have several pages, with the functions that return the contents of each page.
`draw(result, page=i)` draws page i.
"""


def path(result: Result) -> Figure:
    """Draw the path of the run, the path of the reference, and the system at equal time intervals.

    The view depends on the motion. Planar bodies are drawn from above, motions in a vertical plane
    from the side, joints as stick figures, bodies that only rotate as separate pictures, and other
    bodies in three dimensions.
    """
    experiment = result.experiment
    run = tracks(experiment, result.loop.trajectory.states, result.bodies)
    target = tracks(experiment, result.targets, result.target_bodies)
    if experiment.scenario.body is not None:
        return planar.path(result, run, target, (0, 1))
    if experiment.scenario.to_bodies is not None and attitude.only_rotates(run, target):
        return attitude.path(result)
    # A single track with constant y lies in a vertical plane.
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
    """Return the figures of a scenario's runs by name. The figure of the declared `outputs` is
    included only on request, and the figure of the path only if the scenario has something to
    draw.
    """
    drawn: dict[str, Draw] = {}
    if scenario.body or scenario.to_bodies or scenario.visual_model().shapes:
        drawn["path"] = path
    # The states of spatial bodies include quaternions, so physical components are drawn instead.
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
    """Return all figures of a run by name, with a separate name for each page: `states`,
    `states_2`, ...
    """
    drawn: dict[str, Draw] = {}
    e = result.experiment
    every = figures(e.scenario, bool(e.plant.system.outputs))
    if result.contacts is not None:
        every["contacts"] = contacts.contacts
    if result.declared_constraints:
        every["constraints"] = constraints.constraints
    # A free motion has no inputs, and it has no error unless it was perturbed.
    if not e.model.nu:
        del every["inputs"]
        if not result.loop.errors.any():
            del every["error"]
    for name, draw in every.items():
        drawn[name] = draw
        # The first page has the plain name, and the other pages have numbers.
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
    """Draw every figure in every format (png, svg, pdf) and save it in `folder`. Forked processes
    draw figures at the same time, one on each core, unless this is a worker of a pool.

    The style is "screen", "paper" (one column wide) or "paper-wide" (two columns wide). Returns
    {name: file} for the first format. `progress(name)` is called for each figure.
    """

    def save_page(name: str) -> None:
        for kind in formats:
            save(partial(pages[name], result), folder / f"{name}.{kind}", style)

    pages = _pages(result)
    # a daemonic process, such as a worker of a pool, must not have children
    count = 1 if current_process().daemon else min(processors(), len(pages))
    shares = [[*pages][i::count] for i in range(count)]
    with _drawn_by_processes(save_page, shares[1:]):
        for name in pages:
            progress(name)
            if name in shares[0]:
                save_page(name)
    return {name: str(folder / f"{name}.{formats[0]}") for name in pages}


@contextmanager
def _drawn_by_processes(
    save_page: Callable[[str], None], shares: Sequence[Sequence[str]]
) -> Iterator[None]:
    """A context in which a forked process saves the pages of each share. On leaving the context,
    wait for the processes. Pages of processes that failed are drawn again, so their error is
    raised here, with its traceback.
    """
    fork = get_context("fork").Process
    processes = [fork(target=_save_quietly, args=(save_page, share)) for share in shares]
    for process in processes:
        process.start()
    try:
        yield
        for process, share in zip(processes, shares):
            process.join()
            if process.exitcode:
                for name in share:
                    save_page(name)
    finally:
        for process in processes:
            process.kill()
            process.join()


def _save_quietly(save_page: Callable[[str], None], share: Sequence[str]) -> None:
    """Save pages in a forked process. After an error, only its exit code is 1."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C also reaches the parent, which reports
    try:
        for name in share:
            save_page(name)
    except Exception:
        sys.exit(1)
