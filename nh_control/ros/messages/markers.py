"""Markers of the visual model of a scenario, of its reference, contacts, trail and plan."""

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
from nh_control.view.contacts import arrow_scale

GHOST = 0.25
"""Opacity of the reference's shapes."""
TRAIL_SPACING_M = 0.02
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
"""Ratio of the diameters of a slack and a taut cable."""
_KINDS = {"box": Marker.CUBE, "cylinder": Marker.CYLINDER, "sphere": Marker.SPHERE}


class Drawing:
    """Markers of a visual model's shapes, all in the namespace `name`."""

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
            conversions.set_xyz(
                marker.pose.position, (pose.position + pose.rotation @ offset).tolist()
            )
            conversions.set_wxyz(marker.pose.orientation, mat2quat(pose.rotation @ roll).tolist())


class Lines:
    """Markers of a visual model's cables and outline, in the namespaces `cables` and `outline`."""

    def __init__(self, visual: VisualModel):
        self._cables, self._outline = visual.cables, visual.outline
        self._drawn = [
            _marker("cables", visual.parent, i, Marker.LINE_STRIP, (c.diameter, 0.0, 0.0), TAUT)
            for i, c in enumerate(visual.cables)
        ]
        self._joined = (
            [
                _marker(
                    "outline", visual.parent, 0, Marker.LINE_STRIP, (0.01, 0.0, 0.0), OUTLINE, 0.6
                )
            ]
            if visual.outline
            else []
        )

    @property
    def markers(self) -> list[Marker]:
        """The lines."""
        return [*self._drawn, *self._joined]

    def place(self, poses: Mapping[str, Pose], slack: Sequence[str]) -> None:
        """Draw the lines between their frames, thin and red those cables whose monitored value is
        in `slack`.
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
    """Markers of a visual model's arrows, in the namespace `inputs`; without an input there is no
    arrow.
    """

    def __init__(self, visual: VisualModel):
        self._arrows = visual.arrows
        self.markers = [
            _marker("inputs", visual.parent, i, Marker.ARROW, (0.02, 0.045, 0.0), ARROW)
            for i in range(len(visual.arrows))
        ]

    def place(self, poses: Mapping[str, Pose], inputs: Mapping[str, float]) -> None:
        """Draw the arrows for the values of inputs by name; a value of 0 or none hides its
        arrow.
        """
        for arrow, marker in zip(self._arrows, self.markers):
            pose, value = poses[arrow.frame], inputs.get(arrow.input, 0.0)
            start = pose.position + arrow.offset * pose.rotation[:, 2]
            marker.action = Marker.ADD if value else Marker.DELETE
            marker.points = _points((start, start + arrow.scale * value * pose.rotation[:, 2]))


class ContactArrows:
    """Markers of contact forces, in the namespace `contacts`, `scale` m for 1 N; a force is drawn
    from its first message on.
    """

    def __init__(self, parent: str, places: ContactPlaces, scale: float):
        self._places, self._scale = places, scale
        self._forces: dict[str, np.ndarray] = {}
        self._drawn = {
            name: _marker("contacts", parent, i, Marker.ARROW, (0.02, 0.045, 0.0), CONTACT)
            for i, name in enumerate(places.names)
        }

    @property
    def markers(self) -> list[Marker]:
        """The arrows of the known forces."""
        return [self._drawn[name] for name in self._forces]

    def take(self, name: str, message: WrenchStamped) -> None:
        """Keep the force of a contact."""
        force = conversions.xyz(message.wrench.force)
        if np.isfinite(force).all():
            self._forces[name] = force

    def clear(self) -> None:
        """Remove the arrows, until new forces come."""
        self._forces = {name: np.zeros(3) for name in self._forces}

    def place(self, q: np.ndarray) -> None:
        """Draw the forces at the contacts of a configuration q (nq)."""
        if not self._forces:
            return
        positions = self._places(q)
        for name, force in self._forces.items():
            start = positions[name]
            self._drawn[name].action = Marker.ADD if force.any() else Marker.DELETE
            self._drawn[name].points = _points((start, start + self._scale * force))


class Trail:
    """Line of a visual model's trail, a point every TRAIL_SPACING_M, the last TRAIL_POINTS of
    them.
    """

    def __init__(self, visual: VisualModel):
        self._frame = visual.trail
        self._marker = _marker(
            "trail", visual.parent, 0, Marker.LINE_STRIP, (0.03, 0.0, 0.0), TRAIL
        )

    @property
    def markers(self) -> list[Marker]:
        """The line, once it has two points (rviz refuses shorter ones)."""
        return [self._marker] if len(self._marker.points) > 1 else []

    def clear(self) -> None:
        """Remove the trail."""
        self._marker.points.clear()

    def place(self, poses: Mapping[str, Pose]) -> None:
        """Add the frame's position to the line if it is far enough from its end."""
        if not self._frame:
            return
        points, place = self._marker.points, poses[self._frame].position
        if not points or np.linalg.norm(place - conversions.xyz(points[-1])) >= TRAIL_SPACING_M:
            points += _points([place])
            del points[:-TRAIL_POINTS]


class PlanLine:
    """Line of the plan of a predictive tracker."""

    def __init__(self, visual: VisualModel):
        self._marker = _marker("plan", visual.parent, 0, Marker.LINE_STRIP, (0.02, 0.0, 0.0), PLAN)

    @property
    def markers(self) -> list[Marker]:
        """The line, once it has two points."""
        return [self._marker] if len(self._marker.points) > 1 else []

    def place(self, path: Path) -> None:
        """Draw the places of a path."""
        self._marker.points = [pose.pose.position for pose in path.poses]


class Picture:
    """All markers of a plant and its reference, in frames that begin with `prefix`."""

    def __init__(self, model: Model, prefix: str):
        scenario, reference = model.scenario, model.reference
        visual = scenario.visual_model(reference=reference.name)
        self._visual = visual = replace(visual, parent=prefix + visual.parent)
        self._parameters, self._monitor = scenario.parameters, scenario.monitor
        self._input_names = model.dsys.inputs
        self._plant = Drawing("plant", visual, 1.0)
        self._ghost = Drawing("reference", visual, GHOST)
        self._lines, self._arrows, self._trail = Lines(visual), Arrows(visual), Trail(visual)
        self.plan = PlanLine(visual)
        scale = arrow_scale(visual, scenario.parameters, model.dsys, reference)
        self.contacts = ContactArrows(visual.parent, ContactPlaces(model.dsys.system), scale)

    def poses(self, q: np.ndarray) -> Mapping[str, Pose]:
        """Poses of the frames at a configuration q (nq)."""
        return self._visual.poses(self._parameters, q)

    def restart(self) -> None:
        """Remove the trail and the forces of contacts: in a new run no step has had forces yet."""
        self._trail.clear()
        self.contacts.clear()

    def draw(self, motion: MotionListener, poses: Mapping[str, Pose]) -> list[Marker]:
        """The markers of a motion and of the target beside it; `poses` are those of its
        configuration.
        """
        self._plant.place(poses)
        self._ghost.place(self.poses(motion.expected()))
        self._lines.place(poses, self._low_values(motion))
        self._arrows.place(poses, motion.inputs)
        self.contacts.place(motion.q)
        self._trail.place(poses)
        moving = self._plant, self._ghost, self._lines, self._arrows
        parts = *moving, self._trail, self.plan, self.contacts
        markers = [marker for part in parts for marker in part.markers]
        for marker in markers:
            conversions.set_time(marker.header.stamp, motion.time_ns)
        return markers

    def _low_values(self, motion: MotionListener) -> list[str]:
        monitor = self._monitor
        if monitor is None:
            return []
        u = [motion.inputs.get(name) for name in self._input_names]
        return monitor.low(monitor.known_values(self._parameters, motion.q, motion.v, u))


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
