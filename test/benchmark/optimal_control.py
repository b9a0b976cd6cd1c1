"""Time of an iteration of the native interior point method, beside IPOPT (`nh.collocate`) and the
projection operator of [johnson2014], and guesses that reach the goal, in one run.

    python test/benchmark/optimal_control.py [NAME ...] [--guesses 10] [--mpc]
        [--crocoddyl PYTHON]

Times are milliseconds of this thread for an iteration: of the native solver alone, of
`nh.optimize` with everything that it prepares, of `nh.collocate`, and of `method="newton"` without
limits. "reached" counts the perturbed guesses whose optimum ends within 0.1 of the goal,
"iterations" are median and most. With --mpc also a step of `nh.MpcTracker` with 50 nodes about the
goal, at 99 %; with --crocoddyl, the Python of an environment that has crocoddyl, the milliseconds
of an iteration of its FDDP by RK4 and by Euler, measured next, and ours as parts of these.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sizes import SHORT, sized

sys.path.append(str(Path(__file__).parents[1] / "optimal"))


def native_ms(p, guess, runs: int) -> tuple[float, int]:
    """Milliseconds of an iteration from a guess, and iterations: the best of some runs."""
    from nh_control.control.optimal import interior_point
    from nh_control.control.optimal.layout import Outcome
    from nh_control.control.optimal.transcription import Problem, Transcription
    from nh_control.discrete.step_routines import has_fast_hessian

    curved = has_fast_hessian(p.dsys)
    native = Transcription(Problem(p.dsys, p.cost, p.steps, p.limits, curved=curved))
    best = np.inf
    for _ in range(runs):
        native.record.mu, native.record.mu_end, native.record.tolerance = 0.1, 1e-7, 1e-6
        native.record.widest = interior_point.WIDEST
        interior_point.start(native, guess)
        count, begin = 0, time.thread_time()
        for _ in range(500):
            count += 1
            if native.call("ocp_iterate") != Outcome.GOES_ON:
                break
        best = min(best, 1e3 * (time.thread_time() - begin) / count)
    return best, count


def timed(solve) -> float:
    """Milliseconds of an iteration of an optimization, once everything is compiled."""
    begin = time.thread_time()
    found = solve()
    return 1e3 * (time.thread_time() - begin) / max(1, len(found.history))


def mpc_ms(p, steps: int) -> float:
    """Milliseconds of a step of model predictive control about the goal, 99 % of them."""
    import nh_control as nh

    d, n = p.dsys, steps + 50
    rest = nh.Trajectory(d.h, np.tile(p.goal, (n + 1, 1)), np.tile(p.held, (n, 1)))
    Q, R, Qf = p.weights
    mpc = nh.MpcTracker(d, rest, Q, R, Qf, horizon_s=50 * d.h, limits=p.limits)
    x, memory = d.retract(p.goal, np.full(d.ndx, 0.02)), None
    times = []
    for k in range(steps):
        begin = time.thread_time()
        command = mpc.command(k, x, memory)
        times.append(1e3 * (time.thread_time() - begin))
        x, memory = d.step(x, command.u), command.memory
    return float(np.percentile(times[1:], 99))


def crocoddyl_ms(python: str, name: str) -> dict[str, float]:
    """Milliseconds of an iteration of crocoddyl's FDDP by RK4 and Euler."""
    from swing_ups import ur5e_file

    urdf = [str(ur5e_file())] if name == "ur5e" else []
    script = str(Path(__file__).with_name("crocoddyl_fddp.py"))
    one = os.environ | {"OMP_NUM_THREADS": "1"}
    made = subprocess.run(
        [python, script, name, *urdf], env=one, capture_output=True, text=True, check=True
    )
    return json.loads(made.stdout)


def main() -> None:
    from swing_ups import NAMES, problem

    import nh_control as nh

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=sized(list(NAMES), ["pendulum"]))
    parser.add_argument("--guesses", type=int, default=sized(10, 1))
    parser.add_argument("--mpc", action="store_true")
    parser.add_argument("--crocoddyl", metavar="PYTHON")
    options = parser.parse_args()
    print("  problem   native  optimize  collocate  newton  reached  iterations" + "     mpc")
    for name in options.names:
        if name == "ur5e" and find_spec("airo_models") is None:
            print(f"{name:>9}  needs airo-models")
            continue
        p = problem(name)
        d, cost, first = p.dsys, p.cost, p.guess(0)
        most = {"max_iterations": 10}
        whole = dict(limits=p.limits, tolerance=1e-6)
        nh.optimize(d, cost, first, **whole, max_iterations=1)
        each, _ = native_ms(p, first, sized(5, 1))
        wrapped = timed(lambda: nh.optimize(d, cost, first, **whole))
        ipopt = timed(lambda: nh.collocate(d, cost, first, limits=p.limits, **most))
        weights = np.eye(d.ndx), np.eye(d.nu)
        feasible = d.simulate(p.x0, np.tile(p.held, (p.steps, 1)))
        newton = timed(lambda: nh.optimize(d, cost, feasible, *weights, "newton", **most))
        reached, iterations = 0, []
        for seed in range(options.guesses):
            found = nh.optimize(d, cost, p.guess(seed), **whole)
            reached += found.converged and p.misses(found.trajectory.states[-1]) < 0.1
            iterations.append(len(found.history))
        text = f"{name:>9} {each:8.3f} {wrapped:9.3f} {ipopt:10.2f} {newton:7.2f} "
        text += f"{reached:5d}/{options.guesses:<2d} "
        text += f"{int(np.median(iterations)):7d} {max(iterations):4d}"
        if options.mpc or SHORT:
            text += f" {mpc_ms(p, sized(300, 5)):7.3f}"
        if options.crocoddyl:
            theirs = crocoddyl_ms(options.crocoddyl, name)
            each = min(each, native_ms(p, first, sized(5, 1))[0])
            text += f"  {each:.3f} ms"
            for kind, ms in theirs.items():
                text += f", {each / ms:.2f} of {kind}'s {ms:.3f}"
        print(text, flush=True)


if __name__ == "__main__":
    main()
