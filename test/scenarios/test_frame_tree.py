"""The tree of frames of every scenario: complete, connected, with one parent each, and where the
visual model has them; and its URDF.
"""

from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
from transforms3d.axangles import axangle2mat
from transforms3d.euler import euler2mat

from nh_control import scenarios
from nh_control.scenarios.frame_tree import (
    CONTINUOUS,
    FIXED,
    FLOATING,
    PRISMATIC,
    ScenarioFrames,
    frame_tree,
    relative,
)
from nh_control.scenarios.robot_description import robot_description
from nh_control.scenarios.shown import frame_id
from nh_control.scenarios.visual_model import Pose

NAMES = scenarios.names()
LARGE = [
    pytest.param(name, marks=pytest.mark.slow) if name == "marionette" else name for name in NAMES
]
tree_of = cache(lambda name: frame_tree(scenarios.get(name)))


def moved(frames, seed):
    """A configuration elsewhere."""
    random = np.random.default_rng(seed)
    change = random.uniform(-0.7, 0.7, frames.space.nv)
    return np.asarray(frames.space.retract(frames.space.origin, change), dtype=float)


def on(parent, frame):
    """The pose of a frame given on its parent."""
    turn = parent.rotation
    return Pose(parent.position + turn @ frame.position, turn @ frame.rotation)


def assert_same(found, wanted):
    np.testing.assert_allclose(found.position, wanted.position, atol=1e-9)
    np.testing.assert_allclose(found.rotation, wanted.rotation, atol=1e-9)


@pytest.mark.parametrize("name", LARGE)
def test_every_tree_of_frames_is_complete(name):
    scenario = scenarios.get(name)
    tree, frames = tree_of(name), ScenarioFrames(scenario)
    q = moved(frames, 3)
    drawn = {frame_id(frame) for frame in frames.visual.poses(frames.parameters, q)}
    children = [part.frame for part in tree.parts]
    assert len(set(children)) == len(children) and tree.root not in children
    assert drawn - {tree.root} - set(children) <= {"world"}
    assert {frame_id(shape.frame) for shape in frames.visual.shapes} <= {tree.root, *children}
    assert set(tree.bodies) <= set(children)
    # connected, parents first: what is broadcast puts every frame where it is
    poses = frames.poses(q)
    placed, found = tree.placed(poses), {tree.root: Pose(np.zeros(3), np.eye(3))}
    for part in tree.parts:
        own = placed.get(part.frame, part.origin)
        own = poses[part.frame] if part.frame in tree.bodies else own
        found[part.frame] = on(found[part.parent], own)
        assert_same(found[part.frame], poses[part.frame])
    assert len(placed) == sum(p.kind != FIXED for p in tree.parts) - len(tree.bodies)


FLOATS = {"car": ["front_left", "front_right"], "wet_car": ["front_left", "front_right"]}


@pytest.mark.parametrize("name", LARGE)
def test_only_bodies_and_ackermann_wheels_float(name):
    tree = tree_of(name)
    floating = [part.frame for part in tree.parts if part.kind == FLOATING]
    assert floating == [*tree.bodies, *FLOATS.get(name, [])]


def test_joints_are_found_with_axes_and_signs():
    cart = {part.frame: part for part in frame_tree(scenarios.get("cart_pole")).parts}
    assert (cart["cart"].kind, cart["pole"].kind) == (PRISMATIC, CONTINUOUS)
    assert (cart["pole"].parent, cart["push"].parent) == ("cart", "cart")
    assert cart["cart"].axis.tolist() == [1, 0, 0] and cart["pole"].axis.tolist() == [0, -1, 0]
    board = {part.frame: part for part in frame_tree(scenarios.get("snakeboard")).parts}
    assert board["front_truck"].joint.sign == -1.0
    assert board["front_truck"].axis.tolist() == board["rear_truck"].axis.tolist() == [0, 0, 1]
    joints = {p.joint.name for p in board.values() if p.joint}
    assert joints == {joint.name for joint in scenarios.get("snakeboard").joints}


STRINGS = {
    joint.name for joint in scenarios.get("marionette").joints if joint.name.endswith("length")
}
"""Joints that no frame shows: lengths of strings."""


def vector(text):
    return np.array([float(part) for part in text.split()])


@pytest.mark.parametrize("name", LARGE)
def test_the_urdf_has_every_frame_where_it_is(name):
    """Forward kinematics of the text, with the positions of `joint_states`."""
    scenario = scenarios.get(name)
    robot, frames = ElementTree.fromstring(robot_description(scenario)), ScenarioFrames(scenario)
    q = moved(frames, 5)
    values = {j.name: j.sign * q[frames.space.names.index(j.coordinate)] for j in scenario.joints}
    poses, links = frames.poses(q), [link.get("name") for link in robot.iter("link")]
    children = [joint.find("child").get("link") for joint in robot.iter("joint")]
    (root,) = set(links) - set(children)
    assert len(set(children)) == len(children) == len(links) - 1
    assert len({joint.get("name") for joint in robot.iter("joint")}) == len(children)
    kinds = {joint.get("name"): joint.get("type") for joint in robot.iter("joint")}
    assert {one for one in values if one not in kinds} <= {"steering_joint", *STRINGS}
    found = {root: poses.get(root, Pose(np.zeros(3), np.eye(3)))}
    for joint in robot.iter("joint"):
        parent, child = (joint.find(tag).get("link") for tag in ("parent", "child"))
        origin, mimic = joint.find("origin"), joint.find("mimic")
        place = np.zeros(3) if origin is None else vector(origin.get("xyz", "0 0 0"))
        turn = np.zeros(3) if origin is None else vector(origin.get("rpy", "0 0 0"))
        own = Pose(place, euler2mat(*turn, "sxyz"))
        value = values.get(joint.get("name") if mimic is None else mimic.get("joint"), 0.0)
        value *= 1.0 if mimic is None else float(mimic.get("multiplier", 1.0))
        if joint.get("type") == FLOATING:
            own = relative(found[parent], poses[child])
        elif joint.get("type") == PRISMATIC:
            own = on(own, Pose(value * vector(joint.find("axis").get("xyz")), np.eye(3)))
        elif joint.get("type") != FIXED:
            own = own.rotated(value, (0, 0, 0), vector(joint.find("axis").get("xyz")))
        found[child] = on(found[parent], own)
        if child in poses:
            assert_same(found[child], poses[child])
    shapes = [s for s in frames.visual.shapes if s.mesh is None]
    assert len(list(robot.iter("visual"))) >= len(shapes)


def test_the_urdf_has_shapes_and_inertias():
    robot = ElementTree.fromstring(robot_description(scenarios.get("cart_pole")))
    cart = next(link for link in robot.iter("link") if link.get("name") == "cart")
    box, cylinder = cart.findall("visual")
    assert vector(box.find("geometry/box").get("size")).tolist() == [0.25, 0.08, 0.1]
    assert vector(cylinder.find("origin").get("rpy"))[0] == pytest.approx(np.pi / 2)


@pytest.mark.slow
def test_the_urdf_of_a_multibody_has_its_masses():
    marionette = scenarios.get("marionette")
    robot = ElementTree.fromstring(robot_description(marionette))
    model = marionette.make_system(marionette.parameters).model
    masses = [float(mass.get("value")) for mass in robot.iter("mass")]
    assert sum(masses) == pytest.approx(sum(body.mass for body in model.bodies))


def test_a_frame_that_turns_with_anothers_joint_mimics_it():
    from nh_control.scenarios.frame_tree import FramePart
    from nh_control.scenarios.robot_description import _joint
    from nh_control.scenarios.shown import Joint

    axis, origin = np.array([0, 0, 1.0]), Pose(np.zeros(3), axangle2mat([0, 0, 1], 0.0))
    first, second = (
        FramePart(name, "base", CONTINUOUS, origin, axis, Joint("hinge", "c"), rate)
        for name, rate in (("left", 1.0), ("right", -2.0))
    )
    known = set()
    assert _joint(first, "odom", "base", known).get("name") == "hinge"
    other = _joint(second, "odom", "base", known)
    assert other.get("name") == "right_frame_joint"
    assert other.find("mimic").attrib == {"joint": "hinge", "multiplier": "-2"}
