"""Motors of a URDF's transmissions: rotors that turn with their joints."""

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
    """The rotor of the motor of a `joint`: it turns `ratio` times as fast, in rad/s for the
    joint's rad/s or m/s, and has the `inertia` (kg m^2) about its axis.
    """

    joint: str
    ratio: float
    inertia: float


def rotors(robot: Element) -> list[Rotor]:
    """The rotors of all `<transmission>` elements with a rotor inertia.

    Inertia and ratio are `rotor_inertia` and `gear_ratio` of an `<actuator>`, of Drake's namespace
    or of none, with the attribute `value`; without the latter `<mechanicalReduction>` is the
    ratio, or 1. Raises UrdfError for what is no number, and for a negative inertia.
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
        with_inertia.append(Rotor(attribute(joints[0], "name", where), *values[0]))
    return with_inertia


def rotor_parts(
    rotors: Sequence[Rotor], joints: Sequence[UrdfJoint]
) -> tuple[list[Frame], list[Body]]:
    """Frames and bodies of rotors, on the links that carry the motors: the parents of the joints,
    along whose axes they turn. The bodies have no mass, because the links' masses contain the
    motors'.

    The energy is `J (omega_parent . axis + ratio q')^2 / 2`, on a fixed link the reflected inertia
    `ratio^2 J`. Raises UrdfError for a joint that is unknown or does not have one coordinate.
    """
    known = {joint.name: joint for joint in joints if joint.kind in SCALAR}
    taken = {link for joint in joints for link in (joint.parent, joint.child)}
    frames, bodies = list[Frame](), list[Body]()
    for rotor in rotors:
        if rotor.joint not in known:
            raise UrdfError(
                f"transmission of {rotor.joint!r}: a rotor needs a revolute, continuous or "
                f"prismatic joint, choose of {list(known)}"
            )
        joint = known[rotor.joint]
        axis = unit_vector(joint.axis, f"joint {joint.name!r}")
        name = f"{joint.name}_rotor"
        while name in taken:
            name += "_"
        taken.add(name)
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
        inertia = rotor.inertia * np.outer(axis, axis)
        bodies.append(Body(frames[-1].name, 0.0, inertia=inertia, accept_any_inertia=True))
    return frames, bodies


def _values(actuator: Element, where: str) -> tuple[float, float]:
    """Ratio and inertia of an actuator; without an inertia the ratio is 1."""
    named = {child.tag.rpartition(":")[2]: child for child in actuator}
    ratio, inertia = 1.0, 0.0
    if (rotor := named.get("rotor_inertia")) is None:
        return ratio, inertia  # what the ratio is does not matter
    if (reduction := named.get("mechanicalReduction")) is not None and reduction.text:
        (ratio,) = numbers(reduction.text, 1, f"{where}: <mechanicalReduction>")
    if (gear := named.get("gear_ratio")) is not None:
        ratio = number(gear, "value", where)
    inertia = number(rotor, "value", where)
    if inertia < 0:
        raise UrdfError(f"{where}: expected a rotor inertia >= 0, got {inertia:g}")
    return ratio, inertia
