"""The plant's copy of the tracker."""

from __future__ import annotations

import numpy as np

from nh_control.control.tracking import LqrTracker
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.loop.simulated_plant import SimulatedPlant
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.scenarios import Scenario


class BackupTracker:
    """Computes commands from the plant's measurements with the scenario's LqrTracker, along a
    reference of the model. It does not follow goals. The gains are computed by `prepare` or, if it
    was not called, with the first command.
    """

    def __init__(self, scenario: Scenario, model: DiscreteSystem, reference: Trajectory):
        self._scenario, self._model = scenario, model
        self._reference = self._next = reference
        self._tracker: LqrTracker | None = None
        self._start_step = 0

    def prepare(self) -> LqrTracker:
        """Compute the gains. Raises ValueError for a system that cannot be stabilized."""
        if self._tracker is None:
            self._tracker = self._scenario.tracker(self._model, self._reference)
            wait_for_compiler()
        return self._tracker

    def plan(self, reference: Trajectory) -> None:
        """Set the reference that takes effect at the next start."""
        self._next = reference

    def place(self, step: int, start_step: int) -> None:
        """Note that the plant was placed at a step and that the reference starts at `start_step`.
        If both steps are the same, a planned reference takes effect.
        """
        self._start_step = start_step
        if step == start_step and self._next is not self._reference:
            self._reference, self._tracker = self._next, None

    def command(self, plant: SimulatedPlant) -> np.ndarray:
        """Return the model's input (nu) for the plant's last measurement."""
        q, v = plant.measured
        x = self._model.measured_state(q, v)
        # the reference counts steps from its own start, but the plant counts them from the start
        # of the run
        return self.prepare().command(plant.measured_step - self._start_step, x).u
