"""Closed loops of a plant and a controller. Loops of an LqrTracker and of an MpcTracker run in
native code, others in Python; both give the same bits.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from nh_control.control.feedback_law import LawData, LoopData, native_steps
from nh_control.control.optimal.mpc import MpcTracker
from nh_control.control.optimal.native_tracking import NativeTracking
from nh_control.control.tracking import Command, Controller, DisturbanceEstimate, LqrTracker
from nh_control.discrete.native_abi import address
from nh_control.discrete.plant_steps import advance, convert, same_steps, with_external
from nh_control.discrete.system import DiscreteSystem
from nh_control.numerics import newton
from nh_control.numerics.virtual_machine import FunctionData

CHUNK = 200
"""Steps of one native call; Python handles interrupts between the calls."""
SOLVED_CHUNK = 20
"""Steps of one native call if every step solves an optimal control problem."""


@dataclass(frozen=True)
class LoopRecord:
    """The recorded data of a loop: at every `every`-th node the model's states (rows + 1, nx) and
    errors (rows + 1, ndx), the inputs (rows, nu) of the step from there, and which inputs were
    saturated in any step until the next recorded node, (rows, nu).

    Unless these arrays are empty, also the plant's states at all nodes (N + 1, plant.nx) and
    before the last substep of every step (N, plant.nx).
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
        """Arrays for all data of `steps` steps."""
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
    """The closed loop of a plant, from its state x0, and a controller. `substeps` steps of the
    plant make one step of the controller's model; `external` are external forces (N, plant.nu -
    model.nu). Without `feedback` the inputs are the reference's; a loop that is not to be `native`
    runs from Python. `k` is the number of steps taken.

    Not thread-safe.
    """

    def __init__(
        self,
        plant: DiscreteSystem,
        controller: Controller,
        x0: np.ndarray,
        record: LoopRecord,
        external: np.ndarray,
        substeps: int = 1,
        feedback: bool = True,
        native: bool = True,
    ):
        self.k = 0
        self._plant, self._controller, self._model = plant, controller, controller.dsys
        self._x, self._record = np.array(x0, dtype=float), record
        self._external, self._substeps = np.ascontiguousarray(external, dtype=float), substeps
        self._feedback = feedback
        self._memory: Any = None
        record.plant_states[:1] = self._x
        self._native = self._natively() if native else None

    def run(self, watch: Callable[[int], bool] = lambda k: False) -> None:
        """Run all N steps, or until `watch(k)` is true; it is called before step k, in native
        loops every CHUNK or SOLVED_CHUNK steps. Raises StepFailed, and ValueError for a value
        that is not finite.
        """
        steps, solves = len(self._external), isinstance(self._controller, MpcTracker)
        chunk = SOLVED_CHUNK if solves and self._feedback else CHUNK
        while self.k < steps and not watch(self.k):
            if not (self._native and self._native(min(steps, self.k + chunk))):
                self._step()
        state = self._state()
        if isinstance(
            self._controller, (LqrTracker, MpcTracker)
        ):  # no input acts here: the error is enough
            self._note(state, self._controller.error(self.k, state))
        else:
            self._note(state, self._command(state).error)

    def _state(self) -> np.ndarray:
        """The model's state."""
        return convert(self._x, self._plant, self._model)

    def _command(self, state: np.ndarray) -> Command:
        return self._controller.command(self.k, state, self._memory)

    def _note(self, state: np.ndarray, error: np.ndarray) -> None:
        """Record state and error at the present node."""
        row, more = self._row
        if not more:
            self._record.states[row], self._record.errors[row] = state, error

    @property
    def _row(self) -> tuple[int, int]:
        return divmod(self.k, self._record.every)

    def _step(self) -> None:
        """A step from Python."""
        state, record, (row, more) = self._state(), self._record, self._row
        command = self._command(state)
        self._note(state, command.error)
        u, saturated = command.u, command.saturated
        if not self._feedback:
            reference, saturated = self._controller.reference, np.zeros(len(u), dtype=bool)
            idle = self._model.idle(state)
            u = reference.inputs[self.k] if self.k < len(reference) else idle
        forces = with_external(self._plant, u, self._external[self.k])
        before, x1 = advance(self._plant, self._x, forces, self._substeps)
        record.before[self.k : self.k + 1] = before
        if not more:
            record.inputs[row] = u
        record.saturated[row] |= saturated
        self._x[:], self._memory = x1, command.memory
        self.k += 1
        record.plant_states[self.k : self.k + 1] = x1

    def _natively(self) -> Callable[[int], bool] | None:
        """A function `steps(end)` that takes native steps up to number `end` and returns whether
        all succeeded; None if the loop cannot run natively.
        """
        tracker, plant, model = self._controller, self._plant, self._model
        if not isinstance(tracker, (LqrTracker, MpcTracker)) or _has_command_of_its_own(tracker):
            return None
        ours, theirs, routine = plant.native(), model.native(), native_steps()
        linear = tracker if isinstance(tracker, LqrTracker) else tracker.fallback
        feedback: _LinearFeedback | NativeTracking
        if isinstance(tracker, MpcTracker) and self._feedback:
            feedback = NativeTracking(tracker, theirs)
        else:
            law = linear.law if self._feedback else linear.law.feedforward_alone
            feedback = _LinearFeedback(model, law.data(model, theirs))
        r = self._record
        optional = (address(a) if len(a) else None for a in (r.plant_states, r.before))
        forces, h = np.zeros(model.system.nu), np.array([model.h])
        data = LoopData(
            *(ctypes.pointer(part) for part in (ours.stepper, theirs.stepper)),
            *(ctypes.pointer(part) for part in (ours.motion, theirs.motion)),
            ctypes.pointer(feedback.law),
            FunctionData() if same_steps(plant, model) else theirs.state,
            *(address(a) for a in (h, forces, self._external)),
            *(self._substeps, self._external.shape[1], r.every),
            *(address(a) for a in (self._x, *feedback.arrays)),
            *(address(a) for a in (r.states, r.inputs, r.errors)),
            *optional,
            address(r.saturated),
        )
        kept = ours, theirs, h, forces, data.make_room()
        lasts = sys.maxsize if tracker.hold or not self._feedback else len(tracker.reference)

        def steps(end: int) -> bool:
            end = min(end, lasts)
            if self.k >= end:  # damped from here on
                return False
            k, _ = ctypes.c_longlong(self.k), kept
            with feedback.steps_from(self._memory, self.k) as possible:
                if not possible:
                    return False
                status = routine(data, k, end)
            self.k, self._memory = k.value, feedback.memory(k.value)
            return status == newton.CONVERGED

        return steps


def _has_command_of_its_own(tracker: LqrTracker | MpcTracker) -> bool:
    """Whether the tracker's class has another command, such as `LateMpc`."""
    return type(tracker).command not in (LqrTracker.command, MpcTracker.command)


class _LinearFeedback:
    """The memory of an `LqrTracker` as arrays, and its law, for native loops."""

    def __init__(self, model: DiscreteSystem, law: LawData):
        self.law = law
        self._d, self._predicted = np.zeros(model.system.nrho), np.zeros(model.nx)
        self._stage = np.zeros(1, dtype=np.int64)
        self.arrays = self._d, self._predicted, self._stage

    @contextmanager
    def steps_from(self, memory: DisturbanceEstimate | None, k: int) -> Iterator[bool]:
        """A context of native steps from step k on, after this memory; they are always
        possible.
        """
        self._stage[0] = 0
        if memory is not None:
            self._d[:], self._stage[0] = memory.disturbance, 1
            if memory.predicted is not None:
                self._predicted[:], self._stage[0] = memory.predicted, 2
        yield True

    def memory(self, k: int) -> DisturbanceEstimate | None:
        """The memory after the step before k."""
        if self._stage[0] == 0:
            return None
        predicted = self._predicted.copy() if self._stage[0] == 2 else None
        return DisturbanceEstimate(self._d.copy(), predicted)
