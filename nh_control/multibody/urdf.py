"""URDF files as multibody models."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from nh_control.multibody.frames import (
    NO_LIMITS,
    WORLD,
    Frame,
    Limits,
    Mimic,
    fixed,
    floating,
    planar,
    prismatic,
    revolute,
)
from nh_control.multibody.model import Multibody
from nh_control.multibody.urdf_bodies import bodies_of
from nh_control.multibody.urdf_contacts import FRICTION, Contacts, Surfaces
from nh_control.multibody.urdf_elements import (
    attribute,
    number,
    origin_of,
    required_child,
    vector,
)
from nh_control.multibody.urdf_source import UrdfError as UrdfError
from nh_control.multibody.urdf_source import robot_element
from nh_control.multibody.urdf_transmissions import rotor_parts, rotors
from nh_control.numerics.expressions import Vector

log = logging.getLogger(__name__)

MAKERS: dict[str, Callable[..., Frame]] = {
    "revolute": revolute,
    "continuous": revolute,
    "prismatic": prismatic,
    "planar": planar,
    "floating": floating,
    "fixed": fixed,
}
SCALAR = ("revolute", "continuous", "prismatic")
WITH_AXIS = (*SCALAR, "planar")


def load_urdf(
    source: str | Path,
    base: str = "fixed",
    actuated: Sequence[str] | None = None,
    strict: bool = True,
    gravity: Vector = (0.0, 0.0, -9.81),
    space: str = "SE3",
    friction_velocity: float = FRICTION_VELOCITY,
    contacts: Contacts = (),
    ground: Ground = Plane(),
    friction: float = FRICTION,
    restitution: float = 0.0,
) -> Multibody:
    """Model of a URDF, given as a path, as `package://PACKAGE/path` or as text: the frames are
    named after the links, the coordinates after the joints. xacro files need the package `xacro`.

    `base` is "fixed" (the root link is at the world's origin) or "floating" (the pose of the root
    link is a configuration, named after the link, on the `space` "SE3" or "SO3xR3"; steps of
    falling robots are more accurate on "SO3xR3"). Inputs are the efforts of the joints in
    `actuated`, within their effort limits; by default all joints with one coordinate are actuated,
    except mimics and joints with an effort limit of 0. Damping acts, and friction, smoothed over
    the `friction_velocity` in rad/s or m/s (`JointFriction`). A joint that carries no mass at all
    is fixed, and a mass without inertia is a point mass (warnings say so). Ranges and speeds are
    read into the frames' `limits`; meshes are not (`nh.scenarios.from_urdf` draws them). Gear
    ratios and rotor inertias of <transmission> elements become rotors, see `urdf_transmissions`.

    `contacts` is "collision" for contacts of all <collision> elements with the `ground`, under a
    `friction` and `restitution`: spheres, boxes (their corners), cylinders (the rims of their
    ends) and capsules, not meshes; or a list of the links that touch, and of `Contact` where
    shapes are to be others. Steps take the less time the fewer there are.

    With `strict` an inertia tensor that no body can have is an error, otherwise a warning. Raises
    UrdfError for a text that is not a URDF and for elements that are not supported, OSError for a
    file that cannot be read.
    """
    if base not in ("fixed", "floating"):
        raise ValueError(f"load_urdf: base must be 'fixed' or 'floating', got {base!r}")
    robot = robot_element(source)
    name = attribute(robot, "name", "robot")
    surfaces = Surfaces(ground, friction, restitution)
    try:
        links = _links(robot)
        bodies = {link: list(bodies_of(link, links[link], strict)) for link in links}
        root, joints = _sorted(links, [_Joint.read(element) for element in robot.findall("joint")])
        joints = _without_idle(joints, bodies)
        rotor_frames, rotor_bodies = rotor_parts(rotors(robot), joints)
        frames = [*_root_frames(root, joints, base, space), *(joint.frame() for joint in joints)]
        return Multibody(
            name=re.sub(r"\W", "_", name),
            frames=frames + rotor_frames,
            bodies=[body for on_link in bodies.values() for body in on_link] + rotor_bodies,
            elements=_resistances(joints, friction_velocity),
            inputs=_inputs(joints, actuated),
            gravity=gravity,
            contacts=surfaces.contacts(links, contacts),
        )
    except ValueError as error:
        raise UrdfError(f"URDF of {name!r}: {error}") from error


def _root_frames(root: str, joints: Sequence[_Joint], base: str, space: str) -> list[Frame]:
    """The frame of the root link, none if this is the world; raises UrdfError if nothing moves."""
    if root == WORLD and base == "floating":
        raise UrdfError(f"the root link {WORLD!r} cannot move: use base='fixed'")
    if base == "fixed" and all(joint.kind == "fixed" for joint in joints):
        raise UrdfError("no joint moves: load it with base='floating', or add a joint")
    if root == WORLD:
        return []
    return [floating(root, space=space) if base == "floating" else fixed(root)]


@dataclass(frozen=True)
class _Joint:
    """The values of a joint element."""

    name: str
    kind: str
    parent: str
    child: str
    position: np.ndarray
    rotation: np.ndarray
    axis: np.ndarray
    limits: Limits
    effort: float
    damping: float
    friction: float
    mimic: Mimic | None

    @staticmethod
    def read(element: XmlElement) -> _Joint:
        name = attribute(element, "name", "a joint")
        where = f"joint {name!r}"
        kind = attribute(element, "type", where)
        if kind not in MAKERS:
            raise UrdfError(
                f"{where}: unsupported type {kind!r}, supported are {', '.join(MAKERS)}"
            )
        parent, child = (
            attribute(required_child(element, tag, where), "link", where)
            for tag in ("parent", "child")
        )
        axis = element.find("axis")
        limits, effort = _limits(element, kind, where)
        dynamics = element.find("dynamics")
        damping, friction = (
            0.0 if dynamics is None else number(dynamics, key, where, "0")
            for key in ("damping", "friction")
        )
        return _Joint(
            name,
            kind,
            parent,
            child,
            *origin_of(element, where),
            vector(axis, "xyz", where, "1 0 0"),
            limits,
            effort,
            damping,
            friction,
            _mimic(element, kind, where),
        )

    def frame(self) -> Frame:
        """The frame of the child link."""
        make = partial(
            MAKERS[self.kind],
            self.child,
            self.parent,
            position=self.position,
            rotation=self.rotation,
        )
        if self.kind == "fixed":
            return make()
        if self.kind in WITH_AXIS:
            make = partial(make, axis=self.axis)
        return (
            make(coordinate=self.name, mimic=self.mimic, limits=self.limits)
            if self.kind in SCALAR
            else make(coordinate=self.name)
        )


def _resistances(joints: Sequence[_Joint], friction_velocity: float) -> list[Element]:
    """The dampers of the joints, then their friction; a mimic damps the coordinate that it follows
    by `ratio^2` times its own damping, and rubs on it by `|ratio|` times its own friction.
    """
    dampers, friction = list[Element](), dict[str, float]()
    for joint in joints:
        if joint.kind not in SCALAR:
            continue
        followed, ratio = joint.name, 1.0
        if joint.mimic:
            followed, ratio = joint.mimic.coordinate, joint.mimic.ratio
        if joint.damping:
            dampers.append(JointDamper(followed, ratio**2 * joint.damping))
        if joint.friction:
            friction[followed] = friction.get(followed, 0.0) + abs(ratio) * joint.friction
    return dampers + [JointFriction(*one, friction_velocity) for one in friction.items()]


def _links(robot: XmlElement) -> dict[str, XmlElement]:
    links: dict[str, XmlElement] = {}
    for element in robot.findall("link"):
        name = attribute(element, "name", "a link")
        if name in links:
            raise UrdfError(f"two links are named {name!r}")
        links[name] = element
    return links


def _sorted(links: dict[str, XmlElement], joints: Sequence[_Joint]) -> tuple[str, list[_Joint]]:
    """The root link, and the joints in an order in which parents come before their children."""
    by_parent: dict[str, list[_Joint]] = {name: [] for name in links}
    children: list[str] = []
    for joint in joints:
        for link in (joint.parent, joint.child):
            if link not in links:
                raise UrdfError(f"joint {joint.name!r}: unknown link {link!r}")
        if joint.child in children:
            raise UrdfError(
                f"joint {joint.name!r}: the link {joint.child!r} has another parent already; a "
                f"URDF is a tree, add loops as constraints"
            )
        children.append(joint.child)
        by_parent[joint.parent].append(joint)
    roots = [name for name in links if name not in children]
    if len(roots) != 1:
        raise UrdfError(f"expected one root link, the child of no joint, got {roots}")
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


def _without_idle(joints: list[_Joint], bodies: dict[str, list[Body]]) -> list[_Joint]:
    """The joints, with those fixed that carry no mass and that no other joint follows: nothing
    says how they would move.
    """
    carried = {link for link, on_link in bodies.items() if on_link}
    for joint in reversed(joints):  # children come after their parents
        carried |= {joint.parent} if joint.child in carried else set()
    followed = {joint.mimic.coordinate for joint in joints if joint.mimic}
    idle = {
        joint.name
        for joint in joints
        if joint.kind != "fixed" and joint.child not in carried and joint.name not in followed
    }
    if idle:
        log.warning("the joints %s carry no mass and are fixed at 0", sorted(idle))
    return [replace(j, kind="fixed", mimic=None) if j.name in idle else j for j in joints]


def _inputs(joints: Sequence[_Joint], actuated: Sequence[str] | None) -> list[JointInput]:
    free = {
        joint.name: joint.effort for joint in joints if joint.kind in SCALAR and not joint.mimic
    }
    if actuated is None:
        return [JointInput(name, effort) for name, effort in free.items() if effort]
    for name in actuated:
        if name not in free:
            raise UrdfError(
                f"actuated: {name!r} is not a joint with a coordinate of its own, choose of "
                f"{list(free)}"
            )
    return [JointInput(name, free[name] or np.inf) for name in actuated]


def _limits(element: XmlElement, kind: str, where: str) -> tuple[Limits, float]:
    """The limits of the coordinate and its rate, and of the effort."""
    limit = element.find("limit")
    if limit is None or kind not in SCALAR:
        if kind in ("revolute", "prismatic"):
            raise UrdfError(
                f"{where}: a {kind} joint needs a <limit> with effort and velocity; use "
                f"'continuous' for a joint without range"
            )
        return NO_LIMITS, np.inf
    lower, upper = (
        (-np.inf, np.inf)
        if kind == "continuous"
        else (number(limit, key, where, "0") for key in ("lower", "upper"))
    )
    effort = number(limit, "effort", where, "inf")
    if effort < 0:
        raise UrdfError(f"{where}: the effort limit must not be negative, got {effort:g}")
    return Limits(lower, upper, number(limit, "velocity", where, "inf")), effort


def _mimic(element: XmlElement, kind: str, where: str) -> Mimic | None:
    mimic = element.find("mimic")
    if mimic is None or kind == "fixed":
        return None
    if kind not in SCALAR:
        raise UrdfError(f"{where}: a {kind} joint cannot mimic another")
    return Mimic(
        attribute(mimic, "joint", where),
        number(mimic, "multiplier", where, "1"),
        number(mimic, "offset", where, "0"),
    )
