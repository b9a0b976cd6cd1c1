"""Figures of runs, which are saved in files, and figures of trajectories in matplotlib axes. Each
name is imported when it is first used, because only `plot` needs the studies.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nh_control import _homes_of, _on_demand
from nh_control.numerics.cache_folder import cache_directory, is_private

if TYPE_CHECKING:  # declares the names for editors, type checkers, and `_HOMES`
    from nh_control.figures import plot as plot
    from nh_control.figures.convergence import plot_convergence as plot_convergence
    from nh_control.figures.gallery import save_all as save_all
    from nh_control.figures.trajectories import plot_trajectory as plot_trajectory

if is_private(cache_directory()):  # matplotlib reads its folder when it is imported
    os.environ.setdefault("MPLCONFIGDIR", str(cache_directory() / "matplotlib"))

_HOMES = _homes_of(__file__)
"""Public names and the modules that define them."""

__all__ = [*_HOMES]

_of_home, __dir__ = _on_demand(__name__, _HOMES)


def import_without_docstrings() -> None:
    """Import matplotlib without the tables of properties in its docstrings. They take half of the
    import, and nobody reads them in a command.
    """
    from matplotlib import artist

    artist.kwdoc = lambda artist: ""


def __getattr__(name: str) -> Any:
    return import_module(f"{__name__}.plot") if name == "plot" else _of_home(name)
