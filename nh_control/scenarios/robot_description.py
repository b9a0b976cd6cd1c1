"""The URDF of a scenario. The scenario's frames become links with shapes, joints and inertias."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np
from transforms3d.euler import mat2euler

from nh_control.mechanics.system import System
from nh_control.multibody import Body
from nh_control.multibody.model import MultibodySystem
from nh_control.multibody.urdf_source import (
    PACKAGE,
    XACRO,
    robot_element,
    urdf_path,
    urdf_text,
)
from nh_control.scenarios.declared_frames import CONTINUOUS, FIXED, PRISMATIC
from nh_control.scenarios.joint_limits import JointLimits, joint_limits
from nh_control.scenarios.scenario import Scenario
from nh_control.scenarios.scenario_frames import Link, ScenarioFrames
from nh_control.scenarios.shown import frame_id
from nh_control.scenarios.urdf_meshes import FILE, mesh_path
from nh_control.scenarios.visual_model import Pose, Shape

NO_LIMIT = 1e5
"""Limit (m, rad, m/s, rad/s, N, N m) that stands for no limit, because URDF requires a number."""


class NoUrdf(ValueError):
    """The scenario does not declare its frames as a tree."""


def robot_description(scenario: Scenario, parameters: Any = None) -> str:
    """The URDF of a scenario. Raises NoUrdf if the visual model has frame poses but no tree.

    For a scenario from a file, the result is the text of the file with the following changes.
    Joints that the model fixes become fixed joints. Joints that mimic a follower mimic its leader,
    because `joint_states` only contains joints with coordinates. Mesh paths become absolute
    `file://` paths, because rviz does not know the file's folder, but `package://` paths are kept.

    For other scenarios, the result is the visual model's tree of frames, with shapes, joints and
    inertias. The root link is the planar body, or the frame to which the poses refer. KDL does not
    allow a root link to have an inertia, so a link that is fixed to the root carries the inertia.
    Joints have the same names as in `joint_states`. Their limits are the `joint_limits`. A frame
    that rotates with the joint of another frame mimics that joint. Spatial bodies, and frames that
    no single joint moves, are on floating joints with published transforms. If the links have no
    inertia, a comment explains why.
    """
    file = scenario.source.get("urdf")
    if scenario.origin["scenario"] == "urdf":
        from nh_control.scenarios.urdf import DEFAULT

        return _as_loaded(str(file or DEFAULT), scenario.system)
    frames = ScenarioFrames(scenario, parameters)
    if frames.tree is None:
        raise NoUrdf(
            f"scenario {scenario.name}: its visual model declares poses of frames "
            "but no joints; declare VisualModel(parent, FrameTree(coordinates, "
            "frames, bodies), shapes), see nh_control.scenarios.declared_frames"
        )
    # A planar body can be the root only if no other link hangs from the world.
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
        # The comment tells readers why the URDF has no inertias.
        robot.append(ElementTree.Comment(f" links have no inertia: {frames.tree.no_bodies} "))
    for shape in frames.visual.shapes:
        # URDF can only refer to meshes in files.
        if shape.mesh is None:
            elements[frame_id(shape.frame)].append(_visual(shape))
    limits = joint_limits(scenario, parameters)
    robot.extend(_joint(link, limits) for link in links)
    take_inertia_from_root(robot)
    ElementTree.indent(robot)
    return ElementTree.tostring(robot, encoding="unicode", xml_declaration=True) + "\n"


def _as_loaded(file: str, system: System) -> str:
    """The text of a URDF file, with the joints of its model and with absolute mesh paths."""
    robot = robot_element(file)
    changed = _make_meshes_absolute(robot, urdf_path(file))
    model = system.model if isinstance(system, MultibodySystem) else None
    frames = {} if model is None else model.tree.frames
    for joint in robot.findall("joint"):
        child = joint.find("child")
        frame = frames.get("" if child is None else child.get("link", ""))
        if frame is None:
            continue
        mimic, origin = joint.find("mimic"), joint.find("origin")
        # The model's fixed frame includes the constant motion of the joint in its pose.
        if frame.is_fixed and joint.get("type") != FIXED:
            joint.set("type", FIXED)
            for element in (mimic, origin):
                if element is not None:
                    joint.remove(element)
            joint.append(_origin(Pose(np.array(frame.position), np.array(frame.rotation))))
            changed = True
        # The joint in the file mimics a follower, so refer to the leader, with the composed ratio.
        elif frame.mimic and mimic is not None and mimic.get("joint") != frame.mimic.coordinate:
            multiplier, offset = _numbers([frame.mimic.ratio]), _numbers([frame.mimic.offset])
            mimic.attrib |= {
                "joint": frame.mimic.coordinate,
                "multiplier": multiplier,
                "offset": offset,
            }
            changed = True
    return ElementTree.tostring(robot, encoding="unicode") if changed else urdf_text(file)


def _make_meshes_absolute(robot: Element, file: Path | None) -> bool:
    """Make the mesh paths in a URDF file absolute. Returns whether any path has changed."""
    if file is None:
        return False
    changed, folder = False, file.absolute().parent
    for mesh in robot.iter("mesh"):
        name = mesh.get("filename", "")
        if name and PACKAGE not in name and not XACRO.search(name):
            absolute = f"{FILE}{mesh_path(name, folder)}"
            changed |= absolute != name
            mesh.set("filename", absolute)
    return changed


def take_inertia_from_root(robot: Element) -> None:
    """Move the inertia of a URDF's root link, if there is any, to a link that is fixed to the
    root.
    """
    children = {child.get("link") for child in robot.iterfind("joint/child")}
    # A root is not the child of any joint.
    roots = [link for link in robot.findall("link") if link.get("name") not in children]
    for root in roots:
        if (inertial := root.find("inertial")) is not None:
            root.remove(inertial)
            name = f"{root.get('name')}_inertia"
            SubElement(robot, "link", name=name).append(inertial)
            joint = SubElement(robot, "joint", name=f"{name}_joint", type=FIXED)
            SubElement(joint, "parent", link=root.get("name", ""))
            SubElement(joint, "child", link=name)


def _limit(limits: JointLimits) -> dict[str, str]:
    """The attributes of the `limit` element in URDF."""
    values = {
        "lower": limits.lower,
        "upper": limits.upper,
        "effort": limits.effort,
        "velocity": limits.speed,
    }
    return {k: _numbers([min(max(v, -NO_LIMIT), NO_LIMIT)]) for k, v in values.items()}


def _joint(link: Link, limits: Mapping[str, JointLimits]) -> Element:
    """The joint of a link. A joint that mimics another joint is named after its frame."""
    # Only the joint that `joint_states` contains has the joint's name.
    leads = link.joint is not None and link.mimic is None
    name = link.joint.name if link.joint and leads else f"{link.frame}_frame_joint"
    limit = limits.get(name, JointLimits())
    # In URDF, "revolute" joints have limits, but "continuous" joints do not.
    ranged = link.kind == CONTINUOUS and math.isfinite(limit.upper - limit.lower)
    joint = Element("joint", name=name, type="revolute" if ranged else link.kind)
    SubElement(joint, "parent", link=link.parent)
    SubElement(joint, "child", link=link.frame)
    joint.append(_origin(link.origin))
    if link.axis is not None:
        SubElement(joint, "axis", xyz=_numbers(link.axis))
    if ranged or link.kind == PRISMATIC or math.isfinite(limit.effort):
        SubElement(joint, "limit", _limit(limit))
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
    # URDF identifies materials by name, so the name encodes the color.
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
    # URDF uses rotations about the fixed axes x, y and z, in that order.
    angles = np.array(mat2euler(pose.rotation, "sxyz")) + [roll, 0.0, 0.0]
    return Element("origin", xyz=_numbers(pose.position), rpy=_numbers(angles))


def _numbers(values: Iterable[float]) -> str:
    return " ".join(f"{0.0 if math.isclose(v, 0, abs_tol=1e-14) else v:.12g}" for v in values)
