"""The frames of every scenario: complete, connected, with one parent each, and where the visual
model has them; and its URDF, with the kinetic energy of the system.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import casadi as ca
import numpy as np
import pytest
from transforms3d.euler import euler2mat
from transforms3d.quaternions import mat2quat

from nh_control import scenarios
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody.bodies import inertia_problem
from nh_control.scenarios.declared_frames import (
    FIXED,
    FLOATING,
    PLANAR,
    PRISMATIC,
    FrameTree,
    planar,
    revolute,
)
from nh_control.scenarios.robot_description import NoUrdf, robot_description
from nh_control.scenarios.scenario_frames import ScenarioFrames
from nh_control.scenarios.shown import frame_id
from nh_control.scenarios.visual_model import Pose, VisualModel

NAMES = scenarios.names()
LARGE = [
    pytest.param(name, marks=pytest.mark.slow) if name == "marionette" else name for name in NAMES
]
EXAMPLES = [
    str(Path(__file__).parents[2] / "resource/examples" / f"{name}.py")
    for name in (
        "cart_double_pendulum",
        "differential_drive",
        "truck_with_trailers",
        "underwater_vehicle",
    )
]
frames_of = cache(lambda name: ScenarioFrames(scenarios.get(name)))


def moved(frames, seed):
    """A configuration elsewhere."""
    random = np.random.default_rng(seed)
    change = random.uniform(-0.7, 0.7, frames.space.nv)
    return np.asarray(frames.space.retract(frames.space.origin, change), dtype=float)


def assert_same(found, wanted):
    np.testing.assert_allclose(found.position, wanted.position, atol=1e-9)
    np.testing.assert_allclose(found.rotation, wanted.rotation, atol=1e-9)


@pytest.mark.parametrize("name", [*LARGE, *EXAMPLES])
def test_every_tree_of_frames_is_complete(name):
    frames = frames_of(name)
    q = moved(frames, 3)
    drawn = {frame_id(frame) for frame in frames.visual.poses(frames.parameters, q)}
    children = [link.frame for link in frames.links]
    assert len(set(children)) == len(children) and frames.root not in children
    assert drawn - {frames.root} <= set(children)
    assert {frame_id(shape.frame) for shape in frames.visual.shapes} <= {frames.root, *children}
    assert set(frames.bodies) <= set(children)
    # connected, parents first: what is broadcast puts every frame where it is
    poses = frames.poses(q)
    placed, found = frames.placed(poses), {frames.root: Pose(np.zeros(3), np.eye(3))}
    for link in frames.links:
        own = placed.get(link.frame, link.origin)
        own = poses[link.frame] if link.frame in frames.bodies else own
        found[link.frame] = found[link.parent] @ own
        assert_same(found[link.frame], poses[link.frame])
    moving = sum(link.kind != FIXED for link in frames.links)
    assert len(placed) == moving - len(frames.bodies)


FLOATS = {"car": ["front_left", "front_right"], "wet_car": ["front_left", "front_right"]}


@pytest.mark.parametrize("name", LARGE)
def test_only_bodies_and_ackermann_wheels_float(name):
    frames = frames_of(name)
    floating = [link.frame for link in frames.links if link.kind == FLOATING]
    assert floating == [*frames.bodies, *FLOATS.get(name, [])]


STRINGS = {
    joint.name for joint in scenarios.get("marionette").joints if joint.name.endswith("length")
}
"""Joints that no frame shows: lengths of strings."""


def vector(text):
    return np.array([float(part) for part in text.split()])


@pytest.mark.parametrize("name", [*LARGE, *EXAMPLES])
def test_the_urdf_has_every_frame_where_it_is(name):
    """Forward kinematics of the text, with the positions of `joint_states`."""
    scenario = scenarios.get(name)
    robot, frames = ElementTree.fromstring(robot_description(scenario)), frames_of(name)
    q = moved(frames, 5)
    values = {j.name: j.sign * q[frames.space.names.index(j.coordinate)] for j in scenario.joints}
    poses, links = frames.poses(q), [link.get("name") for link in robot.iter("link")]
    children = [joint.find("child").get("link") for joint in robot.iter("joint")]
    (root,) = set(links) - set(children)
    assert len(set(children)) == len(children) == len(links) - 1
    assert len({joint.get("name") for joint in robot.iter("joint")}) == len(children)
    kinds = {joint.get("name"): joint.get("type") for joint in robot.iter("joint")}
    assert {one for one in values if one not in kinds} <= STRINGS
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
            own = poses[child].relative_to(found[parent])
        elif joint.get("type") == PRISMATIC:
            own = own @ Pose.at(value * vector(joint.find("axis").get("xyz")))
        elif joint.get("type") != FIXED:
            own = own.rotated(value, (0, 0, 0), vector(joint.find("axis").get("xyz")))
        found[child] = found[parent] @ own
        if child in poses:
            assert_same(found[child], poses[child])
    shapes = [s for s in frames.visual.shapes if s.mesh is None]
    assert len(list(robot.iter("visual"))) >= len(shapes)


def test_the_urdf_has_the_shapes():
    robot = ElementTree.fromstring(robot_description(scenarios.get("cart_pole")))
    cart = next(link for link in robot.iter("link") if link.get("name") == "cart")
    box, cylinder = cart.findall("visual")
    assert vector(box.find("geometry/box").get("size")).tolist() == [0.25, 0.08, 0.1]
    assert vector(cylinder.find("origin").get("rpy"))[0] == pytest.approx(np.pi / 2)


@pytest.mark.parametrize("name", [*LARGE, *EXAMPLES])
def test_the_urdf_is_valid(name, tmp_path):
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    check = shutil.which("check_urdf", path=places)
    if check is None:
        pytest.skip("needs check_urdf, of liburdfdom-tools or the package pin")
    (file := tmp_path / "robot.urdf").write_text(robot_description(scenarios.get(name)))
    checked = subprocess.run([check, file], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    joints = list(ElementTree.parse(file).iter("joint"))
    assert len(re.findall(r"child\(\d+\)", checked.stdout)) == len(joints)


def pinocchio_configuration(pin, model, frames, q):
    """Joints at the positions of `joint_states`, and floating frames at their poses."""
    found, poses = pin.neutral(model), frames.poses(q)
    links = {f"{link.frame}_frame_joint": link for link in frames.links}
    links |= {link.joint.name: link for link in frames.links if link.joint and not link.mimic}
    if frames.planar is not None:
        links["root_joint"] = replace(frames.links[0], origin=Pose.at(np.zeros(3)))
    for name, joint in zip(model.names[1:], model.joints[1:]):
        link, at = links[name], slice(joint.idx_q, joint.idx_q + joint.nq)
        if link.kind == FLOATING:
            pose = poses[link.frame].relative_to(poses[link.parent]).relative_to(link.origin)
            found[at] = [*pose.position, *np.roll(mat2quat(pose.rotation), -1)]
            continue
        value = link.joint.sign * q[frames.space.names.index(link.joint.coordinate)]
        if link.mimic is not None:
            value = link.mimic[0] * value + link.mimic[1]
        found[at] = [np.cos(value), np.sin(value)] if joint.nq == 2 else [value]
    return found


@pytest.mark.parametrize("name", LARGE)
def test_the_urdf_has_the_kinetic_energy_of_the_system(name):
    """By Pinocchio, at velocities from central differences."""
    pin = pytest.importorskip("pinocchio", reason="needs the package pin")
    scenario, frames, step = scenarios.get(name), frames_of(name), 1e-5
    root = () if frames.planar is None else (pin.JointModelFreeFlyer(),)
    model = pin.buildModelFromXML(robot_description(scenario), *root)
    system = ContinuousSystem(scenario.make_system(scenario.parameters))
    rng = np.random.default_rng(1)
    for _ in range(3):
        q = frames.space.retract(frames.space.origin, rng.uniform(-0.6, 0.6, frames.space.nv))
        e = rng.normal(size=frames.space.nv)
        here, back, ahead = (
            pinocchio_configuration(pin, model, frames, frames.space.retract(q, s * step * e))
            for s in (0, -1, 1)
        )
        v = (pin.difference(model, here, ahead) - pin.difference(model, here, back)) / (2 * step)
        energy = pin.computeKineticEnergy(model, model.createData(), here, v)
        assert energy == pytest.approx(e @ system.mass_matrix(q) @ e / 2, rel=1e-8)


@pytest.mark.parametrize(
    "name", ["pendulum_swing_up", "cart_pole", "acrobot", "quadrotor", "quadrotor_payload"]
)
def test_the_urdf_has_the_potential_energy_of_the_system(name):
    """But for a constant; its centers of mass are where those of the system are."""
    pin = pytest.importorskip("pinocchio", reason="needs the package pin")
    scenario, frames, rng = scenarios.get(name), frames_of(name), np.random.default_rng(1)
    model = pin.buildModelFromXML(robot_description(scenario))
    model.gravity.linear = np.array([0.0, 0.0, -scenario.parameters.g])
    system = scenario.make_system(scenario.parameters).numeric
    q, still = ca.SX.sym("q", frames.space.nq), ca.SX(frames.space.nw, 1)
    lagrangian = ca.Function("lagrangian", [q], [system.lagrangian_at(q, still)])
    sums = []
    for _ in range(3):
        q = frames.space.retract(frames.space.origin, rng.uniform(-1, 1, frames.space.nv))
        at = pinocchio_configuration(pin, model, frames, q)
        energy = pin.computePotentialEnergy(model, model.createData(), at)
        sums.append(energy + float(lagrangian(q)))
    np.testing.assert_allclose(sums, sums[0], atol=1e-11)


@pytest.mark.parametrize("name", LARGE)
def test_inertias_are_physical(name):
    """Or those of points."""
    for body in frames_of(name).tree.bodies:
        assert body.mass > 0
        if np.any(body.inertia):
            assert inertia_problem(np.array(body.inertia)) == ""


def test_links_without_inertia_say_why():
    board = scenarios.get("snakeboard")
    light = replace(board.parameters, m=0.3)  # m l^2 above I, as the system needs, but below all
    text = robot_description(board, light)
    assert "<!-- links have no inertia: the total yaw inertia m l^2 is smaller than" in text
    assert "inertial" not in text and "inertial" in robot_description(board)
    bare = replace(scenarios.get("cart_pole"), visual=None)
    assert "no inertia: its energy is a Lagrangian" in robot_description(bare)


def drawn_by(scenario, frames, coordinates):
    """The scenario with these declared frames."""
    tree = FrameTree(coordinates, frames)
    return replace(scenario, visual=lambda p: VisualModel("odom", tree, ()))


def test_a_frame_that_turns_with_anothers_joint_mimics_it():
    board, names = scenarios.get("snakeboard"), ("psi", "phi", "theta", "x", "y")
    hinges = [
        planar("board", "odom"),
        revolute("left", "board", "phi", ratio=-2.0),
        revolute("right", "board", "phi"),
        revolute("front_truck", "board", "phi", ratio=-1.0),
        revolute("third", "board", "psi", ratio=3.0),
        planar("elsewhere", "odom", position=(1.0, 0.0, 0.0)),
    ]
    other = drawn_by(board, hinges, names)
    links = {link.frame: link for link in ScenarioFrames(other).links}
    assert links["front_truck"].joint.name == "front_truck_joint"  # named after the frame
    assert links["right"].joint.name == "rear_truck_joint" and links["right"].mimic is None
    assert links["third"].kind == FLOATING  # by three times a joint that no frame shows
    assert links["elsewhere"].kind == PLANAR
    robot = ElementTree.fromstring(robot_description(other))
    (mimic,) = robot.iter("mimic")
    assert mimic.attrib == {"joint": "rear_truck_joint", "multiplier": "-2", "offset": "0"}
    kinds = {joint.find("child").get("link"): joint.get("type") for joint in robot.iter("joint")}
    assert kinds["base_link"] == "floating" and kinds["left"] == "continuous"


def test_frames_without_a_tree_float_on_the_root_and_have_no_urdf():
    board = scenarios.get("snakeboard")
    tree = board.visual_model().poses
    flat = VisualModel("odom", lambda p, q: tree(p, q), board.visual_model().shapes)
    scenario = replace(board, visual=lambda p: flat)
    frames = ScenarioFrames(scenario)
    assert {(link.parent, link.kind) for link in frames.links} == {("odom", FLOATING)}
    assert [link.frame for link in frames.links] == ["base_link", *tree(None, np.zeros(5))]
    poses = frames.poses(np.array([0.1, 0.2, 0.3, 1.0, 2.0]))
    for frame, pose in frames.placed(poses).items():
        assert_same(pose, poses[frame])
    with pytest.raises(NoUrdf, match="but no joints; declare VisualModel.*FrameTree"):
        robot_description(scenario)


def test_a_tree_for_another_system_is_refused():
    wrong = drawn_by(scenarios.get("snakeboard"), [planar("board", "odom")], ("theta", "x", "y"))
    with pytest.raises(ValueError, match=r"declared for the coordinates \('theta', 'x', 'y'\)"):
        ScenarioFrames(wrong)
