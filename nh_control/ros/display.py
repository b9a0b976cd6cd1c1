"""The display node: markers of the body with its joints, of the reference at the same step, and of the path so far."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence

import numpy as np
from geometry_msgs.msg import Point
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import JointState
from transforms3d.euler import euler2mat, euler2quat
from visualization_msgs.msg import Marker, MarkerArray

from nh_control.ros import conversions, process
from nh_control.ros.inbox import Inbox
from nh_control.ros.model import Model
from nh_control.ros.parameters import DISPLAY, Parameters
from nh_control.ros.shapes import Shape, shapes

TRAIL_SPACING_M = 0.02
TRAIL_POINTS = 2000
_KINDS = {"box": Marker.CUBE, "cylinder": Marker.CYLINDER, "sphere": Marker.SPHERE}


class Display:
    """Draws the newest state at most `rate_hz` times per second of wall time; states in between are not even read."""

    def __init__(self, node: Node, inbox: Inbox, _: process.Exit):
        parameters = Parameters(node, DISPLAY)
        self._inbox, self._model = inbox, Model.of(parameters)
        self._period_s = 1 / parameters["rate_hz"]
        scenario, space = self._model.scenario, self._model.dsys.system.space
        self._joints = conversions.JointCodec(scenario.joints, space)
        self._body = conversions.BodyCodec(scenario.body, space)
        self._q, self._v = [0.0] * space.nq, [0.0] * space.nw
        self._time_ns, self._fresh = 0, False
        drawn = shapes(scenario)
        self._drawings = (
            Drawing("plant", self._body.parent, drawn, opacity=1.0),
            Drawing("reference", self._body.parent, drawn, opacity=0.25),
        )
        self._trail = Trail(self._body.parent)
        self._publisher = node.create_publisher(MarkerArray, "markers", 1)
        self._log = node.get_logger()
        inbox.subscribe(JointState, "joint_states", self._on_joint_state, 1)
        inbox.subscribe(Odometry, "odom", self._on_odometry, 1)

    def work(self) -> None:
        """Draw, sleep a frame, and so on."""
        while not self._inbox.closed:
            self._inbox.serve(None)
            if self._fresh:
                self._fresh = False
                self._draw()
                time.sleep(self._period_s)

    def close(self) -> None:
        """Nothing is open."""

    def _on_joint_state(self, message: JointState) -> None:
        try:
            self._joints.read(message, self._q, self._v)
        except conversions.ConversionError as error:
            self._log.warning(str(error), throttle_duration_sec=5.0)

    def _on_odometry(self, message: Odometry) -> None:
        try:
            self._body.read(message, self._q, self._v, near=self._q[self._body.index])
        except conversions.ConversionError as error:
            self._log.warning(str(error), throttle_duration_sec=5.0)
            return
        time_ns = conversions.nanoseconds(message.header.stamp)
        if time_ns < self._time_ns:
            self._trail.clear()
        self._time_ns, self._fresh = time_ns, True

    def _draw(self) -> None:
        reference = self._model.reference
        step = min(round(self._time_ns * 1e-9 / self._model.dsys.h), len(reference))
        expected = reference.states[step].tolist()
        plant, ghost = self._drawings
        plant.place(self._pose(self._q), self._joints.angles(self._q), self._time_ns)
        ghost.place(self._pose(expected), self._joints.angles(expected), self._time_ns)
        self._trail.add(self._pose(self._q), self._time_ns)
        self._publisher.publish(MarkerArray(markers=[*plant.markers, *ghost.markers, *self._trail.markers]))

    def _pose(self, q: Sequence[float]) -> Sequence[float]:
        return q[self._body.index : self._body.index + 3]


class Drawing:
    """Markers of shapes in `frame`, all in the namespace `name`."""

    def __init__(self, name: str, frame: str, drawn: tuple[Shape, ...], opacity: float):
        self._shapes = drawn
        self.markers = [_marker(name, frame, i, _KINDS[s.kind], s.extents, (*s.color, opacity)) for i, s in enumerate(drawn)]

    def place(self, pose: Sequence[float], angles: Mapping[str, float], time_ns: int) -> None:
        """Move the shapes to the body's pose (theta, x, y) and the joints' angles by name (rad)."""
        turn, position = euler2mat(pose[0], 0.0, 0.0, "rzyx"), np.array([pose[1], pose[2], 0.0])
        for shape, marker in zip(self._shapes, self.markers):
            angle = angles[shape.joint] if shape.joint else 0.0
            center = position + turn @ (np.array(shape.hinge) + euler2mat(angle, 0.0, 0.0, "rzyx") @ np.array(shape.offset))
            marker.pose.position.x, marker.pose.position.y, marker.pose.position.z = center.tolist()
            marker.pose.orientation = conversions.quaternion(euler2quat(pose[0] + angle, 0.0, shape.roll, "rzyx"))
            conversions.set_time(marker.header.stamp, time_ns)


class Trail:
    """Line of the body's path, a point every TRAIL_SPACING_M, the last TRAIL_POINTS of them."""

    def __init__(self, frame: str):
        self._marker = _marker("trail", frame, 0, Marker.LINE_STRIP, (0.03, 0.0, 0.0), (0.1, 0.45, 0.9, 1.0))

    @property
    def markers(self) -> list[Marker]:
        """The line, once it has two points (rviz refuses shorter ones)."""
        return [self._marker] if len(self._marker.points) > 1 else []

    def clear(self) -> None:
        """Start anew."""
        self._marker.points.clear()

    def add(self, pose: Sequence[float], time_ns: int) -> None:
        """Lengthen the line to the pose (theta, x, y), if that is far enough from its end."""
        points, (x, y) = self._marker.points, pose[1:]
        conversions.set_time(self._marker.header.stamp, time_ns)
        if not points or np.hypot(x - points[-1].x, y - points[-1].y) >= TRAIL_SPACING_M:
            points.append(Point(x=x, y=y, z=0.01))
            del points[:-TRAIL_POINTS]


def _marker(namespace: str, frame: str, number: int, kind: int, extents, color) -> Marker:
    marker = Marker(ns=namespace, id=number, type=kind, action=Marker.ADD)
    marker.header.frame_id = frame
    marker.scale.x, marker.scale.y, marker.scale.z = extents
    marker.color.r, marker.color.g, marker.color.b, marker.color.a = color
    return marker


def main(args: list[str] | None = None) -> int:
    """Run the node; returns the exit code."""
    return process.run("display", Display, args)


if __name__ == "__main__":
    sys.exit(main())
