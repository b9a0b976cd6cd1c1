"""The tree of a scenario's frames, derived from the poses of its visual model: parents
and joints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nh_control.multibody import WORLD
from nh_control.scenarios.scenario import Scenario
from nh_control.scenarios.shown import Joint, frame_id
from nh_control.scenarios.visual_model import Pose

SAMPLES, SPREAD, SEED = 6, 0.4, 7
"""Configurations at which poses are compared, their distance from the origin, and how they are
drawn.
"""
EQUAL = 1e-9
"""Largest difference of equal poses, m and of the entries of rotations."""
FIXED, CONTINUOUS, PRISMATIC, FLOATING = "fixed", "continuous", "prismatic", "floating"


@dataclass(frozen=True)
class FramePart:
    """A frame on its `parent`, with a `kind` of URDF's joints: at `origin`; its joint, if it has
    one, rotates it about or moves it along `axis` (3) by `multiplier` times the joint's position.
    """

    frame: str
    parent: str
    kind: str
    origin: Pose
    axis: np.ndarray | None = None
    joint: Joint | None = None
    multiplier: float = 1.0


@dataclass(frozen=True)
class FrameTree:
    """All frames of a scenario: the `root`; `bodies` in space or in the plane on the root; and the
    other frames, each after its parent.
    """

    root: str
    bodies: tuple[str, ...]
    parts: tuple[FramePart, ...]

    def placed(self, poses: Mapping[str, Pose]) -> dict[str, Pose]:
        """The poses of all moving frames except the bodies, in the axes of their parents."""
        return {
            part.frame: relative(poses[part.parent], poses[part.frame])
            for part in self.parts
            if part.kind != FIXED and part.frame not in self.bodies
        }


def relative(parent: Pose, frame: Pose) -> Pose:
    """The pose of a frame in the axes of another one, `R_p^T (p - p_p), R_p^T R`."""
    inverse = parent.rotation.T
    return Pose(inverse @ (frame.position - parent.position), inverse @ frame.rotation)


class ScenarioFrames:
    """The frames of a scenario with its own or other physical parameters: the root, the bodies in
    messages, and the frames of the visual model.
    """

    def __init__(self, scenario: Scenario, parameters: Any = None):
        self.scenario = scenario
        self.parameters = scenario.parameters if parameters is None else parameters
        self.visual = scenario.visual_model(self.parameters)
        self.space, self.root = scenario.make_system(self.parameters).space, self.visual.parent
        self.planar, self._at = scenario.body, 0
        if self.planar is not None:
            self._at, _ = self.planar.place(self.space)
            self.bodies = [self.planar.frame]
        else:
            self.bodies = [body.frame for body in scenario.resting_bodies(self.space)]
        self._drawn = {shape.frame for shape in self.visual.shapes}

    def poses(self, q: np.ndarray) -> dict[str, Pose]:
        """The poses of all frames in the root at a configuration q (nq)."""
        return self.complete(self.visual.poses(self.parameters, q), q)

    def complete(self, drawn: Mapping[str, Pose], q: np.ndarray) -> dict[str, Pose]:
        """The poses of all frames, from the poses `drawn` of the visual model."""
        poses = {self.root: Pose(np.zeros(3), np.eye(3))}
        if self.planar is not None:
            poses[self.planar.frame] = self.planar.pose(*q[self._at : self._at + 3])
        for name, pose in drawn.items():
            if name != WORLD or name in self._drawn:
                poses.setdefault(frame_id(name), pose)
        return poses


def frame_tree(scenario: Scenario, parameters: Any = None) -> FrameTree:
    """The tree of the frames of a scenario, with its own or other physical parameters.

    From the root on, a frame is put on the first frame in the tree relative to which it does not
    move, or else moves by one joint: then the pose T_pf(q) depends on its coordinate c alone,
    `T_pf = T_0 exp(k c axis)`. Frames without such a parent float on the planar body, or else on
    the root.
    """
    frames = ScenarioFrames(scenario, parameters)
    search, root, bodies = _Search(frames), frames.root, frames.bodies
    floor = root if frames.planar is None else frames.planar.frame
    parts = [FramePart(name, root, FLOATING, search.at_origin(root, name)) for name in bodies]
    tree = [root, *bodies]
    remaining = [name for name in search.names if name not in tree]
    while remaining:
        loose = FramePart(remaining[0], floor, FLOATING, search.at_origin(floor, remaining[0]))
        part = search.next(tree, remaining) or loose
        parts.append(part)
        tree.append(part.frame)
        remaining.remove(part.frame)
    return FrameTree(root, tuple(bodies), tuple(parts))


class _Search:
    """Poses of all frames at the origin, with one joint's coordinate changed, and at other
    configurations.
    """

    def __init__(self, frames: ScenarioFrames):
        scenario, space = frames.scenario, frames.space
        self._joints = list({joint.coordinate: joint for joint in scenario.joints}.values())
        self._every = scenario.joints
        self._columns = [space.names.index(joint.coordinate) for joint in self._joints]
        random = np.random.default_rng(SEED)
        zero = np.array(space.origin, dtype=float)
        zero[self._columns] = 0.0
        moved = [
            np.asarray(space.retract(zero, SPREAD * random.uniform(-1, 1, space.nv)), dtype=float)
            for _ in range(SAMPLES)
        ]
        single = [zero.copy() for _ in self._columns]
        for q, column in zip(single, self._columns):
            q[column] += SPREAD
        self._q = np.array([zero, *single, *moved])
        poses = [frames.poses(q) for q in self._q]
        self.names = list(poses[0])
        self._position = np.array([[one[name].position for name in self.names] for one in poses])
        self._rotation = np.array([[one[name].rotation for name in self.names] for one in poses])
        self._taken: set[str] = set()

    def at_origin(self, parent: str, frame: str) -> Pose:
        """The pose of a frame on another one at the origin."""
        position, rotation = self._relative(parent, frame)
        return Pose(position[0], rotation[0])

    def next(self, tree: Sequence[str], remaining: Sequence[str]) -> FramePart | None:
        """A frame that is fixed on a frame of the tree, or else one that a joint moves on one."""
        for frame in remaining:
            for parent in tree:
                position, rotation = self._relative(parent, frame)
                if _same(position, position[0]) and _same(rotation, rotation[0]):
                    return FramePart(frame, parent, FIXED, Pose(position[0], rotation[0]))
        for frame in remaining:
            for parent in tree:
                if (part := self._joined(parent, frame)) is not None:
                    return part
        return None

    def _relative(self, parent: str, frame: str) -> tuple[np.ndarray, np.ndarray]:
        """Positions (n, 3) and rotations (n, 3, 3) of a frame on another one."""
        i, j = self.names.index(parent), self.names.index(frame)
        inverse = self._rotation[:, i].transpose(0, 2, 1)
        displacement = self._position[:, j] - self._position[:, i]
        return np.einsum("nij,nj->ni", inverse, displacement), inverse @ self._rotation[:, j]

    def _joined(self, parent: str, frame: str) -> FramePart | None:
        """The frame on a parent if one joint moves it relative to this parent, otherwise None."""
        position, rotation = self._relative(parent, frame)
        count = len(self._columns)
        moves = [
            k
            for k in range(count)
            if not (_same(position[k + 1], position[0]) and _same(rotation[k + 1], rotation[0]))
        ]
        if len(moves) != 1:
            return None
        (k,) = moves
        c, origin = self._q[:, self._columns[k]], Pose(position[0], rotation[0])
        change = rotation[0].T @ rotation[k + 1]
        rate = np.array(
            [change[2, 1] - change[1, 2], change[0, 2] - change[2, 0], change[1, 0] - change[0, 1]]
        )
        if np.linalg.norm(rate) > EQUAL:  # T = T_0 exp(c axis), the axis from the skew part
            kind, axis = CONTINUOUS, rate / np.linalg.norm(rate)
            angle = np.arctan2(np.linalg.norm(rate) / 2, (np.trace(change) - 1) / 2) / SPREAD
            expected = rotation[0] @ _turned(axis, angle * c)
            if not (_same(position, position[0]) and _same(rotation, expected)):
                return None
            rate_of = angle
        else:
            kind, displacement = (
                PRISMATIC,
                rotation[0].T @ (position[k + 1] - position[0]) / SPREAD,
            )
            rate_of = float(np.linalg.norm(displacement))
            axis = displacement / rate_of
            along = position[0] + np.outer(c, rotation[0] @ displacement)
            if not (_same(rotation, rotation[0]) and _same(position, along)):
                return None
        return self._named(FramePart(frame, parent, kind, origin, axis), k, float(rate_of))

    def _named(self, part: FramePart, k: int, rate: float) -> FramePart:
        """The part with its joint: a joint that has no part yet and turns in the same direction,
        or another joint that it mimics.
        """
        own = [j for j in self._every if j.coordinate == self._joints[k].coordinate]
        free = [j for j in own if j.name not in self._taken] or own
        fits = [j for j in free if j.name.removesuffix("_joint") == part.frame] or free
        joint = fits[0]
        self._taken.add(joint.name)
        axis = None if part.axis is None else np.round(part.axis * joint.sign, 12) + 0.0
        return FramePart(
            part.frame, part.parent, part.kind, part.origin, axis, joint, round(rate, 12)
        )


def _turned(axis: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Rotations (n, 3, 3) about an axis (3), `I + sin a K + (1 - cos a) K^2`."""
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    s, c = np.sin(angles)[:, None, None], np.cos(angles)[:, None, None]
    return np.eye(3) + s * K + (1 - c) * K @ K


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.abs(one - other).max() <= EQUAL * (1 + np.abs(other).max()))
