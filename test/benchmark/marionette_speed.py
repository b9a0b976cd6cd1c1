"""Speed of the marionette: 40 coordinates (22 dynamic, 18 prescribed), 6 strings; step, exact A
and B, contracted second derivative; and its first start.

    python test/benchmark/marionette_speed.py

Calls alternate along the published motion and are timed by the thread's processor time; the start
by the processor time of a separate process and the compilers it starts.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sizes import sized

import nh_control
from nh_control.integrators import midpoint
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.systems.marionette import marionette
from nh_control.systems.marionette_motion import PUBLISHED

H, STEPS, REPEATS = 0.01, *sized((40, 15), (2, 1))


def time_step_and_derivatives():
    dsys = midpoint(marionette(), H, "left")
    reference = PUBLISHED.reference(dsys)
    points = list(zip(reference.states[100 : 100 + STEPS], reference.inputs[100 : 100 + STEPS]))
    lam = np.random.default_rng(0).normal(size=dsys.ndx)
    calls = {
        "step": dsys.step,
        "step, A, B": dsys.linearize,
        "step, A, B, second derivative": lambda x, u: dsys.hessian(x, u, lam),
    }
    times = {name: [] for name in calls}
    for _ in range(REPEATS + 1):
        for name, call in calls.items():
            wait_for_compiler()
            start = time.thread_time()
            for x, u in points:
                call(x, u)
            times[name].append((time.thread_time() - start) / len(points) * 1e6)
    print("marionette, us a call from Python: median (least ... largest)")
    for name, t in times.items():
        print(f"  {name:32s} {np.median(t[1:]):7.1f} ({min(t[1:]):.1f} ... {max(t[1:]):.1f})")


START = """
import resource, time
from nh_control.integrators import midpoint
from nh_control.systems.marionette import initial_configuration, marionette
start = time.perf_counter()
dsys = midpoint(marionette(), 0.01, "left").prepare()
x = dsys.state(initial_configuration(), [0.0] * 40)
dsys.hessian(x, dsys.configuration(x)[22:], [1.0] * 80)
wall = time.perf_counter() - start
own = resource.getrusage(resource.RUSAGE_SELF)
compilers = resource.getrusage(resource.RUSAGE_CHILDREN)
print(wall, own.ru_utime + compilers.ru_utime, own.ru_maxrss / 1024, compilers.ru_maxrss / 1024)
"""


def time_start(cache):
    """With an empty cache and with a full one; the short form measures the second start alone."""
    environment = {
        **os.environ,
        **sized({"NH_CONTROL_CACHE": cache}, {}),
        "PYTHONPATH": str(Path(nh_control.__file__).parents[1]),
    }
    print(
        "\nmarionette, everything built by a process: s, s of processor time, MB of the process, "
        "MB of its largest compiler"
    )
    for what in ("empty cache", "cached")[sized(0, 1) :]:
        run = subprocess.run(
            [sys.executable, "-c", START],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        wall, cpu, own, compilers = map(float, run.stdout.split())
        print(f"  {what:12s} {wall:6.1f} {cpu:6.1f} {own:7.0f} {compilers:7.0f}")


if __name__ == "__main__":
    time_step_and_derivatives()
    with tempfile.TemporaryDirectory() as folder:
        time_start(folder)
