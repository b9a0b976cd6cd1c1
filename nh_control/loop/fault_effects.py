"""Effects of faults on a closed loop."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.faults import FaultLines, FaultOutput, Line, line_outputs


@dataclass(frozen=True)
class FaultEffect:
    """Effect of a `fault` in `steps` steps: the numbers of steps in which it was `active`,
    `changed` a value, or a message was `lost`; the mean `delay_s`; and, over the steps in which it
    was active, `rms` and `largest` of the changes in its target's coordinates.
    """

    fault: str
    steps: int
    active: int
    changed: int
    lost: int
    delay_s: float
    rms: float
    largest: float

    def __str__(self) -> str:
        share = 100 * self.active / max(1, self.steps)
        parts = [f"active {share:.3g} % of {self.steps} steps", f"{self.changed} changed"]
        if self.lost:
            parts.append(f"{self.lost} lost")
        if self.delay_s:
            parts.append(f"mean delay {self.delay_s * 1e3:.3g} ms")
        if self.changed:
            parts.append(f"by {self.rms:.3g} (rms), at most {self.largest:.3g}")
        return ", ".join(parts)


@dataclass
class _Counts:
    active: int = 0
    changed: int = 0
    lost: int = 0
    delay: float = 0.0
    squares: float = 0.0
    largest: float = 0.0

    def effect(self, fault: str, steps: int) -> FaultEffect:
        went = max(1, self.active - self.lost)
        mean, rms = self.delay / went, math.sqrt(self.squares / went)
        return FaultEffect(
            fault, steps, self.active, self.changed, self.lost, mean, rms, self.largest
        )


class Tally:
    """Effects of the faults of a line on the values in it."""

    def __init__(self, line: Line):
        self._line = line
        self._counts = [_Counts() for _ in line.faults]
        self._steps = 0

    def add(self, k: int, output: FaultOutput) -> None:
        """The output of step k."""
        self._steps += 1
        for i, counts in enumerate(self._counts):
            came, went = output.values[i : i + 2]
            effect = self._line.faults[i].effect
            if came is None or not effect.active(k, self._line.h):
                continue
            counts.active += 1
            if went is None:
                counts.lost += 1
                continue
            counts.delay += effect.age(k, self._line.h, self._line.seeds[i])
            change = self._line.change(i, came, went)
            if np.isfinite(change).all() and change.any():
                counts.changed += 1
                with np.errstate(over="ignore"):
                    counts.squares += float(np.mean(change**2))
                counts.largest = max(counts.largest, float(np.abs(change).max()))

    def effects(self) -> tuple[FaultEffect, ...]:
        """The effects of all faults."""
        return tuple(
            c.effect(str(fault), self._steps) for fault, c in zip(self._line.faults, self._counts)
        )


def effects(
    lines: FaultLines, model: DiscreteSystem, states: np.ndarray, commands: np.ndarray
) -> tuple[FaultEffect, ...]:
    """Effects of faults in a run with the true states (N + 1, nx) of the model and the commands
    (N, nu) before any fault.
    """
    seen = [np.concatenate([model.configuration(x), model.velocity(x)]) for x in states]
    went = (
        (lines.measurements, line_outputs(lines.measurements, seen[0], seen)),
        (lines.commands, line_outputs(lines.commands, model.idle(states[0]), commands)),
    )
    all_effects: list[FaultEffect] = []
    for line, outputs in went:
        tally = Tally(line)
        for k, output in enumerate(outputs):
            tally.add(k, output)
        all_effects += tally.effects()
    return tuple(all_effects)
