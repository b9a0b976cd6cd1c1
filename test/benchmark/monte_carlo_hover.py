"""Basin of the hover LQR of two quadrotors with a payload: seeded starts 0.5 m away with links
swung by 30 and quadrotors tilted by 60 degrees, times a scale.

Run with
`python test/benchmark/monte_carlo_hover.py [--starts 1000] [--scales 1 1.5 2] [--processes N]`. A
start counts as recovered if after 8 s the payload is within 1 cm of its place. Directions are
drawn from the seeds 0, 1, ..., so a run repeats exactly.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from multiprocessing import get_context

import numpy as np
from rich.progress import track

from nh_control.runs.simulation import closed_loop
from nh_control.scenarios.quadrotor_payload import QUADROTOR_PAYLOAD, PayloadPerturbation

POSITION_M, SWING_RAD, TILT_RAD = 0.5, np.pi / 6, np.pi / 3
STEPS, CLOSE_M = 800, 0.01

_hover = None


def prepare() -> None:
    """Build the tracker, once a process."""
    global _hover
    model = QUADROTOR_PAYLOAD.model()
    _hover = QUADROTOR_PAYLOAD.tracker(model, QUADROTOR_PAYLOAD.reference(model, "hover"))


def recovers(scale: float, seed: int) -> bool:
    """Whether hover is recovered from the start of that seed."""
    model, reference = _hover.dsys, _hover.reference
    error = PayloadPerturbation(
        scale * POSITION_M, seed=seed, swing=scale * SWING_RAD, tilt=scale * TILT_RAD
    )
    result = closed_loop(
        model, _hover, QUADROTOR_PAYLOAD.perturb(model, reference.states[0], error), STEPS
    )
    return result.failure is None and bool(np.linalg.norm(result.errors[-1, :3]) < CLOSE_M)


def monte_carlo(scale: float, starts: int, processes: int) -> np.ndarray:
    """Which of the seeds 0 ... starts - 1 recover, (starts), in parallel with a progress bar."""
    with get_context("spawn").Pool(processes, prepare) as pool:
        runs = pool.imap(partial(recovers, scale), range(starts), chunksize=10)
        return np.array(list(track(runs, f"scale {scale:g}", total=starts)))


def interval(successes: int, runs: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95 % interval of a fraction."""
    f, c = successes / runs, z**2 / runs
    half = z * np.sqrt(f * (1 - f) / runs + c / (4 * runs))
    return (f + c / 2 - half) / (1 + c), (f + c / 2 + half) / (1 + c)


def main() -> None:
    """Print the fraction of recoveries at every scale."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=1000)
    parser.add_argument("--scales", type=float, nargs="+", default=[1.0, 1.25, 1.5, 2.0])
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    args = parser.parse_args()
    print(f"{args.starts} starts, {STEPS} steps each, {args.processes} processes")
    for scale in args.scales:
        start = time.perf_counter()
        good = monte_carlo(scale, args.starts, args.processes)
        low, high = interval(int(good.sum()), args.starts)
        sizes = (
            f"{scale * POSITION_M:.2f} m, {np.degrees(scale * SWING_RAD):.0f} deg swing, "
            f"{np.degrees(scale * TILT_RAD):.0f} deg tilt"
        )
        lost = np.flatnonzero(~good).tolist()
        print(
            f"{sizes}: {good.mean():.1%} recover (95 %: {low:.1%} ... {high:.1%}) in "
            f"{time.perf_counter() - start:.1f} s"
            + (
                f"; seeds that do not: {lost[:10]}{' ...' if len(lost) > 10 else ''}"
                if lost
                else ""
            )
        )


if __name__ == "__main__":
    main()
