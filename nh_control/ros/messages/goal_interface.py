"""Goals and trajectories for a body from topics, and the path of the planned reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np
from geometry_msgs.msg import Pose, PoseStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from trajectory_msgs.msg import MultiDOFJointTrajectory

from nh_control.discrete.trajectory import Trajectory
from nh_control.loop.reference_sequence import ReferenceLeg
from nh_control.loop.replanner import LEAD_S
from nh_control.ros.messages import conversions, goals
from nh_control.ros.messages.motion_requests import GoalObserver, MotionRequests, RequestContext
from nh_control.ros.messages.state_codecs import BodyCodec
from nh_control.ros.runtime.selected_model import Model
from nh_control.scenarios.guidance import Guidance

QUEUE = 10
PATH_POSES = 500
"""Maximum number of poses in a path, because the tracker publishes paths while it answers
states.
"""


@dataclass(frozen=True)
class Progress:
    """The current pose and target of the `body` in a frame, at a step in the sequence and at the
    corresponding time of the states (ns).
    """

    step: int
    time_ns: int
    body: str
    frame: str
    pose: Pose
    target: Pose


class BodyGoals(MotionRequests):
    """Motion requests for the body of `paths`. The path of an accepted request is published. For
    `lead_s`, see `MotionRequests`.
    """

    def __init__(self, context: RequestContext, paths: PathPublisher, lead_s: float = LEAD_S):
        super().__init__(context, lead_s)
        self._paths, self._body = paths, paths.body
        self._path: Path | None = None

    def progress(self) -> Progress:
        """Return the progress of the current motion."""
        # before the first state, the target stands in for the pose
        target, actual = self.sequence.target(self.sequence.step), self.report.state
        return Progress(
            self.sequence.step,
            max(0, self._now()),
            self._body.name,
            self._body.parent,
            self._paths.pose(target if actual is None else actual),
            self._paths.pose(target),
        )

    def with_path(self, leg: ReferenceLeg) -> ReferenceLeg:
        """Return a newly planned leg, whose path is published once it is accepted."""
        self._path = self._paths.message(leg.tracker.reference, leg.start)
        return leg

    def on_accepted(self, what: str, leg: ReferenceLeg) -> None:
        """Publish the path."""
        super().on_accepted(what, leg)
        self._paths.publish(self._path)


class GoalInterface(BodyGoals):
    """Plans motions of the body of `paths`, to goals and along trajectories. The scenario must
    provide guidance.
    """

    def __init__(self, context: RequestContext, paths: PathPublisher):
        super().__init__(context, paths)
        context.inbox.subscribe(PoseStamped, "goal", self.goal, QUEUE)
        context.inbox.subscribe(MultiDOFJointTrajectory, "trajectory", self.trajectory, QUEUE)

    def stop(self) -> None:
        """Plan a stop at the reference's current position."""
        present = self._paths.pose(self.sequence.target(self.sequence.step)).position
        place = conversions.xyz(present)
        self._request("stop", lambda guidance, k, _: guidance.to_goal(k, place), None)

    def goal(self, message: PoseStamped, observer: GoalObserver | None = None) -> None:
        """Plan a motion to the pose in the message."""
        present = self._paths.pose(self.sequence.target(self.sequence.step))
        try:
            # z = 0 means the current height
            position = goals.goal(message, self._body, self._now(), height=present.position.z)
        except conversions.ConversionError as reason:
            self.refuse("goal", str(reason), reason.kind, observer)
            return
        x, y, z = position
        self._request(
            f"goal ({x:.3g}, {y:.3g}, {z:.3g})",
            lambda guidance, k, _: guidance.to_goal(k, position),
            observer,
        )

    def trajectory(
        self, message: MultiDOFJointTrajectory, observer: GoalObserver | None = None
    ) -> None:
        """Plan a motion along the trajectory in the message."""
        try:
            plan = goals.trajectory(message, self._body, self._now(), self.sequence.dsys.h)
        except conversions.ConversionError as reason:
            self.refuse("trajectory", str(reason), reason.kind, observer)
            return
        self._request(f"trajectory of {len(message.points)} points", plan, observer)

    def _request(
        self,
        what: str,
        plan: Callable[[Guidance, int, int], Guidance],
        observer: GoalObserver | None,
    ) -> None:
        def leg(k: int) -> ReferenceLeg:
            from_k = lambda guidance, step: plan(guidance, step, k)  # noqa: E731
            return self.with_path(self.sequence.leg(k).next(k, from_k))

        self.plan(what, leg, observer)


class PathPublisher:
    """Publishes the path of a codec's first body on the latched topic `reference`."""

    def __init__(self, node: Node, model: Model, codec: BodyCodec):
        self._model, self._codec = model, codec
        odometry = codec.odometry[0]
        self.body = goals.GoalBody(name=odometry.child_frame_id, parent=odometry.header.frame_id)
        self._publisher = node.create_publisher(
            Path, "reference", QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        )

    def publish(self, path: Path) -> None:
        """Publish a path that `message` has returned."""
        self._publisher.publish(path)

    def pose(self, x: np.ndarray) -> Pose:
        """Pose of the body at a state x (nx)."""
        pose = Pose()
        self._codec.place(self._model.dsys.configuration(x), pose)
        return pose

    def message(self, reference: Trajectory, start: int = 0, poses: int = PATH_POSES) -> Path:
        """The path of a reference that begins at step `start`, with at most `poses` + 1 poses."""
        path = Path()
        path.header.frame_id = self.body.parent
        # evenly spaced states, and always the last one
        stride = ceil((len(reference) + 1) / poses)
        for k in sorted({*range(0, len(reference) + 1, stride), len(reference)}):
            pose = PoseStamped(pose=self.pose(reference.states[k]))
            pose.header.frame_id = self.body.parent
            conversions.set_time(pose.header.stamp, self._model.clock.stamp(start + k))
            path.poses.append(pose)
        return path
