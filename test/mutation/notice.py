"""One mutant: the tests that should notice it, run in a process that is forked for it."""

from __future__ import annotations

import os
import resource
import shlex
import signal
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NoReturn

import pytest
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkResult

ARGUMENTS = ("-x", "-q", "-p", "no:cacheprovider", "--tb=line", "--no-header", "-W", "ignore")
MORE_S = 20.0
"""Time of the processor beyond the budget after which a test turns endlessly: it has noticed."""
PASSED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
PATIENCE = 6.0
"""Time on the clock, by the processor's: other programs may be running too."""


def judge(mutation: MutationSpec, tests: dict[str, Any]) -> WorkResult:
    """Apply the mutation, run the tests of its file, and put the file back as it was, time and
    all, so that what Python has compiled of it stays valid.
    """
    path = mutation.module_path
    source, stat = path.read_text(), path.stat()
    mutated = mutate_code(source, get_operator(mutation.operator_name)(), mutation.occurrence)
    try:
        path.write_text(mutated)
        return _run(tests_of(path, tests["map"]), tests["budget_s"])
    finally:
        path.write_text(source)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def tests_of(path: Path, entries: list[dict[str, Any]]) -> list[str]:
    """What the first entry that fits says; `folder/a.py|b.py` fits both files of the folder."""
    file = path.as_posix().removeprefix("nh_control/")
    for entry in entries:
        folder, _, names = entry["files"].rpartition("/")
        if any(fnmatch(file, f"{folder}/{name}") for name in names.split("|")):
            return entry["tests"]
    sys.exit(f"study.toml names no tests for {file}")


class Budget:
    """Skips the tests that would begin after this process and its children have used up their time
    of the processor.
    """

    def __init__(self, seconds: float):
        self.seconds = seconds + sum(os.times()[:4])

    def pytest_runtest_setup(self):
        if sum(os.times()[:4]) > self.seconds:
            pytest.skip("the budget is spent")


def _run(tests: list[str], budget_s: float) -> WorkResult:
    """Whether one of the tests fails; none is begun when the budget is spent."""
    spent, outputs = 0.0, []
    for entry in tests:
        if not Path("test", entry.split()[0]).exists():
            continue  # tests of an earlier commit are judged
        code, used_s, output = _forked(entry, budget_s - spent)
        spent += used_s
        outputs.append(output)
        if code not in PASSED:
            return WorkResult(
                WorkerOutcome.NORMAL, f"{output}\nended by {code}", TestOutcome.KILLED
            )
        if spent > budget_s:
            break
    return WorkResult(WorkerOutcome.NORMAL, "\n".join(outputs), TestOutcome.SURVIVED)


def _forked(entry: str, budget_s: float) -> tuple[int, float, str]:
    """Exit code of pytest in a process of its own (or the negative signal that ended it), the
    time of the processor that it used, and what it wrote.
    """
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if child == 0:
            _child(entry, budget_s, file.fileno())
        code, used_s = _wait(child, (budget_s + MORE_S) * PATIENCE)
        file.seek(0)
        return code, used_s, file.read().decode(errors="replace")[-2000:]


def _child(entry: str, budget_s: float, output: int) -> NoReturn:
    """Run the tests and end this process, whatever happens."""
    os.setsid()
    limit = int(budget_s + MORE_S)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    os.dup2(output, 1)
    os.dup2(output, 2)
    code = pytest.ExitCode.INTERNAL_ERROR
    try:
        file, *options = shlex.split(entry)
        code = pytest.main([*ARGUMENTS, f"test/{file}", *options], plugins=[Budget(budget_s)])
    finally:
        sys.stdout.flush()
        os._exit(code)


def _wait(child: int, timeout_s: float) -> tuple[int, float]:
    """Exit code and time of the processor of the child, which is ended after timeout_s."""
    deadline = time.monotonic() + timeout_s
    done = 0
    while not done:
        time.sleep(0.02)
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
        done, status, usage = os.wait4(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
