"""Animations of the runs in a study. The runs are repeated, because a study does not store their
motions.
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
"""Default number of runs on a page. The runs with the largest errors are chosen."""
RATE_HZ = 25.0


def is_study(path: Path) -> bool:
    """Whether the path is a folder that contains a study."""
    return Store.exists(path)


def load(
    folder: Path,
    chosen: Sequence[int] = (),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Animation]:
    """Animations of the `chosen` runs in a study's folder. The names of the animations contain the
    varied settings. By default the MOST runs with the largest final errors are chosen, worst
    first. Failed runs count as the worst.

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
    """The numbers of the runs with the largest final errors. Failed runs have infinite errors."""
    with store:
        columns = store.columns()
    if not len(columns["run"]):
        raise ValueError(f"{store.folder} has no runs yet: nh_control study {store.folder}")
    # Failed runs have no finite error, so they count as the worst.
    errors = np.where(np.isfinite(columns[ERROR]), columns[ERROR], np.inf)
    order = np.argsort(-errors, kind="stable")[:MOST]
    return [int(index) for index in columns["run"][order]]


def _name(study: Study, index: int) -> str:
    """The name of a run, which consists of its number and its varied settings."""
    point = zip((variation.name for variation in study.vary), study.point(index))
    parts = [f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
             for name, value in point]  # fmt: skip
    seed = study.run_seed(index)
    return ", ".join([f"run {index}", *parts, *([] if seed is None else [f"seed {seed}"])])
