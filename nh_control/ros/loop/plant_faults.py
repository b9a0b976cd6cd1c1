"""The faults between a plant and those who watch and command it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.runs.fault_effects import Tally
from nh_control.runs.faults import FaultLines, FaultOutput
from nh_control.scenarios.fault import Fault


class PlantFaults:
    """What the plant of a `model` shows and does through faults, as the loop in one process has
    them. They may change between two steps; then their counts start anew.

    `measured` is the last measurement (configuration, velocity) that was not lost, of step
    `measured_step`.
    """

    def __init__(self, model: DiscreteSystem, faults: Sequence[Fault] = ()):
        self.lines = FaultLines.of(faults, model)
        self.measured_step = 0

    @property
    def sensed(self) -> bool:
        """Whether there are any between the plant and what is measured."""
        return bool(self.lines.measurements.faults)

    @property
    def acting(self) -> bool:
        """Whether there are any between the commands and the plant."""
        return bool(self.lines.commands.faults)

    def start(self, k: int, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """A run starts, or goes on, at step k with configuration q (nq) and velocity v (nw), as if
        these had been there before under the inputs u (nu). This state is never lost.
        """
        self.change(self.lines, k, q, v, u)
        if self.sensed:
            self.measure(k, q, v)

    def change(
        self, lines: FaultLines, k: int, q: np.ndarray, v: np.ndarray, u: np.ndarray
    ) -> None:
        """Other faults from step k on, as if its state had been there before."""
        self.lines, self.measured_step, self.measured = lines, k, (q, v)
        self._sensed = lines.measurements.start(np.concatenate([q, v]))
        self._acted = lines.commands.start(u)
        self._tallies = Tally(lines.measurements), Tally(lines.commands)

    def inputs(self, k: int, u: np.ndarray) -> FaultOutput:
        """What the actuators make of the commands u (nu) at step k."""
        return self.lines.commands.through(k, u, self._acted)

    def moved(self, k: int, output: FaultOutput) -> None:
        """The plant has made step k with it."""
        self._acted = output.memory
        self._tallies[1].add(k, output)

    def measure(self, k: int, q: np.ndarray, v: np.ndarray) -> None:
        """The plant has come to step k at configuration q (nq) and velocity v (nw)."""
        output = self.lines.measurements.through(k, np.concatenate([q, v]), self._sensed)
        self._sensed = output.memory
        self._tallies[0].add(k, output)
        if output.value is not None:
            self.measured_step, self.measured = k, (output.value[: len(q)], output.value[len(q) :])

    def report(self) -> dict[str, str]:
        """What every fault has done, by name."""
        effects = [effect for tally in self._tallies for effect in tally.effects()]
        return {f"fault {effect.fault}": str(effect) for effect in effects}
