"""The scenario, model, reference and frames that a node's parameters select."""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.node import Node

from nh_control import scenarios
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.loop.clocks import StepClock
from nh_control.ros.runtime.declared import MODEL_PARAMETERS, SCENARIO, WEIGHT_FACTORS
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.process import UsageError
from nh_control.runs.design import Design
from nh_control.runs.settings import SETTINGS
from nh_control.scenarios import Scenario
from nh_control.scenarios.user_code import located


@dataclass(frozen=True)
class Model:
    """A scenario, the tracker's model of it, the model's reference, and the clock of its steps."""

    scenario: Scenario
    dsys: DiscreteSystem
    reference: Trajectory

    @property
    def clock(self) -> StepClock:
        """The times of the steps."""
        return StepClock(self.dsys.h)

    def holds(self, reference: Trajectory) -> bool:
        """Whether trackers hold the last state of a reference in this scenario."""
        return self.scenario.holds(reference.name)

    @staticmethod
    def of(parameters: Parameters) -> Model:
        """The model that the parameters select. Raises UsageError for unknown names."""
        scenario = find_scenario(parameters)
        try:
            with located(scenario.file):
                # changed model parameters and weights result in another scenario
                scenario = _design(parameters).of(scenario)
                dsys = scenario.model(parameters["integrator"], parameters["step_s"])
                scenario.require_messages(dsys.system)
                return Model(scenario, dsys, scenario.reference(dsys, parameters["reference"]))
        except (ValueError, StepFailed) as error:
            raise UsageError(str(error)) from error


def _design(parameters: Parameters) -> Design:
    """The changes to the model and to the tracker's weights."""
    return Design(
        parameters.declare_overrides(MODEL_PARAMETERS, SETTINGS["model_parameters"].description),
        parameters.declare_overrides(WEIGHT_FACTORS, SETTINGS["weight_factors"].description),
    )


def find_scenario(parameters: Parameters) -> Scenario:
    """The scenario that the parameters select, from a URDF file if they name one. Raises
    UsageError if the scenario cannot be found or used, with the file and line if the error is in
    the user's code.
    """
    try:
        return scenarios.of_origin({spec.name: parameters[spec.name] for spec in SCENARIO})
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error


def frame_prefix(node: Node, parameters: Parameters) -> str:
    """Prefix of the robot's frames, from the parameter `frame_prefix`. The value "auto" means the
    namespace followed by a slash.
    """
    prefix = parameters["frame_prefix"]
    if prefix != "auto":
        return prefix
    namespace = node.get_namespace().strip("/")
    return f"{namespace}/" if namespace else ""
