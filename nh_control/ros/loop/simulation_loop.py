"""The plant's loop: one thread that owns plant, validator and pacer, and gets commands and
requests through an inbox.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from nh_control.discrete.results import StepFailed
from nh_control.ros.loop.command_validator import CommandValidator
from nh_control.ros.loop.pacing import Pacer
from nh_control.ros.loop.simulated_plant import SimulatedPlant

REPUBLISH_S = 0.1


class Mode(str, Enum):
    """What the loop is doing."""

    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"


class Refused(Exception):
    """A request that makes no sense now; the message says what would."""


@dataclass(frozen=True)
class Options:
    """`lockstep`: every step waits for the command that answers its state; `wait_for_tracker`:
    only the first does; `last_step`: where to finish.
    """

    lockstep: bool
    wait_for_tracker: bool
    last_step: int


class Inbox(Protocol):
    """Where commands and requests come from; see `nh_control.ros.inbox`."""

    closed: bool

    def serve(self, timeout_s: float | None) -> None:
        """Handle what is there, waiting up to timeout_s (None: forever) for the first."""


class SimulationLoop:
    """Steps a plant by commands and deadlines in `run`; all other methods are to be called through
    the inbox, in the same thread.

    `publish` is called with every new state, and again every REPUBLISH_S while a command for it is
    awaited, so a controller that starts late or again gets the pending state; a plant that does
    not run publishes its state again when `late_subscribers` returns true. `changed` is called
    when mode or reason change. The first step waits for what `missing` says, until it says
    nothing, of which `changed` tells, too.
    """

    def __init__(
        self,
        plant: SimulatedPlant,
        validator: CommandValidator,
        pacer: Pacer,
        options: Options,
        inbox: Inbox,
        publish: Callable[[], None],
        changed: Callable[[], None],
        missing: Callable[[], str] = lambda: "",
        late_subscribers: Callable[[], bool] = lambda: False,
    ):
        self.plant, self.validator, self.pacer, self.options = plant, validator, pacer, options
        self.mode, self.reason = Mode.RUNNING, ""
        self._publish, self._changed, self._look_for, self._late_subscribers = (
            publish,
            changed,
            missing,
            late_subscribers,
        )
        self._inbox, self._missing = inbox, ""
        self._needs_answer, self._absent = options.wait_for_tracker, True
        self._republish_at = 0.0
        self._awaited_since = time.monotonic()

    # Requests, in the loop's thread --------------------------------------------------------------

    def command(self, names: Sequence[str], values: Sequence[float], stamp: int) -> None:
        """Offer a command to the validator."""
        self.validator.offer(names, values, stamp, self.plant.step)

    def pause(self) -> None:
        """Pause a run; raises Refused if there is none."""
        if self.mode is not Mode.PAUSED:
            self._require(Mode.RUNNING, "pause")
            self._set(Mode.PAUSED, "by request")

    def resume(self) -> None:
        """Go on after a pause; raises Refused after the end or a failure."""
        if self.mode is not Mode.RUNNING:
            self._require(Mode.PAUSED, "resume")
            self.pacer.restart()
            self._set(Mode.RUNNING)

    def single_step(self) -> None:
        """Take one step while paused; raises Refused otherwise, and in lock-step until the command
        for the step is there.
        """
        self._require(Mode.PAUSED, "take a single step")
        if self.options.lockstep and not self.validator.answers(self.plant.step):
            self._publish()
            raise Refused(
                f"no command answers step {self.plant.step} yet (lock-step); is the tracker "
                f"running?"
            )
        self._advance()
        if self.mode is Mode.FAILED:
            raise Refused(self.reason)

    def reset(self) -> None:
        """Back to the initial state; a paused plant stays paused, any other runs."""
        self.plant.reset()
        self.validator.clear()
        self.pacer.restart()
        self._needs_answer, self._absent = self.options.wait_for_tracker, True
        self._set(
            Mode.PAUSED if self.mode is Mode.PAUSED else Mode.RUNNING,
            self.reason if self.mode is Mode.PAUSED else "",
        )
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
        return bool(self._missing) or (needed and not self.validator.answers(self.plant.step))

    @property
    def awaited(self) -> str:
        """What the next step waits for."""
        if not self.awaiting:
            return ""
        return (
            self._missing
            or f"the command that answers step {self.plant.step}; is the tracker running?"
        )

    @property
    def awaited_s(self) -> float:
        """Seconds for which it has been awaited."""
        return time.monotonic() - self._awaited_since if self.awaiting else 0.0

    def run(self) -> None:
        """Loop until the inbox is closed."""
        self._missing = self._look_for()
        self.pacer.restart()
        self._show()
        while not self._inbox.closed:
            if self.mode is not Mode.RUNNING:
                if self._late_subscribers():
                    self._show(republish=True)
                self._inbox.serve(REPUBLISH_S)
            elif self.awaiting:
                self._await_command()
            elif (remaining_s := self.pacer.remaining_s()) > 0:
                self._inbox.serve(remaining_s)
            else:
                self.pacer.tick()
                self._advance()
                if not self.options.lockstep:
                    self._inbox.serve(0.0)

    def _await_command(self) -> None:
        remaining_s = self._republish_at - time.monotonic()
        if remaining_s > 0:
            self._inbox.serve(remaining_s)
        else:
            if self._missing:
                self._missing = self._look_for()
                if not self._missing:
                    self._changed()  # all that were waited for know how the run begins
            self._show(republish=True)
            self._absent = True
        if self._absent and not self.awaiting:
            self._absent = False
            # the plant has not missed the deadlines for which there was no controller
            self.pacer.restart()

    def _advance(self) -> None:
        u = self.validator.take(self.plant.step)
        if u is None:
            self._needs_answer = True
            self._set(
                Mode.PAUSED,
                f"no command for {self.validator.age(self.plant.step)} steps, fallback is stop",
            )
            return
        try:
            self.plant.advance(u)
        except (StepFailed, ArithmeticError) as failure:
            self._set(
                Mode.FAILED,
                f"step {self.plant.step} failed, the plant stays at the last good state: "
                f"{failure}",
            )
            return
        self._needs_answer = False
        self._show()
        if self.plant.step >= self.options.last_step:
            self._set(Mode.FINISHED, f"{self.plant.step} steps done")

    def _show(self, republish: bool = False) -> None:
        self._publish()
        now = time.monotonic()
        self._republish_at = now + REPUBLISH_S
        if not republish:
            self._awaited_since = now

    def _set(self, mode: Mode, reason: str = "") -> None:
        if (mode, reason) != (self.mode, self.reason):
            self.mode, self.reason = mode, reason
            self._changed()

    def _require(self, mode: Mode, what: str) -> None:
        if self.mode is not mode:
            remedy = {Mode.RUNNING: "pause it first", Mode.PAUSED: "resume it first"}.get(
                self.mode, "reset it first"
            )
            raise Refused(f"cannot {what}: the plant is {self.mode.value}; {remedy}")
