"""Motions to look at: pages with scene, plots and timeline, and films."""

from nh_control.view.trajectories import (
    film_trajectory,
    result_in_a_notebook,
    trajectory_in_a_notebook,
    view_trajectory,
)

__all__ = [
    "film_trajectory",
    "result_in_a_notebook",
    "trajectory_in_a_notebook",
    "view_trajectory",
]
