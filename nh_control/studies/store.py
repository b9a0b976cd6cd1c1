"""Where a study's runs are kept: one SQLite file, in which every run is there at most once.

Runs come by the thousand, from a process that may be killed at any moment, and are asked which of
them are missing: a database with transactions and a primary key does that, and it is in Python's
standard library. Parquet files cannot be appended to; `write_parquet` makes one of a whole study.
"""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from nh_control.runs.output import PARQUET, RUNS, STUDY
from nh_control.studies.study import Study
from nh_control.studies.study_file import differences, make_study, read, to_yaml
from nh_control.studies.worker import Run, metrics_of

READERS_S = 60.0
"""How long others may read at a time while runs are to be written."""
COLUMNS = ("success", "steps", "wall_s", "failure")
"""What every run has besides its number, seed, what varied, and its metrics."""


class Store:
    """The runs of the `study` in a folder; a context that is the only one to write there."""

    def __init__(self, folder: Path, study: Study):
        self.folder, self.study = folder, study
        varied, metrics = (v.name for v in study.vary), metrics_of(study)
        self.names = ("run", "seed", *varied, *metrics, *COLUMNS)

    @staticmethod
    def exists(folder: Path) -> bool:
        """Whether there is a study in that folder."""
        return (folder / STUDY).is_file()

    @staticmethod
    def make(folder: Path, study: Study) -> Store:
        """The store in a folder, new or with runs of the same study already; raises ValueError
        where another study has been begun there.
        """
        file = folder / STUDY
        if not file.is_file():
            file.write_text(to_yaml(study), encoding="utf-8")
        elif changed := differences(study, make_study(read(file))):
            raise ValueError(
                f"{folder} holds another study ({changed}); choose another --output, or add "
                f"--overwrite to throw its runs away"
            )
        return Store(folder, study)

    def __enter__(self) -> Store:
        self._lock = open(self.folder / STUDY, "a")  # as long as the store is
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise ValueError(f"{self.folder}: this study is running already") from None
        self._database = sqlite3.connect(self.folder / RUNS, timeout=READERS_S)
        columns = ", ".join(f'"{name}"' for name in _distinct(self.names))
        columns = columns.replace(",", " INTEGER PRIMARY KEY,", 1)
        self._database.execute(f"CREATE TABLE IF NOT EXISTS runs ({columns})")
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()
        self._lock.close()

    def add(self, runs: Sequence[Run]) -> None:
        """Write runs, all of them or none; raises sqlite3.IntegrityError for one that is there."""
        places = ", ".join("?" * len(self.names))
        with self._database:
            self._database.executemany(f"INSERT INTO runs VALUES ({places})", map(_row, runs))

    def missing(self) -> Iterator[int]:
        """Indices of the runs that are not there, in order."""
        done = {index for (index,) in self._database.execute("SELECT run FROM runs")}
        return (index for index in range(self.study.total) if index not in done)

    def __len__(self) -> int:
        return self._database.execute("SELECT COUNT(*) FROM runs").fetchone()[0]

    def columns(self) -> dict[str, np.ndarray]:
        """All runs by the names of their columns, in the order of their indices; NaN for what is
        not there.
        """
        rows = self._database.execute("SELECT * FROM runs ORDER BY run").fetchall()
        return {name: _array([row[i] for row in rows]) for i, name in enumerate(self.names)}

    def write_parquet(self) -> Path:
        """Write all runs into one Parquet file; needs pyarrow."""
        import pyarrow
        from pyarrow import parquet

        file = self.folder / PARQUET
        parquet.write_table(pyarrow.table(self.columns()), file)
        return file


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, a letter longer where SQLite, which knows no capitals, would take two for one."""
    out: list[str] = []
    for name in names:
        while name.lower() in (known.lower() for known in out):
            name += "_"
        out.append(name)
    return out


def _row(run: Run) -> tuple[Any, ...]:
    return (
        run.index,
        run.seed,
        *run.values,
        *run.metrics,
        run.success,
        run.steps,
        run.wall_s,
        run.failure,
    )


def _array(column: list[Any]) -> np.ndarray:
    """Numbers as floats or integers, None as NaN; texts as they are."""
    if any(isinstance(value, str) for value in column):
        return np.array(column, dtype=object)
    numbers = [np.nan if value is None else value for value in column]
    return np.array(numbers)
