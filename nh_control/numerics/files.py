"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write, which gets its name when everything is written. If writing fails, for
    example on a full disk, it is removed, and an older file of this name stays. Raises OSError.
    """
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(unfinished, "wb") as file:
            yield file
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_npz(path: str | Path, **arrays: Any) -> None:
    """Write arrays by name as a compressed .npz, whole or not at all; raises OSError."""
    with whole_file(path) as file:
        np.savez_compressed(file, **arrays)
