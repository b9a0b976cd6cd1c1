"""Velocity commands and goals for vehicles, from topics and an action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from geometry_msgs.msg import PoseStamped, Twist, TwistStamped

from nh_control.discrete.trajectory import Trajectory
from nh_control.loop.reference_sequence import ReferenceLeg
from nh_control.ros.messages import goals
from nh_control.ros.messages.conversions import ConversionError
from nh_control.ros.messages.goal_interface import BodyGoals, PathPublisher
from nh_control.ros.messages.motion_requests import GoalObserver, RequestContext
from nh_control.ros.runtime.parameters import Parameters
from nh_control.scenarios.vehicle_guidance import VehicleGuidance

QUEUE = 10
LEAD_S = 0.1
"""Lead time for the first plan."""
COMMAND = "velocity command"
RENEWED_S = 10.0
"""Duration of the plan for a velocity command without a timeout. The command is planned again
after half of this time.
"""


@dataclass(frozen=True)
class CommandOptions:
    """Options for velocity commands: whether they are `stamped`; the time (s) without a command
    after which the vehicle comes to rest (0 means never); and the accelerations with which the
    rates change (0 means the scenario's values).
    """

    stamped: bool
    timeout_s: float
    acceleration: float = 0.0
    turn_acceleration: float = 0.0

    @staticmethod
    def of(parameters: Parameters) -> CommandOptions:
        """The options from the parameters `cmd_vel.<option>`."""
        return CommandOptions(
            **{f.name: parameters["cmd_vel." + f.name] for f in fields(CommandOptions)}
        )


class VehicleGoals(BodyGoals):
    """Plans motions of the body of `paths` that follow the newest velocity command or lead to a
    goal. Every motion ends at rest.
    """

    def __init__(
        self,
        context: RequestContext,
        paths: PathPublisher,
        guidance: VehicleGuidance,
        options: CommandOptions,
    ):
        super().__init__(context, paths, LEAD_S)
        # a value of 0 keeps the scenario's acceleration
        accelerations = options.acceleration, options.turn_acceleration
        self._guidance = guidance.limited(accelerations)
        self._timeout_s = options.timeout_s
        self._planning, self._newest = "", (0.0, 0.0)
        self._planned_command = self._newest
        kind = TwistStamped if options.stamped else Twist
        context.inbox.subscribe(kind, "cmd_vel", self._on_command, 1)
        context.inbox.subscribe(PoseStamped, "goal", self.goal, QUEUE)

    def goal(self, message: PoseStamped, observer: GoalObserver | None = None) -> None:
        """Plan a motion to the pose in the message."""
        try:
            # the orientation of the goal is the final heading
            theta, x, y = pose = goals.planar_goal(message, self._body, self._now())
        except ConversionError as reason:
            self.refuse("goal", str(reason), reason.kind, observer)
            return

        def leg(k: int) -> ReferenceLeg:
            return self.with_path(self._leg(k, self._guidance.to_goal(self._start(k), pose)))

        self.plan(f"goal ({x:.3g}, {y:.3g}, heading {theta:.3g})", leg, observer)

    def stop(self) -> None:
        """Plan a stop."""
        self._command((0.0, 0.0))

    def forget(self, why: str) -> None:
        """Drop the planned and the followed request, because a new reference begins."""
        self._planning = ""
        super().forget(why)

    def plan(
        self, what: str, leg: Callable[[int], ReferenceLeg], observer: GoalObserver | None
    ) -> None:
        """Plan a leg, which replaces any other request."""
        self._planning = what
        super().plan(what, leg, observer)

    def on_accepted(self, what: str, leg: ReferenceLeg) -> None:
        """Publish the path to a goal. Velocity commands, which are frequent, are not reported."""
        self._planning = ""
        if what == COMMAND:
            self._go_on()
        else:
            super().on_accepted(what, leg)

    def on_refused(self, what: str, reason: str) -> None:
        """Report the refusal. A refused command is not planned again."""
        super().on_refused(what, reason)
        self._planning = ""
        if what == COMMAND:
            self._go_on()
            if not self._planning:
                self._newest = self._planned_command = (0.0, 0.0)

    def renew(self) -> None:
        """Replan a command without a timeout before its plan ends."""
        k = self.sequence.step
        leg = self.sequence.leg(k)
        is_followed = leg.tracker.reference.name == COMMAND and any(self._planned_command)
        # a command with a timeout ends by itself
        if self._timeout_s or self._planning or not is_followed:
            return
        if (k - leg.start) * self.sequence.dsys.h >= RENEWED_S / 2:
            self._command(self._planned_command)

    def _on_command(self, message: TwistStamped | Twist) -> None:
        try:
            command = goals.velocity_command(message, self._body, self._now(), self._timeout_s)
        except ConversionError as reason:
            self.refuse(COMMAND, str(reason), reason.kind, None)
            return
        self._newest = command
        if self._planning != COMMAND:
            self._command(command)

    def _command(self, command: tuple[float, float]) -> None:
        self._newest = self._planned_command = command
        # the commanded rates are held until the timeout, and then the vehicle brakes
        hold_s = (self._timeout_s or RENEWED_S) if any(command) else 0.0

        def leg(k: int) -> ReferenceLeg:
            return self._leg(k, self._guidance.with_command(self._start(k), command, hold_s))

        self.plan(COMMAND, leg, None)

    def _go_on(self) -> None:
        """Plan the command that arrived while another command was being planned."""
        # only the newest command is planned, however many have arrived
        if self._newest is not self._planned_command:
            self._command(self._newest)

    def _start(self, k: int) -> np.ndarray:
        """The state (nx) from which a leg starts at step k. It is the reference's state or, if no
        reference is followed, the last known state.
        """
        # a vehicle whose reference has ended starts from where it stands
        known, now = self.report.state, self.sequence.step
        if known is None or any(self.sequence.is_following(step) for step in (now, k)):
            return self.sequence.target(k)
        return known

    def _leg(self, k: int, reference: Trajectory) -> ReferenceLeg:
        tracker = self.sequence.leg(k).tracker
        return ReferenceLeg(k, tracker.with_reference(reference))
