"""Workers of a study: processes of this machine and Dask clusters."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from nh_control.studies import DaskCluster, ProcessPool, make_study, pools
from nh_control.studies.pools import MissingExtra, WorkersLost

OWNER = """
import os, time
from nh_control.studies import ProcessPool
if __name__ == "__main__":
    with ProcessPool(1) as pool:
        print(pool._pool.submit(os.getpid).result(), flush=True)
        time.sleep(60)
"""


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_process_ignores_ctrl_c_and_ends_with_its_parent(tmp_path):
    (tmp_path / "owner.py").write_text(OWNER)
    command = [sys.executable, str(tmp_path / "owner.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        worker = int(owner.stdout.readline())
        os.kill(worker, signal.SIGINT)
        time.sleep(0.1)
        assert alive(worker)
        owner.kill()
    deadline = time.monotonic() + 20
    while alive(worker):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_processes_use_one_thread_each_unless_the_user_says_how_many(monkeypatch):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    monkeypatch.setenv(names[0], "7")
    for name in names[1:]:
        monkeypatch.delenv(name, raising=False)
    pool, seen = ProcessPool(1), []
    monkeypatch.setattr(pool._pool, "submit", lambda *_: seen.extend(map(os.environ.get, names)))
    pool.submit(None, [0])
    assert seen == ["7", "1", "1"] and not set(names[1:]) & set(os.environ)


def test_a_broken_pool_is_replaced_and_its_tasks_are_lost():
    pool, broken = ProcessPool(1), BrokenProcessPool("gone")
    old, first, second = pool._pool, Future(), Future()
    first.set_exception(broken)
    late = threading.Timer(0.05, lambda: second.set_exception(broken))
    late.start()
    assert pool.wait_any([first, second]) == [first, second]
    assert pool._pool is not old and pool.runs(first) is None
    third = Future()
    third.set_exception(ValueError("wrong"))
    with pytest.raises(ValueError, match="wrong"):
        pool.runs(third)

    def refuse(*_):
        raise broken

    pool._pool.submit = refuse
    assert pool.runs(pool.submit(None, [0])) is None


# --- Dask ----------------------------------------------------------------------------------------


def test_the_error_of_missing_dask_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"pip install 'nh_control\[dask\]'"):
        DaskCluster("local")


@pytest.fixture(scope="module")
def cluster():
    """Somebody's scheduler with a worker of two threads, in this process."""
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    how = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": ":0"}
    with distributed.LocalCluster(processes=False, protocol="tcp", **how) as cluster:
        yield cluster


def test_a_cluster_of_somebody_else_makes_runs_and_stays(cluster, monkeypatch):
    """A task returns its runs as soon as it has ended, is lost with its worker, or raises."""
    from distributed.scheduler import KilledWorker

    monkeypatch.setattr(pools, "POLL_S", 60.0)
    study = make_study({"scenario": "urdf", "vary": {"perturb.angle": "1,2"},
                        "set": {"duration": "0.1"}})  # fmt: skip
    for _ in range(2):
        with DaskCluster(cluster.scheduler_address) as pool:
            assert pool.count == 2
            good, bad = pool.submit(study, [1]), pool.submit(study, [99])
            ended = set()
            while len(ended) < 2:
                ended |= {*pool.wait_any([good, bad])}
            assert [run.index for run in pool.runs(good)] == [1]
            with pytest.raises(IndexError, match="the runs are 0 ... 1"):
                pool.runs(bad)
            good.cancel()
            with pytest.raises(WorkersLost, match="tcp://.* is lost; start it again"):
                pool.runs(good)
            killed = Future()
            killed.set_exception(KilledWorker("a task", None, []))
            assert pool.runs(killed) is None


def test_a_local_cluster_is_started_twice_at_most_and_one_that_does_not_close_loses_no_runs(
    cluster, monkeypatch, caplog
):
    import distributed

    begun, closed, failing = [], [], 1

    def start(n_workers, **_):
        begun.append(n_workers)
        if len(begun) <= failing:
            raise RuntimeError("Nanny failed to start.")
        return cluster

    def close():
        closed.append(1)
        raise OSError("gone")

    monkeypatch.setattr(distributed, "LocalCluster", start)
    with DaskCluster("local", 2) as pool:
        assert begun == [2, 2]
        with monkeypatch.context() as patched:
            patched.setattr(pool._cluster, "close", close)
            pool.__exit__()
    assert closed and "OSError('gone')" in caplog.text
    begun, failing = [], 2
    with pytest.raises(WorkersLost, match="2 workers .Nanny failed.*free memory"):
        DaskCluster("local", 2)
