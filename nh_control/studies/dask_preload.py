"""What the workers of a Dask cluster that a study starts do first: a `preload` of Dask."""

from __future__ import annotations

import signal


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C, which the terminal sends to all processes of the study, to the study."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
