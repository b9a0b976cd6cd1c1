"""The parts of a multibody system, and the tree of its frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from nh_control.geometry.spaces import Space
from nh_control.mechanics.lagrangian_system import SMOOTHING
from nh_control.multibody.bodies import Body, SpatialInertia
from nh_control.multibody.constraints import Constraint
from nh_control.multibody.contacts import Contact
from nh_control.multibody.elements import Element, Input
from nh_control.multibody.frames import WORLD, Frame
from nh_control.multibody.joints import JointConstraint
from nh_control.multibody.kinematics import Kinematics, Tree
from nh_control.multibody.wheels import Rolling
from nh_control.numerics.expressions import Vector


@dataclass(frozen=True)
class MultibodyParts:
    """The declaration of a `Multibody`, with its frames, bodies, elements, inputs, constraints,
    contacts and wheels.
    """

    name: str
    frames: Sequence[Frame]
    bodies: Sequence[Body] = ()
    elements: Sequence[Element] = ()
    inputs: Sequence[Input] = ()
    constraints: Sequence[Constraint] = ()
    prescribed: Sequence[str] = ()
    gravity: Vector = (0.0, 0.0, -9.81)
    parameters: Sequence[str] = ()
    mass_scale: float = 1.0
    contacts: Sequence[Contact] = ()
    smoothing: float = SMOOTHING
    wheels: Sequence[Rolling] = ()

    @cached_property
    def tree(self) -> Tree:
        """The tree of the frames, with its configuration space."""
        joints = (c for c in self.constraints if isinstance(c, JointConstraint))
        constrained = {joint.name: joint for joint in joints if joint.has_one_coordinate}
        return Tree(self.name, self.frames, self.prescribed, constrained)

    @property
    def space(self) -> Space:
        """Configuration space."""
        return self.tree.space

    @cached_property
    def spatial_inertias(self) -> tuple[SpatialInertia, ...]:
        """For each moving frame, the inertia of all bodies that move with it, times `mass_scale`.
        The entries are in the order of the frames' first bodies. The inertias of bodies on frames
        that are fixed to each other are added up.
        """
        total: dict[str, SpatialInertia] = {}
        for body in self.bodies:
            anchor, position, rotation = self.tree.anchors[body.frame]
            inertia = body.inertia_in(anchor, position, rotation)
            total[anchor] = total[anchor] + inertia if anchor in total else inertia
        # bodies that are fixed to the world never move
        total.pop(WORLD, None)
        return tuple(part.scaled(self.mass_scale) for part in total.values())

    def kinematics(self, q: ca.SX, v: ca.SX) -> Kinematics:
        """Motions of all frames as expressions of q (nq) and v (nw)."""
        return Kinematics(self.tree, q, v)
