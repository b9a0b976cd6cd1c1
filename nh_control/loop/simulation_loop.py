"""The plant's loop: one thread uses a plant, a validator and a pacer, and serves an inbox."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol, TypeAlias

import numpy as np

from nh_control.discrete.results import StepFailed
from nh_control.loop.clocks import NANOSECONDS, Pacer
from nh_control.loop.command_validator import CommandValidator, Fallback, Rejection
from nh_control.loop.simulated_plant import SimulatedPlant

REPUBLISH_S = 0.1
WAIT_REPORT_S, START_REPORT_S = 1.0, 10.0
"""Time (s) after which a wait for a command is reported, within a run and at its beginning."""
MOST_SERVED = 20
"""Maximum number of received messages that may delay a step that is due."""


class Mode(str, Enum):
    """The phase of the loop."""

    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"


class Refused(Exception):
    """A request is impossible in the present mode; the message contains the remedy."""


STOPPED = "stopped by request"
"""Reason for a pause at the beginning of a run."""


Progress: TypeAlias = Callable[[int, bool], None]
"""A callback `progress(completed, over)` that the loop's thread calls after each requested step,
with the number of completed steps and whether this was the last one.
"""


@dataclass
class _Steps:
    """Requested steps and their progress."""

    requested: int
    progress: Progress
    completed: int = 0


@dataclass(frozen=True)
class Options:
    """With `lockstep`, every step waits for the command that answers its state. With
    `wait_for_tracker`, only the first step does so, also after `place`. `last_step` is the number
    of steps in the run, counted from the start of the reference. `answer_timeout_s` is the wall
    time (s) after which a step that is waiting for a command ends the run; 0 means no limit.
    """

    lockstep: bool
    wait_for_tracker: bool
    last_step: int
    answer_timeout_s: float = 0.0


class Inbox(Protocol):
    """Source of commands and requests (see `nh_control.ros.runtime.inbox`)."""

    closed: bool

    def serve(self, timeout_s: float | None) -> bool: ...


class Output(Protocol):
    """Publisher of the loop's results, called in the loop's thread."""

    def publish(self) -> None:
        """Publish the present state. This is a new state or, while a command is awaited, the same
        state every REPUBLISH_S for controllers that start late.
        """

    def changed(self) -> None:
        """Note that the mode or its reason has changed, or that `missing` has become ""."""

    def missing(self) -> str:
        """Return the condition that the first step waits for, or ""."""

    def has_controller(self) -> bool:
        """Whether a node or the run's tracker may send commands."""

    def waits(self, text: str, over: bool) -> None:
        """Note that the run has been waiting for a command for a while or, if `over`, that it
        continues.
        """

    def late_subscribers(self) -> bool:
        """Whether new subscribers need the state of a plant that does not advance."""

    def placed(self) -> None:
        """Note that the next published state does not follow from the last one."""


class SimulationLoop:
    """Steps a plant according to commands and deadlines in `run`, and publishes the results to
    `output`. Call all other methods through the inbox, so that they run in the same thread.
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
        """Error of the last failed step."""
        self._steps: _Steps | None = None
        self._inbox, self._output, self._missing = inbox, output, ""
        self._needs_answer, self._absent = options.wait_for_tracker, True
        self._republish_at = 0.0
        self._awaited_since = time.monotonic()
        self._reported_wait, self._began = False, False
        self.waits, self.waited_s = 0, 0.0
        """Number and total duration (s) of waits for a command after the run began."""
        self.paused_s, self._paused_at = 0.0, 0.0
        """Total duration (s) of the completed pauses in this run."""

    # Requests, called in the loop's thread -------------------------------------------------------

    def command(
        self,
        names: Sequence[str],
        values: Sequence[float],
        stamp: int,
        rates: Sequence[float] = (),
    ) -> Rejection | None:
        """Offer a command to the validator. Returns the reason if the command is rejected,
        otherwise None. `rates` are the rates of a servo's targets; they are NaN or empty if
        unknown.
        """
        step, validator = self.plant.step, self.validator
        reason = validator.offer(names, values, stamp, step)
        if reason is None and self.plant.servo is not None:
            known = validator.names.ordered(names, rates)
            self.plant.motion.take(
                np.array(validator.values),
                np.full(len(validator.values), np.nan) if known is None else np.array(known),
                stamp / NANOSECONDS,
                step * self.pacer.period_s + self.pacer.elapsed_s(),
                validator.identifies(stamp, step),
            )
        return reason

    def pause(self) -> None:
        """Pause a run. Raises Refused if there is no run."""
        if self.mode is not Mode.PAUSED:
            self._require(Mode.RUNNING, "pause")
        if self.mode is Mode.RUNNING or self.reason == STOPPED:
            self._set(Mode.PAUSED, "by request")

    def resume(self) -> None:
        """Continue after a pause. Raises Refused after the run has ended or failed."""
        if self._steps is not None:
            self._end_steps()
            self._set(Mode.RUNNING)
        elif self.mode is not Mode.RUNNING:
            self._require(Mode.PAUSED, "resume")
            self.pacer.restart()
            self._set(Mode.RUNNING)

    def step(self, n: int = 1, progress: Progress = lambda completed, over: None) -> None:
        """Take n steps while paused. The first step is taken immediately, and the others follow at
        the pace and under the rules of a run. Raises Refused if the plant is not paused or, in
        lock-step, if the command for the first step is missing.
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

    def set_fallback(self, fallback: Fallback) -> None:
        """Change the input that is used without a fresh command. A run that is waiting for a
        command continues.
        """
        self.validator.fallback = fallback
        self._needs_answer = self._needs_answer and not self._began

    def end_steps(self) -> None:
        """Pause if requested steps are in progress."""
        if self._steps is not None:
            self._set(Mode.PAUSED, "by request")

    def plan(self, initial: np.ndarray, last_step: int) -> None:
        """Set the initial state (nx) and the last step that take effect the next time the
        reference starts.
        """
        self.plant.initial, self._next = initial, replace(self.options, last_step=last_step)

    def reset(self) -> None:
        """Return to the initial state at step 0. A paused plant stays paused; any other plant
        runs.
        """
        self.place(self.plant.initial, 0, 0)

    def stop(self) -> None:
        """Return to the initial state at step 0, and pause."""
        self.mode, self.reason = Mode.PAUSED, ""
        self.reset()
        self._set(Mode.PAUSED, STOPPED)

    def reset_state(self) -> None:
        """Return to the initial state. The reference starts again at the next step, and time
        continues.
        """
        self.place(self.plant.initial, self.plant.step + 1, self.plant.step + 1)

    def reset_time(self) -> None:
        """Return to step 0 and the start of the reference without changing the state."""
        self.place(self.plant.state, 0, 0)

    def set_state(self, state: np.ndarray) -> None:
        """Put the plant into another state (nx) at the next step. Raises ValueError."""
        self.place(state, self.plant.step + 1, self.start_step)

    def place(self, state: np.ndarray, step: int, start_step: int) -> None:
        """Continue from the given state (nx) at `step`. The reference starts at `start_step`. A
        paused plant stays paused. A plant that has ended or failed runs again, unless `step` is
        the last step. Raises ValueError.
        """
        self.plant.place(state, step)
        paused = self.mode is Mode.PAUSED or self._steps is not None
        self._end_steps()
        self.start_step = start_step
        # a planned start takes effect only if the run begins again
        if step == start_step:
            self.options = self._next
        self.validator.clear()
        self.pacer.restart()
        self._needs_answer, self._absent = self.options.wait_for_tracker, True
        self._began, self.paused_s = False, 0.0
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
        """The condition that the next step waits for, or ""."""
        step = self.plant.measured_step
        answer = f"the command that answers step {step}; is the tracker running?"
        return (self._missing or answer) if self.awaiting else ""

    @property
    def awaited_s(self) -> float:
        """Time (s) since the present wait began, or 0 without a wait."""
        return time.monotonic() - self._awaited_since if self.awaiting else 0.0

    def run(self) -> None:
        """Loop until the inbox is closed."""
        self._missing = self._output.missing()
        self.pacer.restart()
        self._output.placed()
        self._show()
        # in lock-step, one message is enough, because a due step already has its command
        served, most = 0, 1 if self.options.lockstep else MOST_SERVED
        while not self._inbox.closed:
            if self.mode is not Mode.RUNNING:
                if self._output.late_subscribers():
                    self._show(republish=True)
                self._inbox.serve(REPUBLISH_S)
            elif self.awaiting:
                self._await_command()
                served += 1
            elif (remaining_s := self.pacer.remaining_s()) > 0:
                self._inbox.serve(remaining_s)
            elif served < most and self._inbox.serve(0.0):
                served += 1  # an answer or a request may have arrived while this thread was busy
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
                    self._output.changed()  # all awaited nodes know how the run begins
                    if self._output.has_controller():  # otherwise it was awaited too
                        self._awaited_since = time.monotonic()
            self._show(republish=True)
            self._absent = True
            self._tell_wait()
        if self.mode is Mode.RUNNING and not self.awaiting:
            self._end_wait()

    def _tell_wait(self) -> None:
        """Report a wait for a command once it has become long, and end the run at the time limit.
        A wait for subscribers is reported by the diagnostics.
        """
        if self._missing:
            return
        waited_s, limit_s = self.awaited_s, self.options.answer_timeout_s or np.inf
        report_s = WAIT_REPORT_S if self._began else START_REPORT_S
        if not self._reported_wait and waited_s > min(report_s, limit_s):
            self._reported_wait = True
            text = f"waiting for {self.awaited} The run continues when the command arrives"
            self._output.waits(text, over=False)
        if waited_s > limit_s:
            step = self.plant.measured_step
            self._set(Mode.FAILED, f"no command answered step {step} within {limit_s:g} s")

    def _end_wait(self) -> None:
        """Continue after a wait."""
        waited_s = time.monotonic() - self._awaited_since
        if self._began and not self.options.lockstep:
            self.waits, self.waited_s = self.waits + 1, self.waited_s + waited_s
        if self._reported_wait:
            self._reported_wait = False
            text = f"a command came after {waited_s:.1f} s, the run continues at step "
            self._output.waits(f"{text}{self.plant.step}", over=True)
        if self._absent:
            self._absent = False
            # the plant has not missed deadlines while there was no controller
            self.pacer.restart()

    def _advance(self) -> None:
        # if the plant waits for commands, no command is late; while measurements are lost, the
        # last command is held
        waits = self.options.lockstep or self.validator.fallback is Fallback.WAIT
        u = self.validator.take(self.plant.measured_step if waits else self.plant.step)
        if u is None:
            # no fresh command and Fallback.WAIT: await one instead of stepping
            self._needs_answer = True
            return
        try:
            self.plant.advance(u)
        except (StepFailed, ArithmeticError) as failure:
            self.failure = failure
            text = f"step {self.plant.step} failed, the plant stays at the last good state"
            self._set(Mode.FAILED, f"{text}: {failure}")
            return
        self._needs_answer, self._began = False, True
        self._show()
        if self._steps is not None:
            self._steps.completed += 1
        if not self._finished():
            self._pause_after_steps()

    def _finished(self) -> bool:
        """Whether this was the last step."""
        completed = self.plant.step - self.start_step
        if completed < self.options.last_step:
            return False
        self._set(Mode.FINISHED, f"{completed} steps done")
        return True

    def _pause_after_steps(self) -> None:
        """Pause after the last requested step, or report progress."""
        steps = self._steps
        if steps is not None and steps.completed == steps.requested:
            self._set(Mode.PAUSED, "by request")
        elif steps is not None:
            steps.progress(steps.completed, False)

    def _end_steps(self) -> None:
        """Report that the requested steps have ended."""
        steps, self._steps = self._steps, None
        if steps is not None:
            steps.progress(steps.completed, True)

    def _show(self, republish: bool = False) -> None:
        self._output.publish()
        now = time.monotonic()
        self._republish_at = now + REPUBLISH_S
        if not republish:
            self._awaited_since = now

    def _set(self, mode: Mode, reason: str = "") -> None:
        if (mode, reason) != (self.mode, self.reason):
            self._time_pause(mode)
            self.mode, self.reason = mode, reason
            self._output.changed()
        if mode is not Mode.RUNNING:
            self._end_steps()

    def _time_pause(self, mode: Mode) -> None:
        """Note when a pause begins. When the next mode ends it, add its duration to the run's
        pauses.
        """
        now = time.monotonic()
        if self.mode is not Mode.PAUSED:
            self._paused_at = now
        elif mode is not Mode.PAUSED and self._began:
            self.paused_s += now - self._paused_at

    def _require(self, mode: Mode, what: str) -> None:
        if self.mode is not mode:
            remedies = {Mode.RUNNING: "pause it first", Mode.PAUSED: "resume it first"}
            remedy = remedies.get(self.mode, "reset it first")
            raise Refused(f"cannot {what}: the plant is {self.mode.value}; {remedy}")
