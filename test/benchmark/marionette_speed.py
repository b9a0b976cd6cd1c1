"""Speed of the marionette (80 states, 18 inputs, 6 constraints): calls from Python, compilation, start of a process, memory.

Run with `python -m pytest test/benchmark/marionette_speed.py -s`, with one BLAS thread. Calls are medians of repeated runs over states along the published motion,
fastest and slowest in brackets, in processor time of the thread; increments are differences of medians of the same run. Targets: a step in 60 us, A and B in 60 us
more, the contracted second derivative in 150 us; compilation under 60 s, a cached start under 3 s, less than 1 GB.
"""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import nh_control
import numpy as np
import pytest
from nh_control import compiled
from nh_control.scenarios.marionette import MARIONETTE

REPEATS, NODES = 9, 50
NEED_COMPILER = pytest.mark.skipif(compiled.compiler() is None, reason="needs a C compiler")
WORK = """
import resource, sys, time
began = time.perf_counter()
from nh_control.scenarios.marionette import MARIONETTE
model = MARIONETTE.model()
reference = MARIONETTE.reference(model)
x, u = reference.states[0], reference.inputs[0]
marks = [time.perf_counter()]
model.linearize(x, u); marks.append(time.perf_counter())
{more}
print(*(f"{{b - a:.2f}}" for a, b in zip([began, *marks], marks)), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
      resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""
SECOND = "model.hessian(x, u, x * 0); marks.append(time.perf_counter())"
TRACKER = "MARIONETTE.tracker(model, reference); marks.append(time.perf_counter())"


def per_call(run, nodes) -> list[float]:
    """Sorted seconds a call, over all nodes, of REPEATS runs."""
    for node in nodes[:3]:
        run(*node)
    seconds = []
    for _ in range(REPEATS):
        start = time.thread_time()
        for node in nodes:
            run(*node)
        seconds.append((time.thread_time() - start) / len(nodes))
    return sorted(seconds)


@NEED_COMPILER
def test_step_and_derivatives():
    model = MARIONETTE.model()
    reference = MARIONETTE.reference(model)
    nodes = [(reference.states[k], reference.inputs[k]) for k in np.linspace(0, len(reference) - 1, NODES).astype(int)]
    lam = np.random.default_rng(0).normal(size=model.ndx)
    runs = {"step": model.step, "step, A and B": model.linearize, "step, A, B and second derivative": lambda x, u: model.hessian(x, u, lam)}
    medians = {}
    print("\n\nmarionette, us a call from Python")
    for name, run in runs.items():
        seconds = np.array(per_call(run, nodes)) * 1e6
        medians[name] = np.median(seconds)
        print(f"  {name:34s} {medians[name]:7.1f} [{seconds[0]:.1f}, {seconds[-1]:.1f}]")
    step, first, second = medians.values()
    print(f"  A and B {first - step:.1f} us more, the contracted second derivative another {second - first:.1f} us")


def process(more: str, cache: Path) -> tuple[float, list[float]]:
    """Seconds of a whole Python process, and what it prints: seconds of its parts, its and its children's peak memory in MB."""
    environment = {**os.environ, "NH_CONTROL_CACHE": str(cache), "PYTHONPATH": str(Path(nh_control.__file__).parents[1])}
    start = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", WORK.format(more=more)], env=environment, capture_output=True, text=True, check=True)
    return time.perf_counter() - start, [float(value) for value in run.stdout.split()]


@NEED_COMPILER
def test_compilation_start_and_memory(tmp_path):
    print("\n\nmarionette, s of a process: whole; model and reference, first linearization, first second derivative or tracker; MB, of the compiler")
    for name, more in (("everything, nothing compiled", SECOND), ("everything, cached", SECOND), ("model, reference and tracker, cached", TRACKER)):
        whole, parts = process(more, tmp_path)
        print(f"  {name:38s} {whole:5.2f}; " + ", ".join(f"{part:.2f}" for part in parts[:-2]) + f"; {parts[-2]:.0f} MB, {parts[-1]:.0f} MB")
        assert max(parts[-2:]) < 1024
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2**20
