"""Closed loops of a plant and a tracker. A loop with an LqrTracker or an MpcTracker runs in native
code; any other loop runs in Python. Both return bitwise identical results.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from nh_control.control.controller import ControllerFailed
from nh_control.control.feedback_law import LawData, LoopData, native_steps
from nh_control.control.optimal.mpc import MpcTracker
from nh_control.control.optimal.native_tracking import NativeTracking
from nh_control.control.trackers import Tracker
from nh_control.control.tracking import DisturbanceEstimate, LqrTracker
from nh_control.discrete.native_abi import address
from nh_control.discrete.plant_steps import advance, convert, same_steps, with_external
from nh_control.discrete.system import DiscreteSystem
from nh_control.numerics import newton
from nh_control.numerics.virtual_machine import FunctionData

CHUNK = 200
"""Number of steps per native call. Python handles interrupts between calls."""
SOLVED_CHUNK = 20
"""Number of steps per native call if every step solves an optimal control problem."""


@dataclass(frozen=True)
class LoopRecord:
    """The recorded data of a loop, with one row for every `every`-th node.

    A row contains the model's state and error at the node, the inputs of the step that begins
    there, and whether each input was saturated in any step up to the next recorded node. The
    shapes are (rows + 1, nx), (rows + 1, ndx), (rows, nu) and (rows, nu).

    `plant_states` (N + 1, plant.nx) are the plant's states at all nodes, and `before` (N,
    plant.nx) are its states before the last substep of every step. Either array may be empty, in
    which case it is not recorded.
    """

    every: int
    states: np.ndarray
    errors: np.ndarray
    inputs: np.ndarray
    saturated: np.ndarray
    plant_states: np.ndarray
    before: np.ndarray

    @classmethod
    def empty(cls, plant: DiscreteSystem, model: DiscreteSystem, steps: int) -> LoopRecord:
        """Arrays for all the data of a loop with `steps` steps."""
        return cls(
            1,
            np.empty((steps + 1, model.nx)),
            np.empty((steps + 1, model.ndx)),
            np.empty((steps, model.nu)),
            np.zeros((steps, model.nu), dtype=bool),
            np.empty((steps + 1, plant.nx)),
            np.empty((steps, plant.nx)),
        )


class ClosedLoopRunner:
    """The closed loop of a tracker and a plant that starts in state x0.

    One step of the tracker's model consists of `substeps` steps of the plant. The array `external`
    (N, plant.nu - model.nu) contains external forces. Without `feedback`, the inputs are those of
    the reference. If `native` is false, the loop runs in Python. `k` is the number of the
    controller's current step; the first one is `first`. The class is not thread-safe.
    """

    def __init__(
        self,
        plant: DiscreteSystem,
        tracker: Tracker,
        x0: np.ndarray,
        record: LoopRecord,
        external: np.ndarray,
        substeps: int = 1,
        feedback: bool = True,
        native: bool = True,
        first: int = 0,
    ):
        self.k = first
        self._plant, self._tracker, self._model = plant, tracker, tracker.dsys
        self._x, self._record = np.array(x0, dtype=float), record
        self._external, self._substeps = np.ascontiguousarray(external, dtype=float), substeps
        self._feedback = feedback
        self._memory: Any = None
        record.plant_states[:1] = self._x
        self._native = self._natively() if native else None

    def run(self, watch: Callable[[int], bool] = lambda k: False) -> None:
        """Run all N steps, or until `watch(k)` returns true. A loop in Python calls `watch` before
        every step k; native loops call it every CHUNK or SOLVED_CHUNK steps. Raises StepFailed,
        and ValueError for a value that is not finite.
        """
        steps, solves = len(self._external), isinstance(self._tracker, MpcTracker)
        chunk = SOLVED_CHUNK if solves and self._feedback else CHUNK
        # native steps as far as possible; Python takes the step at which the native code stops
        while self.k < steps and not watch(self.k):
            if not (self._native and self._native(min(steps, self.k + chunk))):
                self._step()
        state = self._state()  # no input acts at the last node, so no command is computed
        self._note(state, self._tracker.error(self.k, state))

    def _state(self) -> np.ndarray:
        """The model's state."""
        return convert(self._x, self._plant, self._model)

    def _note(self, state: np.ndarray, error: np.ndarray) -> None:
        """Record state and error at the current node."""
        row, more = self._row
        if not more:
            self._record.states[row], self._record.errors[row] = state, error

    @property
    def _row(self) -> tuple[int, int]:
        return divmod(self.k, self._record.every)

    def _step(self) -> None:
        """Take a step in Python."""
        state, record, (row, more) = self._state(), self._record, self._row
        if self._feedback:
            try:
                command = self._tracker.command(self.k, state, self._memory)
            except ControllerFailed:
                self._note(state, self._tracker.error(self.k, state))
                raise
            error, u, saturated = command.error, command.u, command.saturated
            self._memory = command.memory
        else:
            reference, error = self._tracker.reference, self._tracker.error(self.k, state)
            idle, saturated = self._model.idle(state), np.zeros(self._model.nu, dtype=bool)
            u = reference.inputs[self.k] if self.k < len(reference) else idle
        self._note(state, error)
        # x1 = f(x, (u, external)), in substeps of the plant
        forces = with_external(self._plant, u, self._external[self.k])
        before, x1 = advance(self._plant, self._x, forces, self._substeps)
        record.before[self.k : self.k + 1] = before
        if not more:
            record.inputs[row] = u
        # an input counts as saturated if it was saturated in any step of the row
        record.saturated[row] |= saturated
        self._x[:] = x1
        self.k += 1
        record.plant_states[self.k : self.k + 1] = x1

    def _natively(self) -> Callable[[int], bool] | None:
        """A function `steps(end)` that takes native steps up to step `end` and returns whether all
        of them succeeded. None if the loop cannot run natively.
        """
        tracker, plant, model = self._tracker, self._plant, self._model
        if not isinstance(tracker, (LqrTracker, MpcTracker)) or _overrides_command(tracker):
            return None
        native_plant, native_model, routine = plant.native(), model.native(), native_steps()
        linear = tracker if isinstance(tracker, LqrTracker) else tracker.fallback
        feedback: _LinearFeedback | NativeTracking
        if isinstance(tracker, MpcTracker) and self._feedback:
            feedback = NativeTracking(tracker, native_model)
        else:
            # u = clip(u_d - K local(x_d, x) - K_d d), or u = u_d without feedback
            law = linear.law if self._feedback else linear.law.feedforward_alone
            feedback = _LinearFeedback(model, law.data(model, native_model))
        r = self._record
        forces, h = np.zeros(model.system.nu), np.array([model.h])
        disturbance, predicted, stage = feedback.arrays
        data = LoopData(
            plant=ctypes.pointer(native_plant.stepper),
            model=ctypes.pointer(native_model.stepper),
            plant_motion=ctypes.pointer(native_plant.motion),
            model_motion=ctypes.pointer(native_model.motion),
            law=ctypes.pointer(feedback.law),
            state=FunctionData() if same_steps(plant, model) else native_model.state,
            h=address(h),
            no_forces=address(forces),
            external=address(self._external),
            substeps=self._substeps,
            n_external=self._external.shape[1],
            every=r.every,
            x=address(self._x),
            disturbance=address(disturbance),
            predicted=address(predicted),
            stage=address(stage),
            states=address(r.states),
            inputs=address(r.inputs),
            errors=address(r.errors),
            plant_states=address(r.plant_states) if len(r.plant_states) else None,
            before=address(r.before) if len(r.before) else None,
            saturated=address(r.saturated),
        )
        # the closure keeps alive all the memory that `data` points to
        buffers = native_plant, native_model, h, forces, data.allocate_workspace()
        last = sys.maxsize if tracker.hold or not self._feedback else len(tracker.reference)

        def steps(end: int) -> bool:
            end = min(end, last)
            if self.k >= end:  # after the end of the reference, Python damps the motion
                return False
            k, _ = ctypes.c_longlong(self.k), buffers
            # pass the tracker's memory to native code, and read it back afterwards
            with feedback.steps_from(self._memory, self.k) as possible:
                if not possible:
                    return False
                status = routine(data, k, end)
            self.k, self._memory = k.value, feedback.memory(k.value)
            return status == newton.CONVERGED

        return steps


def _overrides_command(tracker: LqrTracker | MpcTracker) -> bool:
    """Whether the tracker's class overrides `command`, as `LateMpc` does."""
    return type(tracker).command not in (LqrTracker.command, MpcTracker.command)


class _LinearFeedback:
    """The memory and the feedback law of an `LqrTracker` as arrays, for native loops."""

    def __init__(self, model: DiscreteSystem, law: LawData):
        self.law = law
        self._d, self._predicted = np.zeros(model.system.nrho), np.zeros(model.nx)
        self._stage = np.zeros(1, dtype=np.int64)
        self.arrays = self._d, self._predicted, self._stage

    @contextmanager
    def steps_from(self, memory: DisturbanceEstimate | None, k: int) -> Iterator[bool]:
        """A context manager in which native steps continue from step k with the given memory.
        Native steps are always possible.
        """
        # stage 0: no memory, 1: disturbance, 2: disturbance and predicted state
        self._stage[0] = 0
        if memory is not None:
            self._d[:], self._stage[0] = memory.disturbance, 1
            if memory.predicted is not None:
                self._predicted[:], self._stage[0] = memory.predicted, 2
        yield True

    def memory(self, k: int) -> DisturbanceEstimate | None:
        """The memory at the end of step k - 1."""
        if self._stage[0] == 0:
            return None
        predicted = self._predicted.copy() if self._stage[0] == 2 else None
        return DisturbanceEstimate(self._d.copy(), predicted)
