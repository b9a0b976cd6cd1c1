"""Discrete trajectories, which consist of states at the nodes and inputs between them."""

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
    """States x_0 ... x_N (N + 1, nx) at times k h and the constant inputs u_0 ... u_{N-1} (N, nu)
    between them.

    `dsys` is the discrete system to which these states belong, or None if it is not known.
    Pictures need it. Arrays are read-only. Raises ValueError if shapes disagree, if h is not
    positive, or if a value is not finite.
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
        """The times (N + 1, s) of the nodes."""
        return self.h * np.arange(len(self) + 1)

    @property
    def duration(self) -> float:
        """The duration N h (s)."""
        return self.h * len(self)

    def __getitem__(self, steps: slice) -> Trajectory:
        """The part of the trajectory that contains the steps in a slice, for example
        `trajectory[10:20]`, and the states at both ends. Its times begin at 0. Raises TypeError
        for anything but a slice, and ValueError for a slice with a stride.
        """
        if not isinstance(steps, slice):
            raise TypeError(
                f"Trajectory {self.name!r}: expected a slice of its steps, such as "
                f"trajectory[10:20], got {steps!r}; states and inputs are tables"
            )
        # N steps have N + 1 states
        first, last, stride = steps.indices(len(self))
        if stride != 1:
            raise ValueError(
                f"Trajectory {self.name!r}: a slice must contain consecutive steps, got the "
                f"stride {stride}"
            )
        last = max(first, last)
        states, inputs = self.states[first : last + 1], self.inputs[first:last]
        return replace(self, states=states, inputs=inputs)

    @property
    def velocities(self) -> np.ndarray:
        """The velocities (N + 1, nw) at the nodes; raises ValueError without a discrete system."""
        return self.state_map_for("evaluated for velocities").velocity(self.states)

    @property
    def energies(self) -> np.ndarray:
        """The energies (N + 1, J) at the nodes; raises ValueError without a discrete system."""
        return self.state_map_for("evaluated for energies").energies(self.states)

    # Files and tables ----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the trajectory, without its discrete system, to a .npz file, completely or not at
        all. Raises OSError if this fails.
        """
        tables = {"states": self.states, "inputs": self.inputs}
        names = {key: np.array(getattr(self, key), dtype=str) for key in NAMES}
        trajectory_files.write(path, self.h, self.name, **tables, **names)

    @classmethod
    def load(cls, path: str | Path, dsys: HasStates | None = None) -> Trajectory:
        """The trajectory that `save` wrote, or the run in a `results.npz` that `nh_control` wrote,
        with the discrete system `dsys`. Raises OSError if the file cannot be read, and ValueError
        for any other file.
        """
        return cls(**trajectory_files.read(path), dsys=dsys)

    def to_csv(self, path: str | Path) -> None:
        """Write the times, states, velocities (if the discrete system is known) and inputs to a
        .csv file with a header and one row per node. The last row has no inputs. Raises OSError if
        this fails.
        """
        trajectory_files.write_csv(path, self.columns())

    @classmethod
    def from_csv(cls, path: str | Path, dsys: HasStates, name: str = "") -> Trajectory:
        """Read a trajectory of a discrete system from a .csv file with the columns `time_s`, the
        inputs, and either the states or the coordinates and velocities. Raises OSError if the file
        cannot be read, and ValueError for missing columns, cells that are not numbers, and times
        that are not k h.
        """
        known, table = dsys.state_map, trajectory_files.read_csv(path)
        space, label = known.system.space, str(path)

        def columns(*names: str) -> np.ndarray:
            return trajectory_files.rows(table, names, label)

        h = trajectory_files.step_of(columns(trajectory_files.TIME)[:, 0], label)
        state_names = known.state_space.names
        # prefer states, which need no conversion from velocities
        if set(state_names) <= set(table):
            states = columns(*state_names)
        else:
            states = known.state(columns(*space.names), columns(*space.velocity_names))
        inputs = columns(*known.inputs)[:-1]
        return cls(h, states, inputs, state_names, known.inputs, name, dsys)

    def to_pandas(self) -> DataFrame:
        """A `pandas.DataFrame` of `columns` with the index `time_s` and one row per node. The
        inputs in the last row are NaN. Raises ImportError if pandas (extra `pandas`) is missing.
        """
        return trajectory_files.data_frame(self.columns())

    def columns(self) -> dict[str, np.ndarray]:
        """The columns (N + 1) for time, states, velocities (if known) and inputs, by name."""
        velocities, names = np.empty((len(self) + 1, 0)), tuple[str, ...]()
        if self.dsys is not None:
            velocities = self.velocities
            names = self.dsys.state_map.system.space.velocity_names
        return trajectory_files.columns(
            self.times,
            self.states,
            self.inputs,
            self.state_names,
            self.input_names,
            velocities,
            names,
        )

    # Pictures ------------------------------------------------------------------------------------

    def state_map_for(self, purpose: str) -> StateMap:
        """The state map of the discrete system. Raises a ValueError that names the purpose if the
        system is not known or its states have a different size.
        """
        known = None if self.dsys is None else self.dsys.state_map
        if known is None or known.nx != self.states.shape[1]:
            actual = "none" if known is None else f"{known} with {known.nx} states"
            raise ValueError(
                f"Trajectory {self.name!r}: to be {purpose}, it needs the discrete system for its "
                f"{self.states.shape[1]} states, got {actual}; "
                "write dataclasses.replace(trajectory, dsys=...)"
            )
        return known

    def view(self, file: str | Path = "", *, visual: Any = None, open_page: bool = True) -> Path:
        """Write a page with the scene, plots and a timeline to `file` (by default a temporary
        one), open it in the browser if `open_page`, and return its path. `visual` is a
        `VisualModel`; without it, sticks, boxes and axes are drawn.

        Raises ValueError without a discrete system.
        """
        return _package().view.view_trajectory(self, file, visual, open_page)

    def film(self, file: str | Path, *, visual: Any = None, **options: Any) -> Path:
        """Write a film to `file` and return its path. The suffix determines the format: mp4 (needs
        ffmpeg), webp, gif or png; `options` are those of `nh_control.view.film.write`.

        Raises ValueError without a discrete system and for any other suffix.
        """
        return _package().view.film_trajectory(self, file, visual, **options)

    def plot(self, axes: Any = None) -> Any:
        """Plot configurations, velocities, inputs, energy and the constraint residual over time,
        each in one of the matplotlib `axes` (by default new ones), and return the axes.

        Raises ValueError without a discrete system and for a wrong number of axes.
        """
        return _package().figures.plot_trajectory(self, axes)

    def _repr_html_(self) -> str | None:
        """The HTML page for a notebook; None without a discrete system."""
        if self.dsys is None:
            return None
        return _package().view.trajectory_in_a_notebook(self)


def _package() -> Any:
    """The package, which imports its drawing subpackages lazily, so that nothing here depends on
    them.
    """
    import nh_control

    return nh_control
