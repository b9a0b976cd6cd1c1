"""Pages and films of trajectories and runs, for the methods of the corresponding classes."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from tempfile import mkstemp
from typing import Any

from nh_control.discrete.trajectory import Trajectory
from nh_control.numerics.progress import Progress
from nh_control.runs.experiment import Result
from nh_control.scenarios.visual_model import VisualModel
from nh_control.view import film as films
from nh_control.view import page as pages
from nh_control.view.animation import RATE_HZ
from nh_control.view.sources import of_result, of_trajectory


def view_trajectory(
    trajectory: Trajectory, file: str | Path, visual: VisualModel | None, open_page: bool
) -> Path:
    """See `Trajectory.view`."""
    text = pages.page(of_trajectory(trajectory, visual))
    if not file:
        handle, file = mkstemp(".html", "nh_control_")
        open(handle).close()
    path = Path(file)
    path.write_text(text, encoding="utf-8")
    if open_page:
        webbrowser.open(path.absolute().as_uri())
    return path


def film_trajectory(
    trajectory: Trajectory, file: str | Path, visual: VisualModel | None, **options: Any
) -> Path:
    """See `Trajectory.film`."""
    # A slow film shows more frames of the same motion.
    rate_hz = max(RATE_HZ, options.get("rate_hz", films.RATE_HZ) / options.get("speed", 1.0))
    animation = of_trajectory(trajectory, visual, rate_hz)
    with Progress() as progress:
        options.setdefault("progress", progress.counter("painting"))
        return films.write(animation, Path(file), **options)


def trajectory_in_a_notebook(trajectory: Trajectory) -> str:
    """The page of a trajectory for a notebook."""
    return pages.in_a_notebook(of_trajectory(trajectory))


def result_in_a_notebook(result: Result) -> str:
    """The page of a run for a notebook."""
    return pages.in_a_notebook(of_result(result))
