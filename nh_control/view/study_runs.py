"""Runs of a study as animations. They are made again, because a study stores only
their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from nh_control.runs.experiment import Result
from nh_control.runs.output import STUDY
from nh_control.studies import Store, Study, make_study, read
from nh_control.studies.worker import ERROR, Worker
from nh_control.view.animation import Animation
from nh_control.view.sources import of_result

MOST = 12
"""Default number of runs of a page, the ones with the largest errors."""
RATE_HZ = 25.0


def is_study(path: Path) -> bool:
    """Whether a path is the folder of a study."""
    return Store.exists(path)


def load(
    folder: Path,
    chosen: Sequence[int] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Animation]:
    """Animations of the `chosen` runs of the study in a folder, by names with the varied settings;
    by default of the failed runs and of the MOST runs with the largest final errors, worst first.

    Raises ValueError for unknown numbers of runs, and for a study without runs.
    """
    study = make_study(read(folder / STUDY))
    indices = list(chosen) or _worst(Store(folder, study))
    if wrong := [index for index in indices if not 0 <= index < study.total]:
        raise ValueError(f"{folder} has the runs 0 to {study.total - 1}, not {wrong}")
    worker, animations = Worker(study), dict[str, Animation]()
    for done, index in enumerate(indices, 1):
        values = study.values(index)
        experiment = worker.experiment(values)
        loop = experiment.run(not worker.settings.option(values, "open_loop"))
        animations[_name(study, index)] = of_result(Result(experiment, loop, None, 0.0), RATE_HZ)
        progress(done, len(indices))
    return animations


def _worst(store: Store) -> list[int]:
    """Numbers of the runs with the largest final errors; failures are the largest."""
    with store:
        columns = store.columns()
    if not len(columns["run"]):
        raise ValueError(f"{store.folder} has no runs yet: nh_control study {store.folder}")
    errors = np.where(np.isfinite(columns[ERROR]), columns[ERROR], np.inf)
    order = np.argsort(-errors, kind="stable")[:MOST]
    return [int(index) for index in columns["run"][order]]


def _name(study: Study, index: int) -> str:
    """The run's number and its varied settings."""
    point = zip((one.name for one in study.vary), study.point(index))
    parts = [f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
             for name, value in point]  # fmt: skip
    seed = study.run_seed(index)
    return ", ".join([f"run {index}", *parts, *([] if seed is None else [f"seed {seed}"])])
