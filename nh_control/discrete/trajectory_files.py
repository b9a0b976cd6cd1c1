"""Trajectories as files and tables of others: npz, csv, pandas."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nh_control.numerics.files import whole_file, write_npz

if TYPE_CHECKING:
    from pandas import DataFrame

TIME = "time_s"
NEEDED = ("states", "inputs", "state_names", "input_names")


def write(path: str | Path, h: float, name: str, **tables: Any) -> None:
    """Write the step h (s), the name and the tables as .npz, whole or not at all; raises
    OSError.
    """
    write_npz(path, h=np.array(h), name=np.array(name), **tables)


def read(path: str | Path) -> dict[str, Any]:
    """What `write` has written, or the run in a `results.npz` of the command, as arguments of a
    Trajectory. Raises OSError, and ValueError for a file that is neither.
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
) -> dict[str, np.ndarray]:
    """The columns (N + 1) of a table by name: time, states, inputs; NaN for the inputs at the last
    node. Without names they are x0, x1, ..., u0, u1, ...; raises ValueError for a name that
    stands for two columns.
    """
    xs = list(state_names) or [f"x{i}" for i in range(states.shape[1])]
    us = list(input_names) or [f"u{i}" for i in range(inputs.shape[1])]
    names = [TIME, *xs, *us]
    if double := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"a table needs different names for its columns, got {double} twice")
    after = np.vstack([inputs, np.full((1, inputs.shape[1]), np.nan)])
    return dict(zip(names, np.column_stack([times, states, after]).T))


def write_csv(path: str | Path, table: dict[str, np.ndarray]) -> None:
    """Write columns as .csv with a header, numbers with all their digits, empty for NaN; raises
    OSError.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    for row in zip(*(column.tolist() for column in table.values())):
        writer.writerow("" if value != value else repr(value) for value in row)
    with whole_file(path) as file:
        file.write(text.getvalue().encode())


def data_frame(table: dict[str, np.ndarray]) -> DataFrame:
    """The columns as a pandas.DataFrame over time; raises ImportError with the remedy."""
    try:
        import pandas
    except ImportError as missing:
        raise ImportError(
            "to_pandas needs the package pandas: pip install pandas, or the extra 'pandas'"
        ) from missing
    return pandas.DataFrame(table).set_index(TIME)
