"""Takes goals and trajectories from topics, and publishes the path of the planned reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Protocol

import numpy as np
from geometry_msgs.msg import Pose, PoseStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from trajectory_msgs.msg import MultiDOFJointTrajectory

from nh_control.control.guidance import Guidance
from nh_control.control.reference_sequence import ReferenceLeg, ReferenceSequence, Replanner
from nh_control.discrete.trajectory import Trajectory
from nh_control.ros.loop.reports import Refusal
from nh_control.ros.loop.tracker_report import TrackerReport
from nh_control.ros.messages import conversions, goals
from nh_control.ros.messages.state_codecs import BodyCodec
from nh_control.ros.runtime.callback_errors import ThrottledLog
from nh_control.ros.runtime.inbox import Inbox
from nh_control.ros.runtime.model import Model

QUEUE = 10
PATH_POSES = 500
"""Largest number of poses in a path: the tracker publishes paths while it answers states."""


class GoalObserver(Protocol):
    """Callbacks of the client of a goal."""

    def accepted(self, leg: ReferenceLeg) -> None:
        """The tracker follows the goal with this leg."""

    def ended(self, refusal: Refusal | None, reason: str) -> None:
        """The tracker does not follow the goal, or has stopped following it."""


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


class GoalInterface:
    """Plans motions of the body of `paths` to goals, and publishes their paths; the scenario must
    have a guidance. `now()` is the present time of the states in ns.

    A new goal, or a new start of the run, replaces a goal; its observer is called.
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
        self._sequence, self._report, self._paths = sequence, report, paths
        self._h = sequence.dsys.h
        self._now, self._log = now, node.get_logger()
        self._warn = ThrottledLog(lambda text: self._log.warning(text))
        self._body, self._path = paths.body, None
        self._replanner = Replanner(sequence, inbox.post, self._accepted, self._not_planned)
        self._planned: GoalObserver | None = None
        self._followed: GoalObserver | None = None
        inbox.subscribe(PoseStamped, "goal", self.goal, QUEUE)
        inbox.subscribe(MultiDOFJointTrajectory, "trajectory", self.trajectory, QUEUE)

    def forget(self, why: str) -> None:
        """Drop the planned and the followed goal, because another reference has begun."""
        self._replanner.forget()
        for observer in (self._planned, self._followed):
            if observer is not None:
                observer.ended(None, why)
        self._planned = self._followed = None

    def close(self) -> None:
        """End planning."""
        self._replanner.close()

    def progress(self) -> Progress:
        """Return the progress of the present motion."""
        target = self._sequence.target(self._sequence.step)
        actual = self._report.state
        return Progress(
            self._sequence.step,
            max(0, self._now()),
            self._body.name,
            self._body.parent,
            self._paths.pose(target if actual is None else actual),
            self._paths.pose(target),
        )

    def stop(self) -> None:
        """Plan to rest at the present position of the reference."""
        present = self._paths.pose(self._sequence.target(self._sequence.step)).position
        place = conversions.xyz(present)
        self._request("stop", lambda guidance, k, _: guidance.to_goal(k, place), None)

    def goal(self, message: PoseStamped, observer: GoalObserver | None = None) -> None:
        """Plan a motion to the pose of the message."""
        present = self._paths.pose(self._sequence.target(self._sequence.step))
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
            plan = goals.trajectory(message, self._body, self._now(), self._h)
        except conversions.ConversionError as reason:
            self.refuse("trajectory", str(reason), reason.kind, observer)
            return
        self._request(f"trajectory of {len(message.points)} points", plan, observer)

    def refuse(self, what: str, reason: str, kind: Refusal, observer: GoalObserver | None) -> None:
        """Count and tell that a request is not followed, to who pursues it, too; the log hears of
        it now and then.
        """
        if observer is not None:
            observer.ended(kind, reason)
        self._report.refuse_goal(kind, f"{what} refused: {reason}")
        self._warn(f"{what} refused: {reason}")

    def _request(
        self,
        what: str,
        plan: Callable[[Guidance, int, int], Trajectory],
        observer: GoalObserver | None,
    ) -> None:
        if self._planned is not None:
            self._planned.ended(None, f"replaced by {what} while it was planned")
        self._planned = observer

        def leg(k: int) -> ReferenceLeg:
            planned = self._sequence.leg(k).next(k, lambda guidance, step: plan(guidance, step, k))
            self._path = self._paths.message(planned.tracker.reference, k)
            return planned

        self._replanner.request(what, leg)

    def _accepted(self, what: str, leg: ReferenceLeg) -> None:
        self._report.accept_goal()
        before, self._followed, self._planned = self._followed, self._planned, None
        if before is not None:
            before.ended(None, f"replaced by {what}")
        if self._followed is not None:
            self._followed.accepted(leg)
        self._log.info(
            f"{what} accepted: from t = {leg.start * self._h:.3f} s to rest at t = "
            f"{leg.end * self._h:.3f} s"
        )
        self._paths.publish(self._path)

    def _not_planned(self, what: str, reason: str) -> None:
        observer, self._planned = self._planned, None
        self.refuse(what, reason, Refusal.MODEL, observer)


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
