"""All frames of a scenario in a single tree, for TF and URDF: the bodies and joints in its
messages, and the frames of its visual model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nh_control.multibody import WORLD
from nh_control.scenarios.declared_frames import (
    CONTINUOUS,
    FIXED,
    FLOATING,
    PLANAR,
    PRISMATIC,
    Frame,
    FrameTree,
)
from nh_control.scenarios.scenario import Scenario
from nh_control.scenarios.shown import Joint, frame_id
from nh_control.scenarios.visual_model import Pose


@dataclass(frozen=True, eq=False)
class Link:
    """A frame on its `parent` at `origin`. Its joint has the URDF type `kind` and an `axis` (3) in
    the frame.

    A `joint` in messages with the position c rotates the frame by c about the axis, or moves it by
    c along the axis. A link that follows the joint of another link moves by
    `multiplier c + offset`, where `mimic = (multiplier, offset)`.
    """

    frame: str
    parent: str
    kind: str
    origin: Pose
    axis: np.ndarray | None = None
    joint: Joint | None = None
    mimic: tuple[float, float] | None = None


class ScenarioFrames:
    """The frames of a scenario with its nominal or with different physical parameters.

    `links` contains all frames, each after its parent. The first frames are the `bodies` in
    messages. They are attached to the `root`, and the plant publishes their transforms. Then come
    the frames that the visual model declares as a `tree`. A planar frame with the coordinates of
    the planar body is fixed to this body. Without a tree (None), all frames of the visual model
    are floating frames on the root. Raises ValueError if the coordinates of the tree differ from
    those of the system.
    """

    def __init__(self, scenario: Scenario, parameters: Any = None):
        self.scenario = scenario
        self.parameters = scenario.parameters if parameters is None else parameters
        self.visual = scenario.visual_model(self.parameters)
        self.space, self.root = scenario.make_system(self.parameters).space, self.visual.parent
        poses = self.visual.poses
        self.tree = poses if isinstance(poses, FrameTree) else None
        self.planar, self._at = scenario.body, 0
        if self.planar is not None:
            self._at, _ = self.planar.place(self.space)
            self.bodies = [self.planar.frame]
        else:
            self.bodies = [body.frame for body in scenario.resting_bodies(self.space)]
        self._drawn = {shape.frame for shape in self.visual.shapes}
        if self.tree is not None and tuple(self.tree.coordinates) != self.space.names:
            raise ValueError(
                f"scenario {scenario.name}: the frames of the visual model are declared for the "
                f"coordinates {tuple(self.tree.coordinates)}, but those of the system are "
                f"{self.space.names}"
            )
        self.links = tuple(self._links())

    def poses(self, q: np.ndarray) -> dict[str, Pose]:
        """The poses of all frames relative to the root at a configuration q (nq)."""
        return self.complete(self.visual.poses(self.parameters, q), q)

    def complete(self, drawn: Mapping[str, Pose], q: np.ndarray) -> dict[str, Pose]:
        """The poses of all frames, computed from the visual model's poses, `drawn`."""
        poses = {self.root: Pose.at(np.zeros(3))}
        if self.planar is not None:
            theta, x, y = q[self._at : self._at + 3]
            poses[self.planar.frame] = self.planar.pose(theta, x, y)
        for name, pose in drawn.items():
            if name != WORLD or name in self._drawn:
                poses.setdefault(frame_id(name), pose)
        return poses

    def placed(self, poses: Mapping[str, Pose]) -> dict[str, Pose]:
        """The poses of all moving frames except the bodies, relative to their parents."""
        return {
            link.frame: poses[link.frame].relative_to(poses[link.parent])
            for link in self.links
            if link.kind != FIXED and link.frame not in self.bodies
        }

    def _links(self) -> Iterator[Link]:
        start = self.poses(np.array(self.space.origin, dtype=float))
        for body in self.bodies:
            yield Link(body, self.root, FLOATING, start[body])
        declared = [] if self.tree is None else list(self.tree.frames)
        frames = {frame_id(frame.name): frame for frame in declared}
        leaders = self._leaders(declared)
        for name in start:
            if name == self.root or name in self.bodies:
                continue
            frame = frames.get(name)
            if frame is None:
                yield Link(name, self.root, FLOATING, start[name])
                continue
            on_root = self.tree is not None and frame.parent == self.tree.root
            parent = self.root if on_root else frame_id(frame.parent)
            floating = Link(name, parent, FLOATING, start[name].relative_to(start[parent]))
            yield self._declared(frame, floating, leaders)

    def _declared(self, frame: Frame, link: Link, leaders: Mapping[str, Frame]) -> Link:
        """The link for a declared frame, built from its `link` with a floating joint."""
        if frame.kind == FIXED:
            return replace(link, kind=FIXED, origin=frame.origin)
        if frame.kind == PLANAR:
            return self._on_plane(frame, link)
        if frame.kind == FLOATING:
            return link
        axis, joints = np.asarray(frame.axis, dtype=float), self.scenario.joints
        moving = replace(link, kind=frame.kind, origin=frame.origin)
        # A leader has the joint itself, and the other frames with the same coordinate mimic the
        # joint.
        movers = [joint for joint in joints if leaders.get(joint.name) is frame]
        if movers:
            sign = movers[0].sign
            return replace(moving, axis=sign * frame.ratio * axis + 0.0, joint=movers[0])
        for joint in joints:
            if joint.name in leaders and (joint.coordinate,) == frame.coordinates:
                mimic = frame.ratio * joint.sign, frame.offset
                return replace(moving, axis=axis, joint=joint, mimic=mimic)
        if _is_plain(frame):  # messages have no joint for this coordinate
            return replace(moving, axis=frame.ratio * axis + 0.0)
        return link

    def _leaders(self, frames: list[Frame]) -> dict[str, Frame]:
        """The frame that each joint in messages moves, by the name of the joint. This is the frame
        with the joint's name, if there is one, or else the first frame with the joint's
        coordinate.
        """
        leaders = dict[str, Frame]()
        for joint in self.scenario.joints:
            fitting = [
                frame
                for frame in frames
                if frame.kind in (CONTINUOUS, PRISMATIC)
                and frame.coordinates == (joint.coordinate,)
                and _is_plain(frame)
                and not any(frame is taken for taken in leaders.values())
            ]
            called = [f for f in fitting if frame_id(f.name) == joint.name.removesuffix("_joint")]
            if fitting:
                leaders[joint.name] = (called or fitting)[0]
        return leaders

    def _on_plane(self, frame: Frame, link: Link) -> Link:
        """The link for a planar frame. It is fixed to the planar body if the coordinates are the
        same.
        """
        body, (x, y, z) = self.planar, frame.origin.position
        upright = np.array_equal(frame.origin.rotation, np.eye(3)) and x == y == 0
        same = body is not None and tuple(body.coordinates) == frame.coordinates
        if body is None or not (same and upright and link.parent == self.root):
            return replace(link, kind=PLANAR, origin=frame.origin, axis=np.array([0.0, 0.0, 1.0]))
        origin = Pose.at((0.0, 0.0, z - body.z))
        return Link(link.frame, body.frame, FIXED, origin)


def _is_plain(frame: Frame) -> bool:
    """Whether the frame moves by plus or minus its coordinate."""
    return abs(frame.ratio) == 1 and frame.offset == 0
