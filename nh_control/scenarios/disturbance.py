"""Disturbances: external forces on the targets of a scenario. A disturbance is a constant force, a
gust, a sine wave or noise. Its values depend only on the step and the declaration.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nh_control.mechanics.external_forces import ForceTarget
from nh_control.mechanics.parameters import Parameters, declarations, parameter
from nh_control.scenarios.names import UnknownName

Factors = Callable[[int], "float | np.ndarray"]


def _size(description: str, **bound: float) -> Any:
    return parameter((0.0,), "", description, **(bound or {"above": -math.inf}))


class Signal(Parameters, ABC):
    """The time course of a disturbance. The field `force` has a number for each component of the
    target, in the target's units.
    """

    force: tuple[float, ...]

    @abstractmethod
    def factors(self, h: float, seed: Sequence[int]) -> Factors:
        """A function that returns the factor by which `force` is multiplied in step k, for steps
        of h s. Noise is drawn from `seed`.
        """


@dataclass(frozen=True)
class Constant(Signal):
    """A constant force."""

    force: tuple[float, ...] = _size("forces, then torques")

    def factors(self, h: float, seed: Sequence[int]) -> Factors:
        return lambda k: 1.0


@dataclass(frozen=True)
class Gust(Signal):
    """A constant force that begins at `start` and lasts for `duration`."""

    force: tuple[float, ...] = _size("forces, then torques")
    start: float = parameter(0.0, "s", "simulated time at which it begins", at_least=0.0)
    duration: float = parameter(0.0, "s", "how long it lasts, 0 = until the end", at_least=0.0)

    def factors(self, h: float, seed: Sequence[int]) -> Factors:
        # Times are rounded to whole steps.
        first = round(self.start / h)
        end = first + round(self.duration / h) if self.duration else math.inf
        return lambda k: 1.0 if first <= k < end else 0.0


@dataclass(frozen=True)
class Sine(Signal):
    """A sine over time. `force sin(2 pi frequency t + phase)`, where t is the middle of a step.
    The force is constant during the step.
    """

    force: tuple[float, ...] = _size("amplitudes of forces, then torques")
    frequency: float = parameter(1.0, "Hz", "cycles per second")
    phase: float = parameter(0.0, "rad", "angle at the start", above=-math.inf)

    def factors(self, h: float, seed: Sequence[int]) -> Factors:
        return lambda k: math.sin(2 * math.pi * self.frequency * (k + 0.5) * h + self.phase)


@dataclass(frozen=True)
class Noise(Signal):
    """First-order colored noise. Every component is `force` times w, where
    `w_k+1 = a w_k + sqrt(1 - a^2) n_k` with `a = exp(-h / correlation)` and standard normal n_k.
    The noise is stationary and has the same spectrum for every step h.
    """

    force: tuple[float, ...] = _size("standard deviations of forces, then torques", at_least=0.0)
    correlation: float = parameter(1.0, "s", "time in which the correlation decays to 1 / e")
    seed: int = parameter(0, "", "seed of the noise, which differs between targets", at_least=0)

    def factors(self, h: float, seed: Sequence[int]) -> Factors:
        return _ColoredNoise(math.exp(-h / self.correlation), len(self.force), [self.seed, *seed])


class _ColoredNoise:
    """The noise in any step. The next step costs a single draw, and an earlier step restarts the
    series.
    """

    def __init__(self, a: float, n: int, seed: Sequence[int]):
        self._a, self._n, self._seed = a, n, seed
        self._restart()

    def _restart(self) -> None:
        self._draw = np.random.default_rng(self._seed)
        self._step, self._value = 0, self._draw.standard_normal(self._n)

    def __call__(self, k: int) -> np.ndarray:
        if k < self._step:
            self._restart()
        while self._step < k:
            fresh = self._draw.standard_normal(self._n)
            self._value = self._a * self._value + math.sqrt(1 - self._a**2) * fresh
            self._step += 1
        return self._value


KINDS: Mapping[str, Callable[..., Signal]] = {
    "constant": Constant,
    "gust": Gust,
    "sine": Sine,
    "noise": Noise,
}
SYNTAX = "TARGET:KIND:NUMBER[,NUMBER...][,NAME=VALUE...]"
"""The syntax of a disturbance (see `parse`)."""


@dataclass(frozen=True)
class Disturbance:
    """A `signal` that acts on the target with the given name."""

    target: str
    signal: Signal

    def __str__(self) -> str:
        """The text that `parse` reads."""
        kind = next(name for name, kind in KINDS.items() if kind is type(self.signal))
        # `force` is the first field of every kind.
        force, *options = declarations(self.signal)
        values = [repr(number) for number in force.value]
        return f"{self.target}:{kind}:" + ",".join(
            values + [f"{option.name}={option.value!r}" for option in options]
        )


def parse(text: str) -> Disturbance:
    """Return the disturbance written as `TARGET:KIND:NUMBERS,NAME=VALUE`, such as
    `payload:gust:2,0,0,start=5,duration=1`.

    The numbers are the force, and the names and values set other fields of this kind of
    disturbance. Raises ValueError, which contains the expected form.
    """
    target, kind, body = ("", "", *text.strip().rsplit(":", 2))[-3:]  # a name may contain ":"
    if not target or not body:
        raise ValueError(f"disturbance {text!r} must be {SYNTAX}, e.g. cart:gust:2.0,start=5")
    if kind not in KINDS:
        raise UnknownName("kind of disturbance", kind, KINDS, f"; {text!r} must be {SYNTAX}")
    signal_type = KINDS[kind]
    known = {d.name: d for d in declarations(signal_type())}
    values: dict[str, Any] = {}
    force = []
    for part in body.split(","):
        name, assigned, number = (piece.strip() for piece in part.rpartition("="))
        if assigned and (name == "force" or name not in known):
            raise UnknownName(f"value of the {kind} {text!r},", name, [*known][1:])
        try:
            value = int(number) if assigned and known[name].is_integer else float(number)
        except ValueError:
            raise ValueError(f"disturbance {text!r}: {part.strip()!r} is not a number") from None
        if assigned:
            values[name] = value
        else:
            force.append(value)
    return Disturbance(target, signal_type(force=tuple(force), **values))


class DisturbanceForces:
    """The external forces of all disturbances in each step of h s, as inputs for the `targets`.
    The forces depend only on the step, so they are the same in every process.

    Raises UnknownName for an unknown target and ValueError for a wrong number of values.
    """

    def __init__(
        self, disturbances: Sequence[Disturbance], targets: Mapping[str, ForceTarget], h: float
    ):
        for disturbance in disturbances:
            if disturbance.target not in targets:
                raise UnknownName("target of a disturbance", disturbance.target, targets)
        self.targets = tuple(
            targets[name] for name in dict.fromkeys(d.target for d in disturbances)
        )
        # Each target has a slice of the vector of external forces.
        ends = np.cumsum([0, *(target.n for target in self.targets)]).tolist()
        self._places = {t.name: slice(ends[i], ends[i + 1]) for i, t in enumerate(self.targets)}
        self.n: int = ends[-1]
        self._signals = [
            (
                self._places[d.target].start,
                np.array(_force(d, targets[d.target])),
                # The target's name is part of the seed, so noise differs between targets.
                d.signal.factors(h, list(d.target.encode())),
            )
            for d in disturbances
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the targets, in order."""
        return tuple(target.name for target in self.targets)

    def __call__(self, k: int) -> np.ndarray:
        """The external forces (n) in step k."""
        return self._over([k])[0]

    def rows(self, steps: int) -> np.ndarray:
        """The external forces (steps, n) in the first `steps` steps."""
        return self._over(range(steps))

    def _over(self, steps: Sequence[int]) -> np.ndarray:
        out = np.zeros((len(steps), self.n))
        for start, force, factor in self._signals:
            factors = np.array([factor(k) for k in steps])
            # Disturbances on the same target add up.
            out.T[start : start + len(force)] += force[:, None] * factors.T
        return out

    def named(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Split external forces (n) or (N, n) by target name."""
        return {name: values[..., place] for name, place in self._places.items()}


def _force(disturbance: Disturbance, target: ForceTarget) -> tuple[float, ...]:
    """The values of the disturbance. Torques may be omitted."""
    force = disturbance.signal.force
    if len(force) not in (target.n_forces, target.n):
        expected = ", ".join(f"{c} ({u})" for c, u in zip(target.components, target.units))
        raise ValueError(
            f"disturbance {str(disturbance)!r}: {target.name} expects {expected}"
            + (f", or the first {target.n_forces}" if target.n_forces < target.n else "")
            + f", got {len(force)} number(s)"
        )
    return force
