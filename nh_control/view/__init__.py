"""Pages and films that show motions. A page has a scene, plots and a timeline."""

from nh_control.view.pictures import StatePictures
from nh_control.view.trajectories import (
    film_trajectory,
    result_in_a_notebook,
    trajectory_in_a_notebook,
    view_trajectory,
)

__all__ = [
    "StatePictures",
    "film_trajectory",
    "result_in_a_notebook",
    "trajectory_in_a_notebook",
    "view_trajectory",
]
