"""Goals, trajectories and velocity commands for a tracker, with the corresponding actions and
paths.
"""

from __future__ import annotations

from collections.abc import Sequence

from nh_control.control.controller import ControllerTracker
from nh_control.loop.reference_sequence import ReferenceLeg
from nh_control.ros.messages import goal_actions
from nh_control.ros.messages.goal_interface import GoalInterface, PathPublisher
from nh_control.ros.messages.joint_goals import JointGoals
from nh_control.ros.messages.motion_requests import RequestContext
from nh_control.ros.messages.state_codecs import BodyCodec, Codec
from nh_control.ros.messages.vehicle_goals import CommandOptions, VehicleGoals
from nh_control.ros.runtime.selected_model import Model
from nh_control.scenarios.joint_motion import follows_joints
from nh_control.scenarios.vehicle_guidance import VehicleGuidance


class TrackerGoals:
    """The motion `requests` that a tracker accepts on topics and through `actions`, and the
    `paths` of its references if the scenario has bodies.

    A vehicle follows velocity commands and goals. Other scenarios with bodies and guidance follow
    goals and trajectories. Scenarios whose joints all have actuators follow joint trajectories.
    """

    def __init__(
        self,
        context: RequestContext,
        model: Model,
        codecs: Sequence[Codec],
        options: CommandOptions,
    ):
        node, self._sequence = context.node, context.sequence
        self._log = node.get_logger()
        bodies = [codec for codec in codecs if isinstance(codec, BodyCodec)]
        self.paths = paths = PathPublisher(node, model, bodies[0]) if bodies else None
        scenario, joints = model.scenario, model.scenario.joints
        self.requests: goal_actions.MotionGoals | None = None
        kinds: tuple[goal_actions.ActionType, ...] = ()
        # the kind of scenario determines the kind of goals
        if isinstance(self._sequence.trackers[0], ControllerTracker):
            self._log.info("the user's controller determines the motion, so goals are not offered")
        elif paths is not None and scenario.drive is not None:
            guidance = VehicleGuidance(model.dsys, scenario.drive)
            self.requests = VehicleGoals(context, paths, guidance, options)
            kinds = goal_actions.VEHICLE_ACTIONS
        elif paths is not None and scenario.guidance is not None:
            self.requests, kinds = GoalInterface(context, paths), goal_actions.BODY_ACTIONS
        elif follows_joints(joints, model.dsys.system):
            self.requests, kinds = JointGoals(context, joints), goal_actions.JOINT_ACTIONS
        self.actions: goal_actions.GoalActions | None = None
        if self.requests is not None:
            self.actions = goal_actions.GoalActions(
                node, context.inbox, self.requests, step_s=model.dsys.h, kinds=kinds
            )
        self._show(self._sequence.leg(0))

    def renew(self) -> None:
        """Renew a plan that ends before its request. Called after every answer."""
        if self.requests is not None:
            self.requests.renew()

    def restart(self) -> None:
        """Forget all requests, because the run was restarted."""
        self._begin(self._sequence.leg(0), "the run was restarted")

    def join(self, leg: ReferenceLeg | None, text: str) -> None:
        """Log how a run was joined, and publish the path of a new leg."""
        if leg is not None:
            self._show(leg)
        self._log.info(text)

    def follow(self, leg: ReferenceLeg) -> None:
        """Forget all requests, because a new reference begins."""
        name, t = leg.tracker.reference.name, leg.start * self._sequence.dsys.h
        self._begin(leg, f"reference {name!r} was set")
        self._log.info(f"reference {name!r} from t = {t:.3f} s")

    def close(self) -> None:
        """Stop planning, and destroy the actions."""
        if self.actions is not None:
            self.actions.close()
        if self.requests is not None:
            self.requests.close()

    def _begin(self, leg: ReferenceLeg, why: str) -> None:
        if self.requests is not None:
            self.requests.forget(why)
        self._show(leg)

    def _show(self, leg: ReferenceLeg) -> None:
        """Publish the path of the leg."""
        if self.paths is not None:
            self.paths.publish(self.paths.message(leg.tracker.reference, leg.start))
