"""The results folder of a run or a study. The folder is new or empty unless overwriting was
requested, which removes earlier results from it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path("nh_control_output")
RECORDING, LOGS = "recording", "logs"
RESULTS, SUMMARY, PARAMETERS = "results.npz", "summary.json", "parameters.yaml"
STUDY, RUNS, PARQUET = "study.yaml", "runs.sqlite", "runs.parquet"
STATISTICS = "statistics.json"
SOFTWARE = "nh_control"
"""The software name in our figures, which identifies them."""


HEAD = 1000
"""Number of bytes at the beginning of a figure that are searched for the software name."""


def folder(name: str, chosen: str | None = None, overwrite: bool = False) -> Path:
    """Create and return the folder `chosen`, by default the first of `nh_control_output/<name>`,
    `<name>-2`, ... in the current directory that does not exist.

    A chosen folder that is not empty raises FileExistsError unless `overwrite`, which removes the
    results, figures, recording and logs of another run from it, and nothing else. `overwrite`
    without a chosen folder raises ValueError.
    """
    if chosen is None:
        if overwrite:
            raise ValueError(
                "--overwrite replaces the results in a chosen folder: add --output DIR"
            )
        return _numbered(name)
    path = Path(chosen)
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file, not a folder")
    if path.exists() and any(path.iterdir()) and not overwrite:
        raise FileExistsError(f"{path} is not empty; choose another --output, or add --overwrite")
    path.mkdir(parents=True, exist_ok=True)
    _remove_results(path)
    return path


@contextmanager
def removed_if_empty(folder: Path) -> Iterator[None]:
    """Remove the folder if an error leaves it empty, because the run could not begin."""
    try:
        yield
    except BaseException:
        if not any(folder.iterdir()):
            folder.rmdir()
        raise


def _remove_results(path: Path) -> None:
    """Remove the files that a run writes to its folder."""
    # a folder with other files is the user's
    for name, endings in ((RECORDING, (".mcap", ".yaml")), (LOGS, (".log",))):
        inner = path / name
        if inner.is_dir() and all(file.suffix in endings for file in inner.iterdir()):
            shutil.rmtree(inner)
    for name in (RESULTS, SUMMARY, PARAMETERS, STUDY, RUNS, PARQUET, STATISTICS):
        (path / name).unlink(missing_ok=True)
    # figures of other programs stay
    for figure in path.glob("*.png"):
        with open(figure, "rb") as file:
            if f"Software\0{SOFTWARE}".encode() in file.read(HEAD):
                figure.unlink()


def _numbered(name: str) -> Path:
    number = 1
    while True:
        path = ROOT / (name if number == 1 else f"{name}-{number}")
        try:
            # mkdir decides between programs that start at the same time
            path.mkdir(parents=True)
            return path
        except FileExistsError:
            number += 1
