"""Setup of the workers in a local Dask cluster. Dask runs it as a `preload`."""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """Ignore SIGINT: the terminal sends Ctrl-C to all processes, and only the study handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
