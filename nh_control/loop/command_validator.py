"""Validation of the names, values and stamps of commands, and the inputs to use when no command is
valid.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from enum import Enum

import numpy as np

from nh_control.loop.clocks import NANOSECONDS, OTHER_CLOCK_NS, StepClock
from nh_control.loop.reports import shortened
from nh_control.numerics.expressions import Vector
from nh_control.scenarios.driven_joints import DrivenJoint


class Fallback(str, Enum):
    """The input to use without a fresh command: the last command; zero forces (prescribed
    coordinates keep their values); forces that damp the motion; commands from the plant's copy of
    the tracker; or none, so the plant waits for the next command.
    """

    HOLD = "hold"
    ZERO = "zero"
    DAMP = "damp"
    TRACKER = "tracker"
    WAIT = "wait"


class Rejection(str, Enum):
    """Reasons for rejecting a command."""

    UNREADABLE = "not a message of the expected type"
    WRONG_NAMES = "wrong names"
    WRONG_LENGTH = "wrong length"
    NOT_FINITE = "not finite"
    WRONG_STAMP = "stamp matches no state"
    FUTURE = "answers a future state"
    STALE = "older than an accepted command"
    DUPLICATE = "second, different answer to a state"
    LATE = "late"
    NO_COMMAND = "no command yet"
    """All values are NaN, and no input has had a command yet. This does not count as a rejection.
    """


ABOUT_VALUES = (Rejection.WRONG_NAMES, Rejection.WRONG_LENGTH, Rejection.NOT_FINITE)


class CommandValidator:
    """Accepts commands for the inputs in `names`. A command carries the stamp of the state that it
    answers.

    A command that answers state j is fresh for the steps j ... j + timeout_steps - 1. A command
    that arrives later is rejected as late. Unless `strict`, a command without a stamp or with a
    stamp from another clock (wall time) answers the present state, provided that no stamped
    command is fresh. With `own_clock`, all commands answer the present state. If a state receives
    different answers, the newest one takes effect; with `strict`, or with `several` senders, the
    first one does. Unless `strict`, NaN means that an input has no command yet, and the input
    takes the value of Fallback.ZERO. Values beyond `limits` (nu, 2) are clipped, as an actuator
    would clip them. Not thread-safe: use each validator in one thread only.
    """

    def __init__(
        self,
        names: CommandNames,
        limits: np.ndarray,
        clock: StepClock,
        timeout_steps: int = 1,
        fallback: Fallback = Fallback.ZERO,
        strict: bool = True,
        own_clock: bool = False,
    ):
        self.names, self.clock, self.fallback = names, clock, Fallback(fallback)
        self.interface = "effort"
        self._strict, self._own_clock = strict, own_clock and not strict
        self.several: Callable[[], bool] = lambda: False
        """Whether there is more than one sender of commands."""
        self._timeout_steps = timeout_steps
        self._lower, self._upper = (
            tuple(column) for column in np.asarray(limits, dtype=float).reshape(-1, 2).T
        )
        self.fallback_inputs: dict[Fallback, Callable[[], Vector]] = {}
        """Functions that return the inputs (nu) for each fallback. A missing function is replaced
        by that of ZERO or, if that is missing too, by zeros.
        """
        self.accepted, self.clipped, self.fallback_steps = 0, 0, 0
        self.held_steps = 0
        """Number of steps under a command that answered an earlier state but was still fresh."""
        self.rejected: Counter[Rejection] = Counter()
        self.examples: dict[Rejection, str] = {}
        """The first rejected command for each reason."""
        self.saturated: Counter[str] = Counter()
        """Number of accepted commands that were clipped, for each input."""
        self.clear()

    def clear(self) -> None:
        """Forget the last command after the plant has been reset. The counters are unchanged."""
        self._answered, self._stamped = -1, True
        self._offered: tuple[float, ...] = ()
        self.values: tuple[float, ...] = ()
        self._commanded = (False,) * len(self.names.inputs)

    def offer(
        self, names: Sequence[str], values: Sequence[float], stamp: int, step: int
    ) -> Rejection | None:
        """Process a command stamped `stamp` (ns) while the plant is at `step`. Returns the reason
        if the command is rejected, otherwise None.

        Names may be in any order. A repetition of the accepted command is harmless and is not
        counted.
        """
        reason = self._check(names, values, stamp, step)
        if reason not in (None, Rejection.NO_COMMAND):
            known = self.examples.get(reason)
            self.refuse(reason, known or self._example(reason, names, values, stamp, step))
        return reason

    def refuse(self, reason: Rejection, example: str) -> None:
        """Count an unusable command. The first `example` for each reason is stored."""
        self.examples.setdefault(reason, example)
        self.rejected[reason] += 1

    def _example(
        self,
        reason: Rejection,
        names: Sequence[str],
        values: Sequence[float],
        stamp: int,
        step: int,
    ) -> str:
        if reason in ABOUT_VALUES:
            return (
                f"got {self.interface} {shortened(values)} for {shortened(names)}; expected that "
                f"of {', '.join(self.names.inputs)}, or of joints that these drive"
            )
        now_s = self.clock.stamp(step) / NANOSECONDS
        expected = (
            "one answer to every state, is there a second controller?"
            if reason is Rejection.DUPLICATE
            else f"the stamp of one of the last {self._timeout_steps} states"
        )
        return (
            f"stamped {stamp / NANOSECONDS:.9g} s while the plant was at {now_s:.9g} s; expected "
            f"{expected}"
        )

    def _check(
        self, names: Sequence[str], values: Sequence[float], stamp: int, step: int
    ) -> Rejection | None:
        if self.names.order(names) is None:
            return Rejection.WRONG_NAMES
        ordered = self.names.ordered(names, values)
        if ordered is None:
            return Rejection.WRONG_LENGTH
        commanded = tuple(map(math.isfinite, ordered))
        # NaN is allowed for an input until its first finite value; infinities never are
        if not all(commanded):
            absent = [math.isnan(v) and not was for v, was in zip(ordered, self._commanded)]
            if self._strict or not all(map(operator.or_, commanded, absent)):
                return Rejection.NOT_FINITE
            if not any(commanded):
                return Rejection.NO_COMMAND
            zero = self.fallback_inputs.get(Fallback.ZERO, self._zeros)()
            ordered = tuple(z if none else v for v, z, none in zip(ordered, zero, absent))
        reason = self._check_stamp(ordered, stamp, step)
        if reason is None:
            self._commanded = tuple(map(operator.or_, self._commanded, commanded))
        return reason

    # whether the command answers the present state because it has no stamp or one from another
    # clock
    def _means_now(self, stamp: int, step: int) -> bool:
        if self._stamped and self._fresh(step):
            return False
        return stamp == 0 or stamp - self.clock.stamp(step) > OTHER_CLOCK_NS

    def identifies(self, stamp: int, step: int) -> bool:
        """Whether a stamp (ns) belongs to a state and a command that answers this state would be
        fresh at `step`.
        """
        answered = self.clock.step(stamp)
        return answered is not None and 0 <= step - answered < self._timeout_steps

    def _check_stamp(self, values: tuple[float, ...], stamp: int, step: int) -> Rejection | None:
        if self._own_clock:
            return self._check_answer(values, step)
        if not self._strict and self._means_now(stamp, step):
            # unstamped commands that repeat the same values are one command, which is counted once
            again = stamp == 0 == self._answered and values == self._offered
            self._accept(step, values, stamped=False, counted=not again)
            return None
        answered = self.clock.step(stamp)
        if answered is None:
            return Rejection.WRONG_STAMP
        if answered > step:
            return Rejection.FUTURE
        if self._stamped and answered < self._answered:
            return Rejection.STALE
        # a second answer to the last answered state is a duplicate, even if it is late
        known = self._stamped and answered == self._answered
        if step - answered >= self._timeout_steps and not known:
            return Rejection.LATE
        return self._check_answer(values, answered)

    def _check_answer(self, values: tuple[float, ...], answered: int) -> Rejection | None:
        if self._stamped and answered == self._answered:
            if self._offered == values:
                return None
            if self._strict or self.several():
                return Rejection.DUPLICATE
        self._accept(answered, values, stamped=True)
        return None

    def _accept(
        self, answered: int, values: tuple[float, ...], stamped: bool, counted: bool = True
    ) -> None:
        self._answered, self._stamped, self._offered = answered, stamped, values
        self.values = self._within(values)
        self.accepted += counted
        if counted and self.values != values:
            self.clipped += 1
            self.saturated.update(
                name
                for name, applied, v in zip(self.names.inputs, self.values, values)
                if applied != v
            )

    def _within(self, values: Vector) -> tuple[float, ...]:
        """Values clipped to the limits."""
        return tuple(map(min, map(max, values, self._lower), self._upper))

    def answers(self, step: int) -> bool:
        """Whether a command that answers exactly the state at this step was accepted."""
        return self._answered == step

    def age(self, step: int) -> int:
        """Return the number of steps since the state that the last accepted command answers or,
        without such a command, since the start.
        """
        return step - self._answered

    def _fresh(self, step: int) -> bool:
        return self._answered >= 0 and step - self._answered < self._timeout_steps

    def take(self, step: int) -> tuple[float, ...] | None:
        """Return the values (nu) to apply from `step` to the next step: the last command while it
        is fresh, and after that the values of the fallback. None means that the plant waits.
        """
        if self._fresh(step):
            self.held_steps += step > self._answered
            return self.values
        if self.fallback is Fallback.WAIT:
            return None
        self.fallback_steps += 1
        if self.fallback is Fallback.HOLD and self.values:
            return self.values
        zero = self.fallback_inputs.get(Fallback.ZERO, self._zeros)
        values = tuple(self.fallback_inputs.get(self.fallback, zero)())
        # the tracker's commands can exceed the limits; those of the other fallbacks do not
        return self._within(values) if self.fallback is Fallback.TRACKER else values

    def _zeros(self) -> tuple[float, ...]:
        return (0.0,) * len(self.names.inputs)


class CommandNames:
    """The names in commands. Each of the `inputs` occurs exactly once, under its own name or under
    the name of a joint that no other input drives. The order is arbitrary. Other `joints` may
    occur without a value or with the value 0 or NaN.

    joint_state_topic_hardware_interface sends such messages. They contain the names of all joints,
    and values for the joints that have a command interface.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        driven: Sequence[DrivenJoint] = (),
        joints: Collection[str] = (),
    ):
        self.inputs = tuple(inputs)
        self._as_they_are = tuple((i, 1.0) for i in range(len(self.inputs)))
        self._targets = {joint.name: (joint.input, joint.gain) for joint in driven}
        self._targets |= {name: (i, 1.0) for i, name in enumerate(self.inputs)}
        self._others = frozenset(joints) - self._targets.keys()

    def order(self, names: Sequence[str]) -> tuple[tuple[int, float], ...] | None:
        """Return, for every input, the index of its value in the command and the factor that
        multiplies this value. Returns None if names are missing, unknown or repeated.
        """
        names = tuple(names)
        if names == self.inputs:
            return self._as_they_are
        # names of other joints have no value to apply
        driving = [name for name in names if name not in self._others]
        sources: dict[int, tuple[int, float]] = {}
        for place, name in enumerate(driving):
            target = self._targets.get(name)
            if target is None or target[0] in sources:
                return None
            sources[target[0]] = place, target[1]
        if len(sources) != len(self.inputs) or len(set(names)) != len(names):
            return None
        return tuple(sources[i] for i in range(len(self.inputs)))

    def ordered(self, names: Sequence[str], values: Sequence[float]) -> tuple[float, ...] | None:
        """Return the value of every input, multiplied by its factor. Returns None if names are
        wrong, if a name that drives an input has no value, or if another name has a value other
        than 0 or NaN.
        """
        order = self.order(names)
        if order is None:
            return None
        if len(values) != len(order):
            # either one value for each name that drives an input, or one for each name
            pairs = list(zip(names, values))
            if len(values) != len(names) or any(
                v and not math.isnan(v) for name, v in pairs if name in self._others
            ):
                return None
            values = [v for name, v in pairs if name not in self._others]
        return tuple(gain * values[place] for place, gain in order)
