"""Time per step, and per step with A and B, of chains and random trees of N bodies: by the kernel
in linear time and by code generated from the Lagrangian, in one run.

    python test/benchmark/tree_scaling.py [--links 4 8 16 32 64 128 1024] [--generated 32]

The chains are those of chain_scaling.py (N links of 1 m with 1 kg at their ends, largest momentum
about --momentum kg m^2/s), as Multibody; the trees are of revolute joints in space, some of which
balance hundreds of others: with 1024 bodies they fall over at rates up to 700 1/s, so that a step
of 0.01 s ends in no state near by and theirs is shorter. Times are
this thread's processor time, the best of several batches of steps in one native call; "start" is
that of everything until the first step with the kernel at hand. Code is generated up to
--generated bodies.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
from sizes import sized

from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.integrators import midpoint
from nh_control.multibody import Body, Multibody, revolute
from nh_control.numerics.compiled import wait_for_compiler

STEPS = {"chain": 0.01, "tree": 0.001}
BATCHES = sized(7, 1)
AXES = (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)


def chain(n: int) -> Multibody:
    frames = [revolute(f"q{i}", f"q{i - 1}", "y", position=(0, 0, -1)) for i in range(1, n)]
    bodies = [Body(f"q{i}", 1.0, (0, 0, -1)) for i in range(n)]
    return Multibody(f"chain_{n}", [revolute("q0", axis="y"), *frames], bodies)


def spatial_chain(n: int) -> Multibody:
    """The chain with joints that turn about x and y by turns, and links with inertia."""
    model, inertia = chain(n), (0.05, 0.05, 0.01)
    joints = [replace(frame.joint, axis=AXES[i % 2]) for i, frame in enumerate(model.frames)]
    frames = [replace(frame, joint=joint) for frame, joint in zip(model.frames, joints)]
    bodies = [replace(body, inertia=inertia) for body in model.bodies]
    return Multibody(f"spatial_chain_{n}", frames, bodies)


def tree(n: int) -> Multibody:
    rng = np.random.default_rng(0)
    frames, bodies = [], []
    for i in range(n):
        parent = f"q{rng.integers(max(0, i - 4), i)}" if i else "world"
        frames.append(
            revolute(f"q{i}", parent, rng.normal(size=3), position=rng.normal(size=3) / 3)
        )
        center, inertia = rng.normal(size=3) / 5, rng.uniform(0.1, 0.15, 3)
        bodies.append(Body(f"q{i}", rng.uniform(0.5, 2), center, inertia))
    return Multibody(f"tree_{n}", frames, bodies)


def best(call, count: int) -> float:
    """Microseconds of processor time of each of the `count` parts of a call."""
    times = []
    for _ in range(BATCHES):
        wait_for_compiler()
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return min(times) * 1e6 / count


def measure(dsys: DiscreteSystem, x: np.ndarray) -> tuple[float, float]:
    """Microseconds of a step, and of a step with A and B."""
    steps = max(10, 2000 // dsys.ndx)
    return best(lambda: dsys.simulate(x, steps), steps), best(lambda: dsys.linearize(x), 1)


def moving(dsys: DiscreteSystem, momentum: float) -> np.ndarray:
    """A state in motion."""
    n = dsys.ndx // 2
    angles, rates = 0.5 * np.cos(np.arange(n)), np.sin(1.0 + np.arange(n))
    largest = np.abs(dsys.state(angles, rates)[n:]).max()
    return dsys.state(angles, rates * momentum / largest)


def row(make, n: int, momentum: float, generated: int) -> str:
    wait_for_compiler()
    start = time.thread_time()
    h = STEPS[make.__name__]
    dsys = midpoint(make(n).system, h)
    x = moving(dsys, momentum)
    dsys.step(x)
    start = time.thread_time() - start
    step, linear = measure(dsys, x)
    text = f"{make.__name__:>6} {n:5d} {start:8.3f} {step:10.1f} {linear:12.1f}"
    if n > generated:
        return text
    old = midpoint(make(n).system, h)
    old._functions.code.__dict__["engine"] = old._functions.code.generated()  # the other way
    apart = np.abs(old.step(x) - dsys.step(x)).max() / np.abs(x).max()
    old_step, old_linear = measure(old, x)
    return f"{text} {old_step:10.1f} {old_linear:12.1f} {apart:9.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--links", type=int, nargs="+", default=sized([4, 8, 16, 32, 64, 128, 1024], [2])
    )
    parser.add_argument("--generated", type=int, default=32)
    parser.add_argument("--momentum", type=float, default=1000.0)
    options = parser.parse_args()
    midpoint(chain(2).system, 0.01).step(np.zeros(4))  # the kernel is compiled
    print(" system     N  start s    step us  step, A, B generated   step, A, B     apart")
    for make, momentum in ((chain, options.momentum), (tree, 10.0)):
        for n in options.links:
            try:
                print(row(make, n, momentum, options.generated), flush=True)
            except StepFailed as failure:
                print(f"{make.__name__:>6} {n:5d} {failure}", flush=True)


if __name__ == "__main__":
    main()
