"""Action servers for goals and trajectories, with feedback and a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from geometry_msgs.msg import PoseStamped, Transform
from rclpy.action.server import ActionServer, CancelResponse, GoalResponse, ServerGoalHandle
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectoryPoint, MultiDOFJointTrajectoryPoint

from nh_control.loop.clocks import NANOSECONDS
from nh_control.loop.reference_sequence import ReferenceLeg
from nh_control.loop.reports import Refusal
from nh_control.ros.messages import conversions
from nh_control.ros.messages.goal_interface import GoalInterface
from nh_control.ros.messages.joint_goals import JointGoals
from nh_control.ros.messages.vehicle_goals import VehicleGoals
from nh_control.ros.runtime.inbox import Inbox

FEEDBACK_S = 0.1


class NavigateToPose:
    """The action in nav2_msgs. The position in its pose is used, and the behavior tree is
    ignored.
    """

    name, package, type_name = "navigate_to_pose", "nav2_msgs", "NavigateToPose"

    def ask(self, goals: Any, request: Any, action_request: ActionRequest) -> None:
        """Request the goal."""
        goals.goal(request.pose, action_request)

    def fill_feedback(self, feedback: Any, action_request: ActionRequest, progress: Any) -> None:
        """Fill in the pose, the times and the straight-line distance to the goal."""
        feedback.current_pose = PoseStamped(pose=progress.pose)
        feedback.current_pose.header.frame_id = progress.frame
        conversions.set_time(feedback.current_pose.header.stamp, progress.time_ns)
        conversions.set_time(
            feedback.navigation_time,
            action_request.time_ns(action_request.requested_at, progress.step),
        )
        if action_request.end is not None:
            remaining_ns = action_request.time_ns(progress.step, action_request.end)
            conversions.set_time(feedback.estimated_time_remaining, remaining_ns)
        goal = conversions.xyz(action_request.request.pose.pose.position)
        remaining = conversions.xyz(progress.pose.position) - goal
        remaining[2] *= goal[2] != 0  # z = 0 in a goal means the current height
        feedback.distance_remaining = float(np.linalg.norm(remaining))

    def fill_result(self, result: Any, refusal: Refusal | None, reason: str) -> None:
        """Fill in the reason. Before Jazzy, Nav2's result has no field for it."""
        if hasattr(result, "error_msg"):
            result.error_code, result.error_msg = (result.UNKNOWN if reason else 0), reason


class FollowJointTrajectory:
    """The action in control_msgs. It follows `multi_dof_trajectory`, without tolerances."""

    name, package, type_name = "follow_joint_trajectory", "control_msgs", "FollowJointTrajectory"
    followed, other = "multi_dof_trajectory", "trajectory"

    def ask(self, goals: Any, request: Any, action_request: ActionRequest) -> None:
        """Request the trajectory."""
        fields = ("path_tolerance", "goal_tolerance")
        parts = [prefix + field for prefix in ("", "component_") for field in fields]
        tolerances = [name for name in parts if getattr(request, name, [])]
        if getattr(request, self.other).points:
            reason = f"only {self.followed} is followed, not {self.other}"
            goals.refuse("trajectory", reason, Refusal.NAMES, action_request)
        elif tolerances:
            reason = f"{', '.join(tolerances)}: tolerances are not supported, leave them empty"
            goals.refuse("trajectory", reason, Refusal.MODEL, action_request)
        else:
            goals.trajectory(getattr(request, self.followed), action_request)

    def fill_feedback(self, feedback: Any, action_request: ActionRequest, progress: Any) -> None:
        """Fill in the desired and actual positions, and their difference."""
        feedback.header.frame_id = progress.frame
        conversions.set_time(feedback.header.stamp, progress.time_ns)
        feedback.multi_dof_joint_names = [progress.body]
        desired, actual = (
            conversions.xyz(pose.position) for pose in (progress.target, progress.pose)
        )
        for name, place in (("desired", desired), ("actual", actual), ("error", desired - actual)):
            point = MultiDOFJointTrajectoryPoint(transforms=[Transform()])
            conversions.set_xyz(point.transforms[0].translation, place.tolist())
            conversions.set_time(
                point.time_from_start, action_request.time_ns(action_request.begin, progress.step)
            )
            setattr(feedback, f"multi_dof_{name}", point)

    def fill_result(self, result: Any, refusal: Refusal | None, reason: str) -> None:
        """Fill in the reason and its code in control_msgs."""
        # control_msgs codes where they exist, otherwise INVALID_GOAL
        codes = {Refusal.NAMES: result.INVALID_JOINTS, Refusal.STAMP: result.OLD_HEADER_TIMESTAMP}
        if reason:
            result.error_code = result.INVALID_GOAL
        if refusal in codes:
            result.error_code = codes[refusal]
        result.error_string = reason


class FollowJoints(FollowJointTrajectory):
    """The same action for joints. It follows `trajectory`."""

    followed, other = "trajectory", "multi_dof_trajectory"

    def fill_feedback(self, feedback: Any, action_request: ActionRequest, progress: Any) -> None:
        """Fill in the desired and actual positions, and their differences."""
        conversions.set_time(feedback.header.stamp, progress.time_ns)
        feedback.joint_names = list(progress.names)
        error = progress.target - progress.actual
        parts = ("desired", progress.target), ("actual", progress.actual), ("error", error)
        for name, values in parts:
            point = JointTrajectoryPoint(positions=values.tolist())
            conversions.set_time(
                point.time_from_start, action_request.time_ns(action_request.begin, progress.step)
            )
            setattr(feedback, name, point)


MotionGoals: TypeAlias = GoalInterface | JointGoals | VehicleGoals
ActionType: TypeAlias = NavigateToPose | FollowJointTrajectory
"""An action with its `name`, and the `package` and `type_name` of its type."""


BODY_ACTIONS: tuple[ActionType, ...] = NavigateToPose(), FollowJointTrajectory()
VEHICLE_ACTIONS: tuple[ActionType, ...] = (NavigateToPose(),)
JOINT_ACTIONS: tuple[ActionType, ...] = (FollowJoints(),)


class ActionRequest:
    """A request for an action, from its acceptance to its result. It is its goal's
    `GoalObserver`.
    """

    def __init__(
        self, kind: ActionType, handle: ServerGoalHandle, action: Any, step_s: float, step: int
    ):
        self._kind, self._handle, self._action, self._step_s = kind, handle, action, step_s
        self.request = handle.request
        self.requested_at = self.begin = step
        self.end: int | None = None
        self.over = False

    def time_ns(self, begin: int, end: int) -> int:
        """Return the time between two steps in ns, at least 0."""
        return round(max(0, end - begin) * self._step_s * NANOSECONDS)

    def accepted(self, leg: ReferenceLeg) -> None:
        """Record that the tracker follows the request from now on."""
        self.begin, self.end = leg.start, leg.end

    def ended(self, refusal: Refusal | None, reason: str) -> None:
        """End the request, because the tracker does not follow it or no longer follows it."""
        self._finish(refusal, reason, "abort")

    def tick(self, goals: MotionGoals) -> None:
        """Publish the feedback. End the request at the goal, or when it is canceled."""
        # canceling stops the motion, and the result comes before the new plan
        if self._handle.is_cancel_requested:
            self._finish(None, "canceled; the motion stops", "canceled")
            goals.stop()
            return
        progress = goals.progress()
        # the motion ends at the last step of its leg
        if self.end is not None and progress.step >= self.end:
            self._finish(None, "", "succeed")
            return
        feedback = self._action.Feedback()
        self._kind.fill_feedback(feedback, self, progress)
        self._handle.publish_feedback(feedback)

    def _finish(self, refusal: Refusal | None, reason: str, state: str) -> None:
        if self.over:
            return
        self.over = True
        result = self._action.Result()
        self._kind.fill_result(result, refusal, reason)

        # rclpy requires an execution function that sets the state and returns the result
        def conclude(handle: ServerGoalHandle) -> Any:
            getattr(handle, state)()
            return result

        self._handle.execute(conclude)


class GoalActions:
    """Serves the actions whose packages are installed. The log names the other actions once. A
    refused request ends with a result that contains the reason. A new request, or a goal on a
    topic, replaces the current request.
    """

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        goals: MotionGoals,
        step_s: float,
        kinds: Sequence[ActionType] = BODY_ACTIONS,
    ):
        self._inbox, self._goals, self._step_s = inbox, goals, step_s
        self._requests: list[ActionRequest] = []
        self._servers: list[ActionServer] = []
        for kind in kinds:
            try:
                # the packages that define actions are optional
                action = getattr(import_module(f"{kind.package}.action"), kind.type_name)
            except ImportError:
                node.get_logger().info(f"no action {kind.name}: {kind.package} is not installed")
                continue
            self._servers.append(self._serve(node, kind, action))
        if self._servers:
            node.create_timer(FEEDBACK_S, lambda: inbox.post(self._tick))

    def close(self) -> None:
        """Destroy the servers."""
        for server in self._servers:
            server.destroy()

    def _serve(self, node: Node, kind: ActionType, action: Any) -> ActionServer:
        def begin(handle: ServerGoalHandle) -> None:
            # requests are handled in the working thread, like goals on topics
            action_request = ActionRequest(
                kind, handle, action, self._step_s, self._goals.progress().step
            )
            self._requests.append(action_request)
            try:
                kind.ask(self._goals, handle.request, action_request)
            except Exception as error:  # the client receives the reason before the node logs it
                action_request.ended(None, f"{type(error).__name__}: {error}")
                raise

        take: Callable[[ServerGoalHandle], None] = lambda handle: self._inbox.post(  # noqa: E731
            partial(begin, handle)
        )
        return ActionServer(
            node,
            action,
            kind.name,
            execute_callback=lambda _: action.Result(),  # `_finish` passes its own callback
            goal_callback=lambda _: (
                GoalResponse.REJECT if self._inbox.closed else GoalResponse.ACCEPT
            ),
            handle_accepted_callback=take,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )

    def _tick(self) -> None:
        for action_request in self._requests:
            if not action_request.over:
                action_request.tick(self._goals)
        self._requests = [
            action_request for action_request in self._requests if not action_request.over
        ]
