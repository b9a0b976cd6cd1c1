"""A study of many short runs by the process pool and by a local Dask cluster; each loses a worker
during the study. Checks that all runs are stored once, and measures the overhead per run.

Run with `python test/benchmark/study_cluster.py [--runs 100000] [--workers 2] [--steps 3]`; needs
the extra `dask`. Both make the same study, a pendulum with random initial states and a random
mass.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import active_children
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from sizes import sized

from nh_control.numerics.compiled import wait_for_compiler
from nh_control.runs.output import RUNS
from nh_control.studies import (
    DaskCluster,
    ProcessPool,
    Store,
    Study,
    make_study,
    run_indices,
    run_missing,
)
from nh_control.studies.pools import WorkerPool


def study(runs: int, steps: int) -> Study:
    """Return a study of the pendulum with this number of starts."""
    return make_study(
        {
            "scenario": "pendulum_swing_up",
            "vary": {"perturb.angle": "-0.5:0.5", "m": "0.8:1.2"},
            "set": {"duration": repr(0.02 * steps)},
            "points": str(runs),
        }
    )


@contextmanager
def processor_time(found: dict) -> Iterator[None]:
    """Store the processor time in s of this process and its ended children in this context in
    `found["cpu_s"]`; other load on the machine does not count.
    """

    def now() -> float:
        usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    start = now()
    yield
    found["cpu_s"] = now() - start


def measured(one: Study, workers: WorkerPool, pids: Callable[[], list[int]], kill: bool) -> dict:
    """Return the results of the study; one of its workers is killed after a third of the runs."""
    killed: list[int] = []

    def progress(done: int) -> None:
        if kill and not killed and done > one.total / 3:
            killed.append(pids()[0])
            os.kill(killed[0], signal.SIGKILL)

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        with Store.make(Path(folder), one) as store, workers:
            complete = run_missing(store, workers, progress)
            columns = store.columns()
        with sqlite3.connect(Path(folder) / RUNS) as database:
            counted = database.execute("SELECT COUNT(run), COUNT(DISTINCT run) FROM runs")
            rows, distinct = counted.fetchone()
    return {
        "complete": complete,
        "rows": rows,
        "distinct": distinct,
        "failed": int((columns["failure"] != "").sum()),
        "wall_s": time.perf_counter() - start,
        "errors": columns["final_error"],
    }


def by_pool(one: Study, workers: int, kill: bool) -> dict:
    """Make the study by processes."""
    found: dict = {}
    others = active_children()
    with processor_time(found):
        found |= measured(
            one,
            ProcessPool(workers),
            lambda: [child.pid for child in active_children() if child not in others],
            kill,
        )
    return found


def by_dask(one: Study, workers: int, kill: bool) -> dict:
    """Make the study by the workers of a scheduler at a tcp address."""
    found: dict = {}
    with (
        processor_time(found),
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        cluster_workers = DaskCluster(cluster.scheduler_address)
        found |= measured(one, cluster_workers, lambda: list(client.run(os.getpid).values()), kill)
    return found


def alone(steps: int, runs: int = sized(2000, 50)) -> float:
    """Return the processor time (us) of a run in one process, without a scheduler."""
    one = study(runs, steps)
    run_indices(one, range(10))
    wait_for_compiler()
    start = time.process_time()
    run_indices(one, range(runs))
    return 1e6 * (time.process_time() - start) / runs


def main() -> None:
    """Print the results of each kind of workers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=sized(100_000, 300))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--no-kill", action="store_true")
    args = parser.parse_args()
    kill = not args.no_kill
    print(f"{args.runs} runs of {args.steps} steps, {args.workers} workers")
    print(f"a run alone: {alone(args.steps):.0f} us of processor time")
    errors = []
    for name, made in (("pool", by_pool), ("dask", by_dask)):
        begun = made(study(100, args.steps), args.workers, False)
        found = made(study(args.runs, args.steps), args.workers, kill)
        errors.append(found["errors"])
        each = 1e6 * (found["cpu_s"] - begun["cpu_s"]) / (args.runs - 100)
        print(
            f"{name}: {found['rows']} rows, {found['distinct']} distinct, {found['failed']} "
            f"failed, complete: {found['complete']}; {found['wall_s']:.1f} s; processor time a "
            f"run {each:.0f} us, and {begun['cpu_s']:.1f} s to begin with"
        )
    print(f"the same numbers from both: {np.array_equal(*errors)}")


if __name__ == "__main__":
    main()
