"""Injected faults of sensors and actuators for every scenario: noise, bias, quantization, delay,
jitter, dropout, lag, saturation, dead band, stuck and lost actuators.

The output of a fault depends only on the step, the fault's seed, and its previous inputs and
outputs, so it is the same in every process. External forces are disturbances, not faults.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from nh_control.mechanics.parameters import Parameters, declarations, parameter
from nh_control.scenarios.names import UnknownName

MEASUREMENTS, POSITIONS, VELOCITIES = "measurements", "positions", "velocities"
"""Targets: all measurements, only configurations, only velocities."""
COMMANDS = "commands"
"""Target: all inputs."""


class SignalSpace(Protocol):
    """The space that contains a signal's values x, with `y = retract(x, d)` and `d = local(x, y)`.
    `rest(before)` is the value of an actuator without effort if its previous value was `before`.
    """

    @property
    def n(self) -> int:
        """The number of local coordinates."""

    def retract(self, x: np.ndarray, d: np.ndarray) -> np.ndarray: ...

    def local(self, x: np.ndarray, y: np.ndarray) -> np.ndarray: ...

    def rest(self, before: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class FaultContext:
    """The inputs of a fault in a step: the values of the `signal` so far, latest first (`past`),
    the output in the previous step (`before`), and a `seed` that no other fault has.
    """

    step: int
    h: float
    signal: SignalSpace
    past: tuple[np.ndarray, ...]
    before: np.ndarray
    seed: tuple[int, ...]

    @property
    def value(self) -> np.ndarray:
        """The current value of the signal."""
        return self.past[0]


@dataclass(frozen=True)
class Effect(Parameters, ABC):
    """The effect of a fault. It begins at `start` and lasts for `duration`."""

    default: ClassVar[str] = POSITIONS
    """The target if the user does not name one."""
    of_inputs_only: ClassVar[bool] = False
    of_all_only: ClassVar[bool] = False
    """Whether the effect applies only to all measurements or all commands, not to single
    components.
    """

    start: float = parameter(0.0, "s", "simulated time at which it begins", at_least=0.0)
    duration: float = parameter(0.0, "s", "how long it lasts, 0 = until the end", at_least=0.0)

    def active(self, k: int, h: float) -> bool:
        """Whether the effect is active in step k. Each step takes h s."""
        first = round(self.start / h)
        return first <= k and (not self.duration or k < first + round(self.duration / h))

    def memory(self, h: float) -> int:
        """The number of earlier values that the effect needs."""
        return 0

    def age(self, k: int, h: float, seed: tuple[int, ...]) -> float:
        """The delay (s) of the output at step k."""
        return 0.0

    @abstractmethod
    def apply(self, context: FaultContext) -> np.ndarray | None:
        """The output, or None if it is lost."""


@dataclass(frozen=True)
class RandomEffect(Effect):
    """A random fault."""

    seed: int = parameter(0, "", "seed of the random numbers, which differ by fault", at_least=0)

    def draw(self, k: int, seed: tuple[int, ...]) -> np.random.Generator:
        """The random generator for step k."""
        # Seeding by step makes the draw independent of the order of calls.
        return np.random.default_rng([self.seed, k, *seed])


@dataclass(frozen=True)
class Noise(RandomEffect):
    """White noise. `y = retract(x, size n_k)` with a new standard normal n_k in every step."""

    size: float = parameter(1.0, "", "standard deviation, in the target's units", at_least=0.0)

    def apply(self, context: FaultContext) -> np.ndarray:
        numbers = self.draw(context.step, context.seed).standard_normal(context.signal.n)
        return context.signal.retract(context.value, self.size * numbers)


@dataclass(frozen=True)
class Bias(Effect):
    """A constant error. `y = retract(x, size)`."""

    size: float = parameter(1.0, "", "error, in the target's units", above=-math.inf)

    def apply(self, context: FaultContext) -> np.ndarray:
        return context.signal.retract(context.value, np.full(context.signal.n, self.size))


@dataclass(frozen=True)
class Quantization(Effect):
    """Multiples of `size` only, counted from the start as in an incremental encoder.
    `y_k = retract(y_k-1, size round(local(y_k-1, x) / size))`.
    """

    size: float = parameter(1.0, "", "resolution, in the target's units")

    def apply(self, context: FaultContext) -> np.ndarray:
        change = context.signal.local(context.before, context.value)
        return context.signal.retract(context.before, self.size * np.round(change / self.size))


@dataclass(frozen=True)
class Delay(Effect):
    """The value `size` seconds ago, interpolated between two steps."""

    default: ClassVar[str] = MEASUREMENTS
    size: float = parameter(1.0, "s", "delay", at_least=0.0)

    def memory(self, h: float) -> int:
        # The interpolation needs one more value than there are whole steps.
        return math.ceil(self.size / h) + 1

    def age(self, k: int, h: float, seed: tuple[int, ...]) -> float:
        return self.size

    def apply(self, context: FaultContext) -> np.ndarray:
        steps = self.age(context.step, context.h, context.seed) / context.h
        # With the delay d and n = floor(d / h),
        # y = retract(x_k-n, (d / h - n) local(x_k-n, x_k-n-1)).
        whole = min(int(steps), len(context.past) - 2)
        late, later = context.past[whole], context.past[whole + 1]
        return context.signal.retract(late, (steps - whole) * context.signal.local(late, later))


@dataclass(frozen=True)
class Jitter(RandomEffect):
    """A random delay, drawn uniformly up to `size` in every step. Values that are older than the
    last output are ignored.
    """

    default: ClassVar[str] = MEASUREMENTS
    size: float = parameter(1.0, "s", "largest delay", at_least=0.0)

    memory, apply = Delay.memory, Delay.apply

    def age(self, k: int, h: float, seed: tuple[int, ...]) -> float:
        """The age of the newest value that has arrived, `min over i of (drawn_k-i + i h)`."""
        # For delays of at most `size`, only this many earlier values are needed.
        earlier = range(min(k, math.ceil(self.size / h)) + 1)
        return min(self.size * self.draw(k - i, seed).random() + i * h for i in earlier)


@dataclass(frozen=True)
class Dropout(RandomEffect):
    """Messages, except the first, are lost with the probability `size`. Without a measurement
    there is no new command; without a command the actuators repeat the last one.
    """

    default: ClassVar[str] = MEASUREMENTS
    of_all_only: ClassVar[bool] = True
    size: float = parameter(0.0, "", "probability of a loss, 0 ... 1", at_least=0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size > 1:
            raise ValueError(f"Dropout.size must be a probability <= 1, got {self.size}")

    def apply(self, context: FaultContext) -> np.ndarray | None:
        # The first message must arrive, because there is no earlier one to repeat.
        lost = context.step > 0 and self.draw(context.step, context.seed).random() < self.size
        return None if lost else context.value


@dataclass(frozen=True)
class Lag(Effect):
    """First-order lag. `y_k = retract(y_k-1, (1 - exp(-h / size)) local(y_k-1, x))`."""

    default: ClassVar[str] = COMMANDS
    size: float = parameter(1.0, "s", "time constant")

    def apply(self, context: FaultContext) -> np.ndarray:
        change = context.signal.local(context.before, context.value)
        return context.signal.retract(context.before, -math.expm1(-context.h / self.size) * change)


@dataclass(frozen=True)
class Saturation(Effect):
    """An actuator with lower limits than the model's. `y = clip(x, -size, size)`."""

    default: ClassVar[str] = COMMANDS
    of_inputs_only: ClassVar[bool] = True
    size: float = parameter(1.0, "", "largest effort, in the input's units", at_least=0.0)

    def apply(self, context: FaultContext) -> np.ndarray:
        return np.clip(context.value, -self.size, self.size)


@dataclass(frozen=True)
class DeadBand(Effect):
    """An actuator without effect for small commands. `y = 0 if |x| < size else x`."""

    default: ClassVar[str] = COMMANDS
    of_inputs_only: ClassVar[bool] = True
    size: float = parameter(1.0, "", "smallest effort, in the input's units", at_least=0.0)

    def apply(self, context: FaultContext) -> np.ndarray:
        return np.where(np.abs(context.value) < self.size, 0.0, context.value)


@dataclass(frozen=True)
class Stuck(Effect):
    """The value stays at the last one before the fault began."""

    default: ClassVar[str] = COMMANDS

    def apply(self, context: FaultContext) -> np.ndarray:
        return context.before


@dataclass(frozen=True)
class Lost(Effect):
    """An actuator without effort; prescribed coordinates stay at their last values."""

    default: ClassVar[str] = COMMANDS
    of_inputs_only: ClassVar[bool] = True

    def apply(self, context: FaultContext) -> np.ndarray:
        return context.signal.rest(context.before)


KINDS: Mapping[str, type[Effect]] = {
    "noise": Noise,
    "bias": Bias,
    "quantization": Quantization,
    "delay": Delay,
    "jitter": Jitter,
    "dropout": Dropout,
    "lag": Lag,
    "saturation": Saturation,
    "dead_band": DeadBand,
    "stuck": Stuck,
    "lost": Lost,
}
SYNTAX = "[TARGET:]KIND[=NUMBER][,NAME=VALUE...]"
"""The syntax of a fault (see `parse`)."""
EXAMPLE = "delay=0.005 or positions:noise=0.001,seed=2"


@dataclass(frozen=True)
class Fault:
    """An `effect` on the target with the given name: measurements, positions, velocities,
    commands, or a single coordinate, velocity or input of a scenario.
    """

    target: str
    effect: Effect

    @property
    def kind(self) -> str:
        """The name of the effect."""
        return next(name for name, kind in KINDS.items() if kind is type(self.effect))

    def __str__(self) -> str:
        """The text that `parse` reads. Default values are omitted."""
        entries, defaults = declarations(self.effect), declarations(type(self.effect)())
        size = "".join(f"={entry.value!r}" for entry in entries if entry.name == "size")
        more = "".join(
            f",{entry.name}={entry.value!r}"
            for entry, default in zip(entries, defaults)
            if entry.name != "size" and entry.value != default.value
        )
        return f"{self.target}:{self.kind}{size}{more}"


def parse(text: str) -> Fault:
    """Return the fault written as `[TARGET:]KIND[=NUMBER][,NAME=VALUE...]`, such as `delay=0.005`
    or `steer_torque:stuck,start=3`.

    The number is the `size`, and the names and values set other fields of this kind of fault.
    Raises ValueError, which contains the expected form.
    """
    head, *options = (part.strip() for part in text.split(","))
    # The target is optional, so split at the last colon.
    target, _, first = head.rpartition(":")
    kind, assigned, number = (part.strip() for part in first.partition("="))
    if not kind or ":" in target or (":" in head and not target):
        raise ValueError(f"fault {text!r} must be {SYNTAX}, e.g. {EXAMPLE}")
    if kind not in KINDS:
        hint = f"; {text!r} must be {SYNTAX}, e.g. {EXAMPLE}"
        raise UnknownName("kind of fault", kind, KINDS, hint)
    effect_type = KINDS[kind]
    known = {entry.name: entry for entry in declarations(effect_type())}
    size = known.pop("size", None)
    # Kinds that have a size require "=NUMBER", and the other kinds do not accept it.
    if (size is None) == bool(assigned):
        expected = (
            f"a number, {kind}=NUMBER: {size.description} {size.unit}".rstrip()
            if size
            else "no number"
        )
        raise ValueError(f"fault {text!r}: {kind} takes {expected}")
    values: dict[str, Any] = {"size": _number(text, number)} if size else {}
    for option in options:
        name, _, value = (part.strip() for part in option.partition("="))
        if name not in known:
            raise UnknownName(f"value of the fault {text!r},", name, known)
        values[name] = _number(text, value, known[name].is_integer)
    return Fault(target or effect_type.default, effect_type(**values))


def _number(text: str, number: str, whole: bool = False) -> float:
    try:
        return int(number) if whole else float(number)
    except ValueError:
        raise ValueError(f"fault {text!r}: {number!r} is not a number") from None
