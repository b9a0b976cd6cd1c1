"""The cache folder, which keeps compiled functions, results and tables so that they are computed
only once.
"""

from __future__ import annotations

import logging
import os
import stat
from functools import cache
from pathlib import Path

log = logging.getLogger(__name__)


def cache_directory() -> Path:
    """The cache folder: `$NH_CONTROL_CACHE`, `$XDG_CACHE_HOME/nh_control` or
    `~/.cache/nh_control`.
    """
    if chosen := os.environ.get("NH_CONTROL_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nh_control"


@cache
def is_private(folder: Path) -> bool:
    """Whether the cache `folder` is safe: it belongs to this user, and nobody else can write to
    it. A missing folder is created with mode 0700. If the folder is not safe, the reason is logged
    once.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        cannot_use(folder, str(error))
        return False
    # other users' files would run with this user's permissions
    if status.st_uid != os.geteuid():
        cannot_use(folder, f"it belongs to user {status.st_uid}, not to {os.geteuid()}")
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        cannot_use(
            folder,
            f"others can write to it (mode {stat.S_IMODE(status.st_mode):o}), but its files are "
            f"loaded and run; delete it, or trust it and `chmod 700 {folder}`",
        )
    else:
        return True
    return False


SLOWER = "1.4 to 8 times slower"
"""The speed of steps without a compiler, measured by test/benchmark/without_compiler.py."""

_unusable: set[Path] = set()


def cannot_use(folder: Path, problem: str) -> None:
    """Log, once for each folder, that functions are not compiled."""
    if folder not in _unusable:
        _unusable.add(folder)
        log.warning(
            "cannot use the cache %s: %s; using CasADi's virtual machine, steps are %s "
            "($NH_CONTROL_CACHE moves the cache)",
            folder,
            problem,
            SLOWER,
        )
