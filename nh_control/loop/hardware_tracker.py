"""Commands for hardware whose states may be late, irregular, noisy, or without velocities."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeAlias

import numpy as np

from nh_control.control import Command
from nh_control.control.input_history import InputHistory, predict
from nh_control.discrete.results import StepFailed
from nh_control.loop.clocks import NANOSECONDS
from nh_control.loop.hardware_estimate import FilteredState, Implausible, MeasuredState
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.reports import Refusal, Unusable
from nh_control.loop.wire_format import unwrap
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.scenarios import PlanarBody

LONGEST_S = 10.0
"""Maximum time (s) over which the model predicts states."""
Estimate: TypeAlias = FilteredState | MeasuredState
"""An estimator that computes states from measurements."""
IN_TURN = 10
"""Number of consecutive implausible states after which the estimate counts as wrong."""


class StateRefused(Unusable):
    """A state cannot be used; the message contains the reason."""


class Diverged(Exception):
    """The estimate does not fit the measured states; the message contains the size of the
    difference.
    """


@dataclass(frozen=True)
class Timing:
    """`actuation_s` is the time from sending a command to its effect. `max_age_s` is the maximum
    age of a usable state on the tracker's clock; 0 means no limit. `compensate` says whether
    commands are computed for the state predicted at the time when they take effect.
    """

    actuation_s: float = 0.0
    max_age_s: float = 0.0
    compensate: bool = False


@dataclass(frozen=True)
class Answer:
    """A command with its state x (nx), its target (nx) and its `step`. `age_s` is the time since
    the measurement of the state.
    """

    command: Command
    x: np.ndarray
    target: np.ndarray
    step: int
    age_s: float


class HardwareTracker:
    """Computes commands along a sequence of references, which starts at a given time on the
    states' clock.

    At time t after the start, the gains and inputs are those of the closest step k. The reference
    is interpolated between step k and its neighbor k', with `a = (t - k h) / (k' h - k h)`:
    `x_d(t) = retract(x_d[k], a local(x_d[k], x_d[k']))`. The sequence receives the state that has
    the same error at step k, `retract(x_d[k], local(x_d(t), x))`. With compensation, x is the
    state that the model predicts for the time when the command takes effect, under the inputs that
    act until then. Without compensation, and for a state with a stamp in the future, the clocks of
    the states and the tracker may differ. The age of a state is then the time taken to answer it.
    Before the start, the target is the first state of the reference.

    The heading of the scenario's planar `body`, if there is one, is measured only up to whole
    turns. Before the start, the heading closest to that of the reference is used, so that a robot
    that has driven in circles can start again. Afterwards, the heading closest to that of the
    estimate is used.
    """

    def __init__(
        self,
        sequence: ReferenceSequence,
        estimate: Estimate,
        timing: Timing,
        body: PlanarBody | None = None,
    ):
        self.sequence, self.timing = sequence, timing
        self._estimate, self._dsys = estimate, sequence.dsys
        self._heading = None if body is None else body.place(self._dsys.system.space)[0]
        self._idle = self._dsys.idle(sequence.target(0))
        self._inputs = InputHistory(self._idle)
        self.start_ns: int | None = None
        self.uncompensated = 0
        self.reset()

    def warm_up(self) -> None:
        """Compile and load everything before the first state with two trial answers that are
        undone. Otherwise, states would be lost in the meantime, and the model of a robot that is
        held until it is armed would fall for seconds.
        """
        q = self._dsys.configuration(self.sequence.target(self.sequence.first)).tolist()
        try:
            # 1.5 steps: the second answer predicts over a whole step and over a fraction of a step
            for time_ns in (0, round(1.5 * self._dsys.h * NANOSECONDS)):
                self.answer(time_ns, q, None, time_ns)
        except (StateRefused, StepFailed):
            pass  # real states will be refused for the same reason, which will be logged
        wait_for_compiler()
        self.reset()
        self.sequence.reset()

    def reset(self) -> None:
        """Forget all states, all inputs and the start time."""
        self._estimate.reset()
        self._inputs.clear()
        self._ahead_ns, self._doubted = 0, 0
        self.start_ns, self.last_ns, self._step = None, -1, -1
        self._memory: Any = None

    def gap_s(self, time_ns: int) -> float:
        """Return the time (s) from the last state to `time_ns` if it exceeds LONGEST_S, else 0."""
        gap_s = (time_ns - self.last_ns) / NANOSECONDS
        return gap_s if self.last_ns >= 0 and gap_s > LONGEST_S else 0.0

    def start(self, time_ns: int) -> None:
        """Start the reference at this time."""
        self.start_ns = time_ns

    def answer(
        self, time_ns: int, q: Sequence[float], v: Sequence[float] | None, now_ns: int
    ) -> Answer:
        """Return the command for a configuration q (nq) and a velocity v (nw) measured at
        `time_ns`. An unknown velocity is None or NaN. `now_ns` is the present time on the
        tracker's clock.

        Raises StateRefused, and changes nothing, for a state that is not newer than the last one,
        is too old, has numbers too large for calculations, or is implausible. Raises StepFailed if
        the model cannot follow. Raises Diverged after IN_TURN consecutive implausible states; the
        estimate then starts again.
        """
        self._check(time_ns, now_ns)
        # work on a copy: a refused state must not change the estimate
        estimate = copy(self._estimate)
        if self.gap_s(time_ns):
            estimate.reset()
        try:
            answer = self._answer(estimate, time_ns, q, v, now_ns)
        except StepFailed:
            self._estimate.reset()
            raise
        except Implausible as reason:
            self._doubt(reason)
        except ValueError as reason:
            text = f"its numbers cannot be used: {reason}"
            raise StateRefused(Refusal.MODEL, text) from reason
        self._estimate, self.last_ns, self._doubted = estimate, time_ns, 0
        # offset between the clocks if they may differ; inputs are recorded on the states' clock
        clocks_agree = self.timing.compensate and now_ns >= time_ns
        self._ahead_ns = 0 if clocks_agree else now_ns - time_ns
        self._memory = None if self.start_ns is None else answer.command.memory
        self._step = answer.step
        return answer

    def _answer(
        self,
        estimate: Estimate,
        time_ns: int,
        q: Sequence[float],
        v: Sequence[float] | None,
        now_ns: int,
    ) -> Answer:
        # x_d and the estimate at the time of measurement, and the state when the command takes
        # effect
        here = self._time(time_ns)
        expected = self._target(here)
        began = self.last_ns if self.last_ns >= 0 else time_ns
        if self._heading is not None:
            q = self._on_turn(self._heading, estimate, q, expected)
        x = estimate.state(time_ns, q, v, self._inputs.between(began, time_ns), expected)
        age_s = (now_ns - time_ns) / NANOSECONDS
        ahead_s = max(0.0, age_s) + self.timing.actuation_s if self.timing.compensate else 0.0
        acts = here + ahead_s
        if ahead_s:
            x = self._ahead(x, time_ns, round(ahead_s * NANOSECONDS))
        command, target, k = self._command(x, acts)
        return Answer(command, x, target, k, age_s)

    def _on_turn(
        self, i: int, estimate: Estimate, q: Sequence[float], expected: np.ndarray
    ) -> list[float]:
        """Return the configuration with whole turns added to its heading so that it is closest to
        that of the estimate. Before the start, the estimate's heading is first made closest to
        that of the reference in the same way.
        """
        near = float(expected[i])
        if (known := estimate.configuration) is not None:
            heading = float(known[i])
            if self.start_ns is None:
                estimate.shift(i, unwrap(heading, near) - heading)
                heading = unwrap(heading, near)
            near = heading
        numbers = list(q)
        numbers[i] = unwrap(numbers[i], near)
        return numbers

    def add_input(self, u: np.ndarray, now_ns: int) -> None:
        """Note that the input u (nu) was sent at `now_ns` on the tracker's clock."""
        actuation_ns = round(self.timing.actuation_s * NANOSECONDS)
        self._inputs.add(now_ns - self._ahead_ns + actuation_ns, u)

    def stop(self, now_ns: int) -> None:
        """Note that no more commands are sent. The reference can then start again."""
        self.add_input(self._idle, now_ns)
        self.start_ns = None
        self.sequence.reset()

    def _doubt(self, reason: Implausible) -> NoReturn:
        self._doubted += 1
        if self._doubted < IN_TURN:
            raise StateRefused(reason.kind, str(reason)) from reason
        self._estimate.reset()
        self._doubted = 0
        raise Diverged(f"{IN_TURN} successive states were implausible; the last one was {reason}")

    def _check(self, time_ns: int, now_ns: int) -> None:
        age_s = (now_ns - time_ns) / NANOSECONDS
        when = "old" if age_s > 0 else "in the future"
        if time_ns <= self.last_ns:
            raise StateRefused(
                Refusal.STAMP,
                f"stamped {(self.last_ns - time_ns) / NANOSECONDS:.3g} s before the last state",
            )
        if self.timing.max_age_s and abs(age_s) > self.timing.max_age_s:
            raise StateRefused(
                Refusal.STAMP,
                f"{abs(age_s):.3g} s {when} by this node's clock, more than max_age_s = "
                f"{self.timing.max_age_s:g} s: are the clocks the same?",
            )
        if self.timing.compensate and abs(age_s) > LONGEST_S:
            raise StateRefused(
                Refusal.STAMP,
                f"{abs(age_s):.3g} s {when} by this node's clock, too far for its delay to be "
                f"compensated: are the clocks the same? hardware.compensate_delay:=false takes "
                f"stamps from any clock",
            )

    def _time(self, time_ns: int) -> float:
        """Return the time (s) since the start, or 0 before it."""
        if self.start_ns is None:
            return 0.0
        return max(0.0, (time_ns - self.start_ns) / NANOSECONDS)

    def _target(self, time_s: float) -> np.ndarray:
        k = self._step_of(time_s)
        here, after = self.sequence.target(k), time_s / self._dsys.h - k
        if after == 0.0:
            return here
        # the time lies between k and its neighbor k' = k + side, and a = side * after
        side = -1 if after < 0 and k > self.sequence.first else 1
        difference = self._dsys.local(here, self.sequence.target(k + side))
        return self._dsys.retract(here, side * after * difference)

    def _step_of(self, time_s: float) -> int:
        return max(self.sequence.first, round(time_s / self._dsys.h))

    def _ahead(self, x: np.ndarray, time_ns: int, ahead_ns: int) -> np.ndarray:
        try:
            return predict(self._dsys, x, self._inputs.between(time_ns, time_ns + ahead_ns))
        except StepFailed:
            self.uncompensated += 1
            return x

    def _command(self, x: np.ndarray, time_s: float) -> tuple[Command, np.ndarray, int]:
        """Return the command for a state x at a given time after the start, and the target and the
        step.
        """
        k, target = self._step_of(time_s), self._target(time_s)
        # the same error at step k, where the gains hold: retract(x_d[k], local(x_d(t), x))
        shifted = self._dsys.retract(self.sequence.target(k), self._dsys.local(target, x))
        memory = self._memory
        # after a skipped step, the last command's prediction belongs to another step
        if memory is not None and k != self._step + 1:
            memory = replace(memory, predicted=None)
        command = self.sequence.command(k, shifted, memory)
        return command, target, k
