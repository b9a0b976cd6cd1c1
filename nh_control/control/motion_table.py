"""Measured motions as tables: csv and npz files, pandas data frames, mappings and trajectories.
The columns have the names of a system's quantities, or a mapping assigns the columns to these
names.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nh_control.control.identification import SEGMENT_S, segments
from nh_control.control.input_history import NANOSECONDS, InputHistory
from nh_control.control.measured_values import meant, quantities
from nh_control.control.parameter_fit import MotionSegment
from nh_control.discrete import trajectory_files
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

TIME = "time"
TIMES = ("time_s", "time", "t", "timestamp")
"""Names of the time column, if no mapping specifies it."""
UNITS: Mapping[str, float] = {
    **{"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    **{"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6},
    **{"rad": 1.0, "mrad": 1e-3, "deg": np.pi / 180, "turn": 2 * np.pi},
    **{"m/s": 1.0, "mm/s": 1e-3, "km/h": 1 / 3.6},
    **{"rad/s": 1.0, "deg/s": np.pi / 180, "rpm": np.pi / 30},
    **{"N": 1.0, "mN": 1e-3, "kN": 1e3, "N m": 1.0, "Nm": 1.0, "mNm": 1e-3},
}
"""Values of units, expressed in the units of the package."""
SYNTAX = "NAME=COLUMN, NAME=COLUMN:UNIT, NAME=-COLUMN or NAME=NUMBER"
WRAPPED = 0.1
"""Tolerance (rad) within which a jump counts as a whole turn."""


@dataclass(frozen=True)
class MeasuredMotion:
    """Values (n, ny) of the quantities `names` at times (n), with NaN for missing values, and
    inputs (k, nu) sent at times (k). Each input acts until the next one. The `notes` explain how
    the data were read.
    """

    times_ns: np.ndarray
    names: tuple[str, ...]
    values: np.ndarray
    sent_ns: np.ndarray
    inputs: np.ndarray
    notes: tuple[str, ...] = field(default=())

    def pieces(
        self, dsys: DiscreteSystem, length_s: float = SEGMENT_S, actuation_s: float = 0.0
    ) -> list[MotionSegment]:
        """Pieces of the motion with a length of about `length_s`. Each input acts `actuation_s`
        after it was sent. Raises ValueError if there are no pieces.
        """
        inputs = self.acting_inputs(dsys.idle(dsys.state_space.origin), actuation_s)
        return segments(self.times_ns, self.values, inputs, length_s)

    def acting_inputs(
        self, idle: np.ndarray, actuation_s: float = 0.0
    ) -> list[list[tuple[np.ndarray, float]]]:
        """The inputs that acted between each pair of successive times, with their durations in s.
        An input acts `actuation_s` after it was sent; `idle` (nu) acts before the first input.
        """
        history, delay = InputHistory(idle, length=None), round(actuation_s * NANOSECONDS)
        for time_ns, u in zip(self.sent_ns.tolist(), self.inputs):
            history.add(time_ns + delay, u)
        times = self.times_ns.tolist()
        return [list(history.between(begin, end)) for begin, end in zip(times, times[1:])]


def read(
    dsys: DiscreteSystem,
    data: Any,
    columns: Mapping[str, str] | None = None,
    measured: Sequence[str] | None = None,
    aliases: Mapping[str, str] | None = None,
) -> MeasuredMotion:
    """Read a measured motion from a .csv or .npz file, a pandas.DataFrame, a mapping of names to
    columns (n), or a Trajectory.

    The columns have the names of coordinates, velocities, outputs and inputs of the system.
    Alternatively, `columns` maps these names, and "time", to `COLUMN` or `COLUMN:UNIT`, with a
    leading minus to reverse the sign, or to a number, which is a constant. `aliases` maps names to
    additional columns, which are used if they exist. A header may contain a unit, as in
    `theta (deg)`. The inputs in a row act until the next row. An empty cell is a missing value, or
    an input that does not change. `measured` names the quantities to fit: by default, all
    coordinates and outputs in the table or, if there are none, the velocities. Raises ValueError
    for missing or ambiguous columns, and OSError.
    """
    table, label = _table(data)
    reader = _Reader(dsys, table, dict(columns or {}), label)
    reader.add_aliases(aliases or {})
    return reader.motion(measured)


# Files and tables --------------------------------------------------------------------------------


def _table(data: Any) -> tuple[dict[str, np.ndarray], str]:
    """The columns by name, and the term for the data in messages."""
    if isinstance(data, Trajectory):
        return data.columns(), "the trajectory"
    if isinstance(data, str | Path):
        path = Path(data)
        if path.suffix == ".npz":
            return _of_npz(path), str(path)
        if path.suffix in (".csv", ".tsv", ".txt"):
            return trajectory_files.read_csv(path), str(path)
        raise ValueError(
            f"{path}: expected a table (.csv or .npz) or, with a scenario, a recording (.mcap)"
        )
    if hasattr(data, "columns") and hasattr(data, "reset_index"):
        frame = data if data.index.name is None else data.reset_index()
        return {str(name): frame[name].to_numpy() for name in frame.columns}, "the table"
    if isinstance(data, Mapping):
        return {str(name): np.asarray(column) for name, column in data.items()}, "the table"
    raise ValueError(
        "expected a .csv, .npz or .mcap file, a pandas.DataFrame, a mapping of names to columns "
        f"or a Trajectory, got {type(data).__name__}"
    )


def _of_npz(path: Path) -> dict[str, np.ndarray]:
    """The columns of a file that contains arrays or a trajectory."""
    try:
        with np.load(path, allow_pickle=False) as file:
            entries = {key: file[key] for key in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: expected an .npz file of arrays: {error}") from error
    if {"states", "inputs", "state_names"} <= set(entries):
        return Trajectory.load(path).columns()
    return entries


class _Reader:
    """Reads the quantities and inputs of a system from the columns of a table."""

    def __init__(
        self,
        dsys: DiscreteSystem,
        table: Mapping[str, np.ndarray],
        mapping: Mapping[str, str],
        label: str,
    ):
        self._dsys, self._table, self._label = dsys, table, label
        self._quantities = quantities(dsys)
        self._known = (TIME, *dict.fromkeys([*self._quantities, *dsys.inputs]))
        self._bare = {_split_header(name)[0]: name for name in table}
        if len(self._bare) < len(table):
            raise ValueError(f"{label}: columns {', '.join(table)}: names must differ")
        self._mapping, self._used = mapping, set[str]()
        self._notes: list[str] = []
        if dsys.system.prescribed:
            raise ValueError(
                f"{dsys}: the coordinates {', '.join(dsys.system.prescribed)} are prescribed; "
                "tables of prescribed motions are not supported"
            )
        for name in mapping:
            if name not in self._known:
                raise ValueError(f"columns: {dsys} has no {name!r}{meant(name, self._known)}")

    def add_aliases(self, aliases: Mapping[str, str]) -> None:
        """Add columns by name, if they exist and the name is not yet in use."""
        for name, column in aliases.items():
            if column.lstrip("-") in self._bare and self._source(name) is None:
                self._mapping = {**self._mapping, name: column}

    def motion(self, measured: Sequence[str] | None) -> MeasuredMotion:
        """The measured motion (see `read`)."""
        times_ns = self._times_ns()
        names = self._measured(measured)
        values = np.column_stack([self._column(name, len(times_ns)) for name in names])
        inputs = [self._input(name, len(times_ns)) for name in self._dsys.inputs]
        self._note_missing_and_unused(names)
        for name, column in zip(names, values.T):
            self._note_turns(name, column)
        return MeasuredMotion(
            times_ns,
            tuple(names),
            values,
            times_ns,
            np.reshape(inputs, (len(inputs), len(times_ns))).T,
            tuple(self._notes),
        )

    def _times_ns(self) -> np.ndarray:
        """The times since the first row. Raises ValueError unless they increase."""
        if TIME not in self._mapping:
            column = next((name for name in TIMES if name in self._bare), None)
            if column is None:
                raise ValueError(
                    f"{self._label}: no time column, expected one of {', '.join(TIMES)}; "
                    f"got {', '.join(self._table)}: name the time column, as in "
                    f"columns time={next(iter(self._table))}"
                )
            self._mapping = {**self._mapping, TIME: self._bare[column]}
        times = self._column(TIME, 0)
        late = np.flatnonzero(~(np.diff(times) > 0))
        if len(late) or not np.isfinite(times[:1]).all():
            row = int(late[0]) + 2 if len(late) else 1
            raise ValueError(
                f"{self._label}: the time must increase, but it does not at row {row}: "
                f"{times[max(0, row - 2) : row].tolist()} s"
            )
        # integer nanoseconds since the first row
        return np.round((times - times[0]) * NANOSECONDS).astype(np.int64)

    def _measured(self, measured: Sequence[str] | None) -> list[str]:
        """The quantities to fit."""
        for name in measured or ():
            if name not in self._quantities:
                raise ValueError(f"{self._dsys} has no {name!r}{meant(name, self._quantities)}")
            if self._source(name) is None:
                raise ValueError(
                    f"{self._label}: no column for {name}, got {', '.join(self._table)}: name the "
                    f"column, as in --columns {name}=COLUMN"
                )
        available = [name for name in self._quantities if self._source(name) is not None]
        if measured:
            return list(measured)
        rates = self._dsys.system.space.velocity_names
        # coordinates and outputs, or velocities if there is nothing else
        fitted = [name for name in available if name not in rates] or available
        if not fitted:
            raise ValueError(
                f"{self._label}: no column is named after a quantity of {self._dsys}, expected "
                f"some of {', '.join(self._quantities)}; got {', '.join(self._table)}: name the "
                f"columns, as in columns {self._quantities[0]}=COLUMN"
            )
        if rest := [name for name in available if name not in fitted]:
            self._notes.append(
                f"{', '.join(rest)} not fitted, because velocities are often differences of the "
                "coordinates; to fit them as well, name all measured quantities"
            )
        return fitted

    def _note_missing_and_unused(self, names: Sequence[str]) -> None:
        """Note the coordinates without a column, and the columns that are not used."""
        if missing := [n for n in self._dsys.system.space.names if n not in names]:
            self._notes.append(f"not measured, so their start is unknown: {', '.join(missing)}")
        known = {self._source(name) for name in self._known} | {*self._dsys.state_names}
        if extra := [name for name in self._table if name not in known]:
            names = ", ".join(extra)
            self._notes.append(f"columns that are not in {self._dsys.system.name}: {names}")

    def _note_turns(self, name: str, column: np.ndarray) -> None:
        """Note an angle that jumps by whole turns."""
        jumps = np.abs(np.diff(column[~np.isnan(column)]))
        # the angle was wrapped to one turn
        turns = int(np.sum(np.abs(jumps - 2 * np.pi) < WRAPPED))
        if turns:
            self._notes.append(
                f"{name} jumps by a whole turn (count: {turns}), but coordinates must be "
                "continuous; use numpy.unwrap"
            )

    def _source(self, name: str) -> str | None:
        """The column or the constant for a name, or None if there is neither."""
        if name in self._mapping:
            return self._split(name)[1]
        return self._bare.get(name)

    def _split(self, name: str) -> tuple[float, str]:
        """The factor that converts a mapped column to the package's units, and the column or
        constant.
        """
        source, unit = _split_mapping(self._mapping[name])
        sign = (
            -1.0 if source.startswith("-") and source[1:] in {*self._table, *self._bare} else 1.0
        )
        source = source[1:] if sign < 0 else source
        column = source if source in self._table else self._bare.get(source, source)
        # a unit in the mapping takes precedence over the unit in the header
        unit = unit or (_split_header(column)[1] if column in self._table else "")
        return sign * UNITS.get(unit, 1.0), column

    def _column(self, name: str, count: int) -> np.ndarray:
        """Values of a quantity in the package's units. A constant is repeated `count` times."""
        if name in self._mapping:
            factor, source = self._split(name)
        else:
            source = self._bare[name]
            factor = UNITS.get(_split_header(source)[1], 1.0)
        if source in self._table:
            return factor * trajectory_files.numbers(self._table[source], source, self._label)
        try:
            return np.full(count, factor * float(source))
        except ValueError:
            raise ValueError(
                f"{self._label}: no column {source!r} for {name}{meant(source, list(self._table))}"
            ) from None

    def _input(self, name: str, count: int) -> np.ndarray:
        """The values (n) of an input. An empty cell repeats the previous value."""
        if self._source(name) is None:
            raise ValueError(
                f"{self._label}: no column for the input {name}, got "
                f"{', '.join(self._table)}: name the column, as in --columns {name}=COLUMN, or "
                f"set a constant value, as in --columns {name}=0"
            )
        values = self._column(name, count)
        filled = ~np.isnan(values)
        if not filled[0]:
            raise ValueError(f"{self._label}: the input {name} has no value in the first row")
        # index of the last filled row up to each row
        return values[np.maximum.accumulate(np.where(filled, np.arange(len(values)), 0))]


def _split_header(header: str) -> tuple[str, str]:
    """The name and the unit in a header such as `theta (deg)` or `theta [deg]`."""
    for opening, closing in ("()", "[]"):
        name, bracket, rest = header.strip().partition(opening)
        if bracket and rest.endswith(closing) and rest[:-1].strip() in UNITS:
            return name.strip(), rest[:-1].strip()
    return header.strip(), ""


def _split_mapping(text: str) -> tuple[str, str]:
    """The column and the unit in `COLUMN` or `COLUMN:UNIT`."""
    column, colon, unit = text.rpartition(":")
    if not colon:
        return text, ""
    if unit not in UNITS:
        raise ValueError(f"columns: unknown unit {unit!r} in {text!r}{meant(unit, list(UNITS))}")
    return column, unit
