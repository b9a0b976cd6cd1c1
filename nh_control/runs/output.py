"""The folder of a run's results: always a new or empty one, unless overwriting was asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path("nh_control_output")
RECORDING = "recording"


def folder(name: str, chosen: str | None = None, overwrite: bool = False) -> Path:
    """Create and return the folder `chosen`, or `nh_control_output/<name>`, `<name>-2`, ... in the
    current directory: the first that is not there.

    A chosen folder that is not empty raises FileExistsError unless `overwrite`, which removes the
    recording in it; other files are replaced as they are written.
    """
    if chosen is None:
        return _numbered(name)
    path = Path(chosen)
    if path.exists() and not path.is_dir():
        raise FileExistsError(f"{path} is a file, not a folder")
    if path.exists() and any(path.iterdir()) and not overwrite:
        raise FileExistsError(f"{path} is not empty; choose another --output, or add --overwrite")
    recording = path / RECORDING
    if recording.is_dir() and all(
        file.name == "metadata.yaml" or file.suffix == ".mcap" for file in recording.iterdir()
    ):
        shutil.rmtree(recording)
    path.mkdir(parents=True, exist_ok=True)
    return path


def _numbered(name: str) -> Path:
    number = 1
    while True:
        path = ROOT / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:
            number += 1
