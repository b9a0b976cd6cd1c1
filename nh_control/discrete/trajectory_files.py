"""Trajectories as .npz files, .csv files and pandas tables."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nh_control.numerics.files import whole_file, write_npz

if TYPE_CHECKING:
    from pandas import DataFrame

TIME = "time_s"
UNEVEN = 1e-6
"""Relative tolerance within which the steps of a trajectory must be equal."""
NEEDED = ("states", "inputs", "state_names", "input_names")


def write(path: str | Path, h: float, name: str, **tables: Any) -> None:
    """Write the step h (s), the name and the tables to a .npz file, completely or not at all.
    Raises OSError if this fails.
    """
    write_npz(path, h=np.array(h), name=np.array(name), **tables)


def read(path: str | Path) -> dict[str, Any]:
    """The contents of a file that `write` wrote, or of a `results.npz` that the command wrote, as
    arguments for Trajectory. Raises OSError if the file cannot be read, and ValueError for any
    other file.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            entries = {key: file[key] for key in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: expected a .npz of a trajectory: {error}") from error
    if missing := [key for key in NEEDED if key not in entries]:
        raise ValueError(f"{path}: expected a .npz of a trajectory, it has no {missing}")
    if "h" in entries:
        h, name = float(entries["h"]), str(entries["name"])
    # a results.npz written by the command stores h in its description
    elif "description" in entries:
        description = json.loads(str(entries["description"]))
        h, name = description["step_s"], description["reference"]
    else:
        raise ValueError(f"{path}: expected a .npz of a trajectory, it has no step h")
    return {
        "h": h,
        "states": entries["states"],
        "inputs": entries["inputs"],
        "state_names": tuple(map(str, entries["state_names"])),
        "input_names": tuple(map(str, entries["input_names"])),
        "name": name,
    }


def columns(
    times: np.ndarray,
    states: np.ndarray,
    inputs: np.ndarray,
    state_names: Sequence[str],
    input_names: Sequence[str],
    velocities: np.ndarray,
    velocity_names: Sequence[str],
) -> dict[str, np.ndarray]:
    """The columns (N + 1) of a table by name: time, states, velocities and inputs, which are NaN
    at the last node. The default names are x0, x1, ..., u0, u1, ... Raises ValueError if two
    columns have the same name.
    """
    xs = list(state_names) or [f"x{i}" for i in range(states.shape[1])]
    us = list(input_names) or [f"u{i}" for i in range(inputs.shape[1])]
    names = [TIME, *xs, *velocity_names, *us]
    if double := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"a table needs different names for its columns, got {double} twice")
    # the last node has no input
    after = np.vstack([inputs, np.full((1, inputs.shape[1]), np.nan)])
    return dict(zip(names, np.column_stack([times, states, velocities, after]).T))


def write_csv(path: str | Path, table: dict[str, np.ndarray]) -> None:
    """Write columns to a .csv file with a header. Numbers have all digits, and NaN becomes an
    empty cell. Raises OSError if this fails.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    for row in zip(*(column.tolist() for column in table.values())):
        # repr writes the fewest digits that are read back as the same number
        writer.writerow("" if value != value else repr(value) for value in row)
    with whole_file(path) as file:
        file.write(text.getvalue().encode())


def read_csv(path: str | Path) -> dict[str, np.ndarray]:
    """The columns of a text file with a header, by name, as strings (n). Commas, semicolons or
    tabs separate cells. Raises OSError if the file cannot be read, and ValueError for any other
    format.
    """
    text = Path(path).read_text(encoding="utf-8-sig")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if len(lines) < 2:
        raise ValueError(f"{path}: expected a header and rows, got {len(lines)} lines")
    # the most frequent separator in the header
    separator = max(",;\t", key=lines[0].count)
    header, *rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    names = [name.strip() for name in header]
    if double := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path}: the header has {', '.join(double)} twice")
    for number, row in enumerate(rows, 1):
        if len(row) != len(names):
            raise ValueError(
                f"{path}: row {number} has {len(row)} cells, the header {len(names)}: "
                f"{separator.join(row)}"
            )
    return dict(zip(names, np.array(rows, dtype=str).T))


def rows(table: Mapping[str, np.ndarray], names: Sequence[str], label: str) -> np.ndarray:
    """The numbers (n, k) in the named columns of a table of strings; raises ValueError for missing
    columns.
    """
    if missing := [name for name in names if name not in table]:
        raise ValueError(f"{label}: no columns {', '.join(missing)}; it has {', '.join(table)}")
    count = len(next(iter(table.values())))
    values = [numbers(table[name], name, label) for name in names]
    return np.reshape(values, (len(names), count)).T


def step_of(times: np.ndarray, label: str) -> float:
    """The step h between the times `k h`; raises ValueError for any other times."""
    # the mean step; single steps may differ by UNEVEN
    h = (times[-1] - times[0]) / max(1, len(times) - 1)
    if not (h > 0 and np.allclose(np.diff(times), h, rtol=UNEVEN, atol=0)):
        raise ValueError(
            f"{label}: the times of a trajectory are k h, got steps of {np.diff(times).min():.6g} "
            f"to {np.diff(times).max():.6g} s; nh.identify takes uneven times"
        )
    return float(h)


def numbers(column: np.ndarray, name: str, label: str) -> np.ndarray:
    """The numbers (n) in a column, with NaN for empty cells. Times are converted to seconds."""
    values = np.asarray(column)
    if values.ndim != 1:
        raise ValueError(
            f"{label}: the column {name!r} must have shape (n,), got {values.shape}; use a "
            "column for each number"
        )
    if values.dtype.kind in "mM":
        # dates count from the first one, durations from zero
        since = values - values[0] if values.dtype.kind == "M" else values
        return since / np.timedelta64(1, "ns") / 1e9
    if values.dtype.kind not in "OUS":
        return values.astype(float)
    out = np.empty(len(values))
    for row, cell in enumerate(values.tolist()):
        try:
            out[row] = np.nan if cell is None or not str(cell).strip() else float(cell)
        except (TypeError, ValueError):
            raise ValueError(
                f"{label}: row {row + 1} of the column {name!r} is {cell!r}, expected a number"
            ) from None
    return out


def data_frame(table: dict[str, np.ndarray]) -> DataFrame:
    """The columns as a pandas.DataFrame with the time as index; raises ImportError if pandas is
    missing.
    """
    try:
        import pandas
    except ImportError as missing:
        raise ImportError(
            "to_pandas needs the package pandas: pip install pandas, or the extra 'pandas'"
        ) from missing
    return pandas.DataFrame(table).set_index(TIME)
