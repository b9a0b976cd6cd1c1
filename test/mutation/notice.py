"""One mutant: the tests that should notice it, run in a process that is forked for it."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import pytest
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkResult
from coverage.numbits import num_in_numbits

ARGUMENTS = ("-x", "-q", "-p", "no:cacheprovider", "--tb=line", "--no-header", "-W", "ignore")
MORE_S = 20.0
"""Time of the processor beyond the budget after which a test turns endlessly: it has noticed."""
PASSED = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
PATIENCE = 6.0
"""Time on the clock, by the processor's: other programs may be running too."""
MOST = 200
"""Largest number of tests that are asked."""
LINES = """select context.context, numbits from line_bits join file on file.id = file_id
join context on context.id = context_id where path like ?"""
WIDTH = """select context.context, count(*) from line_bits join context on context.id = context_id
group by context_id"""
"""Of the database of coverage.py: lines that ran in each test; number of files."""


def judge(mutation: MutationSpec, database: Path, budget_s: float) -> WorkResult:
    """Apply the mutation, run the tests that run its line, and put the file back as it was, time
    and all, so that what Python has compiled of it stays valid.
    """
    path = mutation.module_path
    source, stat = path.read_text(), path.stat()
    mutated = mutate_code(source, get_operator(mutation.operator_name)(), mutation.occurrence)
    tests = covering_tests(database, path, mutation.start_pos[0])
    try:
        path.write_text(mutated)
        return _run(tests, budget_s)
    finally:
        path.write_text(source)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def covering_tests(database: Path, path: Path, line: int) -> list[str]:
    """Ids of the tests that ran a line of a file, at most MOST: those first that ran the fewest
    files. A line that runs at import has the tests of the whole file.
    """
    with sqlite3.connect(database) as connection:
        width = dict(connection.execute(WIDTH))
        rows = connection.execute(LINES, [f"%/{path.as_posix()}"]).fetchall()
    ran = {context for context, lines in rows if num_in_numbits(line, lines)}
    contexts = ran - {""} or {context for context, _ in rows} - {""}
    ordered = sorted(contexts, key=lambda context: (width[context], context))
    return list(dict.fromkeys(context.rpartition("|")[0] for context in ordered))[:MOST]


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
    if not tests:
        return WorkResult(WorkerOutcome.NORMAL, "no test runs it", TestOutcome.SURVIVED)
    code, output = _forked(tests, budget_s)
    outcome = TestOutcome.SURVIVED if code in PASSED else TestOutcome.KILLED
    return WorkResult(WorkerOutcome.NORMAL, f"{output}\nended by {code}", outcome)


def _forked(tests: list[str], budget_s: float) -> tuple[int, str]:
    """Exit code of pytest in a process of its own (or the negative signal that ended it), and what
    it wrote.
    """
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if child == 0:
            _child(tests, budget_s, file.fileno())
        code = _wait(child, (budget_s + MORE_S) * PATIENCE)
        file.seek(0)
        return code, file.read().decode(errors="replace")[-2000:]


def _child(tests: list[str], budget_s: float, output: int) -> NoReturn:
    """Run the tests and end this process, whatever happens."""
    os.setsid()
    limit = int(budget_s + MORE_S)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    os.dup2(output, 1)
    os.dup2(output, 2)
    code = pytest.ExitCode.INTERNAL_ERROR
    try:
        code = pytest.main([*ARGUMENTS, *tests], plugins=[Budget(budget_s)])
    finally:
        sys.stdout.flush()
        os._exit(code)


def _wait(child: int, timeout_s: float) -> int:
    """Exit code of the child, which is ended after timeout_s."""
    deadline = time.monotonic() + timeout_s
    done = 0
    while not done:
        time.sleep(0.02)
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
        done, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status)
