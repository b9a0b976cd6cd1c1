"""The mutation study of one room of the package: draws its sample of small faults, and judges each
by the tests that should notice it. See README.md here.

Works on the clone of the repository that it is run in, which it changes and mends again; goes on
where an earlier run was ended.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import sys
from pathlib import Path

import tomllib
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import WorkItem

sys.path.insert(0, str(Path(__file__).parent))
from draw import draw
from notice import judge

HEAVY = (
    "hypothesis", "numpy", "casadi", "control", "matplotlib.pyplot", "yaml", "scipy.integrate",
    "scipy.interpolate", "scipy.linalg", "scipy.optimize", "scipy.sparse",
    "scipy.spatial.transform", "scipy.special", "scipy.signal",
)  # fmt: skip
"""What every test imports: loaded once, before a process is forked for each mutant."""
BUDGET_S = 12.0
"""Time of the processor that the tests of a mutant may use."""
ROOMS = (
    "numerics", "geometry", "mechanics", "discrete", "multibody", "integrators", "systems",
    "control", "scenarios", "loop", "runs", "figures", "ros", "command",
)  # fmt: skip
"""From below: a room imports from those before it only, so these are loaded once, too."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("sessions", type=Path, help="folder for the outcomes, a file a room")
    parser.add_argument("room", help="as study.toml names it, without nh_control/")
    parser.add_argument("--coverage", type=Path, default=".coverage", help="see README.md")
    parser.add_argument("--most", type=int, help="judge at most so many mutants now")
    parser.add_argument("--again", action="store_true", help="judge those that survived again")
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MPLBACKEND="Agg")
    sys.dont_write_bytecode = True
    study = tomllib.loads((Path(__file__).parent / "study.toml").read_text())["study"]
    session = options.sessions / f"{options.room.replace('/', '_')}.sqlite"
    if not session.exists():
        options.sessions.mkdir(exist_ok=True)
        draw(study, f"nh_control/{options.room}", session)
    _load(options.room.split("/")[0])
    with use_db(session) as database:
        for item in _waiting(database, options.again)[: options.most]:
            database.set_result(item.job_id, judge(item.mutations[0], options.coverage, BUDGET_S))


def _load(room: str) -> None:
    """Import what the room's mutants do not change: `nh_control.ros` is neither below another
    room nor cheap.
    """
    below = [name for name in ROOMS[: ROOMS.index(room)] if name != "ros"]
    for name in (*HEAVY, *(f"nh_control.{each}" for each in below)):
        importlib.import_module(name)


def _waiting(database: WorkDB, again: bool) -> list[WorkItem]:
    """What is to be judged, in an order that is the same each time but follows no file's."""
    survivors = [item for item, result in database.completed_work_items if not result.is_killed]
    waiting = survivors if again else list(database.pending_work_items)
    waiting.sort(key=lambda item: item.job_id)
    random.Random(0).shuffle(waiting)
    return waiting


if __name__ == "__main__":
    main()
