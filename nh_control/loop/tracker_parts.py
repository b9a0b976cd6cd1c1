"""The parts of a tracker without its transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from nh_control.control.constraint_margins import ConstraintMargins
from nh_control.control.trackers import Tracker
from nh_control.discrete.system import DiscreteSystem
from nh_control.discrete.trajectory import Trajectory
from nh_control.loop import arming
from nh_control.loop.error_bounds import ErrorBounds
from nh_control.loop.hardware_estimate import FilteredState, MeasuredState
from nh_control.loop.hardware_tracker import Estimate, HardwareTracker, Timing
from nh_control.loop.joining import Joined, Joining, planned_motion
from nh_control.loop.planner import HALF_A_STEP, Planner
from nh_control.loop.reference_sequence import ReferenceSequence
from nh_control.loop.reports import Report
from nh_control.loop.sensed_state import SensedState
from nh_control.loop.tracker_report import TrackerReport
from nh_control.scenarios import MpcOptions, Scenario, constraints_along, mpc_tracker
from nh_control.scenarios.driven_joints import DrivenJoint, driven_joints
from nh_control.scenarios.sensor import SENSORS
from nh_control.scenarios.user_controller import user_tracker


class TrackerParts:
    """Builds a tracker from `settings`, which have the names of the tracker node's parameters. Its
    parts are the `sequence` of references, the `planner` that computes commands along them, and
    their `report`; the estimator of states from a simulation's sensors (`sensed`); the tracker and
    the safety rules for `hardware`; and the joints that the `efforts` in commands act on. Raises
    ValueError for settings that the scenario or its model `dsys` does not support.
    """

    def __init__(
        self,
        scenario: Scenario,
        dsys: DiscreteSystem,
        reference: Trajectory,
        settings: Mapping[str, Any],
    ):
        self._scenario, self._dsys, self._reference = scenario, dsys, reference
        self._settings, self.is_predictive = settings, settings["controller"] == "mpc"
        tracker: Tracker
        if self.is_predictive:
            tracker, self.planner = self._predictive()
        else:
            tracker, self.planner = self._reactive(settings["controller"]), Planner(None)
        guidance = scenario.make_guidance(dsys, reference)
        self.sequence = ReferenceSequence(tracker, guidance, self.planner.answer)
        self._bounds = ErrorBounds.of(
            scenario,
            dsys,
            reference,
            warning=settings["error_bounds.warning"],
            error=settings["error_bounds.error"],
        )
        self.report = TrackerReport(scenario, dsys, self._bounds)
        self.sensed: SensedState | None = None
        self.hardware: tuple[HardwareTracker, arming.Safety] | None = None
        if settings["source"] == "hardware":
            self.hardware = self._hardware(), self._safety()
        elif settings["estimate"] == SENSORS:
            try:
                self.sensed = SensedState(scenario.sensors, scenario.sensing, dsys)
            except ValueError as reason:
                raise ValueError(f"parameter 'estimate': {reason}") from reason
        self.efforts = self._driven() if settings["hardware.command_array"] else ()

    def __str__(self) -> str:
        reference = self._reference
        return (
            f"model: {self._dsys}; reference {reference.name!r}, {len(reference)} steps"
            f"{'; predictive' if self.is_predictive else ''}"
            f"{'; with disturbance estimate' if self._settings['integral'] else ''}"
            f"{'; for hardware' if self.hardware is not None else ''}"
        )

    def joining(self, joined: Joined) -> Joining:
        """Return the object that lets the tracker join a simulation late and then calls
        `joined(leg, text)`.
        """
        plan = planned_motion(self._scenario, self.sequence)
        return Joining(self.sequence, self._bounds, plan, joined)

    def make_report(self) -> Report:
        """Return a report on the time since the last report."""
        self.report.set_leg(self.sequence.leg(self.sequence.step))
        if self.is_predictive:
            self.report.set_planning(self.planner.values(), self.planner.trouble())
        return self.report.make()

    def _reactive(self, controller: str) -> Tracker:
        """Return LQR or the user's controller with the given name."""
        scenario, dsys, reference = self._scenario, self._dsys, self._reference
        if controller == "lqr":
            return scenario.tracker(dsys, reference, self._settings["integral"])
        if ":" not in controller:
            raise ValueError(
                "parameter 'controller' must be lqr, mpc, path/to/file.py:NAME or module:NAME, "
                f"got {controller!r}; an external controller replaces this node"
            )
        try:
            return user_tracker(controller, dsys, reference, scenario.holds(reference.name))
        except OSError as missing:
            raise ValueError(f"parameter 'controller': {missing}") from missing

    def _predictive(self) -> tuple[Tracker, Planner]:
        s, scenario, dsys, reference = self._settings, self._scenario, self._dsys, self._reference
        try:
            options = MpcOptions.of({f.name: s[f"mpc.{f.name}"] for f in fields(MpcOptions)})
            tracker = mpc_tracker(scenario, dsys, reference, options, s["integral"])
            constraints = constraints_along(scenario, dsys, reference.name, options.constraints)
        except ValueError as reason:
            raise ValueError(f"controller mpc: {reason}") from reason
        # None, because the loop waits for every plan in lock-step
        is_simulation, deadline_s = s["source"] == "simulation", s["mpc.deadline_s"]
        if deadline_s == HALF_A_STEP:
            deadline_s = dsys.h / 2
        if s["lockstep"] and is_simulation:
            deadline_s = 0.0
        margins = ConstraintMargins(dsys, constraints)
        return tracker, Planner(deadline_s or None, patient=is_simulation, margins=margins)

    def _driven(self) -> tuple[DrivenJoint, ...]:
        """Return the driven joints, one for each input."""
        system = self._dsys.system
        joints = driven_joints(self._scenario.joints, system, system.nu)
        if len(joints) < system.nu:
            raise ValueError(
                f"parameter 'hardware.command_array': {len(joints)} of {system.nu} inputs drive a "
                "joint alone; use joint_commands"
            )
        return joints

    def _hardware(self) -> HardwareTracker:
        s, dsys = self._settings, self._dsys
        estimate: Estimate = MeasuredState(dsys)
        if s["hardware.estimator"] == "kalman":
            estimate = FilteredState(
                dsys,
                noise=s["hardware.noise"],
                acceleration=s["hardware.acceleration"],
                outlier=s["hardware.outlier"],
            )
        timing = Timing(
            actuation_s=s["hardware.actuation_s"],
            max_age_s=s["hardware.max_age_s"],
            compensate=s["hardware.compensate_delay"],
        )
        return HardwareTracker(self.sequence, estimate, timing, body=self._scenario.body)

    def _safety(self) -> arming.Safety:
        """Return the safety rules from the settings or the scenario."""
        s, scenario, dsys = self._settings, self._scenario, self._dsys
        error, saturation_s = s["disarm.error"], s["disarm.saturation_s"]
        # negative values stand for the scenario's values
        if error < 0:
            error = arming.error_limit(scenario, dsys, self._reference)
        if saturation_s < 0:
            saturation_s = scenario.limits.saturation_s
        limits = arming.ArmingLimits(s["disarm.silence_s"], error=error, saturation_s=saturation_s)
        # AUTO is replaced by the scenario's ranges; other ranges are added
        ranges: list[str] = []
        for text in s["disarm.range"]:
            ranges += scenario.limits.ranges if text == arming.AUTO else (text,)
        try:
            safe_range = arming.SafeRange(scenario, dsys.system.space, ranges)
        except ValueError as reason:
            raise ValueError(f"parameter 'disarm.range': {reason}") from reason
        command = arming.DisarmCommand(s["disarm.command"])
        return arming.Safety(
            arming=arming.Arming(limits, armed=s["hardware.armed"]),
            disarmed_inputs=arming.DisarmedInputs(dsys, command),
            ranges=safe_range,
            tracked=scenario.tracked(dsys.system.space),
            starts_by_service=s["hardware.start"] == "service",
        )
