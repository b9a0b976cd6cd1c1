"""The model and reference that a node's shared parameters ask for."""

from __future__ import annotations

from dataclasses import dataclass

from nh_control import scenarios
from nh_control.discrete import DiscreteSystem, StepFailed
from nh_control.ros.parameters import Parameters
from nh_control.ros.process import UsageError
from nh_control.ros.step_clock import StepClock
from nh_control.scenarios import Scenario
from nh_control.trajectory import Trajectory


@dataclass(frozen=True)
class Model:
    """A scenario, the tracker's model of it, the reference on this model, and the clock of its steps."""

    scenario: Scenario
    dsys: DiscreteSystem
    reference: Trajectory

    @property
    def clock(self) -> StepClock:
        """Times of the steps."""
        return StepClock(self.dsys.h)

    @staticmethod
    def of(parameters: Parameters) -> Model:
        """The model that the shared parameters name; raises UsageError for what the scenario does not have."""
        try:
            scenario = scenarios.get(*(parameters[name] for name in ("scenario", "urdf", "base")))
            dsys = scenario.model(parameters["integrator"], parameters["step_s"])
            return Model(scenario, dsys, scenario.reference(dsys, parameters["reference"]))
        except (ValueError, OSError, StepFailed) as error:
            raise UsageError(str(error)) from error
