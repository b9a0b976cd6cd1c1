"""The scenario, model, reference and frames that a node's parameters select."""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.node import Node

from nh_control import scenarios
from nh_control.discrete.results import StepFailed
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.ros.loop.clocks import StepClock
from nh_control.ros.runtime.declared import SCENARIO
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.process import UsageError
from nh_control.scenarios import Scenario
from nh_control.scenarios.user_code import located


@dataclass(frozen=True)
class Model:
    """A scenario, the tracker's model of it, the reference on this model, and the clock of its
    steps.
    """

    scenario: Scenario
    dsys: DiscreteSystem
    reference: Trajectory

    @property
    def clock(self) -> StepClock:
        """Times of the steps."""
        return StepClock(self.dsys.h)

    @staticmethod
    def of(parameters: Parameters) -> Model:
        """The model that the shared parameters select; raises UsageError for unknown names."""
        scenario = find_scenario(parameters)
        try:
            with located(scenario.file):
                dsys = scenario.model(parameters["integrator"], parameters["step_s"])
                return Model(scenario, dsys, scenario.reference(dsys, parameters["reference"]))
        except (ValueError, StepFailed) as error:
            raise UsageError(str(error)) from error


def find_scenario(parameters: Parameters) -> Scenario:
    """The scenario that the parameters select, from its URDF file if it has one; raises UsageError
    if it cannot be found or used, with file and line of an error in a user's code.
    """
    try:
        return scenarios.get(*(parameters[spec.name] for spec in SCENARIO))
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error


def frame_prefix(node: Node, parameters: Parameters) -> str:
    """Prefix of the robot's frames, by the parameter `frame_prefix`; "auto" stands for the
    namespace and a slash.
    """
    given = parameters["frame_prefix"]
    if given != "auto":
        return given
    namespace = node.get_namespace().strip("/")
    return f"{namespace}/" if namespace else ""
