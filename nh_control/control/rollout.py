"""Many runs of a discrete system in one call, on all processors, in open loop or under a
controller.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from threading import Event

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.closed_loop import CHUNK, ClosedLoopRunner, LoopRecord
from nh_control.control.optimal.mpc import MpcTracker
from nh_control.control.run_data import ExternalForces, RunSystems, number_of_runs
from nh_control.control.tracking import Controller, LqrTracker, run_steps
from nh_control.discrete.results import StepFailed
from nh_control.discrete.simulation import input_rows
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory


@dataclass(frozen=True)
class Rollouts:
    """The results of R runs of N steps of `dsys`, at every `every`-th node, rows = N / every:
    states (R, rows + 1, nx) and the inputs (R, rows, nu) from there on.

    Under a controller also tracking errors (R, rows + 1, ndx), and `saturated` (R, rows, nu):
    inputs that reached a limit until the next recorded node. In open loop the errors have shape
    (R, rows + 1, 0) and nothing is saturated. `steps` (R) are the steps that each run took;
    `failures` has, by the run's number, the error that ended it; the numbers after it are NaN.
    """

    dsys: DiscreteSystem
    every: int
    states: np.ndarray
    inputs: np.ndarray
    errors: np.ndarray
    saturated: np.ndarray
    steps: np.ndarray
    failures: dict[int, Exception] = field(default_factory=dict)

    @classmethod
    def empty(cls, dsys: DiscreteSystem, shape: tuple[int, int], every: int, n: int) -> Rollouts:
        """NaN for (runs, rows) of `every` steps each, with n errors."""
        runs, rows = shape
        return cls(
            dsys,
            every,
            np.full((runs, rows + 1, dsys.nx), np.nan),
            np.full((runs, rows, dsys.nu), np.nan),
            np.full((runs, rows + 1, n), np.nan),
            np.zeros((runs, rows, dsys.nu), dtype=bool),
            np.zeros(runs, dtype=int),
        )

    def __repr__(self) -> str:
        steps = self.inputs.shape[1] * self.every
        failed = f"{len(self.failures)} failed"
        return f"Rollouts({self.dsys}, {len(self)} runs of {steps} steps, {failed})"

    def __len__(self) -> int:
        return len(self.states)

    @property
    def times(self) -> np.ndarray:
        """Times of the nodes that are kept, in s, (rows + 1)."""
        return self.every * self.dsys.h * np.arange(self.states.shape[1])

    @property
    def succeeded(self) -> np.ndarray:
        """Which runs took all their steps, (R)."""
        return ~np.isin(np.arange(len(self)), list(self.failures))

    def trajectory(self, run: int) -> Trajectory:
        """The trajectory of a run up to its end; raises ValueError for a run without a valid
        start.
        """
        rows, d = int(self.steps[run]) // self.every, self.dsys
        states, inputs = self.states[run, : rows + 1], self.inputs[run, :rows]
        name = f"run {run}"
        return Trajectory(self.every * d.h, states, inputs, d.state_names, d.inputs, name, d)

    def ended(self, run: int, steps: int, failure: Exception | None) -> None:
        """Note the end of a run, and drop the unfinished row."""
        self.steps[run] = steps
        if failure is None:
            return
        self.failures[run] = failure.at_step(steps) if isinstance(failure, StepFailed) else failure
        rows = steps // self.every
        self.states[run, rows + 1 :] = self.inputs[run, rows:] = np.nan
        self.saturated[run, rows:] = False


def rollout(
    dsys: DiscreteSystem,
    x0s: ArrayLike,
    inputs: ArrayLike | int | Controller,
    *,
    steps: int | None = None,
    parameters: ArrayLike | Mapping[str, ArrayLike] | None = None,
    disturbances: ArrayLike | None = None,
    noise: ArrayLike | None = None,
    seed: int = 0,
    substeps: int = 1,
    every: int = 1,
    threads: int | None = None,
    progress: Callable[[int], None] = lambda runs: None,
) -> Rollouts:
    """Run a discrete system from the states x0s (R, nx), or from one state (nx) in all runs.

    In open loop `inputs` are as in `DiscreteSystem.simulate`, each for `every` steps, or (R, rows,
    nu). Under a controller, such as an `LqrTracker`, `dsys` is the plant, and `substeps` of its
    steps make one step of the controller's model. The runs take `steps` steps of the model
    (default: the length of its reference) and keep the states at the model's nodes. Beyond the end
    of the reference they need a reference that ends at rest, or a controller with `hold`. Loops of
    an `LqrTracker` and of an `MpcTracker` run natively, side by side; other controllers are called
    from Python, one run after another. `threads` is by default the number of processors.

    `parameters` of the runs are (R, n) in the order of `system.parameter_names`, or (R) or (R, k)
    numbers by name. If the plant has k inputs more than the model (external forces), their values
    are `disturbances`, (R, steps, k) or (steps, k), plus normal noise with the standard deviations
    `noise` (k). Run i draws it from child i of `SeedSequence(seed)`, so that results do not depend
    on the number of threads.

    A run with a failed step ends; the others go on. `progress(n)` is called when n runs have
    ended; Ctrl-C ends all. Raises ValueError for wrong shapes, names or numbers.
    """
    starts = _starts(dsys, x0s)
    if threads is not None and threads < 1:
        raise ValueError(f"{dsys}: threads must be at least 1, got {threads}")
    systems = RunSystems.of(dsys, parameters)
    counts = {"x0s": len(starts) if starts.ndim == 2 else None, "parameters": systems.runs}
    one: Callable[[int, np.ndarray, Event], None]
    if isinstance(inputs, Controller):
        steps = _controlled_steps(inputs, steps)
        forces = ExternalForces.of(dsys, inputs.dsys, steps, disturbances, noise, seed)
        runs = number_of_runs(dsys, {**counts, "disturbances": forces.runs})
        out = _room_of_closed_loops(dsys, inputs, runs, steps, substeps, every)
        one = partial(_closed_loop, systems, inputs, forces, substeps, out)
        threads = threads if isinstance(inputs, (LqrTracker, MpcTracker)) else 1
    elif callable(inputs):
        raise _not_a_controller(dsys, inputs)
    else:
        _require_nothing_for_loops(dsys, disturbances, noise, substeps)
        rows = _rows(dsys, inputs, steps, every)
        runs = number_of_runs(dsys, {**counts, "inputs": len(rows) if rows.ndim == 3 else None})
        out = Rollouts.empty(dsys, (runs, rows.shape[-2]), every, 0)
        one = partial(_open_loop, systems, rows, out)
    dsys.native()  # compiled before there are threads
    starts = np.broadcast_to(starts, (runs, dsys.nx))
    _in_threads(lambda run, stopped: one(run, starts[run], stopped), runs, threads, progress)
    return out


def _not_a_controller(dsys: DiscreteSystem, inputs: object) -> ValueError:
    return ValueError(
        f"{dsys}: expected inputs or a Controller, which has `dsys`, `reference`, `target(k)` "
        f"and `command(k, x, memory)`, got {inputs!r}; give a function as the `command` of a "
        f"class with these"
    )


def _controlled_steps(controller: Controller, steps: int | None) -> int:
    """The number of steps, by default as many as the reference has; raises ValueError for more if
    the reference ends in motion.
    """
    reference = controller.reference
    if steps is None or steps <= len(reference):
        return len(reference) if steps is None else steps
    holds = getattr(controller, "hold", False)
    return run_steps(controller.dsys, reference, steps * controller.dsys.h, holds)


def _starts(dsys: DiscreteSystem, x0s: ArrayLike) -> np.ndarray:
    """Initial states (R, nx), or one (nx) of all runs."""
    starts = np.array(x0s, dtype=float)
    if starts.ndim not in (1, 2) or starts.shape[-1] != dsys.nx or not np.isfinite(starts).all():
        raise ValueError(
            f"{dsys}: x0s must have shape (runs, {dsys.nx}) or ({dsys.nx},) and be finite, got "
            f"{starts.shape}"
        )
    return starts


def _require_nothing_for_loops(
    dsys: DiscreteSystem, disturbances: ArrayLike | None, noise: ArrayLike | None, substeps: int
) -> None:
    if disturbances is not None or noise is not None or substeps != 1:
        raise ValueError(
            f"{dsys}: disturbances, noise and substeps are for runs under a controller; in open "
            "loop, put forces from outside into the inputs"
        )


def _rows(
    dsys: DiscreteSystem, inputs: ArrayLike | int, steps: int | None, every: int
) -> np.ndarray:
    """Inputs of an open loop, (rows, nu), or (R, rows, nu)."""
    if np.ndim(inputs) < 3:
        rows = input_rows(dsys, inputs, steps, every)
    else:
        rows = np.array(inputs, dtype=float, order="C")
        if steps is not None or every < 1 or rows.ndim > 3 or rows.shape[2] != dsys.nu:
            raise ValueError(
                f"{dsys}: inputs of every run must have shape (runs, rows, {dsys.nu}), without "
                f"`steps` and with every >= 1, got {rows.shape}, {steps} and {every}"
            )
    if not np.isfinite(rows).all():
        raise ValueError(f"{dsys}: inputs must be finite")
    return rows


def _room_of_closed_loops(
    plant: DiscreteSystem,
    controller: Controller,
    runs: int,
    steps: int,
    substeps: int,
    every: int,
) -> Rollouts:
    model = controller.dsys
    if every < 1 or steps < 0 or steps % every:
        raise ValueError(f"{plant}: steps must be a multiple of every = {every}, got {steps}")
    if substeps < 1 or not np.isclose(plant.h * substeps, model.h, rtol=1e-9):
        raise ValueError(
            f"{plant}: {substeps} substeps must make one step of the controller's model, {model}"
        )
    model.native()
    return Rollouts.empty(model, (runs, steps // every), every, model.ndx)


def _open_loop(
    systems: RunSystems,
    inputs: np.ndarray,
    out: Rollouts,
    run: int,
    x0: np.ndarray,
    stopped: Event,
) -> None:
    """A run in open loop, in pieces between which it can be stopped."""
    rows = inputs[run] if inputs.ndim == 3 else inputs
    states, piece, steps = out.states[run], max(1, CHUNK // out.every), 0
    states[0], failure = x0, None
    try:
        dsys = systems(run)
        for row in range(0, len(rows), piece):
            if stopped.is_set():
                return
            some = rows[row : row + piece]
            done, failure = dsys.steps_into(states[row:], some, out.every)
            steps += done
            if failure is not None:
                break
    except ValueError as refused:
        failure = refused
    out.inputs[run] = rows
    out.ended(run, steps, failure)


def _closed_loop(
    systems: RunSystems,
    controller: Controller,
    forces: ExternalForces,
    substeps: int,
    out: Rollouts,
    run: int,
    x0: np.ndarray,
    stopped: Event,
) -> None:
    """A run under a controller."""
    steps, failure = 0, None
    try:
        plant = systems(run)
        unwanted = np.empty((0, plant.nx))
        kept = out.states[run], out.errors[run], out.inputs[run], out.saturated[run]
        record = LoopRecord(out.every, *kept, unwanted, unwanted)
        loop = ClosedLoopRunner(plant, controller, x0, record, forces(run), substeps)
        try:
            loop.run(lambda k: stopped.is_set())
        finally:
            steps = loop.k
    except (StepFailed, ValueError) as stop:
        failure = stop
    out.ended(run, steps, failure)


def _in_threads(
    one: Callable[[int, Event], None],
    runs: int,
    threads: int | None,
    progress: Callable[[int], None],
) -> None:
    """Call `one(run, stopped)` for all runs; it ends early when `stopped` is set."""
    stopped = Event()
    with ThreadPoolExecutor(threads or processors()) as pool:
        futures = [pool.submit(one, run, stopped) for run in range(runs)]
        try:
            for n, ended in enumerate(as_completed(futures), 1):
                ended.result()
                progress(n)
        except BaseException:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def processors() -> int:
    """Processors that this process may use."""
    return (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
