"""Validation of commands: names, values and stamps; and the inputs without a valid command."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from enum import Enum

import numpy as np

from nh_control.loop.clocks import NANOSECONDS, OTHER_CLOCK_NS, StepClock
from nh_control.loop.reports import shortened
from nh_control.numerics.expressions import Vector
from nh_control.scenarios.driven_joints import DrivenJoint


class Fallback(str, Enum):
    """The input without a fresh command: the last command, zero forces (prescribed coordinates
    stay), forces that damp the motion, commands of the plant's own copy of the tracker, or none
    (the plant pauses).
    """

    HOLD = "hold"
    ZERO = "zero"
    DAMP = "damp"
    TRACKER = "tracker"
    STOP = "stop"


class Rejection(str, Enum):
    """The reasons for which a command is rejected."""

    UNREADABLE = "no message of the type"
    WRONG_NAMES = "wrong names"
    WRONG_LENGTH = "wrong length"
    NOT_FINITE = "not finite"
    WRONG_STAMP = "stamp of no state"
    FUTURE = "answers a future state"
    STALE = "older than an accepted command"
    DUPLICATE = "second, different answer to a state"
    LATE = "late"


ABOUT_VALUES = (Rejection.WRONG_NAMES, Rejection.WRONG_LENGTH, Rejection.NOT_FINITE)


class CommandValidator:
    """Accepts commands for the inputs of `names`, stamped with the state that they answer.

    A command that answers state j is fresh for the steps j ... j + timeout_steps - 1; a later one
    is rejected as late. Unless `strict`, a command without a stamp, or with a stamp of another
    clock (wall time), answers the present state, as long as no stamped command is fresh. Values
    beyond `limits` (nu, 2) are clipped, as by an actuator. Not thread-safe: one thread owns a
    validator.
    """

    def __init__(
        self,
        names: CommandNames,
        limits: np.ndarray,
        clock: StepClock,
        timeout_steps: int = 1,
        fallback: Fallback = Fallback.ZERO,
        strict: bool = True,
    ):
        self.names, self.clock, self.fallback = names, clock, Fallback(fallback)
        self.interface = "effort"
        self._strict = strict
        self._timeout_steps = timeout_steps
        self._lower, self._upper = (
            tuple(column) for column in np.asarray(limits, dtype=float).reshape(-1, 2).T
        )
        self.fallback_inputs: dict[Fallback, Callable[[], Vector]] = {}
        """Functions of the inputs (nu) of a fallback; by default that of ZERO, or zeros."""
        self.accepted, self.clipped, self.fallback_steps = 0, 0, 0
        self.held_steps = 0
        """Steps under a command that answers an earlier state, still fresh."""
        self.rejected: Counter[Rejection] = Counter()
        self.examples: dict[Rejection, str] = {}
        """The first command that was rejected, by reason."""
        self.saturated: Counter[str] = Counter()
        """Accepted commands that were clipped, by input."""
        self.clear()

    def clear(self) -> None:
        """Forget the last command (after a reset of the plant); the counters stay."""
        self._answered, self._stamped = -1, True
        self._offered: tuple[float, ...] = ()
        self._values: tuple[float, ...] = ()

    def offer(
        self, names: Sequence[str], values: Sequence[float], stamp: int, step: int
    ) -> Rejection | None:
        """Take a command stamped `stamp` (ns) while the plant is at `step`; returns why it was
        rejected, if it was.

        Names may come in any order. A repetition of the accepted command is harmless and not
        counted.
        """
        reason = self._check(names, values, stamp, step)
        if reason is not None:
            known = self.examples.get(reason)
            self.refuse(reason, known or self._example(reason, names, values, stamp, step))
        return reason

    def refuse(self, reason: Rejection, example: str) -> None:
        """Count a command that cannot be offered; `example` describes the first one."""
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
        order = self.names.order(names)
        if order is None:
            return Rejection.WRONG_NAMES
        if len(values) != len(order):
            driving = self.names.driving(names, values)
            if driving is None:
                return Rejection.WRONG_LENGTH
            values = driving
        values = tuple(gain * values[place] for place, gain in order)
        if not all(map(math.isfinite, values)):
            return Rejection.NOT_FINITE
        if not self._strict and self._means_now(stamp, step):
            again = stamp == 0 == self._answered and values == self._offered
            self._accept(step, values, stamped=False, counted=not again)
            return None
        return self._check_stamp(values, stamp, step)

    def _means_now(self, stamp: int, step: int) -> bool:
        if self._stamped and self._fresh(step):
            return False
        return stamp == 0 or stamp - self.clock.stamp(step) > OTHER_CLOCK_NS

    def _check_stamp(self, values: tuple[float, ...], stamp: int, step: int) -> Rejection | None:
        answered = self.clock.step(stamp)
        if answered is None:
            return Rejection.WRONG_STAMP
        if answered > step:
            return Rejection.FUTURE
        if self._stamped and answered < self._answered:
            return Rejection.STALE
        if self._stamped and answered == self._answered:
            return None if self._offered == values else Rejection.DUPLICATE
        if step - answered >= self._timeout_steps:
            return Rejection.LATE
        self._accept(answered, values, stamped=True)
        return None

    def _accept(
        self, answered: int, values: tuple[float, ...], stamped: bool, counted: bool = True
    ) -> None:
        self._answered, self._stamped, self._offered = answered, stamped, values
        self._values = self._within(values)
        self.accepted += counted
        if counted and self._values != values:
            self.clipped += 1
            self.saturated.update(
                name
                for name, applied, v in zip(self.names.inputs, self._values, values)
                if applied != v
            )

    def _within(self, values: Vector) -> tuple[float, ...]:
        """Values clipped to the limits."""
        return tuple(map(min, map(max, values, self._lower), self._upper))

    def answers(self, step: int) -> bool:
        """Whether a command that answers exactly this step's state was accepted."""
        return self._answered == step

    def age(self, step: int) -> int:
        """Steps since the state that the last accepted command answers, or since the start."""
        return step - self._answered

    def _fresh(self, step: int) -> bool:
        return self._answered >= 0 and step - self._answered < self._timeout_steps

    def take(self, step: int) -> tuple[float, ...] | None:
        """Values (nu) to apply from `step` to the next: the last command while it is fresh, else
        the fallback; None means stop.
        """
        if self._fresh(step):
            self.held_steps += step > self._answered
            return self._values
        if self.fallback is Fallback.STOP:
            return None
        self.fallback_steps += 1
        if self.fallback is Fallback.HOLD and self._values:
            return self._values
        zero = self.fallback_inputs.get(Fallback.ZERO, lambda: (0.0,) * len(self.names.inputs))
        values = tuple(self.fallback_inputs.get(self.fallback, zero)())
        return self._within(values) if self.fallback is Fallback.TRACKER else values


class CommandNames:
    """The names of commands. Every one of the `inputs` occurs once, by its name or by the joint
    that it alone drives, in any order. Other `joints` may occur without a value, or with the value
    of `driving`.

    topic_based_ros2_control sends such messages: the names of all joints, with the efforts of
    joints that have an effort interface.
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
        """For every input the index of its value in the command, and the factor on it; None if
        names are missing, unknown, or repeated.
        """
        names = tuple(names)
        if names == self.inputs:
            return self._as_they_are
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

    def driving(self, names: Sequence[str], values: Sequence[float]) -> tuple[float, ...] | None:
        """The values of the names that drive an input. None if one of them has no value, or if
        another name has a value other than 0 or NaN.
        """
        if len(values) != len(names):
            return None
        pairs = list(zip(names, values))
        if any(v and not math.isnan(v) for name, v in pairs if name in self._others):
            return None
        return tuple(v for name, v in pairs if name not in self._others)
