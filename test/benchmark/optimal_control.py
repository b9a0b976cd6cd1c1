"""Time of an iteration of the native interior point method, beside IPOPT (`nh.collocate`) and the
projection operator of [johnson2014], and guesses that reach the goal, in one run.

    python test/benchmark/optimal_control.py [NAME ...] [--guesses 10] [--mpc]
        [--crocoddyl PYTHON] [--humanoid] [--calls] [--threads N]

Times are milliseconds of this thread for an iteration: of the native solver alone, of
`nh.optimize` with everything that it prepares, of `nh.collocate`, and of `method="newton"` without
limits. "reached" counts the perturbed guesses whose optimum ends within 0.1 of the goal,
"iterations" are median and most. With --mpc also a step of `nh.MpcTracker` with 50 nodes about the
goal, at 99 %; with --crocoddyl, the Python of an environment that has crocoddyl, the milliseconds
of an iteration of its FDDP by RK4 and by Euler, measured next, and ours as parts of these; of the
swing-ups also the seconds for all guesses, and those that reach the goal, of BoxFDDP and ours.
With --calls and --crocoddyl alone whole calls from rest without limits, in milliseconds with all
set-up: the first one of this process (with libraries that are compiled), one with other numbers,
one with a single iteration, which is set-up but for that, one of a prepared problem, and
crocoddyl's, with the set-up of its shooting problem.
With --humanoid and --crocoddyl alone iterations of JVRC-1, 20 and 50 nodes; with --threads these
by one thread and by N in turns, in wall time, and in processor time of the thread that waits for
the others, which is what remains of an iteration where processors are idle.
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
    from nh_control.numerics.compiled import wait_for_compiler

    curved = has_fast_hessian(p.dsys)
    native = Transcription(Problem(p.dsys, p.cost, p.steps, p.limits, curved=curved))
    best = np.inf
    for _ in range(runs):
        native.record.mu, native.record.mu_end, native.record.tolerance = 0.1, 1e-7, 1e-6
        native.record.widest = interior_point.WIDEST
        interior_point.start(native, guess)
        wait_for_compiler()
        count, begin = 0, time.thread_time()
        for _ in range(500):
            count += 1
            if native.call("nh_ocp_iterate") != Outcome.GOES_ON:
                break
        best = min(best, 1e3 * (time.thread_time() - begin) / count)
    return best, count


def timed(solve) -> float:
    """Milliseconds of an iteration of an optimization, once everything is compiled."""
    from nh_control.numerics.compiled import wait_for_compiler

    wait_for_compiler()
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


def crocoddyl_ms(python: str, name: str) -> dict[str, tuple[float, float, int, float]]:
    """Milliseconds of an iteration and of a call of crocoddyl's FDDP by RK4 and Euler,
    iterations, and the cost that it finds.
    """
    from swing_ups import jvrc1_file, ur5e_file

    files = {"ur5e": ur5e_file, "jvrc1": jvrc1_file}
    urdf = [str(file()) for of, file in files.items() if name.startswith(of)]
    script = str(Path(__file__).with_name("crocoddyl_fddp.py"))
    one = os.environ | {"OMP_NUM_THREADS": "1"}
    made = subprocess.run([python, script, name, *urdf], env=one, capture_output=True, text=True)
    if made.returncode:
        raise RuntimeError(made.stderr)
    return json.loads(made.stdout)


def box_text(python: str, name: str, p, guesses: list, seconds: float, reached: int) -> str:
    """Seconds of BoxFDDP beside ours from the same guesses."""
    passive = {"cart_pole": 1, "acrobot": 0}.get(name)

    def inputs(u: np.ndarray) -> list[float]:
        return u.tolist() if passive is None else np.insert(u, passive, 0.0).tolist()

    d, n = p.dsys, p.dsys.system.space.nq
    given = [
        ([[*x[:n], *d.velocity(x)] for x in g.states], [inputs(u) for u in g.inputs])
        for g in guesses
    ]
    made = subprocess.run(
        [python, str(Path(__file__).with_name("crocoddyl_fddp.py")), name, "--box"],
        input=json.dumps({"limit": p.bounds[0, 1], "guesses": given}),
        **dict(env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True),
        check=True,
    )
    text = f"\n          swing-ups: ours {reached}/{len(guesses)} in {seconds:.3f} s"
    for kind, runs in json.loads(made.stdout).items():
        total, good = sum(run[0] for run in runs), sum(run[2] for run in runs)
        text += f", BoxFDDP by {kind} {good}/{len(runs)} in {total:.3f} s ({seconds / total:.2f})"
    return text


def humanoid(python: str) -> None:
    """Milliseconds of an iteration of JVRC-1, beside crocoddyl's."""
    from swing_ups import problem

    for nodes in (20, 50):
        p = problem(f"jvrc1_{nodes}")
        each, _ = native_ms(p, p.guess(0, 3e-4), sized(3, 1))
        text = f"  jvrc1, {nodes} nodes: {each:.3f} ms"
        for kind, (ms, *_) in crocoddyl_ms(python, f"jvrc1_{nodes}").items():
            text += f", {each / ms:.2f} of {kind}'s {ms:.3f}"
        print(text, flush=True)


def call_ms(name: str) -> dict[str, float]:
    """Milliseconds of whole calls from rest without limits: the first one, one with a known
    structure, an iteration of it, one with a single iteration, and one of a prepared problem;
    iterations, and the cost that is found.
    """
    from swing_ups import problem

    import nh_control as nh
    from nh_control.numerics.compiled import wait_for_compiler

    def best(solve) -> tuple[float, int]:
        times = []
        for _ in range(sized(20, 2)):
            begin = time.process_time()
            found = solve()
            times.append(1e3 * (time.process_time() - begin))
        return min(times), len(found.history)

    p = problem(name)
    d, n, (Q, R, Qf) = p.dsys, p.steps, p.weights
    d.prepare(hessian=True)
    rest, goal = (
        nh.Trajectory(d.h, np.tile(x, (n + 1, 1)), np.tile(p.held, (n, 1))) for x in (p.x0, p.goal)
    )
    # of velocities, as crocoddyl's
    cost = nh.quadratic_cost(d, goal, d.h * np.diag(Q), d.h * R, np.diag(Qf))
    begin = time.process_time()
    found = nh.optimize(d, cost, rest, tolerance=1e-6)
    first = 1e3 * (time.process_time() - begin)
    wait_for_compiler()
    known, count = best(lambda: nh.optimize(d, cost, rest, tolerance=1e-6))
    single, _ = best(lambda: nh.optimize(d, cost, rest, max_iterations=1))
    out = {"first": first, "known": known, "each": known / max(1, count), "single": single}
    if hasattr(nh, "OptimalControl"):
        control = nh.OptimalControl(d, cost, n)
        out["prepared"], _ = best(lambda: control.solve(guess=rest, tolerance=1e-6))
    return out | {"iterations": count, "cost": found.cost}


def calls(python: str, names: list[str]) -> None:
    """Milliseconds of whole calls, beside crocoddyl's."""
    print("  problem     first   known  single prepared  iterations")
    for name in names:
        o = call_ms(name)
        text = f"{name:>9} {o['first']:9.1f} {o['known']:7.2f} {o['single']:7.2f} "
        text += f"{o['prepared']:8.2f} {o['iterations']:11d}  cost {o['cost']:.4f}"
        for kind, (_, ms, theirs, lowest) in crocoddyl_ms(python, name).items():
            text += f", {o['known'] / ms:.2f} of {kind}'s {ms:.2f} in {theirs} to {lowest:.4f}"
        print(text, flush=True)


def by_threads(most: int) -> None:
    """Milliseconds of linearizations and iterations of JVRC-1 by one thread and by several."""
    from swing_ups import problem

    from nh_control.control.optimal import interior_point
    from nh_control.control.optimal.transcription import Problem, Transcription

    for nodes in (20, 50):
        p = problem(f"jvrc1_{nodes}")
        solvers = {
            n: Transcription(Problem(p.dsys, p.cost, p.steps, p.limits, curved=False, threads=n))
            for n in (1, most)
        }
        spent: dict[tuple[int, str], list[tuple[float, float]]] = {}
        for _ in range(sized(20, 1)):
            for n, native in solvers.items():
                native.record.mu, native.record.mu_end, native.record.tolerance = 0.1, 1e-7, 1e-6
                native.record.widest = interior_point.WIDEST
                interior_point.start(native, p.guess(0, 3e-4))
                for routine in ("nh_ocp_measure", "nh_ocp_iterate"):
                    wall, own = time.perf_counter(), time.thread_time()
                    native.call(routine)
                    took = time.perf_counter() - wall, time.thread_time() - own
                    spent.setdefault((n, routine), []).append(took)
        for (n, routine), times in spent.items():
            wall_ms, own_ms = 1e3 * np.median(times, axis=0)
            print(
                f"  jvrc1, {nodes} nodes, {n} threads, {routine}: {wall_ms:.3f} ms, {own_ms:.3f}"
            )


def main() -> None:
    from swing_ups import NAMES, problem

    import nh_control as nh

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=sized(list(NAMES), ["pendulum"]))
    parser.add_argument("--guesses", type=int, default=sized(10, 1))
    parser.add_argument("--mpc", action="store_true")
    parser.add_argument("--crocoddyl", metavar="PYTHON")
    parser.add_argument("--humanoid", action="store_true")
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    if options.threads:
        by_threads(options.threads)
        return
    if options.calls and options.crocoddyl:
        calls(options.crocoddyl, options.names)
        return
    if options.humanoid and options.crocoddyl:
        humanoid(options.crocoddyl)
        return
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
        reached, iterations, seconds = 0, [], 0.0
        for seed in range(options.guesses):
            guess, begin = p.guess(seed), time.thread_time()
            found = nh.optimize(d, cost, guess, **whole)
            seconds += time.thread_time() - begin
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
            for kind, (ms, *_) in theirs.items():
                text += f", {each / ms:.2f} of {kind}'s {ms:.3f}"
            if name in ("pendulum", "cart_pole", "acrobot"):
                guesses = [p.guess(seed) for seed in range(options.guesses)]
                text += box_text(options.crocoddyl, name, p, guesses, seconds, reached)
        print(text, flush=True)


if __name__ == "__main__":
    main()
