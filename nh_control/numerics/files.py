"""Files that are written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO


@contextmanager
def whole_path(path: str | Path) -> Iterator[Path]:
    """A temporary path for writing a file. The file is renamed to `path` when everything is
    written. If writing fails, for example because of a full disk or Ctrl-C, the temporary file is
    removed, and an older file with the name `path` remains. Raises OSError if writing fails.
    """
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield unfinished
        # atomic within a folder
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """A file that is written completely or not at all (see `whole_path`). Raises OSError if
    writing fails.
    """
    with whole_path(path) as unfinished, open(unfinished, "wb") as file:
        yield file


def write_npz(path: str | Path, **arrays: Any) -> None:
    """Write named arrays to an .npz file, completely or not at all. The file is not compressed,
    because numbers of a motion hardly become smaller. Raises OSError if writing fails.
    """
    import numpy as np  # slow to import

    with whole_file(path) as file:
        np.savez(file, **arrays)
