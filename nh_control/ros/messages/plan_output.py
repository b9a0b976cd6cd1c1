"""Messages with a predictive tracker's plan: its path, and numbers for plots."""

from __future__ import annotations

import time
from array import array

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from nh_control.control.optimal.plan import Plan
from nh_control.loop.planner import Planner
from nh_control.ros.messages import conversions
from nh_control.ros.runtime.selected_model import Model

INTERVAL_S = 0.1
POSES = 20
"""Maximum number of poses in a path, because the tracker publishes plans while it answers
states.
"""
NUMBERS = ("solve_s", "margin", "plan_age_steps")


class PlanOutput:
    """Publishes, if there are subscribers, at most once per INTERVAL_S of wall time:

    plan                   Path of the frame that leaves the trail, from the current step
    controller_state/plan  Float64MultiArray, NUMBERS: the time for which the last state waited
                           for its command; the minimum margin of the constraints, NaN if there
                           are none; and the age of the plan in steps, -1 if there is no plan
    """

    def __init__(self, node: Node, model: Model, planner: Planner, prefix: str):
        self._model, self._planner, self._next_at = model, planner, 0.0
        self._visual = model.scenario.visual_model()
        self._frame = prefix + self._visual.parent
        self._path = node.create_publisher(Path, "plan", 1)
        self._numbers = node.create_publisher(Float64MultiArray, "controller_state/plan", 1)

    def publish(self, stamp: int) -> None:
        """Publish the last command's plan, with the stamp (ns) of the state that it answers."""
        now, plan = time.monotonic(), self._planner.plan
        # publish seldom, because publishing takes time between two answers
        if now < self._next_at or plan is None:
            return
        self._next_at = now + INTERVAL_S
        if self._numbers.get_subscription_count():
            self._numbers.publish(self._values(plan))
        if plan.arrays and self._visual.trail and self._path.get_subscription_count():
            self._path.publish(self._message(plan, stamp))

    def _values(self, plan: Plan) -> Float64MultiArray:
        age = plan.age if plan.arrays else -1
        values = self._planner.solve_s, self._planner.margin, float(age)
        out = Float64MultiArray(data=array("d", values))
        n = len(NUMBERS)
        out.layout.dim = [MultiArrayDimension(label=",".join(NUMBERS), size=n, stride=n)]
        return out

    def _message(self, plan: Plan, stamp: int) -> Path:
        path, dsys = Path(), self._model.dsys
        path.header.frame_id = self._frame
        conversions.set_time(path.header.stamp, stamp)
        # at most POSES of the states that are still ahead, evenly spaced
        ahead = plan.states[plan.age :]
        for i in np.unique(np.linspace(0, len(ahead) - 1, POSES).round().astype(int)):
            pose = PoseStamped()
            q = dsys.configuration(ahead[i])
            frame = self._visual.poses(self._model.scenario.parameters, q)[self._visual.trail]
            conversions.set_xyz(pose.pose.position, frame.position.tolist())
            pose.pose.orientation.w = 1.0
            pose.header.frame_id = self._frame
            conversions.set_time(pose.header.stamp, stamp + round(i * dsys.h * 1e9))
            path.poses.append(pose)
        return path
