"""The joint elements of a URDF."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from xml.etree.ElementTree import Element

import numpy as np
from transforms3d.axangles import axangle2mat

from nh_control.multibody.frame_motion import unit_vector
from nh_control.multibody.frames import (
    NO_LIMITS,
    CoordinateLimits,
    Frame,
    Mimic,
    fixed,
    floating,
    of_leader,
    planar,
    prismatic,
    revolute,
)
from nh_control.multibody.urdf_elements import (
    attribute,
    number,
    origin_of,
    required_child,
    vector,
)
from nh_control.multibody.urdf_source import UrdfError

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


@dataclass(frozen=True)
class UrdfJoint:
    """The values in a joint element."""

    name: str
    kind: str
    parent: str
    child: str
    position: np.ndarray
    rotation: np.ndarray
    axis: np.ndarray
    limits: CoordinateLimits
    effort: float
    damping: float
    friction: float
    mimic: Mimic | None

    @staticmethod
    def read(element: Element) -> UrdfJoint:
        name = attribute(element, "name", "a joint")
        where = f"joint {name!r}"
        kind = attribute(element, "type", where)
        if kind not in MAKERS:
            raise UrdfError(
                f"{where}: unsupported type {kind!r}, choose one of {', '.join(MAKERS)}"
            )
        parent, child = (
            attribute(required_child(element, tag, where), "link", where)
            for tag in ("parent", "child")
        )
        # the default axis in a URDF is x
        axis = element.find("axis")
        limits, effort = _limits(element, kind, where)
        dynamics = element.find("dynamics")
        damping, friction = (
            0.0 if dynamics is None else number(dynamics, key, where, "0")
            for key in ("damping", "friction")
        )
        if damping < 0 or friction < 0:
            raise UrdfError(
                f"{where}: <dynamics> must not have a negative damping or friction, got "
                f"{damping:g} and {friction:g}; leave out those that are zero"
            )
        position, rotation = origin_of(element, where)
        return UrdfJoint(
            name=name,
            kind=kind,
            parent=parent,
            child=child,
            position=position,
            rotation=rotation,
            axis=np.eye(3)[0] if axis is None else vector(axis, "xyz", where),
            limits=limits,
            effort=effort,
            damping=damping,
            friction=friction,
            mimic=_mimic(element, kind, where),
        )

    @property
    def leader(self) -> str:
        """The joint that has the coordinate, which is this joint or the joint that it follows."""
        return self.mimic.coordinate if self.mimic else self.name

    def at_rest(self) -> UrdfJoint:
        """A fixed joint at this joint's pose when all coordinates are 0."""
        joint = replace(self, kind="fixed", mimic=None)
        if self.mimic is None or self.mimic.offset == 0:
            return joint
        # the offset in q = ratio 0 + offset moves the joint along or about its axis
        axis = self.rotation @ unit_vector(self.axis, f"joint {self.name!r}")
        if self.kind == "prismatic":
            return replace(joint, position=self.position + self.mimic.offset * axis)
        return replace(joint, rotation=axangle2mat(axis, self.mimic.offset) @ self.rotation)

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


def moving_joints(
    joints: Sequence[UrdfJoint], masses: Collection[str], driven: Collection[str] = ()
) -> tuple[list[UrdfJoint], list[str]]:
    """The joints, with parents before children and each mimic following an independent joint, and
    the names of the joints that become fixed. A joint becomes fixed if it follows a fixed joint or
    if its motion is undetermined. The motion is undetermined if no joint with the same coordinate
    carries a link in `masses` or is `driven` by a motor with inertia.

    Raises UrdfError for a joint that follows an unknown joint, and ValueError for circular chains.
    """
    followers = {joint.name: joint.mimic for joint in joints if joint.mimic}
    joints = [
        replace(joint, mimic=of_leader(joint.mimic, followers)) if joint.mimic else joint
        for joint in joints
    ]
    kinds = {joint.name: joint.kind for joint in joints if joint.kind == "fixed"}
    # a moving joint takes precedence over a fixed joint with the same name
    kinds |= {joint.name: joint.kind for joint in joints if joint.kind != "fixed"}
    for joint in joints:
        if kinds.get(joint.leader) not in (*SCALAR, joint.kind, "fixed"):
            problem = "no joint with one coordinate" if joint.leader in kinds else "unknown"
            raise UrdfError(
                f"joint {joint.name!r} follows {joint.leader!r}, which is {problem}; choose from "
                f"{[name for name in kinds if kinds[name] in SCALAR]}"
            )
    carriers = set(masses)
    # find the links that carry a mass, from the leaves to the root
    for joint in reversed(joints):
        carriers |= {joint.parent} if joint.child in carriers else set()
    # a coordinate moves mass if any of its joints carries a link with mass or a rotor
    moved = {joint.leader for joint in joints if joint.child in carriers or joint.name in driven}
    idle = [
        joint.name
        for joint in joints
        if joint.kind != "fixed" and (joint.leader not in moved or kinds[joint.leader] == "fixed")
    ]
    return [joint.at_rest() if joint.name in idle else joint for joint in joints], idle


def _limits(element: Element, kind: str, where: str) -> tuple[CoordinateLimits, float]:
    """The limits on the coordinate and its rate, and the effort limit."""
    limit = element.find("limit")
    unlimited = "type='continuous'" if kind == "revolute" else "lower='-inf' upper='inf'"
    # the URDF specification requires <limit> for these types
    if limit is None and kind in ("revolute", "prismatic"):
        raise UrdfError(
            f"{where}: a {kind} joint needs <limit lower=... upper=... effort=... velocity=.../>; "
            f"use {unlimited} for a joint without range"
        )
    if limit is None or kind not in SCALAR:
        return NO_LIMITS, np.inf
    # a continuous joint has no range
    lower, upper = (
        (-np.inf, np.inf)
        if kind == "continuous"
        else (number(limit, key, where, "0", finite=False) for key in ("lower", "upper"))
    )
    if lower > upper or lower == np.inf or upper == -np.inf:
        raise UrdfError(
            f"{where}: expected <limit> with lower <= upper, got {lower:g} and {upper:g}; use "
            f"{unlimited} for a joint without range"
        )
    velocity, effort = (
        number(limit, key, where, "inf", finite=False) for key in ("velocity", "effort")
    )
    if velocity < 0 or effort < 0:
        raise UrdfError(
            f"{where}: <limit> must not have a negative velocity or effort, got {velocity:g} and "
            f"{effort:g}; leave out those without a limit"
        )
    return CoordinateLimits(lower, upper, velocity), effort


def _mimic(element: Element, kind: str, where: str) -> Mimic | None:
    mimic = element.find("mimic")
    if mimic is None or kind == "fixed":
        return None
    if kind not in SCALAR:
        raise UrdfError(f"{where}: a {kind} joint cannot mimic another joint")
    return Mimic(
        attribute(mimic, "joint", where),
        number(mimic, "multiplier", where, "1"),
        number(mimic, "offset", where, "0"),
    )
