"""A discrete trajectory: states at the nodes, inputs between them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nh_control.discrete import trajectory_files
from nh_control.discrete.state_map import HasStates, StateMap

if TYPE_CHECKING:
    from pandas import DataFrame

NAMES = ("state_names", "input_names")


@dataclass(frozen=True)
class Trajectory:
    """States x_0 ... x_N (N + 1, nx) at times k h and the inputs u_0 ... u_{N-1} (N, nu) that were
    held between them.

    `dsys` is the discrete system whose states these are, None where it is not known: pictures
    need it. Arrays are read-only. Raises ValueError where shapes disagree, h is not positive or a
    value is not finite.
    """

    h: float
    states: np.ndarray
    inputs: np.ndarray
    state_names: tuple[str, ...] = ()
    input_names: tuple[str, ...] = ()
    name: str = ""
    dsys: HasStates | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for table in ("states", "inputs"):
            value = np.array(getattr(self, table), dtype=float, order="C")
            if value.ndim != 2 or not np.isfinite(value).all():
                raise ValueError(
                    f"Trajectory {self.name!r}: {table} must be a finite 2-d array, got shape "
                    f"{value.shape}"
                )
            value.setflags(write=False)
            object.__setattr__(self, table, value)
        if not (np.isfinite(self.h) and self.h > 0):
            raise ValueError(f"Trajectory {self.name!r}: step h must be positive, got {self.h}")
        if len(self.states) != len(self.inputs) + 1:
            raise ValueError(
                f"Trajectory {self.name!r}: {len(self.states)} states need "
                f"{len(self.states) - 1} inputs, got {len(self.inputs)}"
            )

    def __repr__(self) -> str:
        states, inputs = self.states.shape[1], self.inputs.shape[1]
        return (
            f"Trajectory({self.name!r}, {len(self)} steps of {self.h:g} s, {states} states, "
            f"{inputs} inputs)"
        )

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def times(self) -> np.ndarray:
        """Times of the nodes in s, (N + 1)."""
        return self.h * np.arange(len(self) + 1)

    @property
    def duration(self) -> float:
        """Length in s."""
        return self.h * len(self)

    def __getitem__(self, steps: slice) -> Trajectory:
        """The steps of a slice, `trajectory[10:20]`, with the states at both their ends; time
        begins at 0 again. Raises TypeError for anything but a slice, ValueError for a stride.
        """
        if not isinstance(steps, slice):
            raise TypeError(
                f"Trajectory {self.name!r}: expected a slice of its steps, such as "
                f"trajectory[10:20], got {steps!r}; states and inputs are tables"
            )
        first, last, stride = steps.indices(len(self))
        if stride != 1:
            raise ValueError(
                f"Trajectory {self.name!r}: steps follow each other, a slice has no stride, got "
                f"{stride}"
            )
        last = max(first, last)
        states, inputs = self.states[first : last + 1], self.inputs[first:last]
        return replace(self, states=states, inputs=inputs)

    @property
    def velocities(self) -> np.ndarray:
        """Velocities (N + 1, nw) at the nodes; raises ValueError without a discrete system."""
        return self.state_map_for("asked for velocities").velocity(self.states)

    @property
    def energies(self) -> np.ndarray:
        """Energies (N + 1) at the nodes in J; raises ValueError without a discrete system."""
        return self.state_map_for("asked for energies").energies(self.states)

    # Files and tables ----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the trajectory as .npz, whole or not at all, without its discrete system; raises
        OSError.
        """
        tables = {"states": self.states, "inputs": self.inputs}
        names = {key: np.array(getattr(self, key), dtype=str) for key in NAMES}
        trajectory_files.write(path, self.h, self.name, **tables, **names)

    @classmethod
    def load(cls, path: str | Path, dsys: HasStates | None = None) -> Trajectory:
        """The trajectory that `save` has written, or the run in a `results.npz` of `nh_control`,
        with its discrete system if it is given. Raises OSError, and ValueError for another file.
        """
        return cls(**trajectory_files.read(path), dsys=dsys)

    def to_csv(self, path: str | Path) -> None:
        """Write time, states and inputs as .csv with a header, a row for every node; the last row
        has no inputs. Raises OSError.
        """
        trajectory_files.write_csv(path, self._columns())

    def to_pandas(self) -> DataFrame:
        """Time, states and inputs as a `pandas.DataFrame` over `time_s`, a row for every node,
        without inputs (NaN) in the last; raises ImportError without pandas (extra `pandas`).
        """
        return trajectory_files.data_frame(self._columns())

    def _columns(self) -> dict[str, np.ndarray]:
        tables = self.times, self.states, self.inputs
        return trajectory_files.columns(*tables, self.state_names, self.input_names)

    # Pictures ------------------------------------------------------------------------------------

    def state_map_for(self, purpose: str) -> StateMap:
        """The state map of the discrete system; raises ValueError, which names the purpose, where
        the system is not known or its states have another size.
        """
        known = None if self.dsys is None else self.dsys.state_map
        if known is None or known.nx != self.states.shape[1]:
            actual = "none" if known is None else f"{known} with {known.nx} states"
            raise ValueError(
                f"Trajectory {self.name!r}: to be {purpose}, it needs the discrete system of its "
                f"{self.states.shape[1]} states, got {actual}; "
                "write dataclasses.replace(trajectory, dsys=...)"
            )
        return known

    def view(self, file: str | Path = "", *, visual: Any = None, open_page: bool = True) -> Path:
        """Write the page with scene, plots and timeline to `file` (a temporary one without it),
        open it in the browser if `open_page`, and return its path; `visual` is a `VisualModel`,
        without which sticks, boxes and axes are drawn.

        Raises ValueError without a discrete system.
        """
        return _rooms_above().view.view_trajectory(self, file, visual, open_page)

    def film(self, file: str | Path, *, visual: Any = None, **options: Any) -> Path:
        """Write a film to `file`, whose suffix says how: mp4 (needs ffmpeg), webp, gif or png;
        `options` are those of `nh_control.view.film.write`. Returns its path.

        Raises ValueError without a discrete system or for another suffix.
        """
        return _rooms_above().view.film_trajectory(self, file, visual, **options)

    def plot(self, axes: Any = None) -> Any:
        """Draw configurations, velocities, inputs, energy and constraint residual over time, in
        matplotlib's `axes` if they are given, one for each; returns the axes.

        Raises ValueError without a discrete system and for another number of axes.
        """
        return _rooms_above().figures.plot_trajectory(self, axes)

    def _repr_html_(self) -> str | None:
        """The page in a notebook, None without a discrete system."""
        if self.dsys is None:
            return None
        return _rooms_above().view.trajectory_in_a_notebook(self)


def _rooms_above() -> Any:
    """The package, which hands out the rooms that draw: nothing here depends on them."""
    import nh_control

    return nh_control
