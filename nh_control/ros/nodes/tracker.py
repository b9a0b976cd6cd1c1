"""The tracker node: answers states with the commands of the discrete LQR tracker, and follows
goals and trajectories.
"""

from __future__ import annotations

import sys

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from nh_control.control.reference_sequence import ReferenceLeg, ReferenceSequence
from nh_control.ros.loop.arming import Arming, Limits
from nh_control.ros.loop.disarmed_inputs import DisarmCommand, DisarmedInputs
from nh_control.ros.loop.hardware_estimate import FilteredState, MeasuredState
from nh_control.ros.loop.hardware_tracker import HardwareTracker, Timing
from nh_control.ros.loop.safe_range import SafeRange, error_limit
from nh_control.ros.loop.tracker_report import TrackerReport
from nh_control.ros.messages import conversions
from nh_control.ros.messages.cdr import Template
from nh_control.ros.messages.controller_state import ControllerState
from nh_control.ros.messages.diagnostics import Diagnostics
from nh_control.ros.messages.goal_actions import GoalActions
from nh_control.ros.messages.goal_interface import GoalInterface, PathPublisher
from nh_control.ros.messages.hardware_interface import HardwareInterface
from nh_control.ros.messages.simulation_interface import SimulationInterface
from nh_control.ros.messages.state_codecs import BodyCodec, Codec, codecs
from nh_control.ros.messages.target_publisher import TargetPublisher
from nh_control.ros.runtime import process
from nh_control.ros.runtime.declared import AUTO
from nh_control.ros.runtime.dynamic_parameters import DynamicParameters
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.model import Model
from nh_control.ros.runtime.parameters import TRACKER, Parameters
from nh_control.ros.runtime.robot_name import frame_prefix
from nh_control.ros.runtime.tracker_changes import TrackerChanges

UNSENT = 1000
"""Commands kept for subscribers that are slow to acknowledge them, such as a recorder."""
TICK_S = 0.05
"""How often to look, while no state comes, for new subscribers and for what takes too long."""
SWITCH_S = 2e-4
"""How long a thread that plans may keep the interpreter from the one that answers."""


class Tracker:
    """Commands for states, of a simulation (`SimulationInterface`) or hardware
    (`HardwareInterface`).
    """

    def __init__(self, node: Node, inbox: Inbox, exit_: process.Exit):
        sys.setswitchinterval(SWITCH_S)
        self._node, self._inbox, self._busy = node, inbox, False
        parameters = Parameters(node, TRACKER)
        self._model = model = Model.of(parameters)
        guidance = (
            model.scenario.guidance(model.dsys, model.reference)
            if model.scenario.guidance
            else None
        )
        self._sequence = ReferenceSequence(
            model.scenario.tracker(model.dsys, model.reference, parameters["integral"]), guidance
        )
        shown = codecs(model.scenario, model.dsys, prefix=frame_prefix(node, parameters))
        self._report = TrackerReport(model.scenario, model.dsys)
        changes = TrackerChanges(
            model, self._sequence, parameters, lambda: self._report.state, self._on_reference
        )
        self._live = DynamicParameters(node, inbox, parameters, changes.changes)
        self._command = Template(conversions.command_message(model.dsys.inputs))
        self._sent = self._command.encode()
        self._publisher = node.create_publisher(JointState, "joint_commands", UNSENT)
        self._target = TargetPublisher(node, shown)
        self._state = ControllerState(node, self._sequence)
        self._states = (
            self._hardware(parameters, shown)
            if parameters["source"] == "hardware"
            else SimulationInterface(
                node,
                inbox,
                shown,
                self._sequence,
                self._report,
                self._publisher,
                self._send,
                self._start_anew,
                parameters["heard_by"],
            )
        )
        self._actions: GoalActions | None = None
        bodies = [codec for codec in shown if isinstance(codec, BodyCodec)]
        self._paths = PathPublisher(node, model, bodies[0]) if bodies else None
        self._goals = self._make_goals(node, self._paths)
        self._show_path(self._sequence.leg(0))
        self._diagnostics = Diagnostics(
            node, inbox, "tracking", model.scenario.name, lambda: inbox.post(self._publish_report)
        )
        node.get_logger().info(
            f"model: {model.dsys}; reference {model.reference.name!r}, "
            f"{len(model.reference)} steps"
            f"{'; with disturbance estimate' if parameters['integral'] else ''}"
            f"{'; for hardware' if parameters['source'] == 'hardware' else ''}"
        )

    def work(self) -> None:
        """Answer states."""
        while not self._inbox.closed:
            self._busy = False
            self._inbox.serve(TICK_S)
            if not self._busy:
                self._states.tick()
                self._target.repeat()
        self._states.stop()

    def close(self) -> None:
        """End planning."""
        self._live.close()
        if self._actions is not None:
            self._actions.close()
        if self._goals is not None:
            self._goals.close()

    def _hardware(self, parameters: Parameters, shown: tuple[Codec, ...]) -> HardwareInterface:
        p, dsys = parameters, self._model.dsys
        estimate = (
            FilteredState(
                dsys, p["hardware.noise"], p["hardware.acceleration"], p["hardware.outlier"]
            )
            if p["hardware.estimator"] == "kalman"
            else MeasuredState(dsys)
        )
        timing = Timing(
            p["hardware.actuation_s"], p["hardware.max_age_s"], p["hardware.compensate_delay"]
        )
        limits, safe = self._limits(p)
        tracker = HardwareTracker(self._sequence, estimate, timing)
        tracker.warm_up()
        return HardwareInterface(
            self._node,
            self._inbox,
            shown,
            tracker,
            Arming(limits, p["hardware.armed"]),
            self._report,
            self._send,
            p["hardware.start"] == "service",
            DisarmedInputs(dsys, DisarmCommand(p["disarm.command"])),
            safe,
            self._model.scenario.tracked(dsys.system.space),
            self._start_anew,
        )

    def _limits(self, p: Parameters) -> tuple[Limits, SafeRange]:
        """What disarms: as the parameters say, or as the scenario does."""
        model, own = self._model, self._model.scenario.limits
        error, saturation_s = p["disarm.error"], p["disarm.saturation_s"]
        if error < 0:
            error = error_limit(model.scenario, model.dsys, model.reference)
        if saturation_s < 0:
            saturation_s = own.saturation_s
        ranges = [
            text
            for given in p["disarm.range"]
            for text in (own.ranges if given == AUTO else (given,))
        ]
        try:
            safe = SafeRange(model.scenario, model.dsys.system.space, ranges)
        except ValueError as reason:
            raise process.UsageError(f"parameter 'disarm.range': {reason}") from reason
        limits = f"an error of {error:.3g}, {saturation_s:.3g} s of saturation (0: never)"
        self._node.get_logger().info(
            f"disarms beyond {', '.join((limits, *filter(None, ranges)))}"
        )
        return Limits(p["disarm.silence_s"], error, saturation_s), safe

    def _make_goals(self, node: Node, paths: PathPublisher | None) -> GoalInterface | None:
        """Follow goals, if the scenario has bodies and a guidance."""
        if paths is None or self._sequence.leg(0).guidance is None:
            return None
        goals = GoalInterface(
            node,
            self._inbox,
            self._model,
            self._sequence,
            self._report,
            paths,
            lambda: self._states.now_ns,
        )
        self._actions = GoalActions(node, self._inbox, goals, self._model.dsys.h)
        return goals

    def _send(self, u: np.ndarray | None, k: int, stamp: int) -> None:
        """Publish a command, or the last one again, and what it steers to."""
        self._busy = True
        if u is not None:
            conversions.write_command(self._command.message, u.tolist(), stamp)
            self._sent = self._command.encode()
        self._publisher.publish(self._sent)
        self._target.publish(self._sequence, k, stamp)
        if self._report.last is not None:
            self._state.publish(*self._report.last, k, stamp)

    def _show_path(self, leg: ReferenceLeg) -> None:
        """Publish the path of the reference, if the scenario has bodies."""
        if self._paths is not None:
            self._paths.publish(self._paths.message(leg.tracker.reference, leg.start))

    def _start_anew(self) -> None:
        if self._goals is not None:
            self._goals.forget("the run started anew")
        self._show_path(self._sequence.leg(0))

    def _on_reference(self, leg: ReferenceLeg) -> None:
        """Another reference begins."""
        name = leg.tracker.reference.name
        if self._goals is not None:
            self._goals.forget(f"reference {name!r} was set")
        self._show_path(leg)
        t = leg.start * self._model.dsys.h
        self._node.get_logger().info(f"reference {name!r} from t = {t:.3f} s")

    def _publish_report(self) -> None:
        self._report.set_leg(self._sequence.leg(self._sequence.step))
        self._diagnostics.publish(self._report.make())


def main(args: list[str] | None = None) -> int:
    """Run the node; returns the exit code."""
    return process.run("tracker", Tracker, args)


if __name__ == "__main__":
    sys.exit(main())
