"""A `Multibody` as data for the linear-time tree kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from transforms3d.axangles import axangle2mat

from nh_control.multibody import kernel_layout
from nh_control.multibody.constraint_rows import Row, Rows
from nh_control.multibody.elements import JointInput, JointSpring
from nh_control.multibody.external_wrenches import (
    ExternalWrench,
    carriers,
    external_wrenches,
)
from nh_control.multibody.frames import WORLD, Frame, Mimic, prismatic
from nh_control.multibody.joint_forces import NO_FORCES, coefficients, splines
from nh_control.multibody.joint_inertia import moments
from nh_control.multibody.joint_types import Floating, Joint, Planar, ScalarJoint, Spherical
from nh_control.multibody.kernel_layout import (
    CONSTRAINT,
    JOINT,
    NONE,
    POINT_FORCE,
    WRENCH,
    JointMode,
    JointType,
    Quaternion,
)
from nh_control.multibody.model import Multibody
from nh_control.multibody.planar_frames import axes_of, normals, upright
from nh_control.multibody.point_forces import PointForceElement, point_forces
from nh_control.multibody.tree_contacts import TreeContacts
from nh_control.multibody.tree_wheels import TreeWheels

_NONE = np.zeros(0, dtype=np.int32)
NO_CONTACTS = dict.fromkeys(
    ("n_contacts", "n_impulses", "n_slips", "n_contact_rates", "impulse_room"), 0
)
"""Sizes in the header of a model without contacts."""
NO_WHEELS = dict.fromkeys(("n_wheel_rows", "n_rolling", "n_wheel_rates"), 0)
"""Sizes in the header of a model without wheels."""
UPRIGHT = (0.0, 0.0, 1.0)
"""The axis of planar joints in the kernel's frames."""


@dataclass(frozen=True)
class TreeModel:
    """A tree's moving frames with the bodies on them. If a joint turns about an axis, the axis is
    the z axis of the kernel's frame.
    """

    model: Multibody

    @cached_property
    def frames(self) -> list[Frame]:
        """Moving frames, in order. A coordinate without a joint gets an additional frame that does
        not carry a body.
        """
        moving = [frame for frame in self.model.frames if not frame.is_fixed]
        # the kernel prescribes coordinates through joints, so a length needs one too
        length_frames = (
            prismatic(f"{name} alone", coordinate=name)
            for name in self.model.tree.length_coordinates
        )
        return [*moving, *length_frames]

    @cached_property
    def rows(self) -> list[Row]:
        """The constraint rows."""
        return list(Rows(self.model, self._index, self.axes))

    @cached_property
    def axes(self) -> dict[str, np.ndarray]:
        """The kernel's axes (3, 3) in the axes of the moving frames and of the world."""
        normals = self.normals
        # in a planar model, z is the normal of the plane in all frames
        world = upright(normals[WORLD]) if normals else np.eye(3)
        moving = {frame.name: axes_of(frame, normals.get(frame.name)) for frame in self.frames}
        return {WORLD: world, **moving}

    @cached_property
    def normals(self) -> dict[str, np.ndarray]:
        """The normal of the plane in which a planar model moves, in each frame's axes. The result
        is empty for a model in space.
        """
        return normals(self.model, self.frames)

    @cached_property
    def external_wrenches(self) -> list[ExternalWrench]:
        """The wrench components, in the order of the inputs."""
        return list(external_wrenches(self.model, self._index, self.axes))

    @cached_property
    def point_forces(self) -> tuple[list[PointForceElement], list[PointForceElement]]:
        """The springs and the dampers between points."""
        return point_forces(self.model, self._index, self.axes)

    @cached_property
    def carriers(self) -> set[int]:
        """Indices of the velocities that move a body on which a wrench or a damper acts."""
        return carriers(self.model)

    @cached_property
    def multi_dof_types(self) -> tuple[Joint, ...]:
        """The types of joints with several coordinates."""
        joints = (_upright(frame.joint) for frame in self.frames if not _is_scalar(frame))
        return tuple(dict.fromkeys(joints))

    @cached_property
    def n_multi_dof(self) -> int:
        """Number of joints with several coordinates."""
        return sum(not _is_scalar(frame) for frame in self.frames)

    @cached_property
    def mimic_frames(self) -> dict[str, int]:
        """The numbers (from 0) of the frames whose joint follows another joint."""
        names = (frame.name for frame in self.frames if frame.mimic)
        return {name: place for place, name in enumerate(names)}

    @cached_property
    def shared_coordinates(self) -> set[str]:
        """Coordinates that several joints share and that are not prescribed."""
        shared = {frame.mimic.coordinate for frame in self.frames if frame.mimic}
        return shared - {*self.model.prescribed}

    def packed(
        self,
        start_fraction: float,
        n_parameters: int,
        contacts: TreeContacts | None = None,
        wheels: TreeWheels | None = None,
    ) -> np.ndarray:
        """The doubles of `struct tree_header` with its arrays. `start_fraction` is the fraction of
        the forces that acts at the beginning of a step. `n_parameters` is the number of
        parameters, including the step. `contacts` and `wheels` belong to the model.
        """
        model, space = self.model, self.model.space
        prescribed = len(model.prescribed)
        # one entry per input, which is the rate of a joint, or NONE for a wrench component
        actuated = [
            model.tree.scalar_indices(entry.coordinate)[1]
            if isinstance(entry, JointInput)
            else NONE
            for entry in model.inputs
            for _ in entry.names(model.tree)
        ]
        sprung = (e for e in model.elements if isinstance(e, JointSpring))
        springs, dampers = self.point_forces
        wheel_sizes = NO_WHEELS if wheels is None else wheels.sizes
        return kernel_layout.tree(
            {
                "joints": self._joints(),
                "actuated_rates": np.array(actuated, dtype=np.int32),
                "constraints": np.array([row.packed() for row in self.rows], CONSTRAINT.dtype),
                "wrenches": np.array(
                    [wrench.packed() for wrench in self.external_wrenches], WRENCH.dtype
                ),
                "point_forces": np.array(
                    [element.packed() for element in (*springs, *dampers)], POINT_FORCE.dtype
                ),
                "splines": splines(model),
                "contact_rates": _NONE if contacts is None else contacts.rates,
                "wheel_rates": _NONE if wheels is None else wheels.rates,
            },
            n_bodies=len(self.frames),
            nq=space.nq,
            nv=space.nv,
            n_free=space.nv - prescribed,
            n_parameters=n_parameters,
            n_inputs=len(actuated) + prescribed,
            n_multi_dof=self.n_multi_dof,
            n_constraints=len(self.rows) + wheel_sizes["n_wheel_rows"],
            n_redundant=model.system.n_redundant if model.n_holonomic_parts else 0,
            n_shared=len(self.shared_coordinates),
            n_mimic=len(self.mimic_frames),
            n_wrenches=len(self.external_wrenches),
            n_force_rates=len(self.carriers),
            planar=bool(self.normals),
            n_springs=len(springs),
            n_dampers=len(dampers),
            start_fraction=start_fraction,
            # sum k (q - r)^2 / 2 = (sum k q^2 - 2 q sum k r + sum k r^2) / 2
            energy_at_rest=sum(spring.stiffness * spring.rest**2 for spring in sprung),
            gravity=self.axes[WORLD].T @ np.array(model.gravity),
            **(NO_CONTACTS if contacts is None else contacts.sizes),
            **wheel_sizes,
        )

    def _joints(self) -> np.ndarray:
        """The records of all joints."""
        tree, index, kernel_axes = self.model.tree, self._index, self.axes
        nv = self.model.space.nv
        masses = {part.frame: part for part in self.model.spatial_inertias}
        forces, weights = coefficients(self.model), self._weights()
        constrained, modes = self._constrained(), self._modes()
        joints, n_multi_dof = [], 0
        for frame in self.frames:
            parent, origin, rotation = tree.anchors[frame.parent]
            mimic = frame.mimic or Mimic(frame.coordinate)
            q, v = tree.slices(mimic.coordinate)
            v_index = nv + self.mimic_frames[frame.name] if frame.mimic else v.start
            axes, to_parent = kernel_axes[frame.name], kernel_axes[parent].T
            mass, first, inertia = moments(masses.get(frame.name), axes)
            # in the parent's kernel axes, the pose of the placement is A_p^T R A, A_p^T r
            placement = to_parent @ rotation @ np.array(frame.rotation) @ axes
            position = to_parent @ (origin + rotation @ frame.position)
            pitch = 0.0
            # the placement contains the offset in q = ratio q_leader + offset
            if isinstance(frame.joint, ScalarJoint):
                pitch = frame.joint.slide if frame.joint.rotates else 0.0
                axis = placement[:, 2 if frame.joint.rotates else 0]
                position = position + frame.joint.slide * mimic.offset * axis
                if frame.joint.rotates:
                    placement = placement @ axangle2mat(UPRIGHT, mimic.offset)
            joint_forces = {} if frame.mimic else forces.get(frame.coordinate, {})
            joints.append(
                JOINT.record(
                    parent=index.get(parent, NONE),
                    type=self._kind(frame.joint),
                    q_index=q.start,
                    v_index=v_index,
                    n_dof=v.stop - v.start,
                    rate_index=v.start,
                    quaternion=_quaternion(frame.joint),
                    mode=modes[frame.name],
                    multi_dof_index=n_multi_dof,
                    constrained=frame.name in constrained,
                    mass=mass,
                    carried_mass=weights[frame.name],
                    **{**NO_FORCES, **joint_forces},
                    ratio=mimic.ratio,
                    pitch=pitch,
                    column=placement.T,
                    p=position,
                    first_moment=first,
                    inertia=inertia,
                )
            )
            n_multi_dof += not _is_scalar(frame)
        return np.array(joints, JOINT.dtype)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {frame.name: i for i, frame in enumerate(self.frames)}

    def _constrained(self) -> set[str]:
        """Frames that move a point of a constraint, contact or wheel. They are the frames of the
        points, the frames that carry them and, for a frame that follows another joint, the frame
        of that other joint.
        """
        ends = {number for row in self.rows for number, _ in (row.a, row.b) if number >= 0}
        touching = {name for contact in self.model.contacts for name in contact.frames}
        touching |= {frame for wheel in self.model.wheels for frame in wheel.frames}
        anchors = {self.model.tree.anchors[name][0] for name in touching}
        ends |= {self._index[name] for name in anchors - {WORLD}}
        ahead, constrained = [self.frames[number] for number in ends], set[str]()
        leaders = {frame.coordinate: frame for frame in self.frames if not frame.mimic}
        # walk from the points' frames to the root, and from followers to their leaders
        while ahead:
            frame = ahead.pop()
            if frame.name in constrained:
                continue
            constrained.add(frame.name)
            parent = self.model.tree.anchors[frame.parent][0]
            ahead += [self.frames[self._index[parent]]] if parent != WORLD else []
            ahead += [leaders[frame.mimic.coordinate]] if frame.mimic else []
        return constrained

    def _modes(self) -> dict[str, JointMode]:
        """The modes of the coordinates of all joints. A prescribed coordinate is idle if neither
        its frame nor any frame on it carries mass or a point on which forces or constraints act.
        """
        massive = {part.frame for part in self.model.spatial_inertias}
        ends = {
            end[0]
            for kind in self.point_forces
            for element in kind
            for end in (element.a, element.b)
        } - {NONE}
        pulled = {wrench.body for wrench in self.external_wrenches} | ends
        massive |= {self.frames[number].name for number in pulled}
        busy: set[str] = set()
        modes = {frame.name: self._mode(frame) for frame in self.frames}
        for frame in reversed(self.frames):
            if {frame.name} & (massive | busy) or modes[frame.name] != JointMode.PRESCRIBED:
                busy |= {frame.name, self.model.tree.anchors[frame.parent][0]}
        return modes | {name: JointMode.IDLE for name in modes if name not in busy}

    def _mode(self, frame: Frame) -> JointMode:
        coordinate = frame.mimic.coordinate if frame.mimic else frame.coordinate
        if coordinate in self.model.prescribed:
            return JointMode.PRESCRIBED
        if frame.mimic:
            return JointMode.MIMIC
        return JointMode.SHARED if coordinate in self.shared_coordinates else JointMode.FREE

    def _weights(self) -> dict[str, float]:
        """The mass that each frame carries."""
        weights = {frame.name: 0.0 for frame in self.frames}
        weights |= {part.frame: part.mass for part in self.model.spatial_inertias}
        for frame in reversed(self.frames):
            parent = self.model.tree.anchors[frame.parent][0]
            if parent != WORLD:
                # every frame adds its weight to the frame that carries it
                weights[parent] += weights[frame.name]
        return weights

    def _kind(self, joint: Joint) -> int:
        """The number of a joint's type in the kernel."""
        if isinstance(joint, ScalarJoint):
            return JointType.REVOLUTE if joint.rotates else JointType.PRISMATIC
        return JointType.GENERATED + self.multi_dof_types.index(_upright(joint))


def _quaternion(joint: Joint) -> Quaternion:
    """Whether a joint's coordinates begin with a quaternion."""
    if isinstance(joint, Floating) and joint.configuration_space != "SE3":
        return Quaternion.QUATERNION_PLACED
    return Quaternion(isinstance(joint, (Spherical, Floating)))


def _is_scalar(frame: Frame) -> bool:
    return isinstance(frame.joint, ScalarJoint)


def _upright(joint: Joint) -> Joint:
    """The joint in the kernel's axes."""
    return Planar(UPRIGHT) if isinstance(joint, Planar) else joint
