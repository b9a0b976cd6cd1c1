"""URDF of a scenario: its frames as links, with shapes, joints and inertias."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np
from transforms3d.euler import mat2euler

from nh_control.mechanics.system import System
from nh_control.multibody import Body
from nh_control.multibody.model import MultibodySystem
from nh_control.multibody.urdf_source import robot_element, urdf_text
from nh_control.scenarios.declared_frames import FIXED, PRISMATIC
from nh_control.scenarios.scenario import Scenario
from nh_control.scenarios.scenario_frames import Link, ScenarioFrames
from nh_control.scenarios.shown import frame_id
from nh_control.scenarios.visual_model import Pose, Shape

LIMITS = {"lower": "-1000", "upper": "1000", "effort": "1000", "velocity": "100"}
"""Limits of sliding joints, which URDF requires; they are not used."""


class NoUrdf(ValueError):
    """A scenario whose frames are not declared as a tree."""


def robot_description(scenario: Scenario, parameters: Any = None) -> str:
    """The URDF of a scenario: the text of its file, if it comes from one, or else the tree of
    frames that its visual model declares, with shapes, joints and inertias. In a file, joints that
    the model fixes are fixed, and those that follow a follower follow its leader, because
    `joint_states` has joints with coordinates alone.

    The root link is the planar body, or the frame in which poses are given. Joints have the names
    of `joint_states`; a frame that turns with another one's joint mimics it; bodies in space, and
    frames that no single joint moves, are on floating joints, whose transforms are published. If
    links have no inertia, a comment says why. Raises NoUrdf for a scenario whose visual model
    gives poses of frames without a tree.
    """
    file = scenario.source.get("urdf")
    if scenario.origin["scenario"] == "urdf":
        from nh_control.scenarios.urdf import DEFAULT

        return _as_loaded(str(file or DEFAULT), scenario.make_system(scenario.parameters))
    frames = ScenarioFrames(scenario, parameters)
    if frames.tree is None:
        raise NoUrdf(
            f"scenario {scenario.name}: its visual model gives poses of frames "
            "but not their joints; declare them, VisualModel(parent, FrameTree(coordinates, "
            "frames, bodies), shapes), see nh_control.scenarios.declared_frames"
        )
    on_root = [link.frame for link in frames.links if link.parent == frames.root]
    root = frames.root if frames.planar is None or len(on_root) > 1 else on_root[0]
    links = [link for link in frames.links if link.frame != root]
    robot = Element("robot", name=scenario.name)
    elements = {
        name: SubElement(robot, "link", name=name) for name in (root, *(x.frame for x in links))
    }
    for body in frames.tree.bodies:
        elements[frame_id(body.frame)].append(_inertial(body))
    if not frames.tree.bodies:
        robot.append(ElementTree.Comment(f" links have no inertia: {frames.tree.no_bodies} "))
    for shape in frames.visual.shapes:
        if shape.mesh is None:
            elements[frame_id(shape.frame)].append(_visual(shape))
    robot.extend(_joint(link) for link in links)
    ElementTree.indent(robot)
    return ElementTree.tostring(robot, encoding="unicode", xml_declaration=True) + "\n"


def _as_loaded(file: str, system: System) -> str:
    """The text of a URDF with the joints of its model."""
    robot, changed = robot_element(file), False
    model = system.model if isinstance(system, MultibodySystem) else None
    frames = {} if model is None else model.tree.frames
    for joint in robot.findall("joint"):
        child = joint.find("child")
        frame = frames.get("" if child is None else child.get("link", ""))
        if frame is None:
            continue
        mimic, origin = joint.find("mimic"), joint.find("origin")
        if frame.is_fixed and joint.get("type") != FIXED:
            joint.set("type", FIXED)
            for element in (mimic, origin):
                if element is not None:
                    joint.remove(element)
            joint.append(_origin(Pose(np.array(frame.position), np.array(frame.rotation))))
            changed = True
        elif frame.mimic and mimic is not None and mimic.get("joint") != frame.mimic.coordinate:
            multiplier, offset = _numbers([frame.mimic.ratio]), _numbers([frame.mimic.offset])
            mimic.attrib |= {
                "joint": frame.mimic.coordinate,
                "multiplier": multiplier,
                "offset": offset,
            }
            changed = True
    return ElementTree.tostring(robot, encoding="unicode") if changed else urdf_text(file)


def _joint(link: Link) -> Element:
    """The joint of a link; one that follows another joint has its own name."""
    leads = link.joint is not None and link.mimic is None
    name = link.joint.name if link.joint and leads else f"{link.frame}_frame_joint"
    joint = Element("joint", name=name, type=link.kind)
    SubElement(joint, "parent", link=link.parent)
    SubElement(joint, "child", link=link.frame)
    joint.append(_origin(link.origin))
    if link.axis is not None:
        SubElement(joint, "axis", xyz=_numbers(link.axis))
    if link.kind == PRISMATIC:
        SubElement(joint, "limit", LIMITS)
    if link.joint and link.mimic is not None:
        multiplier, offset = (_numbers([value]) for value in link.mimic)
        SubElement(joint, "mimic", joint=link.joint.name, multiplier=multiplier, offset=offset)
    return joint


def _visual(shape: Shape) -> Element:
    visual = Element("visual")
    visual.append(_origin(Pose.at(shape.offset), shape.roll))
    geometry = SubElement(visual, "geometry")
    x, _, z = shape.extents
    if shape.kind == "box":
        SubElement(geometry, "box", size=_numbers(shape.extents))
    elif shape.kind == "cylinder":
        SubElement(geometry, "cylinder", radius=_numbers([x / 2]), length=_numbers([z]))
    else:
        SubElement(geometry, "sphere", radius=_numbers([x / 2]))
    color = (*shape.color, shape.opacity)
    material = SubElement(visual, "material", name="_".join(f"{round(255 * c)}" for c in color))
    SubElement(material, "color", rgba=_numbers(color))
    return visual


def _inertial(body: Body) -> Element:
    inertial = Element("inertial")
    inertial.append(_origin(Pose.at(body.center)))
    SubElement(inertial, "mass", value=_numbers([body.mass]))
    J = np.array(body.inertia)
    entries = {f"i{'xyz'[i]}{'xyz'[j]}": J[i, j] for i in range(3) for j in range(i, 3)}
    SubElement(inertial, "inertia", {k: _numbers([v]) for k, v in entries.items()})
    return inertial


def _origin(pose: Pose, roll: float = 0.0) -> Element:
    angles = np.array(mat2euler(pose.rotation, "sxyz")) + [roll, 0.0, 0.0]
    return Element("origin", xyz=_numbers(pose.position), rpy=_numbers(angles))


def _numbers(values: Iterable[float]) -> str:
    return " ".join(f"{0.0 if math.isclose(v, 0, abs_tol=1e-14) else v:.12g}" for v in values)
