"""The shadow node. It uses the model to predict each state of a robot or plant from the preceding
state, and publishes the differences.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from nh_control.discrete.system import DiscreteSystem
from nh_control.loop.command_validator import CommandNames
from nh_control.loop.hardware_estimate import FilteredState, MeasuredState
from nh_control.loop.reports import Report
from nh_control.loop.shadow import Residual, Shadow
from nh_control.ros.messages import conversions
from nh_control.ros.messages.diagnostics import Diagnostics
from nh_control.ros.messages.state_codecs import codecs
from nh_control.ros.messages.state_reader import StateListener, reader
from nh_control.ros.runtime import process
from nh_control.ros.runtime.declared import PLANT_PARAMETERS, SHADOW
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.selected_model import find_scenario, frame_prefix
from nh_control.scenarios import PlantOptions, Scenario
from nh_control.scenarios.driven_joints import driven_joints
from nh_control.scenarios.user_code import located

QUEUE = 1000
HARDWARE_QUEUE = 10
PATIENCE = 50
"""Number of later simulated states after which the node stops waiting for the answer to a state.
"""
SILENCE_S = 0.5
"""Time without messages after which the node stops waiting for answers."""


class ShadowNode:
    """Receives states and commands, and publishes residuals on `shadow/residual`, but no commands.
    In each message, `name` and `position` are the local coordinates of the residual, and the stamp
    is that of the state.
    """

    def __init__(self, node: Node, inbox: Inbox, _: process.Exit):
        parameters = Parameters(node, SHADOW)
        self._node, self._inbox, scenario = node, inbox, find_scenario(parameters)
        self._dsys = dsys = _model(parameters, scenario)
        self._simulated = parameters["source"] == "simulation"
        self._actuation_ns = round(parameters["hardware.actuation_s"] * 1e9)
        # simulated states are exact, but hardware states are filtered
        estimate = (
            MeasuredState(dsys)
            if self._simulated or parameters["hardware.estimator"] == "none"
            else FilteredState(
                dsys, parameters["hardware.noise"], parameters["hardware.acceleration"]
            )
        )
        self._shadow = Shadow(dsys, estimate, PATIENCE if self._simulated else 1, self._simulated)
        self._message = JointState()
        self._publisher = node.create_publisher(JointState, "shadow/residual", QUEUE)
        # subscribe to commands first, so that the inbox handles them before states
        self._commands_refused, self._heard_at = 0, time.monotonic()
        inbox.subscribe(JointState, "joint_commands", self._on_command, QUEUE)
        driven = driven_joints(scenario.joints, dsys.system, dsys.system.nu)
        self._names = CommandNames(dsys.inputs, driven, [joint.name for joint in scenario.joints])
        shown = codecs(scenario, dsys, prefix=frame_prefix(node, parameters))
        listener = StateListener(self._on_state, self._shadow.refuse, self._on_jump)
        queue = QUEUE if self._simulated else HARDWARE_QUEUE
        self._reader = reader(parameters["source"], inbox, shown, listener, queue, dsys.h)
        self._q, self._v = dsys.system.space.origin.tolist(), [0.0] * dsys.system.space.nw
        self._newest_ns = -1
        self._diagnostics = Diagnostics(
            node, inbox, "prediction", scenario.name, self._make_report
        )
        node.get_logger().info(f"model: {dsys}; source: {parameters['source']}")

    def work(self) -> None:
        """Compare states with predictions."""
        while not self._inbox.closed:
            self._inbox.serve(SILENCE_S)
            # after a silence, predictions no longer wait for missing commands
            if time.monotonic() > self._heard_at + SILENCE_S:
                self._publish(self._shadow.settle())

    def close(self) -> None:
        """Publish the last residuals and statistics."""
        self._publish(self._shadow.settle())
        self._diagnostics.publish()

    def _on_command(self, message: JointState) -> None:
        names, values, stamp = conversions.read_command(message)
        # the input in the model's order, or None if the names are wrong
        u = self._names.ordered(names, values)
        if u is None or not np.isfinite(u).all():
            self._commands_refused += 1
            return
        # hardware commands take effect actuation_s after they are received
        now_ns = self._node.get_clock().now().nanoseconds + self._actuation_ns
        self._shadow.command(u, stamp if self._simulated else now_ns, stamp)

    def _on_state(self, stamp: int) -> None:
        self._heard_at = time.monotonic()
        if self._simulated and stamp < self._newest_ns:
            self._shadow.reset()
        self._newest_ns = stamp
        try:
            self._reader.read(self._q, self._v)
        except conversions.ConversionError as reason:
            self._shadow.refuse(reason.kind, str(reason))
            return
        self._publish(self._shadow.measured(stamp, self._q, self._v))

    def _on_jump(self, seconds: float) -> None:
        self._shadow.reset()
        self._shadow.trouble = f"the states' time jumped back by {seconds:.3g} s"

    def _publish(self, residuals: list[Residual]) -> None:
        for residual in residuals:
            conversions.set_time(self._message.header.stamp, residual.time_ns)
            self._message.name = self._shadow.names
            self._message.position = residual.values.tolist()
            self._publisher.publish(self._message)

    def _make_report(self) -> Report:
        report = self._shadow.report()
        return replace(
            report, values={**report.values, "commands_refused": self._commands_refused}
        )


def _model(parameters: Parameters, scenario: Scenario) -> DiscreteSystem:
    """The model, with its physical parameters changed by the node's parameters."""
    changed = parameters.declare_changed(PLANT_PARAMETERS, scenario.parameters)
    try:
        with located(scenario.file):
            model = scenario.model(parameters["integrator"], parameters["step_s"])
            scenario.require_messages(model.system)
            return scenario.plant(model, PlantOptions(parameters=changed))
    except ValueError as error:
        raise process.UsageError(str(error)) from error


main = partial(process.run, "shadow", ShadowNode)
"""`main(args)` runs the node and returns the exit code."""

if __name__ == "__main__":
    sys.exit(main())
