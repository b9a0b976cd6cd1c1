"""Steps that are refused although a state 1e-15 away passes: every registered method on every
system that it takes, at random states and inputs.

    python test/benchmark/refused_steps.py [--steps 1300] [--system NAME ...] [--method NAME ...]

Each pair takes --steps steps, in runs of RUN steps from random states under constant inputs. Where
a step fails, it is tried again from the state itself and from NEIGHBORS states that differ by
1e-15. If one of these passes, the step was refused at round-off; otherwise it has no solution that
Newton's method finds, or leaves the domain where the model holds. Runs that diverge to more than
DIVERGED, as explicit methods do beside singular configurations, fail as well: neighbors at 1e-15
of an angle of 1e12 rad are far apart. Prints the pairs with failures, and the totals; the exit
code is 1 if a step was refused at round-off.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sizes import sized

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "core")]

from cases import SYSTEMS, random_point, symmetric_top  # noqa: E402

from nh_control import systems  # noqa: E402
from nh_control.discrete.results import StepFailed  # noqa: E402
from nh_control.discrete.system import DiscreteSystem  # noqa: E402
from nh_control.integrators import INTEGRATORS  # noqa: E402
from nh_control.systems.rigid_body import heavy_top, rigid_body  # noqa: E402
from nh_control.systems.spherical_pendulum import spherical_pendulum  # noqa: E402

H, RUN, NEIGHBORS, DISTANCE, DIVERGED = 0.02, 100, 20, 1e-15, 1e6
OTHERS = "acrobot", "cart_pole", "quadrotor", "satellite", "quadrotor_payload"
CONTACTS = "wet_car", "wet_snakeboard"
MAKE = {"symmetric_top": symmetric_top, "heavy_top": heavy_top, "rigid_body": rigid_body}
MAKE |= {"spherical_pendulum": spherical_pendulum, **SYSTEMS}
MAKE |= {name: getattr(systems, name) for name in (*OTHERS, *CONTACTS)}


def pairs(names: list[str], methods: list[str]) -> Iterator[tuple[str, str, DiscreteSystem]]:
    """Names and discrete systems of all pairs of these systems and methods."""
    for name in names:
        system = MAKE[name]()
        for method, integrator in INTEGRATORS.fitting(system).items():
            if method in methods:
                yield name, method, integrator(system, H)


def passes(dsys: DiscreteSystem, x: np.ndarray, u: np.ndarray) -> bool:
    """Whether the step from x (nx) under u (nu) has a solution."""
    try:
        dsys.step(x, u)
    except StepFailed:
        return False
    return True


def take(dsys: DiscreteSystem, count: int, rng: np.random.Generator) -> tuple[int, list, list]:
    """Take this number of steps; returns their number, and the errors of steps that were refused
    at round-off and of all other steps that failed.
    """
    done, refused, failed = 0, list[StepFailed](), list[StepFailed]()
    while done < count:
        x, u = random_point(dsys, rng)
        inputs = np.tile(u, (min(RUN, count - done), 1))
        try:
            dsys.simulate(x, inputs)
            done += len(inputs)
        except StepFailed as error:
            done += error.step + 1
            x = dsys.simulate(x, inputs[: error.step]).states[-1] if error.step else x
            off = DISTANCE * np.maximum(1, np.abs(x)) * rng.normal(size=(NEIGHBORS, len(x)))
            near = any(passes(dsys, neighbor, u) for neighbor in [x, *(x + off)])
            (refused if near and np.abs(x).max() < DIVERGED else failed).append(error)
    return done, refused, failed


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=sized(1300, 20))
    parser.add_argument(
        "--system", nargs="*", default=sized([*MAKE], ["pendulum", "symmetric_top"])
    )
    parser.add_argument("--method", nargs="*", default=sized([*INTEGRATORS], ["mean_value"]))
    args = parser.parse_args()
    total, at_round_off, others, count, start = 0, 0, 0, 0, time.monotonic()
    for name, method, dsys in pairs(args.system, args.method):
        done, refused, failed = take(dsys, args.steps, np.random.default_rng(count))
        total, count = total + done, count + 1
        at_round_off, others = at_round_off + len(refused), others + len(failed)
        for what, errors in (("refused at round-off", refused), ("failed", failed)):
            if errors:
                print(f"{name} by {method}: {len(errors)} of {done} {what}; {errors[0]}")
        print(
            f"{count} pairs, {total} steps: {at_round_off} refused at round-off, {others} "
            f"failed otherwise, {time.monotonic() - start:.0f} s ({name} by {method})",
            flush=True,
        )
    return int(at_round_off > 0)


if __name__ == "__main__":
    sys.exit(main())
