"""A `Multibody` as the numbers that the linear-time kernel of trees reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from transforms3d.axangles import axangle2mat

from nh_control.multibody.constraint_rows import NONE, Row, Rows, unknown_constraint
from nh_control.multibody.elements import (
    Damper,
    JointDamper,
    JointInput,
    JointSpring,
    Spring,
    Wrench,
)
from nh_control.multibody.external_wrenches import Push, carriers, pushes, unknown_wrench
from nh_control.multibody.frames import (
    WORLD,
    Floating,
    Frame,
    Joint,
    Mimic,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    prismatic,
)
from nh_control.multibody.joint_inertia import moments
from nh_control.multibody.model import Multibody
from nh_control.multibody.planar_frames import axes_of, normals, upright
from nh_control.multibody.point_forces import Bond, bonds

UPRIGHT = (0.0, 0.0, 1.0)
"""The axis of planar joints in the kernel's frames."""
OWN, PRESCRIBED = 0, 1
"""How the coordinate of a joint moves."""
FOLLOWS, SHARED, IDLE = -2, -1, 2
"""The same where the joint follows another that is free, is free and followed, is prescribed and
carries nothing."""
PLACED = 2
"""In the place of 1 for a quaternion: velocities of the origin are in the placement's axes."""
UNUSED = 0.0
"""So that vectors begin where registers like it."""
WRENCHES = -1
"""In the place of a coordinate that an input acts on."""
SCALAR: tuple[type[Joint], ...] = (Revolute, Prismatic)


def not_a_tree(model: Multibody) -> str:
    """What of a model the kernel does not know, "" if it knows all."""
    if unknown := unknown_constraint(model):
        return f"a {unknown}"
    if unknown := unknown_wrench(model):
        return unknown
    for part in (*model.elements, *model.inputs):
        if type(part) in (Wrench, Spring, Damper):
            continue
        # what a subclass of these does, the kernel does not know
        if not (
            type(part) is JointSpring or type(part) is JointDamper or type(part) is JointInput
        ):
            return f"a {type(part).__name__}"
        if part.coordinate not in model.tree.scalars:
            return f"a {type(part).__name__} of a constraint"
    return ""


@dataclass(frozen=True)
class TreeModel:
    """The moving frames of a tree, each with what moves with it, in frames whose z is the axis of
    a joint that has one.
    """

    model: Multibody

    @cached_property
    def frames(self) -> list[Frame]:
        """Moving frames in their order; a coordinate that no joint has moves a frame of its own,
        which carries nothing.
        """
        moving = [frame for frame in self.model.frames if not frame.is_fixed]
        own = (
            prismatic(f"{name} alone", coordinate=name)
            for name in self.model.tree.length_coordinates
        )
        return [*moving, *own]

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of the constraints."""
        return list(Rows(self.model, self._index, self.axes))

    @cached_property
    def axes(self) -> dict[str, np.ndarray]:
        """The kernel's axes (3, 3) in those of the moving frames, and of the world."""
        normals = self.normals
        world = upright(normals[WORLD]) if normals else np.eye(3)
        own = {frame.name: axes_of(frame, normals.get(frame.name)) for frame in self.frames}
        return {WORLD: world, **own}

    @cached_property
    def normals(self) -> dict[str, np.ndarray]:
        """The normal of the plane in which all moves, in the axes of the frames, if it does."""
        return normals(self.model, self.frames)

    @cached_property
    def pushes(self) -> list[Push]:
        """The components of the wrenches, in the order of the inputs."""
        return list(pushes(self.model, self._index, self.axes))

    @cached_property
    def bonds(self) -> tuple[list[Bond], list[Bond]]:
        """The springs between points, and the dampers."""
        return bonds(self.model, self._index, self.axes)

    @cached_property
    def carriers(self) -> set[int]:
        """Places of the velocities that carry a body on which a wrench or a damper acts."""
        return carriers(self.model)

    @cached_property
    def wide_joints(self) -> tuple[Joint, ...]:
        """The kinds of joints with several coordinates."""
        joints = (_upright(frame.joint) for frame in self.frames if not _is_scalar(frame))
        return tuple(dict.fromkeys(joints))

    @cached_property
    def n_wide(self) -> int:
        """Number of joints of several coordinates."""
        return sum(not _is_scalar(frame) for frame in self.frames)

    @cached_property
    def followers(self) -> dict[str, int]:
        """Frames whose joints follow those of others, with their places among these."""
        names = (frame.name for frame in self.frames if frame.mimic)
        return {name: place for place, name in enumerate(names)}

    @cached_property
    def leaders(self) -> set[str]:
        """Coordinates that several joints share and that are not prescribed."""
        shared = {frame.mimic.coordinate for frame in self.frames if frame.mimic}
        return shared - {*self.model.prescribed}

    def packed(self, left: float, n_p: int) -> np.ndarray:
        """What `native/tree.c` declares, `left` the part of the forces at the start of a step,
        `n_p` the number of parameters with the step.
        """
        model, space = self.model, self.model.space
        held = len(model.prescribed)
        actuated = [
            model.tree.scalar_indices(entry.coordinate)[1]
            if isinstance(entry, JointInput)
            else WRENCHES
            for entry in model.inputs
            for _ in entry.names(model.tree)
        ]
        nu = len(actuated) + held
        counts = (len(self.frames), space.nq, space.nv, space.nv - held, n_p, nu)
        held_at = (e for e in model.elements if isinstance(e, JointSpring))
        at_zero = sum(spring.stiffness * spring.rest**2 for spring in held_at)
        shared = len(self.leaders), len(self.followers), at_zero
        springs, dampers = self.bonds
        bonds = len(springs), len(dampers)
        flat = bool(self.normals)
        pushed = len(self.pushes), len(self.carriers), flat, *bonds, *3 * (UNUSED,)
        more = (self.n_wide, left, len(self.rows), *shared, *pushed)
        gravity = self.axes[WORLD].T @ np.array(model.gravity)
        header = [*counts, *more, *gravity, 0.0]
        rows = (row.packed() for row in self.rows)
        pushes = (push.packed() for push in self.pushes)
        pulls = (bond.packed() for bond in (*springs, *dampers))
        return np.concatenate([header, *self._joints(), actuated, *rows, *pushes, *pulls])

    def _joints(self) -> list[np.ndarray]:
        tree, index, turned = self.model.tree, self._index, self.axes
        masses = {part.frame: part for part in self.model.spatial_inertias}
        springs, weights = self._coefficients(), self._weights()
        held, ways = self._held(), self._ways()
        joints, wide = [], 0
        for frame in self.frames:
            parent, at, rotation = tree.anchors[frame.parent]
            mimic = frame.mimic or Mimic(frame.coordinate)
            q, v = tree.slices(mimic.coordinate)
            own_v = tree.space.nv + self.followers[frame.name] if frame.mimic else v.start
            own, toward = turned[frame.name], turned[parent].T
            mass, first, inertia = moments(masses.get(frame.name), own)
            placed = toward @ rotation @ np.array(frame.rotation) @ own
            numbers = [
                *(index.get(parent, -1), self._kind(frame.joint), q.start, own_v),
                *(v.stop - v.start, v.start),
                _turns(frame.joint),
                ways[frame.name],
                *(wide, mass, weights[frame.name]),
                *(np.zeros(3) if frame.mimic else springs.get(frame.coordinate, np.zeros(3))),
                mimic.ratio,
                frame.name in held,
            ]
            position = toward @ (at + rotation @ frame.position)
            if isinstance(frame.joint, Revolute):
                placed = placed @ axangle2mat(UPRIGHT, mimic.offset)
            else:
                position = position + mimic.offset * placed[:, 0]
            vectors = map(_padded, (placed.T, position, first, inertia))
            joints.append(np.concatenate([numbers, *vectors]))
            wide += not _is_scalar(frame)
        return joints

    @cached_property
    def _index(self) -> dict[str, int]:
        return {frame.name: i for i, frame in enumerate(self.frames)}

    def _held(self) -> set[str]:
        """Frames that constraints depend on, and those whose joints these follow."""
        ends = {number for row in self.rows for number, _ in (row.a, row.b) if number >= 0}
        ahead, held = [self.frames[number] for number in ends], set[str]()
        leaders = {frame.coordinate: frame for frame in self.frames if not frame.mimic}
        while ahead:
            frame = ahead.pop()
            if frame.name in held:
                continue
            held.add(frame.name)
            parent = self.model.tree.anchors[frame.parent][0]
            ahead += [self.frames[self._index[parent]]] if parent != WORLD else []
            ahead += [leaders[frame.mimic.coordinate]] if frame.mimic else []
        return held

    def _ways(self) -> dict[str, int]:
        """How the coordinates of all joints move: those that are prescribed are idle if they carry
        no mass, nothing that is pushed or pulled and only such frames.
        """
        massive = {part.frame for part in self.model.spatial_inertias}
        ends = {end[0] for kind in self.bonds for bond in kind for end in (bond.a, bond.b)} - {
            NONE
        }
        pulled = {push.body for push in self.pushes} | ends
        massive |= {self.frames[number].name for number in pulled}
        busy: set[str] = set()
        ways = {frame.name: self._way(frame) for frame in self.frames}
        for frame in reversed(self.frames):
            if {frame.name} & (massive | busy) or ways[frame.name] != PRESCRIBED:
                busy |= {frame.name, self.model.tree.anchors[frame.parent][0]}
        return ways | {name: IDLE for name in ways if name not in busy}

    def _way(self, frame: Frame) -> int:
        coordinate = frame.mimic.coordinate if frame.mimic else frame.coordinate
        if coordinate in self.model.prescribed:
            return PRESCRIBED
        if frame.mimic:
            return FOLLOWS
        return SHARED if coordinate in self.leaders else OWN

    def _weights(self) -> dict[str, float]:
        """Mass of all that every frame carries."""
        weights = {frame.name: 0.0 for frame in self.frames}
        weights |= {part.frame: part.mass for part in self.model.spatial_inertias}
        for frame in reversed(self.frames):
            parent = self.model.tree.anchors[frame.parent][0]
            if parent != WORLD:
                weights[parent] += weights[frame.name]
        return weights

    def _coefficients(self) -> dict[str, np.ndarray]:
        """Stiffness, stiffness times rest, and damping of the coordinates that have some."""
        found: dict[str, np.ndarray] = {}
        for element in self.model.elements:
            new = np.zeros(3)
            if isinstance(element, JointSpring):
                new[:2] = element.stiffness, element.stiffness * element.rest
            elif isinstance(element, JointDamper):
                new[2] = element.damping
            else:
                continue
            found[element.coordinate] = found.get(element.coordinate, np.zeros(3)) + new
        return found

    def _kind(self, joint: Joint) -> int:
        """Number of a joint's kind in the kernel."""
        if isinstance(joint, SCALAR):
            return SCALAR.index(type(joint))
        return len(SCALAR) + self.wide_joints.index(_upright(joint))


def _turns(joint: Joint) -> int:
    """Whether a joint's coordinates begin with a quaternion."""
    if isinstance(joint, Floating) and joint.configuration_space != "SE3":
        return PLACED
    return isinstance(joint, (Spherical, Floating))


def _is_scalar(frame: Frame) -> bool:
    return isinstance(frame.joint, SCALAR)


def _upright(joint: Joint) -> Joint:
    """The joint in the kernel's axes."""
    return Planar(UPRIGHT) if isinstance(joint, Planar) else joint


def _padded(rows: np.ndarray) -> np.ndarray:
    """Rows of three numbers, each with a zero behind it."""
    rows = np.atleast_2d(rows)
    return np.hstack([rows, np.zeros((len(rows), 1))]).reshape(-1)
