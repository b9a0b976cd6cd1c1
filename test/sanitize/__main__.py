"""The native library, generated code and exported C under the address and undefined-behavior
sanitizers of GCC.

    python test/sanitize [--sample]

builds all in a scratch folder, and runs random systems (random_systems.py) and tests there, with
and without a compiler, two runs at a time. The first report of a sanitizer ends its run, and the
exit code is then 1. A sample takes three minutes of two slow processors, all half an hour. Linux
with GCC only.
"""

from __future__ import annotations

import argparse
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
Run = tuple[Any, ...]
FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g", "-O1")
RANDOM = ("test/sanitize/random_systems.py",)
TESTS = ("-m", "pytest", "-q", "-p", "no:faulthandler", "-p", "no:cacheprovider",
         "-m", "not slow and not exhaustive")  # fmt: skip
SAMPLE = [(False, *RANDOM, "5", "8"), (False, *RANDOM, "0", "3"), (True, *RANDOM, "1", "2")]
ALL = [
    *((False, *RANDOM, str(k), str(k + 12)) for k in range(0, 96, 12)),
    *((True, *RANDOM, str(k), str(k + 6)) for k in (0, 6)),
    *((False, *TESTS, f"test/{name}") for name in ("multibody", "contact", "constraints")),
    (True, *TESTS, "test/core/test_two_tiers.py", "test/multibody/test_tree_tiers.py"),
    (True, *TESTS, "test/interop/test_c_code.py", "test/lie/test_adaptive.py"),
    (True, *TESTS, "test/optimal/test_optima_in_both_tiers.py", "test/core/test_compiled.py"),
    (False, *TESTS, "test/control/test_rollout.py", "test/control/test_damping.py"),
    (False, *TESTS, "test/optimal/test_mpc.py"),
]
"""Whether there is a compiler, and the arguments of Python, of every run."""


def build(scratch: Path) -> dict[str, str]:
    """Copy the checkout, build what it needs; the environment in which Python runs there."""
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    for file in filter(None, files):
        (scratch / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, scratch / file)
    made = runpy.run_path(str(scratch / "nh_control" / "numerics" / "library.py"))
    target = made["FOLDER"] / made["file_name"](())
    subprocess.run([*made["command"]((), ("gcc",), target), *FLAGS], check=True)
    shim = scratch / "deepbind.so"
    subprocess.run(["gcc", "-shared", "-fPIC", HERE / "deepbind.c", "-o", shim], check=True)
    compiler = scratch / "sanitizing_gcc"
    compiler.write_text(f'#!/bin/sh\nexec env -u LD_PRELOAD gcc "$@" {" ".join(FLAGS)}\n')
    compiler.chmod(0o755)
    (scratch / "cache").mkdir(mode=0o700)
    return {
        **os.environ,
        "PYTHONPATH": str(scratch),
        "PYTHONMALLOC": "malloc",  # the sanitizer sees each array's own memory
        "NH_CONTROL_CACHE": str(scratch / "cache"),
        "NH_CONTROL_CC": str(compiler),
        "OPENBLAS_NUM_THREADS": "1",
        "LD_PRELOAD": " ".join(map(str, (shim, *map(runtime, ("asan", "ubsan"))))),
    }


def runtime(name: str) -> str:
    """The file of a sanitizer's library."""
    command = ["gcc", f"-print-file-name=lib{name}.so"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def report_of(scratch: Path, environment: dict[str, str], number: int, run: Run) -> str:
    """What is wrong with a run, "" if nothing is."""
    compiled, *arguments = run
    log = scratch / f"report_{number}"
    chosen = {
        **environment,
        **({} if compiled else {"NH_CONTROL_CC": ""}),
        "ASAN_OPTIONS": f"detect_leaks=0:verify_asan_link_order=0:log_path={log}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={log}",
    }
    done = subprocess.run(
        [sys.executable, *arguments], cwd=scratch, env=chosen, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    reports = [report.read_text() for report in sorted(scratch.glob(f"{log.name}.*"))]
    return "\n".join([done.stdout[-3000:], *reports]) if done.returncode or reports else ""


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(prog="python test/sanitize", description=__doc__)
    parser.add_argument("--sample", action="store_true", help="a few systems only")
    runs, begun = SAMPLE if parser.parse_args().sample else ALL, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="nh_control_sanitize_") as folder:
        scratch, failed = Path(folder), 0
        work = partial(report_of, scratch, build(scratch))
        with ThreadPoolExecutor(2) as pool:
            for run, report in zip(runs, pool.map(work, range(len(runs)), runs)):
                failed += bool(report)
                after = f"after {time.monotonic() - begun:.0f} s"
                way = f"{'with' if run[0] else 'without'} a compiler, {' '.join(run[1:])}"
                print(f"{'FAILED' if report else 'passed'}, {after}: {way}")
                print(report, end="", flush=True)
    print(f"{failed} of {len(runs)} runs failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
