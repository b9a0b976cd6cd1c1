"""Joint trajectories from a topic and an action, for scenarios in which all joints have
actuators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from trajectory_msgs.msg import JointTrajectory as Message

from nh_control.control.joint_reference import InfeasibleTrajectory, continued
from nh_control.control.joint_trajectory import JointTrajectory
from nh_control.loop.clocks import NANOSECONDS
from nh_control.loop.reference_sequence import ReferenceLeg
from nh_control.ros.messages import conversions, goals
from nh_control.ros.messages.motion_requests import GoalObserver, MotionRequests, RequestContext
from nh_control.scenarios import Joint
from nh_control.scenarios.joint_motion import on_coordinates, shown_positions

QUEUE = 10
STOP_S = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Durations of a stop. The first one that satisfies the limits is used."""


@dataclass(frozen=True)
class JointProgress:
    """The current and desired positions (k) of the joints `names`, at a step in the sequence and
    at the corresponding time of the states (ns).
    """

    step: int
    time_ns: int
    names: tuple[str, ...]
    actual: np.ndarray
    target: np.ndarray


class JointGoals(MotionRequests):
    """Plans motions along trajectories of the `joints`. Each motion continues the current
    reference without a jump.
    """

    def __init__(self, context: RequestContext, joints: Sequence[Joint]):
        super().__init__(context)
        self._joints, self._model = joints, context.sequence.dsys
        context.inbox.subscribe(Message, "joint_trajectory", self.trajectory, QUEUE)

    def trajectory(self, message: Message, observer: GoalObserver | None = None) -> None:
        """Plan a motion along the trajectory in the message."""
        expected = [joint.name for joint in self._joints]
        try:
            trajectory, stamp = goals.joint_trajectory(message, expected, self._now())
        except conversions.ConversionError as reason:
            self.refuse("joint trajectory", str(reason), reason.kind, observer)
            return
        coordinates = on_coordinates(self._joints, self._model, trajectory)
        what = f"joint trajectory of {len(trajectory.times)} points"
        self.plan(what, lambda k: self._leg(k, self._due(coordinates, stamp, k)), observer)

    def stop(self) -> None:
        """Plan a stop near the reference's current position."""
        self.plan("stop", self._stop, None)

    def progress(self) -> JointProgress:
        """Return the progress of the current motion."""
        # before the first state, the target stands in for the positions
        target = self.sequence.target(self.sequence.step)
        actual = self.report.state
        names, desired = shown_positions(self._joints, self._model, target)
        present = shown_positions(self._joints, self._model, target if actual is None else actual)
        return JointProgress(self.sequence.step, max(0, self._now()), names, present[1], desired)

    def _due(self, trajectory: JointTrajectory, stamp: int, k: int) -> JointTrajectory:
        """The trajectory with times relative to step k. The times in the message count from its
        stamp or, if it has none, from step k.
        """
        if not stamp:
            return trajectory
        begin = k * self._model.h
        times = trajectory.times + stamp / NANOSECONDS - begin
        if times[0] < 0:
            raise InfeasibleTrajectory(
                f"its first point is due at t = {begin + times[0]:.3f} s, but no change is "
                f"possible before t = {begin:.3f} s"
            )
        return replace(trajectory, times=times)

    def _leg(self, k: int, trajectory: JointTrajectory) -> ReferenceLeg:
        """The leg that leaves the current reference at step k and follows the trajectory."""
        # continue the current reference without a jump
        present = self.sequence.leg(k)
        reference = present.tracker.reference
        continuation = continued(self._model, reference, k - present.start, trajectory)
        named = replace(continuation, name="joint_trajectory")
        return ReferenceLeg(k, present.tracker.with_reference(named))

    def _stop(self, k: int) -> ReferenceLeg:
        """The shortest stop within the limits."""
        names = self._model.system.space.names
        x = self.sequence.target(k)
        q, v = self._model.configuration(x), self._model.velocity(x)
        # longer stops need less acceleration
        for duration in STOP_S:
            try:
                end = q + v * duration / 2  # constant deceleration from v to 0
                return self._leg(k, JointTrajectory(names, np.array([duration]), end[None]))
            except InfeasibleTrajectory as reason:
                last = reason
        raise last
