"""Stores the results of long computations in the cache, under the data that determine them."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from nh_control.numerics.cache_folder import cache_directory, is_private
from nh_control.numerics.compiled import locked

log = logging.getLogger(__name__)

Arrays = Mapping[str, np.ndarray]


def cached_result(
    name: str, key: Sequence[str | np.ndarray], compute: Callable[[], Arrays], announcement: str
) -> Arrays:
    """The arrays from `compute()`, or from the cache if any process has computed them for this
    key.

    Processes that need the arrays at the same time compute them only once. The `announcement` (""
    for none) is logged before the computation. An empty result is not stored. Without a private
    cache, the arrays are always computed.
    """
    folder, digest = cache_directory(), hashlib.sha256(ca.CasadiMeta.version().encode())
    for part in key:
        text = part.encode() if isinstance(part, str) else np.ascontiguousarray(part).tobytes()
        # the lengths ensure that different keys have different concatenations
        digest.update(len(text).to_bytes(8, "little") + text)
    path = folder / f"{name}-{digest.hexdigest()[:24]}.npz"
    is_usable = is_private(folder)
    if is_usable and (stored := _read(path)) is not None:
        return stored
    if announcement:
        log.warning("%s%s", announcement, "; next time it is in the cache" if is_usable else "")
    if not is_usable:
        return compute()
    with locked(path.with_suffix(".lock")):
        # another process may have computed the arrays while this one waited
        if (stored := _read(path)) is not None:
            return stored
        arrays = compute()
        if arrays:
            _write(path, arrays)
        return arrays


def _read(path: Path) -> Arrays | None:
    """The stored arrays; None if there are none, or if they are damaged, which is logged."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return dict(stored)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        log.warning("cached %s is damaged, it is computed again: %s", path, error)
        return None


def _write(path: Path, arrays: Arrays) -> None:
    """Store arrays atomically, or log that this is not possible, for example on a full disk."""
    content = io.BytesIO()
    save: Any = np.savez  # its type hint interprets every keyword as an option
    save(content, **arrays)
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content.getvalue())
        os.replace(file.name, path)
    except OSError as error:
        log.warning("cannot store %s: %s", path, error)
