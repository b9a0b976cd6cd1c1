"""Speed of the snakeboard: steps and derivatives, compiled and in CasADi's virtual machine;
compared with scipy at equal accuracy; start of a process; first calls.

    python test/benchmark/snakeboard_speed.py

Every number is a median of repeated runs, with the
fastest and the slowest in brackets. Calls are timed by the thread's processor time, which other
programs disturb less and which equals the wall time on an idle machine; processes by the wall
clock.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
from scipy.integrate import solve_ivp
from sizes import sized

sys.path.append(str(Path(__file__).parents[1]))
import continuous  # noqa: E402

import nh_control
from nh_control.integrators import nonholonomic_midpoint, rdp
from nh_control.numerics import compiled
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.systems import snakeboard

REPEATS = sized(7, 1)
H = 0.01
METHODS = {
    "nonholonomic midpoint": nonholonomic_midpoint,
    **sized({"rdp": rdp, "rdp cay": lambda s, h: rdp(s, h, "cay")}, {}),
}
Q, V = (
    np.array([0.2, 0.4, 0.3, 0.0, 0.0]),
    np.array([1.7, -0.5, -0.8 * np.sin(0.4), 1.6 * np.cos(0.4), 0.0]),
)


def torques(t):
    return 1.5 * np.cos(2.0 * t), 1.2 * np.sin(1.5 * t)


class Times:
    """Seconds of repeated runs, printed as median [min, max] in a unit."""

    def __init__(self, seconds):
        self.seconds = sorted(seconds)
        self.median = float(np.median(self.seconds))

    def text(self, unit=1e-6, digits=1):
        return "{:.{d}f} [{:.{d}f}, {:.{d}f}]".format(
            *(t / unit for t in (self.median, self.seconds[0], self.seconds[-1])), d=digits
        )


def measure(run, calls=1, repeats=REPEATS) -> Times:
    run()
    seconds, calls = [], sized(calls, 1)
    for _ in range(repeats):
        wait_for_compiler()
        start = time.thread_time()
        for _ in range(calls):
            run()
        seconds.append((time.thread_time() - start) / calls)
    return Times(seconds)


def table(title, head, rows):
    widths = [max(len(str(row[i])) for row in (head, *rows)) for i in range(len(head))]
    print(f"\n\n{title}")
    for row in (head, tuple("-" * w for w in widths), *rows):
        print("  " + "  ".join(str(cell).ljust(w) for cell, w in zip(row, widths)))


def time_step_and_derivatives():
    rows = []
    for name, make in METHODS.items():
        for way in ("compiled", "virtual machine"):
            dsys = make(snakeboard(), H)
            x, u, lam = dsys.state(Q, V), np.array(torques(0.0)), np.ones(dsys.ndx)
            calls = 2000 if way == "compiled" else 50
            runs = (
                lambda: dsys.step(x, u),
                lambda: dsys.linearize(x, u),
                lambda: dsys.hessian(x, u, lam),
            )
            if way == "compiled":
                times = [measure(r, calls) for r in runs]
            else:
                with patch.object(compiled, "compiler", lambda: None):
                    dsys = make(snakeboard(), H)
                    times = [measure(r, calls) for r in runs]
            rows.append((name, way, *(t.text() for t in times)))
    table(
        "snakeboard, us a call from Python",
        ("integrator", "", "step", "step + linearize", "step + hessian"),
        rows,
    )


DURATION = sized(10.0, 0.5)


def adaptive(method, tolerance, x0, rates, u, times):
    return solve_ivp(rates, times, x0, method, args=(u,), rtol=tolerance, atol=tolerance)


def equal_accuracy(method, x0, rates, reference, error):
    """Return the largest tolerance of the form 10^(-k/10) whose final error is at most `error`."""
    for k in range(20, 131):
        tolerance = 10.0 ** (-k / 10)
        if (
            np.abs(
                adaptive(method, tolerance, x0, rates, torques, (0, DURATION)).y[:, -1] - reference
            ).max()
            <= error
        ):
            return tolerance
    raise AssertionError(f"{method} does not reach {error:.1e}")


def compare_with_scipy():
    """A smooth input over 10 s (which lets scipy choose its steps), and the same input constant
    for 10 ms at a time, as under a controller.
    """
    rates = continuous.snakeboard_reduced()
    rows, held = [], []
    for h in sized((0.01, 0.0025), (0.01, 0.005)):
        dsys = nonholonomic_midpoint(snakeboard(), h)
        x0, n = dsys.state(Q, V), round(DURATION / h)
        inputs = np.array([torques((k + 0.5) * h) for k in range(n)])
        reference = adaptive("DOP853", 1e-13, x0, rates, torques, (0, DURATION)).y[:, -1]
        error = np.abs(dsys.simulate(x0, inputs).states[-1] - reference).max()
        ours = measure(lambda: dsys.simulate(x0, inputs))
        rows.append((f"midpoint, h = {h:g}", f"{error:.1e}", n, "-", ours.text(1e-3, 2), "1"))
        for method in ("RK45", "DOP853"):
            tolerance = equal_accuracy(method, x0, rates, reference, error)
            run = adaptive(method, tolerance, x0, rates, torques, (0, DURATION))
            theirs = measure(
                lambda: adaptive(method, tolerance, x0, rates, torques, (0, DURATION))
            )
            off = np.abs(run.y[:, -1] - reference).max()
            rows.append(
                (
                    f"{method}, {tolerance:.0e}",
                    f"{off:.1e}",
                    len(run.t) - 1,
                    run.nfev,
                    theirs.text(1e-3, 2),
                    f"{theirs.median / ours.median:.2f}",
                )
            )
    dsys = nonholonomic_midpoint(snakeboard(), H)
    x0, u = dsys.state(Q, V), np.array(torques(0.0))
    exact = adaptive("DOP853", 1e-13, x0, rates, lambda t: u, (0, H)).y[:, -1]
    ours = measure(lambda: dsys.step(x0, u), 2000)
    error = np.abs(dsys.step(x0, u) - exact).max()
    held.append(("midpoint", f"{error:.1e}", ours.text(), "1"))
    for method in ("RK45", "DOP853"):
        off = lambda tolerance: np.abs(
            adaptive(method, tolerance, x0, rates, lambda _: u, (0, H)).y[:, -1] - exact
        ).max()
        tolerance = next(t for t in 10.0 ** -np.arange(1.0, 14.0) if off(t) <= error)
        theirs = measure(lambda: adaptive(method, tolerance, x0, rates, lambda _: u, (0, H)), 20)
        held.append(
            (
                f"{method}, {tolerance:.0e}",
                f"{off(tolerance):.1e}",
                theirs.text(),
                f"{theirs.median / ours.median:.0f}",
            )
        )
    table(
        "snakeboard, 10 s with a smooth input, equal error at the end",
        ("method", "error", "steps", "evaluations", "ms", "times ours"),
        rows,
    )
    table(
        "snakeboard, one control period of 10 ms with a held input",
        ("method", "error", "us", "times ours"),
        held,
    )


START = """
import sys, time
imported = time.perf_counter()
{imports}
began = time.perf_counter()
{work}
print(began - imported, time.perf_counter() - began)
"""
WORKS = {
    "first step": (
        "from nh_control.integrators import nonholonomic_midpoint\nfrom nh_control.systems "
        "import snakeboard",
        "d = nonholonomic_midpoint(snakeboard(), 0.01)\nd.step(d.state([0.0] * 5, [0.0] * 5), "
        "[0.0, 0.0])",
    ),
    "scenario with reference and tracker": (
        "from nh_control import scenarios",
        "s = scenarios.get('snakeboard')\nm = s.model()\nr = s.reference(m)\nt = s.tracker(m, "
        "r)\nt.command(0, r.states[0])",
    ),
}


def process_times(code, cache) -> tuple[float, float, float]:
    """Return seconds of a whole Python process, of its imports and of its work."""
    environment = {
        **os.environ,
        "NH_CONTROL_CACHE": str(cache),
        "PYTHONPATH": str(Path(nh_control.__file__).parents[1]),
    }
    wait_for_compiler()
    start = time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, *map(float, run.stdout.split()[-2:])


def time_start_of_a_process(work, cache):
    code = START.format(imports=WORKS[work][0], work=WORKS[work][1])
    cold = process_times(code, cache)
    warm = list(zip(*(process_times(code, cache) for _ in range(REPEATS))))
    rows = [
        ("empty cache, once", *(f"{t:.2f}" for t in cold)),
        ("cached", *(Times(t).text(1.0, 2) for t in warm)),
    ]
    table(f"start of a process: {work}, s", ("", "whole process", "imports", "work"), rows)


def time_compilation(folder):
    """Measure the time to build and compile a step, state conversions, linearization and
    Hessian.
    """
    rows = []
    for name, make in METHODS.items():
        cells = []
        for what in ("step", "state", "linearize", "hessian"):
            seconds = []
            for repeat in range(sized(3, 1)):
                os.environ["NH_CONTROL_CACHE"] = str(folder / name / what / str(repeat))
                dsys = make(snakeboard(), H)
                x, u = np.concatenate([Q, [1.0, 0.5, 2.0]]), np.zeros(2)
                if what in ("linearize", "hessian"):
                    dsys.step(x, u)
                if what == "hessian":
                    dsys.linearize(x, u)
                calls = {
                    "step": lambda: dsys.step(x, u),
                    "state": lambda: dsys.state(Q, V),
                    "linearize": lambda: dsys.linearize(x, u),
                }
                run = calls.get(what, lambda: dsys.hessian(x, u, np.zeros(8)))
                wait_for_compiler()
                start = time.perf_counter()
                run()
                first = time.perf_counter() - start
                wait_for_compiler()
                seconds.append((first, time.perf_counter() - start))
            cells.append(", ".join(Times(column).text(1.0, 2) for column in zip(*seconds)))
        rows.append((name, *cells))
    table(
        "first call with an empty cache, and until its functions are compiled; s",
        ("integrator", "step", "state", "linearize", "hessian"),
        rows,
    )


if __name__ == "__main__":
    time_step_and_derivatives()
    compare_with_scipy()
    with tempfile.TemporaryDirectory() as folder:
        for work in WORKS:
            time_start_of_a_process(work, Path(folder) / "starts")
        time_compilation(Path(folder))
