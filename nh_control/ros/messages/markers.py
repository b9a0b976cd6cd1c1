"""Markers for a scenario's visual model, reference, contact forces, trail and plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from geometry_msgs.msg import Point, WrenchStamped
from nav_msgs.msg import Path
from transforms3d.axangles import axangle2mat
from transforms3d.quaternions import mat2quat
from visualization_msgs.msg import Marker

from nh_control.discrete.contact_forces import ContactPlaces
from nh_control.ros.messages import conversions
from nh_control.ros.messages.motion_listener import MotionListener
from nh_control.ros.runtime.selected_model import Model
from nh_control.scenarios.visual_model import Pose, VisualModel
from nh_control.view.animation import Poses
from nh_control.view.camera import extent
from nh_control.view.contacts import arrow_scale

GHOST = 0.25
"""Opacity of the shapes that show the reference."""
SHAFT, HEAD, LINE = 0.02, 0.045, 0.015
"""Diameters of an arrow's shaft and head, and width of a line, as fractions of the plant's
size.
"""
TRAIL_SPACING = 0.01
"""Distance between the points of a trail as a fraction of the plant's size."""
TRAIL_POINTS = 2000
PLAN, CONTACT = (0.95, 0.5, 0.1), (0.7, 0.15, 0.6)
TAUT, SLACK, TRAIL, OUTLINE, ARROW = (
    (0.2, 0.2, 0.22),
    (0.9, 0.1, 0.1),
    (0.1, 0.45, 0.9),
    (0.5, 0.5, 0.55),
    (0.1, 0.65, 0.25),
)
THIN = 0.3
"""Ratio of a slack cable's diameter to that of a taut cable."""
_KINDS = {"box": Marker.CUBE, "cylinder": Marker.CYLINDER, "sphere": Marker.SPHERE}


class Drawing:
    """Markers for the shapes of a visual model, all in the namespace `name`."""

    def __init__(self, name: str, visual: VisualModel, opacity: float):
        self._shapes = [
            (shape, np.array(shape.offset), axangle2mat([1.0, 0.0, 0.0], shape.roll))
            for shape in visual.line_shapes
        ]
        self.markers = [
            _marker(
                name, visual.parent, i, _KINDS[s.kind], s.extents, s.color, opacity * s.opacity
            )
            for i, s in enumerate(visual.line_shapes)
        ]

    def place(self, poses: Mapping[str, Pose]) -> None:
        """Move the shapes with their frames."""
        for (shape, offset, roll), marker in zip(self._shapes, self.markers):
            pose = poses[shape.frame]
            # position x + R offset, orientation R R_x(roll)
            conversions.set_xyz(
                marker.pose.position, (pose.position + pose.rotation @ offset).tolist()
            )
            conversions.set_wxyz(marker.pose.orientation, mat2quat(pose.rotation @ roll).tolist())


class Lines:
    """Markers for a visual model's cables and outline, in the namespaces `cables` and `outline`,
    for a plant with the given `size` (m).
    """

    def __init__(self, visual: VisualModel, size: float):
        self._cables, self._outline = visual.cables, visual.outline
        self._drawn = [
            _marker("cables", visual.parent, i, Marker.LINE_STRIP, (c.diameter, 0.0, 0.0), TAUT)
            for i, c in enumerate(visual.cables)
        ]
        self._joined = (
            [_marker("outline", visual.parent, 0, Marker.LINE_STRIP, _line(size), OUTLINE, 0.6)]
            if visual.outline
            else []
        )

    @property
    def markers(self) -> list[Marker]:
        """The lines."""
        return [*self._drawn, *self._joined]

    def place(self, poses: Mapping[str, Pose], slack: Sequence[str]) -> None:
        """Draw the lines between their frames. Cables whose monitored value is in `slack` are thin
        and red.
        """
        for cable, marker in zip(self._cables, self._drawn):
            marker.points = _points(poses[frame].position for frame in (cable.start, cable.end))
            loose = cable.monitored in slack
            marker.scale.x = cable.diameter * (THIN if loose else 1.0)
            _paint(marker, SLACK if loose else TAUT)
        for marker in self._joined:
            marker.points = _points(
                poses[frame].position for frame in (*self._outline, self._outline[0])
            )


class Arrows:
    """Markers for a visual model's arrows, in the namespace `inputs`, for a plant with the given
    `size` (m).
    """

    def __init__(self, visual: VisualModel, size: float):
        self._arrows = visual.arrows
        self.markers = [
            _marker("inputs", visual.parent, i, Marker.ARROW, _arrow(size), ARROW)
            for i in range(len(visual.arrows))
        ]

    def place(self, poses: Mapping[str, Pose], inputs: Mapping[str, float]) -> None:
        """Draw the arrows for the values of inputs by name. The arrow of an input that is 0 or
        missing is hidden.
        """
        for arrow, marker in zip(self._arrows, self.markers):
            # thrusts act along the z axis of their frame
            pose, value = poses[arrow.frame], inputs.get(arrow.input, 0.0)
            start = pose.position + arrow.offset * pose.rotation[:, 2]
            marker.action = Marker.ADD if value else Marker.DELETE
            marker.points = _points((start, start + arrow.scale * value * pose.rotation[:, 2]))


class ContactArrows:
    """Markers for contact forces, in the namespace `contacts`, with `scale` m per N, for a plant
    with the given `size` (m). A force is drawn once its first message has arrived.
    """

    def __init__(self, parent: str, places: ContactPlaces, scale: float, size: float):
        self._places, self._scale = places, scale
        self._forces: dict[str, np.ndarray] = {}
        self._drawn = {
            name: _marker("contacts", parent, i, Marker.ARROW, _arrow(size), CONTACT)
            for i, name in enumerate(places.names)
        }

    @property
    def markers(self) -> list[Marker]:
        """The arrows of the known forces."""
        return [self._drawn[name] for name in self._forces]

    def take(self, name: str, message: WrenchStamped) -> None:
        """Store the force of a contact."""
        force = conversions.xyz(message.wrench.force)
        if np.isfinite(force).all():
            self._forces[name] = force

    def clear(self) -> None:
        """Hide the arrows until new forces arrive."""
        self._forces = {name: np.zeros(3) for name in self._forces}

    def place(self, q: np.ndarray) -> None:
        """Draw the forces at the contacts of a configuration q (nq)."""
        if not self._forces:
            return
        # positions depend on the configuration, and forces on the last messages
        positions = self._places(q)
        for name, force in self._forces.items():
            start = positions[name]
            self._drawn[name].action = Marker.ADD if force.any() else Marker.DELETE
            self._drawn[name].points = _points((start, start + self._scale * force))


class Trail:
    """Line for a visual model's trail, for a plant with the given `size` (m). It consists of the
    last TRAIL_POINTS points, at distances of TRAIL_SPACING times the size.
    """

    def __init__(self, visual: VisualModel, size: float):
        self._frame, self._spacing = visual.trail, TRAIL_SPACING * size
        self._marker = _marker("trail", visual.parent, 0, Marker.LINE_STRIP, _line(size), TRAIL)

    @property
    def markers(self) -> list[Marker]:
        """The line, once it has two points, because rviz refuses shorter lines."""
        return [self._marker] if len(self._marker.points) > 1 else []

    def clear(self) -> None:
        """Remove the trail."""
        self._marker.points.clear()

    def place(self, poses: Mapping[str, Pose]) -> None:
        """Add the frame's position to the line if it is far enough from the last point."""
        if not self._frame:
            return
        # one point per distance of TRAIL_SPACING times the size, whatever the speed
        points, place = self._marker.points, poses[self._frame].position
        if not points or np.linalg.norm(place - conversions.xyz(points[-1])) >= self._spacing:
            points += _points([place])
            del points[:-TRAIL_POINTS]


class PlanLine:
    """Line for a predictive tracker's plan, for a plant with the given `size` (m)."""

    def __init__(self, visual: VisualModel, size: float):
        self._marker = _marker("plan", visual.parent, 0, Marker.LINE_STRIP, _line(size), PLAN)

    @property
    def markers(self) -> list[Marker]:
        """The line, once it has two points."""
        return [self._marker] if len(self._marker.points) > 1 else []

    def place(self, path: Path) -> None:
        """Draw the positions on a path."""
        self._marker.points = [pose.pose.position for pose in path.poses]


class Picture:
    """All markers of a plant and its reference, in frames that begin with `prefix`."""

    def __init__(self, model: Model, prefix: str):
        scenario, reference = model.scenario, model.reference
        # markers are in the parent frame, so only its name needs the prefix
        visual = scenario.visual_model(reference=reference.name)
        self._visual = visual = replace(visual, parent=prefix + visual.parent)
        self._parameters, self._monitor = scenario.parameters, scenario.monitor
        self._input_names = model.dsys.inputs
        self._plant = Drawing("plant", visual, 1.0)
        self._ghost = Drawing("reference", visual, GHOST)
        # sizes of lines and arrows are fractions of the plant's size
        start = reference.states[:1, : model.dsys.system.space.nq]
        size = extent(visual, Poses.of(visual, scenario.parameters, start))
        self._lines, self._arrows = Lines(visual, size), Arrows(visual, size)
        self._trail, self.plan = Trail(visual, size), PlanLine(visual, size)
        # contact forces have the same scale as in films and pages
        scale = arrow_scale(visual, scenario.parameters, model.dsys, reference)
        places = ContactPlaces(model.dsys.system)
        self.contacts = ContactArrows(visual.parent, places, scale, size)

    def poses(self, q: np.ndarray) -> Mapping[str, Pose]:
        """Poses of the frames at a configuration q (nq)."""
        return self._visual.poses(self._parameters, q)

    def restart(self) -> None:
        """Remove the trail and the contact forces, because a new run has neither yet."""
        self._trail.clear()
        self.contacts.clear()

    def draw(self, motion: MotionListener, poses: Mapping[str, Pose]) -> list[Marker]:
        """The markers for a motion and for its target. `poses` are the poses of the frames at the
        motion's configuration.
        """
        self._plant.place(poses)
        self._ghost.place(self.poses(motion.expected()))
        self._lines.place(poses, self._low_values(motion))
        self._arrows.place(poses, motion.inputs)
        self.contacts.place(motion.q)
        self._trail.place(poses)
        moving = self._plant, self._ghost, self._lines, self._arrows
        parts = *moving, self._trail, self.plan, self.contacts
        # one stamp for all markers, so that rviz shows them together
        markers = [marker for part in parts for marker in part.markers]
        for marker in markers:
            conversions.set_time(marker.header.stamp, motion.time_ns)
        return markers

    def _low_values(self, motion: MotionListener) -> list[str]:
        monitor = self._monitor
        if monitor is None:
            return []
        # inputs that have not arrived are None, so values that depend on them are unknown
        u = [motion.inputs.get(name) for name in self._input_names]
        return monitor.low(monitor.known_values(self._parameters, motion.q, motion.v, u))


def _arrow(size: float) -> tuple[float, float, float]:
    return SHAFT * size, HEAD * size, 0.0


def _line(size: float) -> tuple[float, float, float]:
    return LINE * size, 0.0, 0.0


def _points(positions: Iterable[np.ndarray]) -> list[Point]:
    return [Point(x=x, y=y, z=z) for x, y, z in (position.tolist() for position in positions)]


def _marker(
    namespace: str,
    frame: str,
    number: int,
    kind: int,
    extents: Sequence[float],
    color: Sequence[float],
    opacity: float = 1.0,
) -> Marker:
    marker = Marker(ns=namespace, id=number, type=kind, action=Marker.ADD)
    marker.header.frame_id = frame
    marker.pose.orientation.w = 1.0
    conversions.set_xyz(marker.scale, extents)
    marker.color.a = opacity
    _paint(marker, color)
    return marker


def _paint(marker: Marker, color: Sequence[float]) -> None:
    marker.color.r, marker.color.g, marker.color.b = color
