"""Many runs of a discrete system in one call, in open loop or under a controller, on all
processors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nh_control.control.closed_loop import CHUNK, ClosedLoopRunner, LoopRecord
from nh_control.control.controller import Controller, ControllerLike
from nh_control.control.optimal.mpc import MpcTracker
from nh_control.control.run_data import ExternalForces, RunSystems, number_of_runs
from nh_control.control.trackers import Tracker, as_tracker
from nh_control.control.tracking import LqrTracker
from nh_control.discrete.lanes import FEWEST, LANES, LaneTables, Vectorization
from nh_control.discrete.results import StepFailed
from nh_control.discrete.simulation import input_rows
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory

PARTS, LARGEST_PART = 8, 512
"""Number of parts per thread, and the maximum number of runs in a part, if vector lanes are used:
enough parts to share them among the threads and to end soon after Ctrl-C, and few enough for the
time in Python.
"""
IN_LOOPS = Vectorization(1, "every closed loop is a separate native loop")
REFUSED = -1
"""Number of steps that is recorded for a run with invalid parameters."""


@dataclass(frozen=True)
class Rollouts:
    """The results of R runs of `dsys` with N steps each, recorded at every `every`-th node: the
    `states` (R, rows + 1, nx) and the `inputs` that act after them (R, rows, nu), with rows = N /
    every.

    Under a controller, `errors` (R, rows + 1, ndx) are the tracking errors, and `saturated`
    (R, rows, nu) marks inputs that reached a limit before the next recorded node. In open loop,
    the errors have the shape (R, rows + 1, 0) and no input is saturated. `steps` (R) contains the
    number of steps that each run took. `failures` contains the exceptions that ended runs, by run
    number; all later values of such a run are NaN. `vectorization` describes how many runs were
    stepped at once, or why they were stepped one after another.
    """

    dsys: DiscreteSystem
    every: int
    states: np.ndarray
    inputs: np.ndarray
    errors: np.ndarray
    saturated: np.ndarray
    steps: np.ndarray
    failures: dict[int, Exception] = field(default_factory=dict)
    vectorization: Vectorization = IN_LOOPS

    @classmethod
    def empty(
        cls,
        dsys: DiscreteSystem,
        shape: tuple[int, int],
        every: int,
        n: int,
        vectorization: Vectorization = IN_LOOPS,
    ) -> Rollouts:
        """Results filled with NaN, for `shape` = (runs, rows) and n errors per node."""
        runs, rows = shape
        return cls(
            dsys,
            every,
            np.full((runs, rows + 1, dsys.nx), np.nan),
            np.full((runs, rows, dsys.nu), np.nan),
            np.full((runs, rows + 1, n), np.nan),
            np.zeros((runs, rows, dsys.nu), dtype=bool),
            np.zeros(runs, dtype=int),
            vectorization=vectorization,
        )

    def __repr__(self) -> str:
        steps = self.inputs.shape[1] * self.every
        failed = f"{len(self.failures)} failed"
        return f"Rollouts({self.dsys}, {len(self)} runs of {steps} steps, {failed})"

    def __len__(self) -> int:
        return len(self.states)

    @property
    def times(self) -> np.ndarray:
        """The times (rows + 1) of the recorded nodes in s."""
        return self.every * self.dsys.h * np.arange(self.states.shape[1])

    @property
    def succeeded(self) -> np.ndarray:
        """The mask (R) of runs that took all their steps."""
        return ~np.isin(np.arange(len(self)), list(self.failures))

    def trajectory(self, run: int) -> Trajectory:
        """The trajectory of a run up to its last step. Raises ValueError if the run could not
        start.
        """
        rows, d = int(self.steps[run]) // self.every, self.dsys
        states, inputs = self.states[run, : rows + 1], self.inputs[run, :rows]
        name = f"run {run}"
        return Trajectory(self.every * d.h, states, inputs, d.state_names, d.inputs, name, d)

    def ended(self, run: int, steps: int, failure: Exception | None) -> None:
        """Record that a run ended after `steps` steps, and discard the unfinished row."""
        self.steps[run] = steps
        if failure is None:
            return
        self.failures[run] = failure.at_step(steps) if isinstance(failure, StepFailed) else failure
        rows = steps // self.every
        # no values after the last complete row
        self.states[run, rows + 1 :] = self.inputs[run, rows:] = np.nan
        self.saturated[run, rows:] = False


def rollout(
    dsys: DiscreteSystem,
    x0s: ArrayLike,
    inputs: ArrayLike | int | Tracker | ControllerLike,
    *,
    steps: int | None = None,
    model: DiscreteSystem | None = None,
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

    In open loop, the `inputs` are those of `DiscreteSystem.simulate`, each for `every` steps, or
    have the shape (R, rows, nu). Under a tracker, such as an `LqrTracker`, `dsys` is the plant,
    and `substeps` of its steps are one step of the tracker's model. The runs take `steps` steps of
    the model (by default, the length of the tracker's reference) and record states at the model's
    nodes. They can only continue after the end of the reference if it ends at rest or if the
    tracker has `hold`. Loops with an `LqrTracker` or an `MpcTracker` run natively and in parallel.
    A user-defined `Controller` is called from Python with states of its `model` (by default,
    `dsys`). Its runs take place one after another, and each begins with `reset`. `threads` is by
    default the number of processors.

    The `parameters` of the runs have the shape (R, n), in the order of `system.parameter_names`,
    or are values (R) or (R, k) by name. If the plant has k more inputs than the model (external
    forces), the values of these inputs are the `disturbances` (R, steps, k) or (steps, k) plus
    normal noise with the standard deviations `noise` (k). Run i draws its noise from child i of
    `SeedSequence(seed)`, so the results do not depend on the number of threads.

    In open loop, the processor's vector instructions step 4 or 8 runs at once, if there is code
    for the system (`DiscreteSystem.vectorization`). The results are bitwise identical. A run ends
    if a step fails, and the other runs continue. `progress(n)` is called when n runs have ended.
    Ctrl-C ends all runs. Raises ValueError for wrong shapes, names or numbers.
    """
    starts = _starts(dsys, x0s)
    if threads is not None and threads < 1:
        raise ValueError(f"{dsys}: threads must be at least 1, got {threads}")
    systems = RunSystems.of(dsys, parameters)
    counts = {"x0s": len(starts) if starts.ndim == 2 else None, "parameters": systems.runs}
    run_part: Callable[[range, Event], None]
    size, workers = 1, threads or processors()
    if isinstance(inputs, Controller) or callable(inputs):
        tracker = as_tracker(inputs, model or dsys, steps)
        steps = _controlled_steps(tracker, steps)
        forces = ExternalForces.of(dsys, tracker.dsys, steps, disturbances, noise, seed)
        runs = number_of_runs(dsys, {**counts, "disturbances": forces.runs})
        out = _closed_loop_results(dsys, tracker, runs, steps, substeps, every)
        states = np.broadcast_to(starts, (runs, dsys.nx))
        run_part = partial(_closed_loops, systems, tracker, forces, substeps, out, states)
        # user-defined controllers are not thread-safe
        threads = threads if isinstance(tracker, (LqrTracker, MpcTracker)) else 1
    else:
        _require_no_loop_options(dsys, disturbances, noise, substeps)
        table: Any = inputs
        rows = _rows(dsys, table, steps, every)
        runs = number_of_runs(dsys, {**counts, "inputs": len(rows) if rows.ndim == 3 else None})
        how = dsys.vectorization if runs >= FEWEST else Vectorization(1, f"only {runs} runs")
        out = Rollouts.empty(dsys, (runs, rows.shape[-2]), every, 0, how)
        out.states[:, 0] = starts
        # at least one part for every thread
        size = min(_runs_at_once(runs, how, workers), max(1, -(-runs // workers)))
        run_part = partial(_open_loops, systems, rows, out)
    dsys.native()  # compile before the threads start
    parts = [range(i, min(i + size, runs)) for i in range(0, runs, size)]
    _in_threads(run_part, parts, threads, progress)
    return out


def _controlled_steps(tracker: Tracker, steps: int | None) -> int:
    """The number of steps, by default the length of the reference. Raises ValueError if the number
    is larger and the reference ends in motion.
    """
    if steps is None or steps <= len(tracker.reference):
        return len(tracker.reference) if steps is None else steps
    return tracker.steps(steps * tracker.dsys.h)


def _starts(dsys: DiscreteSystem, x0s: ArrayLike) -> np.ndarray:
    """The initial states (R, nx), or one initial state (nx) for all runs."""
    starts = np.array(x0s, dtype=float)
    if starts.ndim not in (1, 2) or starts.shape[-1] != dsys.nx or not np.isfinite(starts).all():
        raise ValueError(
            f"{dsys}: x0s must have shape (runs, {dsys.nx}) or ({dsys.nx},) and be finite, got "
            f"{starts.shape}"
        )
    return starts


def _require_no_loop_options(
    dsys: DiscreteSystem, disturbances: ArrayLike | None, noise: ArrayLike | None, substeps: int
) -> None:
    if disturbances is not None or noise is not None or substeps != 1:
        raise ValueError(
            f"{dsys}: disturbances, noise and substeps are for runs under a controller; in open "
            "loop, add external forces to the inputs"
        )


def _rows(
    dsys: DiscreteSystem, inputs: ArrayLike | int, steps: int | None, every: int
) -> np.ndarray:
    """The inputs (rows, nu) or (R, rows, nu) in open loop."""
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


def _closed_loop_results(
    plant: DiscreteSystem,
    tracker: Tracker,
    runs: int,
    steps: int,
    substeps: int,
    every: int,
) -> Rollouts:
    """Empty results of closed loops. Raises ValueError for wrong steps or substeps."""
    model = tracker.dsys
    if every < 1 or steps < 0 or steps % every:
        raise ValueError(f"{plant}: steps must be a multiple of every = {every}, got {steps}")
    # h_model = substeps h_plant
    if substeps < 1 or not np.isclose(plant.h * substeps, model.h, rtol=1e-9):
        raise ValueError(
            f"{plant}: {substeps} substeps must be as long as a step of the tracker's model, "
            f"{model}"
        )
    model.native()
    return Rollouts.empty(model, (runs, steps // every), every, model.ndx)


def _runs_at_once(runs: int, how: Vectorization, workers: int) -> int:
    """The number of runs in a part: as many as there are vector lanes or, if they are used, a
    multiple of it for about PARTS parts of every thread.
    """
    groups = runs // (PARTS * workers * LANES) if how.lanes > 1 else 1
    return min(LANES * max(groups, 1), LARGEST_PART)


def _open_loops(
    systems: RunSystems, inputs: np.ndarray, out: Rollouts, runs: range, stopped: Event
) -> None:
    """Runs in open loop: vectorized steps as far as possible, then the remaining steps of one run
    after another.
    """
    out.inputs[_slice(runs)] = inputs if inputs.ndim == 2 else inputs[_slice(runs)]
    accepted, done = dict[int, DiscreteSystem](), np.zeros(len(runs), dtype=np.int64)
    distinct = systems.distinct(runs)
    for i, run in enumerate(distinct):
        try:
            accepted[run] = systems(run)
        except ValueError as refused:
            done[i] = REFUSED
            out.ended(run, 0, refused)
    if len(runs) >= FEWEST:
        parameters = [accepted.get(run, systems.dsys).parameter_values for run in distinct]
        _in_lanes(systems.dsys, np.array(parameters), out, runs, done, stopped)
    whole = out.every * out.inputs.shape[1]
    out.steps[_slice(runs)] = np.where(done == whole, whole, 0)
    for i in np.flatnonzero((done != whole) & (done != REFUSED)).tolist():
        # continue each run where its lane stopped
        dsys = accepted.get(runs[i], systems.dsys)
        _open_loop(dsys, out, runs[i], int(done[i]), stopped)


def _in_lanes(
    dsys: DiscreteSystem,
    parameters: np.ndarray,
    out: Rollouts,
    runs: range,
    done: np.ndarray,
    stopped: Event,
) -> None:
    """Take vectorized steps in some runs, and write the number of steps per run to `done` (n)."""
    states, inputs = out.states[_slice(runs)], out.inputs[_slice(runs)]
    x, steps = states[:, 0].copy(), out.every * inputs.shape[1]
    for begin in range(0, steps, CHUNK):
        # lanes that failed do not advance; stop when all lanes have failed
        if stopped.is_set() or not (done == begin).any():
            return
        chunk = begin, min(begin + CHUNK, steps)
        dsys.steps_in_lanes(
            LaneTables(chunk, out.every, parameters, inputs, x, states[:, 1:], done)
        )


def _slice(runs: range) -> slice:
    return slice(runs.start, runs.stop)


def _open_loop(dsys: DiscreteSystem, out: Rollouts, run: int, steps: int, stopped: Event) -> None:
    """Continue a run in open loop after its first `steps` steps. The run consists of pieces, and
    can be stopped between them.
    """
    states, rows = out.states[run], out.inputs[run].copy()
    piece, failure = max(1, CHUNK // out.every), None
    for row in range(steps // out.every, len(rows), piece):
        if stopped.is_set():
            return
        done, failure = dsys.steps_into(states[row:], rows[row : row + piece], out.every)
        steps = row * out.every + done
        if failure is not None:
            break
    out.ended(run, steps, failure)


def _closed_loops(
    systems: RunSystems,
    tracker: Tracker,
    forces: ExternalForces,
    substeps: int,
    out: Rollouts,
    starts: np.ndarray,
    runs: range,
    stopped: Event,
) -> None:
    """Runs under a controller, one after another."""
    for run in runs:
        _closed_loop(systems, tracker, forces, substeps, out, run, starts[run], stopped)


def _closed_loop(
    systems: RunSystems,
    tracker: Tracker,
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
        record = LoopRecord(
            out.every,
            out.states[run],
            out.errors[run],
            out.inputs[run],
            out.saturated[run],
            plant_states=np.empty((0, plant.nx)),
            before=np.empty((0, plant.nx)),
        )
        loop = ClosedLoopRunner(plant, tracker, x0, record, forces(run), substeps)
        try:
            loop.run(lambda k: stopped.is_set())
        finally:
            steps = loop.k
    except (StepFailed, ValueError) as stop:
        failure = stop
    out.ended(run, steps, failure)


def _in_threads(
    run_part: Callable[[range, Event], None],
    parts: Sequence[range],
    threads: int | None,
    progress: Callable[[int], None],
) -> None:
    """Call `run_part(part, stopped)` for all parts of the runs. A call ends early when `stopped`
    is set.
    """
    stopped, ended = Event(), 0
    with ThreadPoolExecutor(threads or processors()) as pool:
        futures = {pool.submit(run_part, part, stopped): part for part in parts}
        try:
            for future in as_completed(futures):
                future.result()
                ended += len(futures[future])
                progress(ended)
        except BaseException:
            # this also happens after Ctrl-C: running parts end at their next chunk
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def processors() -> int:
    """The number of processors that this process may use."""
    return (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
