"""Takes goals and trajectories from topics, and publishes the path of the planned reference."""

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

from nh_control.control.guidance import Guidance
from nh_control.control.reference_sequence import ReferenceLeg, ReferenceSequence
from nh_control.discrete.trajectory import Trajectory
from nh_control.ros.loop.tracker_report import TrackerReport
from nh_control.ros.messages import conversions, goals
from nh_control.ros.messages.motion_requests import GoalObserver, MotionRequests
from nh_control.ros.messages.state_codecs import BodyCodec
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.model import Model

QUEUE = 10
PATH_POSES = 500
"""Largest number of poses in a path: the tracker publishes paths while it answers states."""


@dataclass(frozen=True)
class Progress:
    """The present pose and target of the `body` in a frame, at a step of the sequence and a time
    of the states (ns).
    """

    step: int
    time_ns: int
    body: str
    frame: str
    pose: Pose
    target: Pose


def progress(
    sequence: ReferenceSequence, report: TrackerReport, paths: PathPublisher, now_ns: int
) -> Progress:
    """The progress of the motion of the body of `paths` at the last command."""
    target, actual = sequence.target(sequence.step), report.state
    return Progress(
        sequence.step,
        max(0, now_ns),
        paths.body.name,
        paths.body.parent,
        paths.pose(target if actual is None else actual),
        paths.pose(target),
    )


class GoalInterface(MotionRequests):
    """Plans motions of the body of `paths` to goals, and publishes their paths; the scenario must
    have a guidance. `now()` is the present time of the states in ns.
    """

    def __init__(
        self,
        node: Node,
        inbox: Inbox,
        sequence: ReferenceSequence,
        report: TrackerReport,
        paths: PathPublisher,
        now: Callable[[], int],
    ):
        super().__init__(node, inbox, sequence, report)
        self._paths, self._now = paths, now
        self._body, self._path = paths.body, None
        inbox.subscribe(PoseStamped, "goal", self.goal, QUEUE)
        inbox.subscribe(MultiDOFJointTrajectory, "trajectory", self.trajectory, QUEUE)

    def progress(self) -> Progress:
        """Return the progress of the present motion."""
        return progress(self.sequence, self.report, self._paths, self._now())

    def stop(self) -> None:
        """Plan to rest at the present position of the reference."""
        present = self._paths.pose(self.sequence.target(self.sequence.step)).position
        place = conversions.xyz(present)
        self._request("stop", lambda guidance, k, _: guidance.to_goal(k, place), None)

    def goal(self, message: PoseStamped, observer: GoalObserver | None = None) -> None:
        """Plan a motion to the pose of the message."""
        present = self._paths.pose(self.sequence.target(self.sequence.step))
        try:
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
        """Plan a motion along the trajectory of the message."""
        try:
            plan = goals.trajectory(message, self._body, self._now(), self.sequence.dsys.h)
        except conversions.ConversionError as reason:
            self.refuse("trajectory", str(reason), reason.kind, observer)
            return
        self._request(f"trajectory of {len(message.points)} points", plan, observer)

    def _request(
        self,
        what: str,
        plan: Callable[[Guidance, int, int], Trajectory],
        observer: GoalObserver | None,
    ) -> None:
        def leg(k: int) -> ReferenceLeg:
            planned = self.sequence.leg(k).next(k, lambda guidance, step: plan(guidance, step, k))
            self._path = self._paths.message(planned.tracker.reference, k)
            return planned

        self.plan(what, leg, observer)

    def on_accepted(self, what: str, leg: ReferenceLeg) -> None:
        """Publish the path."""
        super().on_accepted(what, leg)
        self._paths.publish(self._path)


class PathPublisher:
    """The path of a codec's first body on the latched topic `reference`."""

    def __init__(self, node: Node, model: Model, codec: BodyCodec):
        self._model, self._codec = model, codec
        self.body = goals.Body(codec.odometry[0].child_frame_id, codec.odometry[0].header.frame_id)
        self._publisher = node.create_publisher(
            Path, "reference", QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        )

    def publish(self, path: Path) -> None:
        """Publish a path made by `message`."""
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
        stride = ceil((len(reference) + 1) / poses)
        for k in sorted({*range(0, len(reference) + 1, stride), len(reference)}):
            pose = PoseStamped(pose=self.pose(reference.states[k]))
            pose.header.frame_id = self.body.parent
            conversions.set_time(pose.header.stamp, self._model.clock.stamp(start + k))
            path.poses.append(pose)
        return path
