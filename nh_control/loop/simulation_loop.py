"""The plant's loop: one thread owns plant, validator and pacer, and serves an inbox."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol, TypeAlias

import numpy as np

from nh_control.discrete.results import StepFailed
from nh_control.loop.clocks import Pacer
from nh_control.loop.command_validator import CommandValidator, Rejection
from nh_control.loop.simulated_plant import SimulatedPlant

REPUBLISH_S = 0.1
MOST_SERVED = 20
"""Number of arrived messages that may delay a due step."""


class Mode(str, Enum):
    """Phase of the loop."""

    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"


class Refused(Exception):
    """A request is impossible in the present mode; the message has the remedy."""


STOPPED = "stopped by request"
"""Reason of a pause at the start."""


Progress: TypeAlias = Callable[[int, bool], None]
"""A callback in the loop's thread after each requested step, `progress(made, over)`: the number of
steps made, and whether it was the last.
"""


@dataclass
class _Steps:
    """Steps that were requested."""

    requested: int
    progress: Progress
    made: int = 0


@dataclass(frozen=True)
class Options:
    """`lockstep`: every step waits for the command that answers its state; `wait_for_tracker`:
    only the first step does, also after `place`; `last_step`: the number of steps of the run from
    the start of the reference.
    """

    lockstep: bool
    wait_for_tracker: bool
    last_step: int


class Inbox(Protocol):
    """Source of commands and requests, see `nh_control.ros.runtime.inbox`."""

    closed: bool

    def serve(self, timeout_s: float | None) -> bool: ...


class Output(Protocol):
    """Publisher of the loop's results, called in the loop's thread."""

    def publish(self) -> None:
        """Publish the present state: a new state, or, while its command is awaited, the same one
        every REPUBLISH_S for controllers that start late.
        """

    def changed(self) -> None:
        """Note that the mode or its reason has changed, or that `missing` has become ""."""

    def missing(self) -> str:
        """The condition that the first step waits for, "" for none."""

    def late_subscribers(self) -> bool:
        """Whether new subscribers need the state of a plant that stands still."""

    def placed(self) -> None:
        """Note that the next published state does not follow from the last one."""


class SimulationLoop:
    """Steps a plant by commands and deadlines in `run`, and publishes to `output`. Call all other
    methods through the inbox, so that they run in the same thread.
    """

    def __init__(
        self,
        plant: SimulatedPlant,
        validator: CommandValidator,
        pacer: Pacer,
        options: Options,
        inbox: Inbox,
        output: Output,
    ):
        self.plant, self.validator, self.pacer, self.options = plant, validator, pacer, options
        self._next, self.mode, self.reason = options, Mode.RUNNING, ""
        self.start_step = 0
        """Step at which the reference starts."""
        self.failure: StepFailed | ArithmeticError | None = None
        """Error of the last step that failed."""
        self._steps: _Steps | None = None
        self._inbox, self._output, self._missing = inbox, output, ""
        self._needs_answer, self._absent = options.wait_for_tracker, True
        self._republish_at = 0.0
        self._awaited_since = time.monotonic()

    # Requests, in the loop's thread --------------------------------------------------------------

    def command(
        self, names: Sequence[str], values: Sequence[float], stamp: int
    ) -> Rejection | None:
        """Offer a command to the validator; returns why it was rejected, if it was."""
        return self.validator.offer(names, values, stamp, self.plant.step)

    def pause(self) -> None:
        """Pause a run; raises Refused if there is none."""
        if self.mode is not Mode.PAUSED:
            self._require(Mode.RUNNING, "pause")
        if self.mode is Mode.RUNNING or self.reason == STOPPED:
            self._set(Mode.PAUSED, "by request")

    def resume(self) -> None:
        """Continue after a pause; raises Refused after the end or a failure."""
        if self._steps is not None:
            self._end_steps()
            self._set(Mode.RUNNING)
        elif self.mode is not Mode.RUNNING:
            self._require(Mode.PAUSED, "resume")
            self.pacer.restart()
            self._set(Mode.RUNNING)

    def step(self, n: int = 1, progress: Progress = lambda made, over: None) -> None:
        """Take n steps while paused: the first one at once, the others at the pace and by the
        rules of a run. Raises Refused otherwise, and in lock-step if the command for the first
        step is missing.
        """
        self._require(Mode.PAUSED, "take a single step" if n == 1 else f"take {n} steps")
        if self.options.lockstep and not self.validator.answers(self.plant.measured_step):
            self._output.publish()
            raise Refused(
                f"no command answers step {self.plant.measured_step} yet (lock-step); is the "
                f"tracker running?"
            )
        self._steps = _Steps(n, progress)
        self._advance()
        if self.mode is Mode.FAILED:
            raise Refused(self.reason)
        if self._steps is not None:
            self.pacer.restart()
            self._set(Mode.RUNNING, f"{n} steps by request")

    def end_steps(self) -> None:
        """Pause if requested steps are in progress."""
        if self._steps is not None:
            self._set(Mode.PAUSED, "by request")

    def plan(self, initial: np.ndarray, last_step: int) -> None:
        """Set another initial state (nx) and last step for the next start of the reference."""
        self.plant.initial, self._next = initial, replace(self.options, last_step=last_step)

    def reset(self) -> None:
        """Return to the initial state at step 0; a paused plant stays paused, any
        other one runs.
        """
        self.place(self.plant.initial, 0, 0)

    def stop(self) -> None:
        """Return to the initial state at step 0, and pause."""
        self.mode, self.reason = Mode.PAUSED, ""
        self.reset()
        self._set(Mode.PAUSED, STOPPED)

    def reset_state(self) -> None:
        """Return to the initial state, at which the reference starts again, at the next step; the
        time continues.
        """
        self.place(self.plant.initial, self.plant.step + 1, self.plant.step + 1)

    def reset_time(self) -> None:
        """Return to step 0 and the start of the reference, in the present state."""
        self.place(self.plant.state, 0, 0)

    def set_state(self, state: np.ndarray) -> None:
        """Put the plant into another state (nx) at the next step; raises ValueError."""
        self.place(state, self.plant.step + 1, self.start_step)

    def place(self, state: np.ndarray, step: int, start_step: int) -> None:
        """Continue from a state (nx) at a step; the reference starts at `start_step`. A paused
        plant stays paused; one that has ended or failed runs, unless `step` is the last one.
        Raises ValueError.
        """
        self.plant.place(state, step)
        paused = self.mode is Mode.PAUSED or self._steps is not None
        self._end_steps()
        self.start_step = start_step
        if step == start_step:
            self.options = self._next
        self.validator.clear()
        self.pacer.restart()
        self._needs_answer, self._absent = self.options.wait_for_tracker, True
        if paused:
            self._set(Mode.PAUSED, self.reason if self.mode is Mode.PAUSED else "by request")
        elif not self._finished():
            self._set(Mode.RUNNING)
        self._output.placed()
        self._show()

    # The loop ------------------------------------------------------------------------------------

    @property
    def awaiting(self) -> bool:
        """Whether the next step waits for a command that answers the present state, or for
        subscribers.
        """
        if self.mode is not Mode.RUNNING:
            return False
        needed = self.options.lockstep or self._needs_answer
        return bool(self._missing) or (
            needed and not self.validator.answers(self.plant.measured_step)
        )

    @property
    def awaited(self) -> str:
        """The condition that the next step waits for, "" for none."""
        step = self.plant.measured_step
        answer = f"the command that answers step {step}; is the tracker running?"
        return (self._missing or answer) if self.awaiting else ""

    @property
    def awaited_s(self) -> float:
        """Time (s) since this wait began."""
        return time.monotonic() - self._awaited_since if self.awaiting else 0.0

    def run(self) -> None:
        """Loop until the inbox is closed."""
        self._missing = self._output.missing()
        self.pacer.restart()
        self._output.placed()
        self._show()
        served = 0
        while not self._inbox.closed:
            if self.mode is not Mode.RUNNING:
                if self._output.late_subscribers():
                    self._show(republish=True)
                self._inbox.serve(REPUBLISH_S)
            elif self.awaiting:
                self._await_command()
            elif (remaining_s := self.pacer.remaining_s()) > 0:
                self._inbox.serve(remaining_s)
            elif not self.options.lockstep and served < MOST_SERVED and self._inbox.serve(0.0):
                served += 1  # the answer may have come while this thread was busy, or a request
            else:
                served = 0
                self.pacer.tick()
                self._advance()

    def _await_command(self) -> None:
        remaining_s = self._republish_at - time.monotonic()
        if remaining_s > 0:
            self._inbox.serve(remaining_s)
        else:
            if self._missing:
                self._missing = self._output.missing()
                if not self._missing:
                    self._output.changed()  # all that were awaited know how the run begins
            self._show(republish=True)
            self._absent = True
        if self._absent and not self.awaiting:
            self._absent = False
            # the plant has not missed the deadlines for which there was no controller
            self.pacer.restart()

    def _advance(self) -> None:
        # in lock-step nothing is late: while measurements are lost the last command holds
        u = self.validator.take(
            self.plant.measured_step if self.options.lockstep else self.plant.step
        )
        if u is None:
            self._needs_answer = True
            age = self.validator.age(self.plant.step)
            self._set(Mode.PAUSED, f"no command for {age} steps, fallback is stop")
            return
        try:
            self.plant.advance(u)
        except (StepFailed, ArithmeticError) as failure:
            self.failure = failure
            text = f"step {self.plant.step} failed, the plant stays at the last good state"
            self._set(Mode.FAILED, f"{text}: {failure}")
            return
        self._needs_answer = False
        self._show()
        if self._steps is not None:
            self._steps.made += 1
        if not self._finished():
            self._pause_after_steps()

    def _finished(self) -> bool:
        """Whether this was the last step."""
        made = self.plant.step - self.start_step
        if made < self.options.last_step:
            return False
        self._set(Mode.FINISHED, f"{made} steps done")
        return True

    def _pause_after_steps(self) -> None:
        """Pause after the last requested step."""
        steps = self._steps
        if steps is not None and steps.made == steps.requested:
            self._set(Mode.PAUSED, "by request")
        elif steps is not None:
            steps.progress(steps.made, False)

    def _end_steps(self) -> None:
        """Report the end of the requested steps."""
        steps, self._steps = self._steps, None
        if steps is not None:
            steps.progress(steps.made, True)

    def _show(self, republish: bool = False) -> None:
        self._output.publish()
        now = time.monotonic()
        self._republish_at = now + REPUBLISH_S
        if not republish:
            self._awaited_since = now

    def _set(self, mode: Mode, reason: str = "") -> None:
        if (mode, reason) != (self.mode, self.reason):
            self.mode, self.reason = mode, reason
            self._output.changed()
        if mode is not Mode.RUNNING:
            self._end_steps()

    def _require(self, mode: Mode, what: str) -> None:
        if self.mode is not mode:
            remedies = {Mode.RUNNING: "pause it first", Mode.PAUSED: "resume it first"}
            remedy = remedies.get(self.mode, "reset it first")
            raise Refused(f"cannot {what}: the plant is {self.mode.value}; {remedy}")
