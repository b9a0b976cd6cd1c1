"""Many open-loop runs of two quadrotors with a payload: `nh.rollout` against MuJoCo's `rollout`
and `mjbatch`, per step and per accuracy, alternating in one run.

    pip install mujoco mjbatch
    python test/benchmark/rollout_mujoco.py

All get the same starts, thrusts and number of threads; MuJoCo has the model of
payload_mujoco.py. Times are the processor time of all threads together, which is independent
of other programs. Errors are the mean errors of the configurations after half a second against a
composition of order 8.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import mjbatch
import numpy as np
from mujoco import rollout
from payload_mujoco import HOVERING, Mujoco, P, mujoco, swing
from sizes import sized

import nh_control as nh
from nh_control.integrators import INTEGRATORS
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.systems.quadrotor_payload import quadrotor_payload

RUNS, THREADS, DURATION_S, REPEATS = *sized((64, 2, 0.5), (2, 1, 0.05)), sized(3, 1)
STEPS = sized((10, 20, 50, 100, 200, 500, 1000, 2000), (5, 10))
"""Numbers of steps of a run: from 50 ms to 0.25 ms."""
METHODS = ("midpoint", "midpoint_order4", "midpoint_order6")[: sized(None, 1)]
EXACT = sized("midpoint_order8", "midpoint")
LEVELS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)


@dataclass(frozen=True)
class Point:
    """Processor and wall time in s of all runs, and their mean error."""

    steps: int
    busy: float
    wall: float
    error: float


class Starts:
    """Seeded motions in the format of both programs, and their exact ends."""

    def __init__(self) -> None:
        self.system = quadrotor_payload(P)
        self.model = nh.midpoint(self.system, 0.01)
        self.hinges = Mujoco("hinges")
        rng = np.random.default_rng(0)
        self.theirs = [swing(*rng.uniform((1.0, 0.2), (4.0, 1.5))) for _ in range(RUNS)]
        self.ours = np.array([self.model.state(*self.seen(*start)) for start in self.theirs])
        self.ends = ours(EXACT, self, 250)

    def seen(self, qpos: np.ndarray, qvel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """MuJoCo's state as ours."""
        self.hinges.set(qpos, qvel)
        return self.hinges.ours()

    def error(self, ends: np.ndarray) -> float:
        """Mean distance of configurations (RUNS, nq) from the exact ones."""
        for turn in (slice(3, 7), slice(7, 11)):  # a quaternion and its negative are one turn
            ends[:, turn] *= np.sign(np.sum(ends[:, turn] * self.ends[:, turn], axis=1))[:, None]
        away = (self.system.space.local(*pair) for pair in zip(self.ends, ends))
        return float(np.mean([np.linalg.norm(dx) for dx in away]))


@cache
def made(name: str, system: nh.System) -> nh.DiscreteSystem:
    return INTEGRATORS[name].make(system, DURATION_S)


def ours(name: str, starts: Starts, steps: int) -> np.ndarray:
    """Return configurations (RUNS, nq) at the end."""
    dsys = made(name, starts.system).with_step(DURATION_S / steps)
    held = [HOVERING]
    runs = nh.rollout(dsys, starts.ours, held, every=steps, threads=THREADS)
    return runs.states[:, -1, : starts.system.space.nq]


def theirs(model: Mujoco, starts: Starts, steps: int) -> np.ndarray:
    """Run MuJoCo's own rollout."""
    model.model.opt.timestep = DURATION_S / steps
    data = [mujoco.MjData(model.model) for _ in range(THREADS)]
    states = np.array([[0.0, *qpos, *qvel] for qpos, qvel in starts.theirs])
    control = np.broadcast_to(HOVERING, (1, steps, len(HOVERING)))
    out, _ = rollout.rollout(model.model, data, states, control, persistent_pool=True)
    return out[:, -1, 1:]


def batched(model: Mujoco, starts: Starts, steps: int) -> np.ndarray:
    """Run the same by mjbatch."""
    model.model.opt.timestep = DURATION_S / steps
    batch = mjbatch.Batch(model.model, RUNS, THREADS)
    qpos, qvel, ctrl = (batch.bind(name) for name in ("qpos", "qvel", "ctrl"))
    qpos[:], qvel[:] = (np.array(part) for part in zip(*starts.theirs))
    ctrl[:] = HOVERING
    batch.step(nstep=steps)
    return np.hstack([qpos, qvel])


def ways(starts: Starts) -> dict[str, tuple[Callable, Callable]]:
    """Return every program with its runs and the conversion of its results to configurations."""

    def seen(ends: np.ndarray) -> np.ndarray:
        n = starts.hinges.model.nq
        return np.array([starts.seen(x[:n], x[n:])[0] for x in ends])

    found = {f"ours, {name}": (partial(ours, name), np.array) for name in METHODS}
    for integrator in ("EULER", "RK4"):
        model = Mujoco("hinges", integrator)
        found[f"MuJoCo rollout, {integrator}"] = (partial(theirs, model), seen)
        found[f"mjbatch, {integrator}"] = (partial(batched, model), seen)
    return found


def measured(starts: Starts, steps: int) -> dict[str, Point]:
    """Return one point of every program, the best of several alternating runs."""
    found: dict[str, Point] = {}
    for _ in range(REPEATS):
        for name, (run, seen) in ways(starts).items():
            wait_for_compiler()
            wall, busy = time.perf_counter(), time.process_time()
            ends = run(starts, steps)
            busy, wall = time.process_time() - busy, time.perf_counter() - wall
            before = found.get(name)
            if before is None:
                found[name] = Point(steps, busy, wall, starts.error(seen(ends)))
            else:
                best = min(before.busy, busy), min(before.wall, wall)
                found[name] = Point(steps, *best, before.error)
    return found


def seconds_at(points: list[Point], level: float) -> float:
    """Return the least processor time of a point with at most this error."""
    return min((p.busy for p in points if p.error <= level), default=np.inf)


def main() -> None:
    starts = Starts()
    for run, _ in ways(starts).values():
        run(starts, STEPS[0])  # compiled, and threads started
    rows = [measured(starts, steps) for steps in STEPS]
    points = {name: [row[name] for row in rows] for name in rows[0]}
    print(f"\n{RUNS} runs of {DURATION_S} s, {THREADS} threads; us of processors a step:")
    for name, of in points.items():
        each = [1e6 * p.busy / (RUNS * p.steps) for p in of[-5:]]
        print(f"  {name:24s} {min(each):7.2f}")
    print("ms of processors a run at most that far from the exact end:")
    print(f"  {'':24s}" + "".join(f"{level:10.0e}" for level in LEVELS))
    for name, of in points.items():
        times = (1e3 * seconds_at(of, level) / RUNS for level in LEVELS)
        print(f"  {name:24s}" + "".join(f"{t:10.3f}" for t in times))


if __name__ == "__main__":
    main()
