"""Joints of a URDF that follow others: of followers, of fixed joints, and without mass."""

from xml.etree import ElementTree

import numpy as np
import pytest
from test_urdf import joint, link, robot
from transforms3d.euler import euler2mat

from nh_control import multibody as mb
from nh_control import scenarios
from nh_control.mechanics.contact_rows import ContactRows
from nh_control.scenarios.robot_description import robot_description

Y = '<axis xyz="0 1 0"/><origin xyz="0 0 -1"/>'
PALM, A, B, C = link("palm", ""), link("a"), link("b"), link("c")
BALL = '<collision><origin xyz="0 0 -1"/><geometry><sphere radius="0.1"/></geometry></collision>'
PAD = link("b", BALL)


def follows(leader, multiplier, offset):
    return f'{Y}<mimic joint="{leader}" multiplier="{multiplier}" offset="{offset}"/>'


FIRST = joint("j1", "continuous", "palm", "a", Y)
SECOND = joint("j2", "continuous", "a", "b", follows("j1", 2, 0.1))
THIRD = joint("j3", "continuous", "b", "c", follows("j2", 0.5, -0.2))
TURNED = '<axis xyz="0 0 1"/><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>'


def turned(angle):
    return euler2mat(0, angle, 0)


@pytest.mark.parametrize("joints", [(FIRST, SECOND, THIRD), (THIRD, SECOND, FIRST)])
def test_a_follower_of_a_follower_follows_its_leader(joints):
    """q3 = 0.5 (2 q1 + 0.1) - 0.2."""
    model = mb.load_urdf(robot(PALM, A, B, C, *joints))
    assert model.space.names == ("j1",)
    pose = mb.Robot(model).frame_pose(model.configuration({"j1": 0.4}), "c")
    np.testing.assert_allclose(pose.rotation, turned(0.4 + 0.9 + 0.25), atol=1e-15)


def test_frames_may_follow_frames_that_follow_others():
    """The place of a slide, and the energy: T = m (2 q')^2 / 2."""
    frames = [
        mb.prismatic("left", axis="y", mimic=mb.Mimic("middle", -3.0, 0.1)),
        mb.prismatic("right", axis="y"),
        mb.prismatic("middle", axis="y", mimic=mb.Mimic("right", 2.0, 0.05)),
    ]
    model = mb.Multibody("gripper", frames, [mb.Body("middle", 0.5)])
    q = model.configuration({"right": 0.2})
    np.testing.assert_allclose(model.pose(q, "left").position, [0, -3 * 0.45 + 0.1, 0])
    np.testing.assert_allclose(model.mass_matrix(q), [[0.5 * 2**2]])


def test_followers_without_mass_follow_their_leader():
    """Their frames, contacts and damping; the mass matrix has no part of them."""
    pad = joint("j2", "continuous", "a", "b", follows("j1", 2, 0.1) + '<dynamics damping="3"/>')
    model = mb.load_urdf(robot(PALM, A, PAD, FIRST, pad), contacts="collision")
    q = model.configuration({"j1": 0.4})
    np.testing.assert_allclose(model.pose(q, "b").rotation, turned(0.4 + 0.9), atol=1e-15)
    bare = mb.load_urdf(robot(PALM, A, FIRST))
    np.testing.assert_allclose(model.mass_matrix(q), bare.mass_matrix(q))
    assert [(e.coordinate, e.damping) for e in model.elements] == [("j1", 12.0)]
    system = model.system
    gaps = system.value(ContactRows(system.mechanics).gaps(system.symbols[0]), q)
    np.testing.assert_allclose(gaps, -1 - np.cos(0.4) - np.cos(1.3) - 0.1)


def test_pictures_show_followers_without_mass_where_they_are(tmp_path):
    file = tmp_path / "finger.urdf"
    file.write_text(robot(PALM, A, PAD, FIRST, SECOND))
    scenario = scenarios.from_urdf(file)
    assert [one.name for one in scenario.joints] == ["j1"]
    poses = scenario.visual(scenario.parameters).poses(scenario.parameters, np.array([0.4]))
    np.testing.assert_allclose(poses["b"].rotation, turned(0.4 + 0.9), atol=1e-15)


def test_the_description_has_the_joints_of_the_model(tmp_path):
    """For programs that know the positions in joint_states alone."""
    camera = [link("camera", ""), joint("pan", "continuous", "c", "camera", TURNED)]
    text = robot(PALM, A, B, C, FIRST, SECOND, THIRD, *camera, "<drake:material/>")
    file = tmp_path / "finger.urdf"
    file.write_text(text)
    scenario = scenarios.from_urdf(file)
    described = mb.load_urdf(robot_description(scenario))
    third, camera = described.tree.frames["c"], described.tree.frames["camera"]
    assert third.mimic == mb.Mimic("j1", 1.0, -0.15) and camera.is_fixed
    q = [0.4]
    for name, pose in mb.load_urdf(text).poses(q).items():
        np.testing.assert_allclose(described.pose(q, name).rotation, pose.rotation, atol=1e-12)
        np.testing.assert_allclose(described.pose(q, name).position, pose.position, atol=1e-12)
    assert "drake:material" in robot_description(scenario)
    assert 'type="continuous"' in robot_description(scenario)


def test_the_description_has_absolute_paths_of_meshes(tmp_path, monkeypatch):
    """For rviz, which gets a text without a folder."""
    names = "visual/a.obj", "/opt/b.stl", "file:///opt/c.stl", "package://arm/d.dae"
    visuals = "".join(
        f'<visual><geometry><mesh filename="{name}"/></geometry></visual>' for name in names
    )
    text = robot(PALM, A.replace("</link>", f"{visuals}</link>"), FIRST)
    (tmp_path / "finger.urdf").write_text(text)
    monkeypatch.chdir(tmp_path)
    described = robot_description(scenarios.from_urdf("finger.urdf"))
    found = [mesh.get("filename") for mesh in ElementTree.fromstring(described).iter("mesh")]
    assert found == [
        f"file://{tmp_path}/visual/a.obj",
        "file:///opt/b.stl",
        "file:///opt/c.stl",
        "package://arm/d.dae",
    ]


def test_a_rotor_of_a_follower_turns_with_its_leader():
    """On the fixed palm: J (ratio multiplier)^2."""
    motor = (
        '<transmission name="t"><joint name="j2"/><actuator name="m"><mechanicalReduction>50'
        '</mechanicalReduction><rotor_inertia value="2e-4"/></actuator></transmission>'
    )
    second = joint("j2", "continuous", "palm", "b", follows("j1", 2, 0.1))
    with_motor, without = (
        mb.load_urdf(robot(PALM, A, B, FIRST, second, *more)).mass_matrix([0.3])
        for more in ([motor], [])
    )
    np.testing.assert_allclose(with_motor - without, [[2e-4 * 100**2]], rtol=1e-12)


def test_a_follower_of_a_joint_that_does_not_move_is_fixed_at_its_offset(caplog):
    slide = '<axis xyz="0 0 1"/><limit upper="1" effort="1" velocity="1"/>'
    model = mb.load_urdf(
        robot(
            *(PALM, A, B, C, link("d", "")),
            FIRST,
            joint("weld", "fixed", "palm", "b"),
            joint("j3", "continuous", "b", "c", follows("weld", 3, 0.2)),
            joint("j4", "prismatic", "b", "d", slide + '<mimic joint="weld" offset="0.3"/>'),
        )
    )
    q = model.configuration({"j1": 1.0})
    np.testing.assert_allclose(model.pose(q, "c").rotation, turned(0.2), atol=1e-15)
    np.testing.assert_allclose(model.pose(q, "d").position, [0, 0, 0.3])
    assert "the joints ['j3', 'j4'] are fixed" in caplog.text


def test_leader_and_followers_without_mass_stay_at_rest_together(caplog):
    bare = [link(name, "") for name in "ab"]
    model = mb.load_urdf(
        robot(PALM, *bare, C, FIRST, SECOND, joint("j3", "continuous", "palm", "c"))
    )
    assert model.space.names == ("j3",) and "['j1', 'j2'] are fixed" in caplog.text
    np.testing.assert_allclose(model.pose([0.7], "b").rotation, turned(0.1), atol=1e-15)
    with pytest.raises(mb.UrdfError, match=r"joints \['j1', 'j2'\] move has a mass: give those"):
        mb.load_urdf(robot(PALM, *bare, FIRST, SECOND))


@pytest.mark.parametrize("leader", ["j1", "j2"])
def test_joints_that_follow_each_other_are_named(leader):
    first = joint("j1", "continuous", "palm", "a", follows(leader, 1, 0))
    with pytest.raises(mb.UrdfError, match=f"the mimics of .*{leader!r}.* form a cycle"):
        mb.load_urdf(robot(PALM, A, B, first, SECOND))
    frames = [mb.revolute("j1", mimic=mb.Mimic(leader)), mb.revolute("j2", mimic=mb.Mimic("j1"))]
    with pytest.raises(ValueError, match="form a cycle"):
        mb.Multibody("circle", frames, [mb.Body("j1", 1.0, inertia=(1, 1, 1))])


def test_followers_of_a_pose_are_refused():
    fly = joint("fly", "floating", "palm", "a")
    second = joint("j2", "continuous", "a", "b", follows("fly", 1, 0))
    with pytest.raises(mb.UrdfError, match="'j2' follows 'fly', which is no joint with one"):
        mb.load_urdf(robot(PALM, A, B, fly, second))
