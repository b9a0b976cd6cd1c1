"""URDF files as multibody models."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element as XmlElement

import numpy as np

from nh_control.multibody.bodies import Body
from nh_control.multibody.contact_grounds import Ground, Plane
from nh_control.multibody.elements import (
    FRICTION_VELOCITY,
    Element,
    JointDamper,
    JointFriction,
    JointInput,
)
from nh_control.multibody.frames import WORLD, Frame, fixed, floating
from nh_control.multibody.model import Multibody
from nh_control.multibody.urdf_bodies import bodies_of, check_inertias
from nh_control.multibody.urdf_contacts import FRICTION, Contacts, Surfaces, Wheels
from nh_control.multibody.urdf_elements import attribute
from nh_control.multibody.urdf_joints import SCALAR, UrdfJoint, moving_joints
from nh_control.multibody.urdf_source import XACRO, described, robot_element, urdf_path
from nh_control.multibody.urdf_source import UrdfError as UrdfError
from nh_control.multibody.urdf_transmissions import rotor_parts, rotors
from nh_control.numerics.expressions import Vector

log = logging.getLogger(__name__)
FLOAT = "base='floating' (--base floating, base:=floating)"
"""How to request a floating base in Python, in the command and in nodes."""


def load_urdf(
    source: str | Path,
    base: str = "fixed",
    actuated: Sequence[str] | None = None,
    accept_any_inertia: bool = False,
    gravity: Vector = (0.0, 0.0, -9.81),
    space: str = "SE3",
    friction_velocity: float = FRICTION_VELOCITY,
    contacts: Contacts = (),
    ground: Ground = Plane(),
    friction: float = FRICTION,
    restitution: float = 0.0,
    wheels: Wheels = (),
) -> Multibody:
    """Load a URDF, given as a path, as `package://PACKAGE/path`, or as text. The model's frames
    are named after the links, and its coordinates after the joints. Xacro files need the package
    `xacro`.

    `base` is "fixed" (the root link is at the world's origin) or "floating" (the pose of the root
    link is a configuration, named after the link, on the `space` "SE3" or "SO3xR3", and steps of
    falling robots are more accurate on "SO3xR3"). Inputs are the efforts of the joints in
    `actuated`, within their effort limits. By default, all joints with one coordinate are
    actuated, except mimics and joints with an effort limit of 0. The damping and friction of the
    joints are included. The friction is smoothed over the `friction_velocity` in rad/s or m/s
    (`JointFriction`). A joint that does not carry any mass becomes fixed, and a mass without
    inertia becomes a point mass. Warnings report both. The frames' `limits` contain the ranges and
    speeds. Meshes are ignored (`nh.scenarios.from_urdf` draws them). Gear ratios and rotor
    inertias of <transmission> elements become rotors (see `urdf_transmissions`).

    If `contacts` is "collision", all <collision> elements may touch the `ground`, with `friction`
    and `restitution`. Spheres, boxes (with their corners), cylinders (with the rims of their ends)
    and capsules are supported, but meshes are not. `contacts` may also be a list that contains
    links that touch the ground, and `Contact` objects for other shapes. Steps are faster with
    fewer contacts.

    `wheels` roll on the `ground` without slipping. They are given as a list of links whose
    <collision> is a cylinder or a sphere, in the form "LINK", "LINK:sideways" or "LINK:all" (see
    `RollingWheel.slips`), or as a dict that maps links to a `RollingWheel` or a `Skate`.

    If a link's inertia tensor is impossible, but the total inertia of the link and the links that
    are fixed to it is possible, a warning is logged. An impossible total inertia is an error, or a
    warning with `accept_any_inertia`. Raises UrdfError for a text that is not a URDF and for
    unsupported elements, and OSError for a file that cannot be read.
    """
    if base not in ("fixed", "floating"):
        raise ValueError(f"load_urdf: base must be 'fixed' or 'floating', got {base!r}")
    robot = robot_element(source)
    name, path = attribute(robot, "name", described(source)), urdf_path(source)
    surfaces = Surfaces(ground, friction, restitution)
    try:
        links = _links(robot)
        bodies = [body for link in links for body in bodies_of(link, links[link])]
        root, joints = _sorted(links, list(map(UrdfJoint.read, robot.findall("joint"))))
        names = [*links, *(joint.name for joint in joints)]
        if unexpanded := sorted(filter(XACRO.search, names)):
            log.warning("names %s contain xacro expressions: run xacro on the file", unexpanded)
        motors = rotors(robot)
        # joints without mass would make the mass matrix singular, so fix them
        joints, idle = moving_joints(
            joints, {body.frame for body in bodies}, {motor.joint for motor in motors}
        )
        if idle:
            log.warning(
                "the joints %s are fixed: they follow a fixed joint, or no link that moves with "
                "their coordinate has a <mass>",
                sorted(idle),
            )
        rotor_frames, rotor_bodies = rotor_parts(motors, joints)
        if base == "fixed" and all(joint.kind == "fixed" for joint in joints):
            raise _at_rest(root, joints, idle, bodies)
        frames = [*_root_frames(root, base, space), *(joint.frame() for joint in joints)]
        model = Multibody(
            name=re.sub(r"\W", "_", name),
            frames=frames + rotor_frames,
            bodies=bodies + rotor_bodies,
            elements=_resistances(joints, friction_velocity),
            inputs=_inputs(joints, actuated),
            gravity=gravity,
            contacts=surfaces.contacts(links, contacts),
            wheels=surfaces.wheels(links, wheels),
        )
        check_inertias(model, links, accept_any_inertia)
        return model
    except ValueError as error:
        where = f"URDF of {name!r}" + (f" in {path}" if path else "")
        raise UrdfError(f"{where}: {error}") from error


def _root_frames(root: str, base: str, space: str) -> list[Frame]:
    """The frame of the root link, or no frame if this link is the world."""
    if root == WORLD and base == "floating":
        raise UrdfError(f"the root link {WORLD!r} cannot move: use base='fixed'")
    if root == WORLD:
        return []
    return [floating(root, space=space) if base == "floating" else fixed(root)]


def _at_rest(
    root: str, joints: Sequence[UrdfJoint], idle: Sequence[str], bodies: Sequence[Body]
) -> UrdfError:
    """An error that explains why none of the joints of a robot on a fixed base moves, and how to
    fix it.
    """
    if idle:
        return UrdfError(
            f"no joint moves, because no link that the joints {sorted(idle)} move has a mass: "
            'give those links an <inertial> with <mass value="..."/> and <inertia .../>'
        )
    frames = [floating(root), *(joint.frame() for joint in joints)] if root != WORLD else []
    if frames and Multibody("floating", frames, bodies).is_known_regular:
        return UrdfError(f"no joint moves: load it with {FLOAT}, or add a joint")
    needed = "on a floating base it needs a <mass> and an <inertia>"
    return UrdfError(f"no joint moves: add a joint; {needed}")


def _resistances(joints: Sequence[UrdfJoint], friction_velocity: float) -> list[Element]:
    """The dampers of the joints, followed by their friction. A mimic joint adds `ratio^2` times
    its damping and `|ratio|` times its friction to the coordinate that it follows.
    """
    dampers, friction = list[Element](), dict[str, float]()
    for joint in joints:
        if joint.kind not in SCALAR:
            continue
        ratio = joint.mimic.ratio if joint.mimic else 1.0
        if joint.damping:
            # power -d (ratio q')^2 = -(ratio^2 d) q'^2
            dampers.append(JointDamper(joint.leader, ratio**2 * joint.damping))
        if joint.friction:
            friction[joint.leader] = friction.get(joint.leader, 0.0) + abs(ratio) * joint.friction
    return dampers + [
        JointFriction(coordinate, torque, friction_velocity)
        for coordinate, torque in friction.items()
    ]


def _links(robot: XmlElement) -> dict[str, XmlElement]:
    links: dict[str, XmlElement] = {}
    for element in robot.findall("link"):
        name = attribute(element, "name", "a link")
        if name in links:
            raise UrdfError(f"two links are named {name!r}")
        links[name] = element
    if not links:
        raise UrdfError("expected at least one <link> in <robot>, got none")
    return links


def _sorted(
    links: dict[str, XmlElement], joints: Sequence[UrdfJoint]
) -> tuple[str, list[UrdfJoint]]:
    """The root link, and the joints ordered so that parents come before their children."""
    by_parent: dict[str, list[UrdfJoint]] = {name: [] for name in links}
    children: list[str] = []
    names = [joint.name for joint in joints if joint.kind != "fixed"]
    # joint names become coordinates, so the names of moving joints must be unique
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UrdfError(f"several moving joints are named {twice}; names of joints must differ")
    for joint in joints:
        for link in (joint.parent, joint.child):
            if link not in links:
                raise UrdfError(
                    f"joint {joint.name!r}: unknown link {link!r}; add <link name={link!r}/>, or "
                    "correct the joint"
                )
        if joint.child == WORLD:
            raise UrdfError(
                f"joint {joint.name!r}: the link {WORLD!r} does not move and cannot be the child "
                "of a joint; give the link another name"
            )
        if joint.child in children:
            raise UrdfError(
                f"joint {joint.name!r}: the link {joint.child!r} already has another parent; a "
                f"URDF is a tree, so add loops as constraints"
            )
        children.append(joint.child)
        by_parent[joint.parent].append(joint)
    roots = [name for name in links if name not in children]
    if len(roots) != 1:
        raise UrdfError(
            f"expected one root link, the child of no joint, got {roots}; add joints between them"
        )
    ordered, stack = [], by_parent[roots[0]][::-1]
    while stack:  # depth first
        joint = stack.pop()
        ordered.append(joint)
        stack += by_parent[joint.child][::-1]
    if len(ordered) < len(joints):
        raise UrdfError(
            f"the joints {[j.name for j in joints if j not in ordered]} form a loop that does "
            f"not reach the root {roots[0]!r}"
        )
    return roots[0], ordered


def _inputs(joints: Sequence[UrdfJoint], actuated: Sequence[str] | None) -> list[JointInput]:
    free = {
        joint.name: joint.effort for joint in joints if joint.kind in SCALAR and not joint.mimic
    }
    if actuated is None:
        # an effort limit of 0 marks a passive joint
        return [JointInput(name, effort) for name, effort in free.items() if effort]
    for name in actuated:
        if name not in free:
            raise UrdfError(
                f"actuated: {name!r} is not a joint with an independent coordinate, choose from "
                f"{list(free)}"
            )
    return [JointInput(name, free[name] or np.inf) for name in actuated]
