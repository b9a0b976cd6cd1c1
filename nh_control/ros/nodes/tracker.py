"""The tracker node: answers states with the commands of an LQR or predictive tracker, and follows
goals and trajectories.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import fields
from functools import partial

from rclpy.node import Node

from nh_control.control import trackers
from nh_control.control.constraint_margins import ConstraintMargins
from nh_control.control.reference_sequence import ReferenceLeg, ReferenceSequence
from nh_control.control.vehicle_guidance import VehicleGuidance
from nh_control.loop.arming import (
    Arming,
    DisarmCommand,
    DisarmedInputs,
    Limits,
    SafeRange,
    Safety,
    error_limit,
)
from nh_control.loop.hardware_estimate import FilteredState, MeasuredState
from nh_control.loop.hardware_tracker import HardwareTracker, Timing
from nh_control.loop.planner import Planner
from nh_control.loop.reports import Report
from nh_control.loop.sensed_state import SensedState
from nh_control.loop.tracker_report import TrackerReport
from nh_control.numerics.compiled import wait_for_compiler
from nh_control.ros.messages.diagnostics import Diagnostics
from nh_control.ros.messages.goal_actions import (
    BODY_ACTIONS,
    JOINT_ACTIONS,
    VEHICLE_ACTIONS,
    ActionType,
    GoalActions,
    MotionGoals,
)
from nh_control.ros.messages.goal_interface import GoalInterface, PathPublisher
from nh_control.ros.messages.hardware_interface import HardwareInterface
from nh_control.ros.messages.joint_goals import JointGoals
from nh_control.ros.messages.motion_requests import MotionRequests
from nh_control.ros.messages.plan_output import PlanOutput
from nh_control.ros.messages.simulation_interface import SimulationInterface
from nh_control.ros.messages.state_codecs import BodyCodec, Codec, codecs
from nh_control.ros.messages.tracker_output import JointEfforts, TrackerOutput
from nh_control.ros.messages.vehicle_goals import CommandOptions, VehicleGoals
from nh_control.ros.runtime import process
from nh_control.ros.runtime.declared import AUTO, TRACKER
from nh_control.ros.runtime.declared_tracker import HALF_A_STEP
from nh_control.ros.runtime.dynamic_parameters import DynamicParameters
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.model import Model, frame_prefix
from nh_control.ros.runtime.parameters import Parameters, UsageError
from nh_control.ros.runtime.subscribers import wait_delivered
from nh_control.ros.runtime.tracker_changes import TrackerChanges
from nh_control.scenarios import MpcOptions, constraints_along, mpc_tracker
from nh_control.scenarios.driven_joints import driven_joints
from nh_control.scenarios.joint_motion import follows_joints
from nh_control.scenarios.sensor import SENSORS

TICK_S = 0.05
"""Period, without states, of looking for new subscribers and for too long a silence."""
SWITCH_S = 2e-4
"""Longest time for which the planning thread may keep the interpreter from the
answering thread.
"""


class Tracker:
    """Commands for states, of a simulation (`SimulationInterface`) or hardware
    (`HardwareInterface`).
    """

    def __init__(self, node: Node, inbox: Inbox, exit_: process.Exit):
        sys.setswitchinterval(SWITCH_S)
        self._node, self._inbox = node, inbox
        parameters = Parameters(node, TRACKER)
        self._model = model = Model.of(parameters)
        guidance = model.scenario.make_guidance(model.dsys, model.reference)
        tracker, self._planner = _controller(model, parameters)
        self._sequence = ReferenceSequence(tracker, guidance, self._planner.answer)
        prefix = frame_prefix(node, parameters)
        shown = codecs(model.scenario, model.dsys, prefix=prefix)
        self._report = TrackerReport(model.scenario, model.dsys)
        changes = TrackerChanges(
            model, self._sequence, parameters, lambda: self._report.state, self._on_reference
        )
        self._command_options = CommandOptions(
            parameters["cmd_vel.stamped"],
            parameters["cmd_vel.timeout_s"],
            (parameters["cmd_vel.acceleration"], parameters["cmd_vel.turn_acceleration"]),
        )
        self._is_predictive = parameters["controller"] == "mpc"
        self._plans = (
            PlanOutput(node, model, self._planner, prefix) if self._is_predictive else None
        )
        self._live = DynamicParameters(node, inbox, parameters, changes.changes)
        self._output = output = TrackerOutput(
            *(node, shown, self._sequence, self._report, self._restart),
            self._efforts(parameters["hardware.command_array"]),
        )
        self._states = (
            self._hardware(parameters, shown)
            if parameters["source"] == "hardware"
            else SimulationInterface(
                *(node, inbox, shown, self._sequence, output, parameters["heard_by"]),
                self._sensed(parameters),
            )
        )
        wait_for_compiler()
        self._actions: GoalActions | None = None
        bodies = [codec for codec in shown if isinstance(codec, BodyCodec)]
        self._paths = PathPublisher(node, model, bodies[0]) if bodies else None
        self._goals = self._make_goals(node, self._paths)
        self._show_path(self._sequence.leg(0))
        self._diagnostics = Diagnostics(
            node, inbox, "tracking", model.scenario.name, self._make_report
        )
        node.get_logger().info(
            f"model: {model.dsys}; reference {model.reference.name!r}, "
            f"{len(model.reference)} steps"
            f"{'; predictive' if self._is_predictive else ''}"
            f"{'; with disturbance estimate' if parameters['integral'] else ''}"
            f"{'; for hardware' if parameters['source'] == 'hardware' else ''}"
        )

    def work(self) -> None:
        """Answer states."""
        while not self._inbox.closed:
            self._output.has_sent = False
            self._inbox.serve(TICK_S)
            if self._output.has_sent:
                self._planner.prepare()
                if self._goals is not None:
                    self._goals.renew()
                if self._plans is not None:
                    self._plans.publish(self._states.now_ns)
            else:
                self._states.tick()
                self._output.repeat_target()
        self._states.stop()

    def close(self) -> None:
        """End planning, and wait until the last commands have arrived."""
        self._live.close()
        self._planner.close()
        if self._actions is not None:
            self._actions.close()
        if self._goals is not None:
            self._goals.close()
        wait_delivered(self._node.publishers)

    def _sensed(self, parameters: Parameters) -> SensedState | None:
        """The states from sensors, if the parameters ask for them."""
        if parameters["estimate"] != SENSORS:
            return None
        scenario = self._model.scenario
        try:
            return SensedState(scenario.sensors, scenario.sensing, self._model.dsys)
        except ValueError as reason:
            raise process.UsageError(f"parameter 'estimate': {reason}") from reason

    def _efforts(self, topic: str) -> JointEfforts | None:
        """Commands for a forward_command_controller, if the parameters name its topic."""
        if not topic:
            return None
        scenario, system = self._model.scenario, self._model.dsys.system
        joints = driven_joints(scenario.joints, system, system.nu)
        if len(joints) < system.nu:
            raise process.UsageError(
                f"parameter 'hardware.command_array': {len(joints)} of {system.nu} inputs drive a "
                "joint alone; use joint_commands"
            )
        return JointEfforts(self._node, topic, joints)

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
        limits, ranges = self._limits(p)
        safety = Safety(
            Arming(limits, p["hardware.armed"]),
            DisarmedInputs(dsys, DisarmCommand(p["disarm.command"])),
            ranges,
            self._model.scenario.tracked(dsys.system.space),
            p["hardware.start"] == "service",
        )
        body = self._model.scenario.body
        tracker = HardwareTracker(self._sequence, estimate, timing, body=body)
        tracker.warm_up()
        return HardwareInterface(self._node, self._inbox, shown, tracker, safety, self._output)

    def _limits(self, p: Parameters) -> tuple[Limits, SafeRange]:
        """The limits and ranges that disarm, from the parameters or the scenario."""
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

    def _make_goals(self, node: Node, paths: PathPublisher | None) -> MotionRequests | None:
        """Follow velocity commands and goals of a vehicle, goals of a scenario with bodies and a
        guidance, or trajectories of joints if all of them have actuators.
        """
        now = lambda: self._states.now_ns  # noqa: E731
        scenario, dsys = self._model.scenario, self._model.dsys
        following = node, self._inbox, self._sequence, self._report
        guidance = self._sequence.leg(0).guidance
        goals: MotionGoals
        if paths is not None and isinstance(guidance, VehicleGuidance):
            goals = VehicleGoals(*following, paths, now, guidance, self._command_options)
            kinds: Sequence[ActionType] = VEHICLE_ACTIONS
        elif paths is not None and guidance is not None:
            goals, kinds = GoalInterface(*following, paths, now), BODY_ACTIONS
        elif follows_joints(scenario.joints, dsys.system):
            goals, kinds = JointGoals(*following, scenario, now), JOINT_ACTIONS
        else:
            return None
        self._actions = GoalActions(node, self._inbox, goals, dsys.h, kinds)
        return goals

    def _show_path(self, leg: ReferenceLeg) -> None:
        """Publish the path of the reference, if the scenario has bodies."""
        if self._paths is not None:
            self._paths.publish(self._paths.message(leg.tracker.reference, leg.start))

    def _restart(self) -> None:
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

    def _make_report(self) -> Report:
        self._report.set_leg(self._sequence.leg(self._sequence.step))
        if self._is_predictive:
            self._report.set_planning(self._planner.values(), self._planner.trouble())
        return self._report.make()


def _controller(model: Model, parameters: Parameters) -> tuple[trackers.Tracker, Planner]:
    """The tracker that the parameter `controller` selects, with its planner; raises UsageError for
    options that the scenario does not have.
    """
    p, scenario, dsys = parameters, model.scenario, model.dsys
    if p["controller"] == "lqr":
        return scenario.tracker(dsys, model.reference, p["integral"]), Planner(None)
    try:
        options = MpcOptions.of({f.name: p[f"mpc.{f.name}"] for f in fields(MpcOptions)})
        tracker = mpc_tracker(scenario, dsys, model.reference, options, p["integral"])
        kept = constraints_along(scenario, dsys, model.reference.name, options.constraints)
    except ValueError as error:
        raise UsageError(f"controller mpc: {error}") from error
    deadline_s = p["mpc.deadline_s"]
    if deadline_s == HALF_A_STEP:
        deadline_s = dsys.h / 2
    waits = p["lockstep"] and p["source"] == "simulation"
    return tracker, Planner(
        None if waits or not deadline_s else deadline_s,
        p["source"] == "simulation",
        ConstraintMargins(dsys, kept),
    )


main = partial(process.run, "tracker", Tracker)
"""Run the node, `main(args)`; returns the exit code."""

if __name__ == "__main__":
    sys.exit(main())
