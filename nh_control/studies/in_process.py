"""Studies that run in this process. Their controllers need not be in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nh_control.control.controller import ControllerLike
from nh_control.studies.store import table
from nh_control.studies.study_file import make_study
from nh_control.studies.worker import StudyRun, Worker


def study(
    scenario: str,
    vary: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
    *,
    controller: str | ControllerLike = "",
    disturb: Sequence[str] = (),
    fault: Sequence[str] = (),
    progress: Callable[[int], None] = lambda runs: None,
    **sampling: Any,
) -> dict[str, np.ndarray]:
    """Run a scenario many times, one run at a time, and return a table with a row for every run:
    its number, seed, varied values, metrics, `success`, `steps`, `wall_s` and `failure`.

    `vary` and `fixed` contain settings by their names in `nh_control study`. Values are numbers,
    lists, or texts as in that command. `sampling`, `points`, `seeds`, `seed`, `success` and
    `monitor` are options of that command. All runs use the `controller`: lqr, mpc, a name in a
    file or module, or a `Controller`, which is reset before each run. Raises UnknownName and
    ValueError.
    """
    settings = {name: _text(value) for name, value in (fixed or {}).items()}
    python_controller: ControllerLike | None = None
    if not isinstance(controller, str):
        python_controller = controller
    elif controller:
        settings["controller"] = controller
    # These texts have the same form as in a study file, so both are converted in the same way.
    data = {
        "scenario": scenario,
        "vary": {name: _text(values) for name, values in (vary or {}).items()},
        "set": settings,
        "disturb": list(disturb),
        "fault": list(fault),
        **{name: _text(value) for name, value in sampling.items()},
    }
    todo = make_study(data)
    worker, runs = Worker(todo, python_controller), list[StudyRun]()
    for index in range(todo.total):
        runs.append(worker.run(index))
        progress(len(runs))
    return table(todo, runs)


def _text(value: Any) -> str:
    """Return a value as text, as in a study file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple | np.ndarray):
        return ",".join(map(_text, value))
    return str(value)
