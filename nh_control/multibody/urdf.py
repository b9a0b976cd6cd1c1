"""URDF files as multibody models."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import numpy as np
from transforms3d.euler import euler2mat

from nh_control.multibody.bodies import Body
from nh_control.multibody.elements import JointDamper, JointInput
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
from nh_control.numerics.expressions import Vector

log = logging.getLogger(__name__)

INERTIA = (("ixx", "ixy", "ixz"), ("ixy", "iyy", "iyz"), ("ixz", "iyz", "izz"))
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


class UrdfError(ValueError):
    """A URDF that cannot be made into a model; the message names the element, what was expected
    and what was got.
    """


def load_urdf(
    source: str | Path,
    base: str = "fixed",
    actuated: Sequence[str] | None = None,
    strict: bool = True,
    gravity: Vector = (0.0, 0.0, -9.81),
    space: str = "SE3",
) -> Multibody:
    """Model of a URDF, given as a path or as text: the frames are named after the links, the
    coordinates after the joints.

    `base` is "fixed" (the root link is at the world's origin) or "floating" (the pose of the root
    link is a configuration, named after the link, on the `space` "SE3" or "SO3xR3"; steps of
    falling robots are more accurate on "SO3xR3"). Inputs are the efforts of the joints in
    `actuated`, within their effort limits; by default all joints with one coordinate are actuated,
    except mimics and joints with an effort limit of 0. Damping acts; friction does not (a warning
    says so). Ranges and speeds are read into the frames' `limits`; meshes are not loaded. With
    `strict` an inertia tensor that no body can have is an error, otherwise a warning. Raises
    UrdfError for a text that is not a URDF and for elements that are not supported, OSError for a
    file that cannot be read.
    """
    if base not in ("fixed", "floating"):
        raise ValueError(f"load_urdf: base must be 'fixed' or 'floating', got {base!r}")
    text = str(source)
    robot = _parse(
        text if text.lstrip().startswith("<") else Path(source).read_text(encoding="utf-8")
    )
    name = _attribute(robot, "name", "robot")
    try:
        links = _links(robot)
        root, joints = _sorted(links, [_Joint.read(element) for element in robot.findall("joint")])
        if root == WORLD and base == "floating":
            raise UrdfError(f"the root link {WORLD!r} cannot move: use base='fixed'")
        root_frame = floating(root, space=space) if base == "floating" else fixed(root)
        roots = [] if root == WORLD else [root_frame]
        return Multibody(
            name=re.sub(r"\W", "_", name),
            frames=[*roots, *(joint.frame() for joint in joints)],
            bodies=[body for link in links for body in _bodies(link, links[link], strict)],
            elements=[damper for joint in joints for damper in joint.dampers()],
            inputs=_inputs(joints, actuated),
            gravity=gravity,
        )
    except ValueError as error:
        raise UrdfError(f"URDF of {name!r}: {error}") from error


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
    mimic: Mimic | None

    @staticmethod
    def read(element: Element) -> _Joint:
        name = _attribute(element, "name", "a joint")
        where = f"joint {name!r}"
        kind = _attribute(element, "type", where)
        if kind not in MAKERS:
            raise UrdfError(
                f"{where}: unsupported type {kind!r}, supported are {', '.join(MAKERS)}"
            )
        parent, child = (
            _attribute(_child(element, tag, where), "link", where) for tag in ("parent", "child")
        )
        axis = element.find("axis")
        limits, effort = _limits(element, kind, where)
        dynamics = element.find("dynamics")
        damping, friction = (
            0.0 if dynamics is None else _number(dynamics, key, where, "0")
            for key in ("damping", "friction")
        )
        if friction and kind in SCALAR:
            log.warning("%s: friction %g is not part of the dynamics", where, friction)
        return _Joint(
            name,
            kind,
            parent,
            child,
            *_origin(element, where),
            _vector(axis, "xyz", where, "1 0 0"),
            limits,
            effort,
            damping,
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

    def dampers(self) -> Iterator[JointDamper]:
        """The damper of the joint; a mimic damps the coordinate that it follows by `ratio^2`
        times its own damping.
        """
        if self.damping and self.kind in SCALAR:
            followed, ratio = (
                (self.mimic.coordinate, self.mimic.ratio) if self.mimic else (self.name, 1.0)
            )
            yield JointDamper(followed, ratio**2 * self.damping)


def _parse(text: str) -> Element:
    """The robot element. Namespace prefixes need not be declared, because many URDFs with
    extensions do not declare them.
    """
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = (
        builder.start,
        builder.end,
        builder.data,
    )
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise UrdfError(f"the URDF is not well-formed XML: {error}") from error
    robot = builder.close()
    if robot.tag != "robot":
        raise UrdfError(f"a URDF has the root element <robot>, got <{robot.tag}>")
    if any(element.tag.startswith("xacro:") for element in robot.iter()):
        raise UrdfError("the file has xacro elements: run xacro on it first and load its output")
    return robot


def _links(robot: Element) -> dict[str, Element]:
    links: dict[str, Element] = {}
    for element in robot.findall("link"):
        name = _attribute(element, "name", "a link")
        if name in links:
            raise UrdfError(f"two links are named {name!r}")
        links[name] = element
    return links


def _sorted(links: dict[str, Element], joints: Sequence[_Joint]) -> tuple[str, list[_Joint]]:
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


def _bodies(link: str, element: Element, strict: bool) -> Iterator[Body]:
    """The body of a link; a link without mass has none."""
    inertial = element.find("inertial")
    if inertial is None or link == WORLD:
        return
    where = f"link {link!r}"
    mass = _number(_child(inertial, "mass", where), "value", where)
    tensor = _child(inertial, "inertia", where)
    inertia = np.array([[_number(tensor, key, where) for key in row] for row in INERTIA])
    if mass == 0 and not inertia.any():
        return
    center, rotation = _origin(inertial, where)
    body = partial(
        Body, link, mass, center, rotation @ inertia @ rotation.T if inertia.any() else None
    )
    try:
        yield body()
    except ValueError as error:
        if strict or mass <= 0:
            raise UrdfError(
                f"{error}; correct the file, or accept the tensor with strict=False"
            ) from error
        log.warning("%s", error)
        yield body(accept_any_inertia=True)


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


def _limits(element: Element, kind: str, where: str) -> tuple[Limits, float]:
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
        else (_number(limit, key, where, "0") for key in ("lower", "upper"))
    )
    effort = _number(limit, "effort", where, "inf")
    if effort < 0:
        raise UrdfError(f"{where}: the effort limit must not be negative, got {effort:g}")
    return Limits(lower, upper, _number(limit, "velocity", where, "inf")), effort


def _mimic(element: Element, kind: str, where: str) -> Mimic | None:
    mimic = element.find("mimic")
    if mimic is None or kind == "fixed":
        return None
    if kind not in SCALAR:
        raise UrdfError(f"{where}: a {kind} joint cannot mimic another")
    return Mimic(
        _attribute(mimic, "joint", where),
        _number(mimic, "multiplier", where, "1"),
        _number(mimic, "offset", where, "0"),
    )


def _origin(element: Element, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Position (3) and rotation matrix (3, 3) of an element's origin."""
    origin = element.find("origin")
    return _vector(origin, "xyz", where, "0 0 0"), euler2mat(
        *_vector(origin, "rpy", where, "0 0 0"), axes="sxyz"
    )


def _child(element: Element, tag: str, where: str) -> Element:
    child = element.find(tag)
    if child is None:
        raise UrdfError(f"{where}: expected an element <{tag}> in <{element.tag}>, got none")
    return child


def _attribute(element: Element, key: str, where: str) -> str:
    value = element.get(key)
    if not value:
        raise UrdfError(f"{where}: expected an attribute {key!r} of <{element.tag}>, got none")
    return value


def _number(element: Element, key: str, where: str, default: str = "") -> float:
    (value,) = _floats(element.get(key) or default, 1, f"{where}: <{element.tag} {key}>")
    return value


def _vector(element: Element | None, key: str, where: str, default: str) -> np.ndarray:
    text = default if element is None else element.get(key) or default
    return np.array(_floats(text, 3, f"{where}: {key}"))


def _floats(text: str, n: int, where: str) -> list[float]:
    try:
        values = [float(part) for part in text.split()]
    except ValueError:
        values = []
    if len(values) != n or np.isnan(values).any():
        raise UrdfError(f"{where} must be {n} number{'s' * (n > 1)}, got {text!r}")
    return values
