"""Storage for a study's runs: one SQLite file that contains each run at most once.

Thousands of runs arrive in a process that may be killed at any moment, and the scheduler asks for
the missing runs. This requires a database with transactions and a primary key. SQLite is part of
Python's standard library. A Parquet file cannot be extended, so `write_parquet` writes a whole
study.
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
from nh_control.studies.metrics import metrics_of
from nh_control.studies.study import Study
from nh_control.studies.study_file import differences, make_study, read, to_yaml
from nh_control.studies.worker import StudyRun

READERS_S = 60.0
"""Maximum time in s that a write waits for readers."""
COLUMNS = ("success", "steps", "wall_s", "failure", "missed")
"""Columns for every run in addition to its number, seed, varied values and metrics."""


class Store:
    """The runs of `study` in a folder. As a context manager, the store locks the folder for
    writing.
    """

    def __init__(self, folder: Path, study: Study):
        self.folder, self.study, self.names = folder, study, _names(study)

    @staticmethod
    def exists(folder: Path) -> bool:
        """Return whether the folder contains a study."""
        return (folder / STUDY).is_file()

    @staticmethod
    def make(folder: Path, study: Study) -> Store:
        """Return the store for a study in a folder, which may contain earlier runs of the same
        study. Raises ValueError if the folder contains another study.
        """
        file = folder / STUDY
        if not file.is_file():
            file.write_text(to_yaml(study), encoding="utf-8")
        elif changed := differences(study, make_study(read(file))):
            raise ValueError(
                f"{folder} contains another study ({changed}); choose another --output, or add "
                f"--overwrite to delete its runs"
            )
        return Store(folder, study)

    def __enter__(self) -> Store:
        # The lock is released when the process terminates for any reason.
        self._lock = open(self.folder / STUDY, "a")  # locked while the store is open
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise ValueError(
                f"{self.folder}: another process runs this study; wait for it or stop it"
            ) from None
        self._database = sqlite3.connect(self.folder / RUNS, timeout=READERS_S)
        columns = ", ".join(f'"{name}"' for name in _distinct(self.names))
        # The first column is the number of the run, so SQLite refuses to store a run twice.
        columns = columns.replace(",", " INTEGER PRIMARY KEY,", 1)
        self._database.execute(f"CREATE TABLE IF NOT EXISTS runs ({columns})")
        there = self._database.execute("SELECT * FROM runs LIMIT 0").description
        if len(there) != len(self.names):
            self.__exit__(None, None, None)
            raise ValueError(
                f"{self.folder} contains runs of another version of nh_control, with other "
                "columns; choose another --output, or add --overwrite to delete them"
            )
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()
        self._lock.close()

    def add(self, runs: Sequence[StudyRun]) -> None:
        """Write runs in one transaction. Raises sqlite3.IntegrityError if one of the runs is
        already stored, and OSError if the file cannot be written, for example on a full disk.
        """
        places = ", ".join("?" * len(self.names))
        try:
            with self._database:
                self._database.executemany(f"INSERT INTO runs VALUES ({places})", map(_row, runs))
        except sqlite3.OperationalError as error:
            raise OSError(f"{RUNS}: {error}") from error

    def missing(self) -> Iterator[int]:
        """Return the indices of the runs that are not stored, in order."""
        done = {index for (index,) in self._database.execute("SELECT run FROM runs")}
        return (index for index in range(self.study.total) if index not in done)

    def __len__(self) -> int:
        return self._database.execute("SELECT COUNT(*) FROM runs").fetchone()[0]

    def columns(self) -> dict[str, np.ndarray]:
        """Return all runs as arrays by column name, ordered by their indices. Missing values are
        NaN.
        """
        rows = self._database.execute("SELECT * FROM runs ORDER BY run").fetchall()
        return _columns(self.names, rows)

    def write_parquet(self) -> Path:
        """Write all runs to one Parquet file. This needs pyarrow."""
        import pyarrow
        from pyarrow import parquet

        file = self.folder / PARQUET
        parquet.write_table(pyarrow.table(self.columns()), file)
        return file


def table(study: Study, runs: Sequence[StudyRun]) -> dict[str, np.ndarray]:
    """Return the runs as columns, as in `Store.columns`."""
    return _columns(_names(study), list(map(_row, runs)))


def _names(study: Study) -> tuple[str, ...]:
    return ("run", "seed", *(v.name for v in study.vary), *metrics_of(study), *COLUMNS)


def _columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, np.ndarray]:
    return {name: _array([row[i] for row in rows]) for i, name in enumerate(names)}


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names, with "_" appended to each name that differs from an earlier one only in
    case. SQLite ignores case.
    """
    out: list[str] = []
    for name in names:
        while name.lower() in (known.lower() for known in out):
            name += "_"
        out.append(name)
    return out


def _row(run: StudyRun) -> tuple[Any, ...]:
    return (
        run.index,
        run.seed,
        *run.values,
        *run.metrics,
        run.success,
        run.steps,
        run.wall_s,
        run.failure,
        run.missed,
    )


def _array(column: list[Any]) -> np.ndarray:
    """Return a column as an array of numbers, with NaN for None, or of texts."""
    if any(isinstance(value, str) for value in column):
        return np.array(column, dtype=object)
    numbers = [np.nan if value is None else value for value in column]
    return np.array(numbers)
