"""URDF of a scenario: its frames as links, with shapes, joints and, of a `Multibody`, inertias."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np
from transforms3d.euler import mat2euler

from nh_control.mechanics.system import System
from nh_control.multibody.model import MultibodySystem
from nh_control.multibody.urdf_source import robot_element, urdf_text
from nh_control.scenarios.frame_tree import (
    FIXED,
    FramePart,
    FrameTree,
    ScenarioFrames,
    frame_tree,
)
from nh_control.scenarios.link_inertias import LinkInertia, link_inertias
from nh_control.scenarios.scenario import Scenario
from nh_control.scenarios.shown import frame_id
from nh_control.scenarios.visual_model import Pose, Shape

LIMITS = {"lower": "-1000", "upper": "1000", "effort": "1000", "velocity": "100"}
"""Limits of sliding joints, which URDF requires; they are not used."""


def robot_description(scenario: Scenario, parameters: Any = None, inertias: bool = False) -> str:
    """The URDF of a scenario: the text of its file, if it comes from one, or else a tree of all
    frames of its visual model. In a file, joints that the model fixes are fixed, and those that
    follow a follower follow its leader, because `joint_states` has joints with coordinates alone.

    The root link is the planar body, or the frame in which poses are given. Joints have the names
    of `joint_states`; a frame that turns with another one's joint mimics it; bodies in space, and
    frames that no single joint moves, are on floating joints, whose transforms are published. With
    `inertias`, links of systems other than a `Multibody` get those of `link_inertias`, if there
    are any.
    """
    file = scenario.source.get("urdf")
    if scenario.origin["scenario"] == "urdf":
        from nh_control.scenarios.urdf import DEFAULT

        return _as_loaded(str(file or DEFAULT), scenario.make_system(scenario.parameters))
    p = scenario.parameters if parameters is None else parameters
    tree, visual = frame_tree(scenario, p), scenario.visual_model(p)
    root = scenario.body.frame if scenario.body is not None else tree.root
    robot = Element("robot", name=scenario.name)
    links = {name: SubElement(robot, "link", name=name) for name in _links(tree, root)}
    for one in _inertias(scenario, p, tree if inertias else None):
        if one.link in links:
            links[one.link].append(_inertial(one))
    for shape in visual.shapes:
        if shape.mesh is None:
            links[frame_id(shape.frame)].append(_visual(shape))
    mimicked = set[str]()
    for part in tree.parts:
        if part.frame != root:
            robot.append(_joint(part, tree.root, root, mimicked))
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


def _links(tree: FrameTree, root: str) -> Iterable[str]:
    above = [] if root != tree.root else [root]
    return (*above, *(part.frame for part in tree.parts))


def _joint(part: FramePart, world: str, root: str, known: set[str]) -> Element:
    """The joint of a part; one that mimics another has its own name."""
    own = "" if part.joint is None else part.joint.name
    unique = own if own and own not in known else f"{part.frame}_frame_joint"
    joint = Element("joint", name=unique, type=part.kind)
    SubElement(joint, "parent", link=root if part.parent == world else part.parent)
    SubElement(joint, "child", link=part.frame)
    joint.append(_origin(part.origin))
    if part.axis is not None:
        SubElement(joint, "axis", xyz=_numbers(part.axis))
    if part.kind == "prismatic":
        SubElement(joint, "limit", LIMITS)
    if own and unique != own:
        SubElement(joint, "mimic", joint=own, multiplier=_numbers([part.multiplier]))
    known.add(own)
    return joint


def _visual(shape: Shape) -> Element:
    visual = Element("visual")
    roll = Pose(np.array(shape.offset, dtype=float), np.eye(3))
    visual.append(_origin(roll, shape.roll))
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


def _inertias(
    scenario: Scenario, parameters: Any, tree: FrameTree | None
) -> Iterable[LinkInertia]:
    """The inertias of a `Multibody`, or those found from the energy if there is a tree."""
    system = scenario.make_system(parameters)
    model = system.model if isinstance(system, MultibodySystem) else None
    if model is not None:
        for body in model.bodies:
            center, inertia = np.array(body.center), np.array(body.inertia)
            yield LinkInertia(frame_id(body.frame), body.mass, center, inertia)
    elif tree is not None:
        yield from link_inertias(ScenarioFrames(scenario, parameters), tree)


def _inertial(one: LinkInertia) -> Element:
    inertial = Element("inertial")
    inertial.append(_origin(Pose(one.center, np.eye(3))))
    SubElement(inertial, "mass", value=_numbers([one.mass]))
    J = one.inertia
    entries = {f"i{'xyz'[i]}{'xyz'[j]}": J[i, j] for i in range(3) for j in range(i, 3)}
    SubElement(inertial, "inertia", {k: _numbers([v]) for k, v in entries.items()})
    return inertial


def _origin(pose: Pose, roll: float = 0.0) -> Element:
    angles = np.array(mat2euler(pose.rotation, "sxyz")) + [roll, 0.0, 0.0]
    return Element("origin", xyz=_numbers(pose.position), rpy=_numbers(angles))


def _numbers(values: Iterable[float]) -> str:
    return " ".join(f"{0.0 if math.isclose(v, 0, abs_tol=1e-14) else v:.12g}" for v in values)
