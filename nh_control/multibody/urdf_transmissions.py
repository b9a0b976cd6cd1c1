"""Motors of a URDF's transmissions: rotors that turn with their joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from nh_control.multibody.bodies import Body
from nh_control.multibody.frames import Frame, Mimic, revolute
from nh_control.multibody.urdf_elements import attribute, number
from nh_control.multibody.urdf_source import UrdfError

SCALAR = ("revolute", "continuous", "prismatic")
ROTOR_KG = 1e-9
"""Mass of a rotor's body; the link's mass contains the motor's."""


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


def rotor_parts(rotors: Sequence[Rotor], joints: Sequence[Any]) -> tuple[list[Frame], list[Body]]:
    """Frames and bodies of rotors, on the links that carry the motors: the parents of the joints,
    along whose axes they turn. `joints` are joints as `urdf` reads them.

    The energy is `J (omega_parent . axis + ratio q')^2 / 2`, on a fixed link the reflected inertia
    `ratio^2 J`. Raises UrdfError for a joint that is unknown, follows another joint, or does not
    have one coordinate.
    """
    known = {joint.name: joint for joint in joints}
    frames, bodies = list[Frame](), list[Body]()
    for rotor in rotors:
        joint = known.get(rotor.joint)
        if (
            joint is None
            or joint.mimic
            or joint.kind not in ("revolute", "continuous", "prismatic")
        ):
            raise UrdfError(
                f"transmission of {rotor.joint!r}: a rotor needs a revolute, continuous or "
                "prismatic joint with a coordinate of its own"
            )
        axis = joint.axis / np.linalg.norm(joint.axis)
        frames.append(
            revolute(
                f"{joint.name}_rotor",
                joint.parent,
                axis=axis,
                position=joint.position,
                rotation=joint.rotation,
                mimic=Mimic(joint.name, rotor.ratio),
            )
        )
        inertia = rotor.inertia * np.outer(axis, axis)
        body = Body(frames[-1].name, ROTOR_KG, inertia=inertia, accept_any_inertia=True)
        bodies.append(body)
    return frames, bodies


def _values(actuator: Element, where: str) -> tuple[float, float]:
    """Ratio and inertia of an actuator."""
    named = {child.tag.rpartition(":")[2]: child for child in actuator}
    ratio, inertia = 1.0, 0.0
    if (reduction := named.get("mechanicalReduction")) is not None and reduction.text:
        try:
            ratio = float(reduction.text)
        except ValueError:
            raise UrdfError(
                f"{where}: mechanicalReduction must be a number, got {reduction.text!r}"
            ) from None
    if (gear := named.get("gear_ratio")) is not None:
        ratio = number(gear, "value", where)
    if (rotor := named.get("rotor_inertia")) is not None:
        inertia = number(rotor, "value", where)
    if not (np.isfinite([ratio, inertia]).all() and inertia >= 0):
        raise UrdfError(
            f"{where}: expected a finite ratio and an inertia >= 0, got {ratio:g} and {inertia:g}"
        )
    return ratio, inertia
