"""Basin of the hover LQR of two quadrotors with a payload: seeded starts 0.5 m away, with links
swung by 30 and quadrotors tilted by 60 degrees, times a scale, all in one `nh.rollout`.

Run with `python test/benchmark/monte_carlo_hover.py [--starts 1000] [--scales 1 1.5 2] [--threads
N] [--compare]`. A start counts as recovered if after 8 s the payload is within 1 cm of its target.
The seeds 0, 1, ... determine the directions, so a run repeats exactly. `--compare` also makes the
same runs step by step from Python in a pool of processes; both results must be identical to the
bit.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from functools import cache, partial
from multiprocessing import get_context

import numpy as np
from rich.progress import Progress, track
from sizes import sized

import nh_control as nh
from nh_control.discrete.results import StepFailed
from nh_control.scenarios.quadrotor_payload import QUADROTOR_PAYLOAD, PayloadPerturbation

POSITION_M, SWING_RAD, TILT_RAD = 0.5, np.pi / 6, np.pi / 3
STEPS, CLOSE_M = sized(800, 100), 0.01


@cache
def hover() -> nh.LqrTracker:
    """Return the tracker, made once per process."""
    model = QUADROTOR_PAYLOAD.model()
    return QUADROTOR_PAYLOAD.tracker(model, QUADROTOR_PAYLOAD.reference(model, "hover"))


def start(scale: float, seed: int) -> np.ndarray:
    """Return the initial state of this seed."""
    error = PayloadPerturbation(
        scale * POSITION_M, seed=seed, swing=scale * SWING_RAD, tilt=scale * TILT_RAD
    )
    return QUADROTOR_PAYLOAD.perturb(hover().dsys, hover().reference.states[0], error)


def ends(scale: float, starts: int, threads: int) -> np.ndarray:
    """Return the final tracking errors of the seeds 0 ... starts - 1, (starts, ndx), NaN after a
    failed step.
    """
    x0s = [start(scale, seed) for seed in range(starts)]
    with Progress(transient=True) as bar:
        shown = bar.add_task(f"scale {scale:g}", total=starts)
        runs = nh.rollout(
            hover().dsys,
            x0s,
            hover(),
            steps=STEPS,
            every=STEPS,
            threads=threads,
            progress=lambda n: bar.update(shown, completed=n),
        )
    return runs.errors[:, -1]


def end_step_by_step(scale: float, seed: int) -> np.ndarray:
    """Return the final tracking error of a seed, by steps from Python."""
    tracker, x = hover(), start(scale, seed)
    for k in range(STEPS):
        command = tracker.command(k, x)
        try:
            x = tracker.dsys.step(x, command.u)
        except StepFailed:
            return np.full(tracker.dsys.ndx, np.nan)
        tracker.dsys.energy(x)  # as every closed loop notes it
    return tracker.command(STEPS, x).error


def ends_step_by_step(scale: float, starts: int, processes: int) -> np.ndarray:
    """Return the same as `ends`, by a pool of processes."""
    with get_context("spawn").Pool(processes, hover) as pool:
        runs = pool.imap(partial(end_step_by_step, scale), range(starts), chunksize=10)
        return np.array(list(track(runs, f"scale {scale:g}", total=starts, transient=True)))


def timed(run: Callable[[], np.ndarray]) -> tuple[np.ndarray, float, float]:
    """Return the result of `run`, and wall time and processor time in s, including its
    processes.
    """

    def processor() -> float:
        used = (
            resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        return sum(u.ru_utime + u.ru_stime for u in used)

    wall, busy = time.perf_counter(), processor()
    result = run()
    return result, time.perf_counter() - wall, processor() - busy


def interval(successes: int, runs: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a fraction."""
    f, c = successes / runs, z**2 / runs
    half = z * np.sqrt(f * (1 - f) / runs + c / (4 * runs))
    return (f + c / 2 - half) / (1 + c), (f + c / 2 + half) / (1 + c)


def report(scale: float, good: np.ndarray) -> None:
    """Print the fraction of recoveries."""
    low, high = interval(int(good.sum()), len(good))
    lost = np.flatnonzero(~good).tolist()
    seeds = f"; seeds that do not: {lost[:10]}{' ...' if len(lost) > 10 else ''}" if lost else ""
    print(
        f"{scale * POSITION_M:.2f} m, {np.degrees(scale * SWING_RAD):.0f} deg swing, "
        f"{np.degrees(scale * TILT_RAD):.0f} deg tilt: {good.mean():.1%} recover "
        f"(95 %: {low:.1%} ... {high:.1%}){seeds}"
    )


def main() -> None:
    """Print the fraction of recoveries and the time at every scale."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=sized(1000, 4))
    parser.add_argument(
        "--scales", type=float, nargs="+", default=sized([1.0, 1.25, 1.5, 2.0], [1.0])
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--compare", action="store_true")
    args = parser.parse_args()
    print(f"{args.starts} starts, {STEPS} steps each, {args.threads} threads")
    ways = {"rollout": ends, "step by step": ends_step_by_step}
    hover().dsys.native()  # compiled before anything is timed
    for scale in args.scales:
        results = {}
        for name, way in ways.items() if args.compare else [("rollout", ends)]:
            results[name], wall, busy = timed(partial(way, scale, args.starts, args.threads))
            each = 1e6 * busy / (args.starts * STEPS)
            print(f"{name}: {wall:.1f} s, {busy:.1f} s of processors, {each:.2f} us a step")
        errors = results["rollout"]
        if args.compare:
            np.testing.assert_array_equal(errors, results["step by step"])
        report(scale, np.linalg.norm(errors[:, :3], axis=1) < CLOSE_M)


if __name__ == "__main__":
    main()
