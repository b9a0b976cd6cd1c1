"""Figures of runs as files, and of trajectories in matplotlib's axes."""

import os

from nh_control.numerics.compiled import cache_directory, is_private

if is_private(cache_directory()):
    os.environ.setdefault("MPLCONFIGDIR", str(cache_directory() / "matplotlib"))
from nh_control.figures import plot  # noqa: E402
from nh_control.figures.convergence import plot_convergence  # noqa: E402
from nh_control.figures.gallery import save_all  # noqa: E402  (matplotlib reads its folder on import)
from nh_control.figures.trajectories import plot_trajectory  # noqa: E402

__all__ = ["plot", "plot_convergence", "plot_trajectory", "save_all"]
