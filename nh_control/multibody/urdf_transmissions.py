"""Motors in a URDF's transmissions as rotors that turn with their joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np

from nh_control.multibody.bodies import Body
from nh_control.multibody.frame_motion import unit_vector
from nh_control.multibody.frames import Frame, Mimic, revolute
from nh_control.multibody.urdf_elements import attribute, number, numbers
from nh_control.multibody.urdf_joints import SCALAR, UrdfJoint
from nh_control.multibody.urdf_source import UrdfError


@dataclass(frozen=True)
class Rotor:
    """The rotor of a `joint`'s motor. It turns `ratio` times as fast as the joint (rad/s per rad/s
    or m/s). Its `inertia` (kg m^2) is about its axis.
    """

    joint: str
    ratio: float
    inertia: float


def rotors(robot: Element) -> list[Rotor]:
    """The rotors of all `<transmission>` elements with a rotor inertia.

    The inertia and ratio are the `value` attributes of `rotor_inertia` and `gear_ratio` in an
    `<actuator>`, with or without Drake's namespace. Without `gear_ratio`, the ratio is
    `<mechanicalReduction>`, or 1. Raises UrdfError for text that is not a number, and for a
    negative inertia.
    """
    with_inertia = list[Rotor]()
    for transmission in robot.findall("transmission"):
        where = f"transmission {transmission.get('name', '')!r}"
        joints, actuators = transmission.findall("joint"), transmission.findall("actuator")
        values = [_values(actuator, where) for actuator in actuators]
        if not any(inertia for _, inertia in values):
            continue
        if len(joints) != 1 or len(actuators) != 1:
            raise UrdfError(
                f"{where}: a rotor inertia needs one joint and one actuator, got {len(joints)} "
                f"and {len(actuators)}"
            )
        ratio, inertia = values[0]
        with_inertia.append(Rotor(attribute(joints[0], "name", where), ratio, inertia))
    return with_inertia


def rotor_parts(
    rotors: Sequence[Rotor], joints: Sequence[UrdfJoint]
) -> tuple[list[Frame], list[Body]]:
    """Frames and bodies of rotors. The rotors are on the links that carry the motors, which are
    the parents of the joints. They turn about the joint axes. The bodies have no mass, because the
    masses of the links include the motors.

    The energy is `J (omega_parent . axis + ratio q')^2 / 2`. On a fixed link, the reflected
    inertia is `ratio^2 J`. Raises UrdfError for a joint that is unknown or does not have one
    coordinate.
    """
    known = {joint.name: joint for joint in joints if joint.kind in SCALAR}
    names_in_use = {link for joint in joints for link in (joint.parent, joint.child)}
    frames, bodies = list[Frame](), list[Body]()
    for rotor in rotors:
        if rotor.joint not in known:
            raise UrdfError(
                f"transmission of {rotor.joint!r}: a rotor needs a revolute, continuous or "
                f"prismatic joint, choose from {list(known)}"
            )
        joint = known[rotor.joint]
        axis = unit_vector(joint.axis, f"joint {joint.name!r}")
        name = f"{joint.name}_rotor"
        while name in names_in_use:
            name += "_"
        names_in_use.add(name)
        ratio = rotor.ratio * (joint.mimic.ratio if joint.mimic else 1.0)
        frames.append(
            revolute(
                name,
                joint.parent,
                axis=axis,
                position=joint.position,
                rotation=joint.rotation,
                mimic=Mimic(joint.leader, ratio),
            )
        )
        # J a a^T has energy along the axis only
        inertia = rotor.inertia * np.outer(axis, axis)
        bodies.append(Body(frames[-1].name, 0.0, inertia=inertia, accept_any_inertia=True))
    return frames, bodies


def _values(actuator: Element, where: str) -> tuple[float, float]:
    """Ratio and inertia of an actuator. Without an inertia, the ratio is 1."""
    named = {child.tag.rpartition(":")[2]: child for child in actuator}
    ratio, inertia = 1.0, 0.0
    if (rotor := named.get("rotor_inertia")) is None:
        return ratio, inertia  # the ratio does not matter
    if (reduction := named.get("mechanicalReduction")) is not None and reduction.text:
        (ratio,) = numbers(reduction.text, 1, f"{where}: <mechanicalReduction>")
    if (gear := named.get("gear_ratio")) is not None:
        ratio = number(gear, "value", where)
    inertia = number(rotor, "value", where)
    if inertia < 0:
        raise UrdfError(f"{where}: expected a rotor inertia >= 0, got {inertia:g}")
    return ratio, inertia
