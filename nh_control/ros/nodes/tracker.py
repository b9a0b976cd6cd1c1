"""The tracker node. It answers states with the commands from an LQR or predictive tracker, and it
follows goals and trajectories.
"""

from __future__ import annotations

import sys
from functools import partial

from rclpy.node import Node

from nh_control.loop.tracker_parts import TrackerParts
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.ros.messages.diagnostics import Diagnostics
from nh_control.ros.messages.hardware_interface import HardwareInterface
from nh_control.ros.messages.motion_requests import RequestContext
from nh_control.ros.messages.plan_output import PlanOutput
from nh_control.ros.messages.simulation_interface import SimulationInterface
from nh_control.ros.messages.state_codecs import codecs
from nh_control.ros.messages.tracker_goals import TrackerGoals
from nh_control.ros.messages.tracker_output import JointEfforts, TrackerOutput
from nh_control.ros.messages.vehicle_goals import CommandOptions
from nh_control.ros.runtime import process
from nh_control.ros.runtime.declared import TRACKER
from nh_control.ros.runtime.dynamic_parameters import DynamicParameters
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.parameters import Parameters
from nh_control.ros.runtime.selected_model import Model, frame_prefix
from nh_control.ros.runtime.subscribers import wait_delivered
from nh_control.ros.runtime.tracker_changes import TrackerChanges

TICK_S = 0.05
"""Time between checks for new subscribers and for too long a silence, while no states arrive."""


class Tracker:
    """Answers states from a simulation or from hardware with commands."""

    def __init__(self, node: Node, inbox: Inbox, exit_: process.Exit):
        self._node, self._inbox, log = node, inbox, node.get_logger()
        parameters = Parameters(node, TRACKER)
        model, settings = (
            Model.of(parameters),
            {spec.name: parameters[spec.name] for spec in TRACKER},
        )
        try:
            parts = TrackerParts(model.scenario, model.dsys, model.reference, settings)
        except ValueError as error:
            raise process.UsageError(str(error)) from error
        sequence, report, self._planner = parts.sequence, parts.report, parts.planner
        prefix = frame_prefix(node, parameters)
        shown = codecs(model.scenario, model.dsys, prefix=prefix)
        self._goals: TrackerGoals
        follow = lambda leg: self._goals.follow(leg)  # noqa: E731
        # weights and references can be changed while the node runs
        changes = TrackerChanges(model, sequence, parameters, lambda: report.state, follow)
        plans = PlanOutput(node, model, parts.planner, prefix) if parts.is_predictive else None
        self._plans = plans
        self._live = DynamicParameters(node, inbox, parameters, changes.changes)
        topic = parameters["hardware.command_array"]
        self._output = output = TrackerOutput(
            node,
            codecs=shown,
            sequence=sequence,
            report=report,
            restarted=lambda: self._goals.restart(),
            efforts=JointEfforts(node, topic, parts.efforts) if topic else None,
        )
        self._states: HardwareInterface | SimulationInterface
        # both hardware and simulation answer states through `output`
        if parts.hardware is not None:
            tracker, safety = parts.hardware
            tracker.warm_up()
            self._states = HardwareInterface(node, inbox, shown, tracker, safety, output)
            log.info(f"disarm limits: {safety.limits}")
        else:
            self._states = simulated = SimulationInterface(
                node,
                inbox,
                codecs=shown,
                sequence=sequence,
                output=output,
                exit_=exit_,
                expected=parameters["heard_by"],
                sensed=parts.sensed,
                joining=parts.joining(lambda leg, text: self._goals.join(leg, text)),
                at_once=parameters["lockstep"],
            )
            simulated.warm_up()
        # compiled functions are faster, so the first answers wait for them
        wait_for_compiler()
        context = RequestContext(node, inbox, sequence, report, lambda: self._states.now_ns)
        options = CommandOptions.of(parameters)
        self._goals = TrackerGoals(context, model=model, codecs=shown, options=options)
        make, name = parts.make_report, model.scenario.name
        self.diagnostics = Diagnostics(node, inbox, "tracking", name, make)
        log.info(str(parts))

    def work(self) -> None:
        """Answer states."""
        # a plant in this process calls the tracker in its own thread
        self._inbox.lent = self._prepare
        while not self._inbox.closed:
            self._inbox.serve(TICK_S)
            with self._inbox.handling:
                if not self._prepare():
                    self._states.tick()
                    self._output.repeat_target()
        self._states.stop()

    def _prepare(self) -> bool:
        """If an answer was sent, prepare the next one. Returns whether an answer was sent."""
        sent, self._output.has_sent = self._output.has_sent, False
        if sent:
            self._planner.prepare()
            self._goals.renew()
            if self._plans is not None:
                self._plans.publish(self._states.now_ns)
        return sent

    def close(self) -> None:
        """Stop planning, and wait until the last commands have arrived."""
        self._live.close()
        self._planner.close()
        self._goals.close()
        wait_delivered(self._node.publishers)


main = partial(process.run, "tracker", Tracker)
"""`main(args)` runs the node and returns the exit code."""

if __name__ == "__main__":
    sys.exit(main())
