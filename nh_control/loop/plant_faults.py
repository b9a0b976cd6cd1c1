"""The faults of a plant's sensors and actuators in a run, and their effects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.fault_effects import Tally
from nh_control.loop.faults import FaultLines, FaultOutput
from nh_control.scenarios.fault import Fault


class PlantFaults:
    """Sensor and actuator faults of the plant that a `model` describes. If the faults are changed
    during a run, all of them start again.

    `measured` is the last measurement (configuration, velocity) that was not lost, taken at step
    `measured_step`.
    """

    def __init__(self, model: DiscreteSystem, faults: Sequence[Fault] = ()):
        self.lines = FaultLines.of(faults, model)
        self.measured_step = 0

    @property
    def are_present(self) -> bool:
        """Whether there are faults."""
        return bool(self.lines.measurements.faults or self.lines.commands.faults)

    def start(self, k: int, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
        """Start or continue a run at step k with configuration q (nq) and velocity v (nw), as if
        the plant had been in this state for a long time under the inputs u (nu). The measurement
        of this state is never lost.
        """
        self.change(self.lines, k, q, v, u)
        self.measure(k, q, v)

    def change(
        self, lines: FaultLines, k: int, q: np.ndarray, v: np.ndarray, u: np.ndarray
    ) -> None:
        """Replace the faults at step k, as if the plant had been in the given state for a long
        time.
        """
        self.lines, self.measured_step, self.measured = lines, k, (q, v)
        self._sensed = lines.measurements.start(np.concatenate([q, v]))
        self._acted = lines.commands.start(u)
        self._tallies = Tally(lines.measurements), Tally(lines.commands)

    def inputs(self, k: int, u: np.ndarray) -> FaultOutput | None:
        """Return the actuator output for the commands u (nu) at step k, or None without faults."""
        if not self.lines.commands.faults:
            return None
        return self.lines.commands.through(k, u, self._acted)

    def advanced(self, k: int, output: FaultOutput) -> None:
        """Note that the plant has taken step k with the given actuator output."""
        self._acted = output.memory
        self._tallies[1].add(k, output)

    def measure(self, k: int, q: np.ndarray, v: np.ndarray) -> None:
        """Measure the configuration q (nq) and the velocity v (nw) at step k."""
        if not self.lines.measurements.faults:
            self.measured_step, self.measured = k, (q, v)
            return
        # the line acts on configuration and velocity as one signal (q, v)
        output = self.lines.measurements.through(k, np.concatenate([q, v]), self._sensed)
        self._sensed = output.memory
        self._tallies[0].add(k, output)
        if output.value is not None:
            self.measured_step, self.measured = k, (output.value[: len(q)], output.value[len(q) :])

    def report(self) -> dict[str, str]:
        """Return the effect of each fault by name."""
        effects = [effect for tally in self._tallies for effect in tally.effects()]
        return {f"fault {effect.fault}": str(effect) for effect in effects}
