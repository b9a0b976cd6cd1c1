"""Effects of faults on a closed loop."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.faults import FaultLines, FaultOutput, Line, line_outputs


@dataclass(frozen=True)
class FaultEffect:
    """The effect of a `fault` in `steps` steps: the number of steps in which the fault was
    `active`, in which it `changed` a value, and in which a message was `lost`; the mean delay
    `delay_s`; and the `rms` and `largest` change in its target's coordinates over the steps in
    which it was active.
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
        # number of steps in which the fault passed a value on
        passed = max(1, self.active - self.lost)
        mean, rms = self.delay / passed, math.sqrt(self.squares / passed)
        return FaultEffect(
            fault, steps, self.active, self.changed, self.lost, mean, rms, self.largest
        )


class Tally:
    """Counts how the faults in a line affect the values that pass through it."""

    def __init__(self, line: Line):
        self._line = line
        self._counts = [_Counts() for _ in line.faults]
        self._steps = 0

    def add(self, k: int, output: FaultOutput) -> None:
        """Add the output of step k."""
        self._steps += 1
        for i, counts in enumerate(self._counts):
            # values[i] enters fault i, values[i + 1] leaves it
            before, after = output.values[i : i + 2]
            effect = self._line.faults[i].effect
            if before is None or not effect.active(k, self._line.h):
                continue
            counts.active += 1
            if after is None:
                counts.lost += 1
                continue
            counts.delay += effect.age(k, self._line.h, self._line.seeds[i])
            change = self._line.change(i, before, after)
            # a change that is not finite has no size, and its value is lost further down the line
            if np.isfinite(change).all() and change.any():
                counts.changed += 1
                with np.errstate(over="ignore"):
                    counts.squares += float(np.mean(change**2))
                counts.largest = max(counts.largest, float(np.abs(change).max()))

    def effects(self) -> tuple[FaultEffect, ...]:
        """Return the effects of all faults."""
        return tuple(
            c.effect(str(fault), self._steps) for fault, c in zip(self._line.faults, self._counts)
        )


def effects(
    lines: FaultLines, model: DiscreteSystem, states: np.ndarray, commands: np.ndarray
) -> tuple[FaultEffect, ...]:
    """Return the effects of the faults in a run, given the model's true states (N + 1, nx) and the
    commands (N, nu) before any fault.
    """
    if not (lines.measurements.faults or lines.commands.faults):
        return ()
    # replay both lines without the plant: their outputs depend only on the values and the seeds
    measured = np.hstack([model.configuration(states), model.velocity(states)])
    outputs_by_line = (
        (lines.measurements, line_outputs(lines.measurements, measured[0], measured)),
        (lines.commands, line_outputs(lines.commands, model.idle(states[0]), commands)),
    )
    all_effects: list[FaultEffect] = []
    for line, outputs in outputs_by_line:
        tally = Tally(line)
        for k, output in enumerate(outputs):
            tally.add(k, output)
        all_effects += tally.effects()
    return tuple(all_effects)
