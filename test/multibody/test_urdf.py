"""URDF files in: what is read, what is refused, and a controlled plant in a few lines."""

import logging
import sys
from pathlib import Path

import numpy as np
import pytest
from refusals import said
from transforms3d.euler import euler2mat
from urdf_robots import ROBOTS, all_files

import nh_control
from nh_control.integrators import midpoint
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody import CoordinateLimits, JointDamper, JointFriction, UrdfError, load_urdf

DOUBLE_PENDULUM = Path(nh_control.__file__).parent / "data" / "double_pendulum.urdf"
INERTIAL = (
    '<inertial><mass value="2"/><inertia ixx="0.3" ixy="0" ixz="0" iyy="0.3" iyz="0" '
    'izz="0.3"/></inertial>'
)


def link(name, content=INERTIAL):
    return f'<link name="{name}">{content}</link>'


def joint(name, kind, parent, child, content=""):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child '
        f'link="{child}"/>{content}</joint>'
    )


def robot(*parts):
    return f'<?xml version="1.0"?><robot name="robot">{"".join(parts)}</robot>'


def hinge(content="", kind="continuous", base="", child=INERTIAL):
    """A link on a base."""
    return robot(link("base", base), link("a", child), joint("j", kind, "base", "a", content))


LIMIT = '<limit effort="5" velocity="3" lower="-1" upper="2"/>'
EVERY_JOINT = robot(
    link("base", ""),
    link("a"), link("b"), link("c"), link("d"), link("e"), link("f"), link("g", ""),
    joint("swing", "revolute", "base", "a", f'<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis '
        f'xyz="0 3 4"/>{LIMIT}<dynamics damping="0.5" friction="0.1"/>'),
    joint("spin", "continuous", "a", "b", "<axis xyz='0 0 1'/>"),
    joint("push", "prismatic", "b", "c", '<limit effort="0" velocity="1" lower="0" upper="0.5"/>'),
    joint("follow", "revolute", "c", "d", f'{LIMIT}<mimic joint="swing" multiplier="-2" '
        f'offset="0.3"/><dynamics damping="0.1"/>'),
    joint("glide", "planar", "base", "e", '<axis xyz="0 0 1"/>'),
    joint("fly", "floating", "base", "f"),
    joint("weld", "fixed", "f", "g", '<origin xyz="0 0 1"/>'),
)  # fmt: skip


def test_every_joint_type_is_read(caplog):
    with caplog.at_level(logging.WARNING):
        model = load_urdf(EVERY_JOINT)
    assert "friction" not in caplog.text
    assert model.space.names == (
        "glide_theta",
        "glide_x",
        "glide_y",
        *(f"fly_{c}" for c in ("qw", "qx", "qy", "qz", "x", "y", "z")),
        "swing",
        "spin",
        "push",
    )
    assert model.system.inputs == ("swing_torque", "spin_torque")
    np.testing.assert_array_equal(model.system.input_bounds, [[-5, 5], [-np.inf, np.inf]])
    assert model.elements == (
        JointDamper("swing", 0.5),
        JointDamper("swing", 0.4),
        JointFriction("swing", 0.1),
    )
    limits = {
        name: (f.limits.lower, f.limits.upper, f.limits.velocity)
        for name, f in model.tree.frames.items()
    }
    assert limits["a"] == (-1, 2, 3) and limits["b"] == (-np.inf, np.inf, np.inf)
    assert limits["c"] == (0, 0.5, 1)
    q = model.configuration({"swing": 0.4, "push": 0.25, "fly_z": 2.0})
    np.testing.assert_allclose(model.pose(q, "a").position, [1, 2, 3])
    tilt = euler2mat(0.1, 0.2, 0.3, axes="sxyz")
    np.testing.assert_allclose(model.pose(q, "a").rotation @ [0, 3, 4], tilt @ [0, 3, 4])
    np.testing.assert_allclose(
        model.pose(q, "c").position - [1, 2, 3],
        model.pose(q, "a").rotation @ [0.25, 0, 0],
        atol=1e-15,
    )
    np.testing.assert_allclose(
        model.pose(q, "d").rotation,
        model.pose(q, "c").rotation @ euler2mat(-2 * 0.4 + 0.3, 0, 0),
        atol=1e-15,
    )
    np.testing.assert_allclose(model.pose(q, "g").position, [0, 0, 3])


def test_the_joints_with_inputs_may_be_chosen():
    assert load_urdf(EVERY_JOINT, actuated=["push"]).system.inputs == ("push_force",)
    assert load_urdf(EVERY_JOINT, actuated=[]).system.nu == 0
    with pytest.raises(
        UrdfError, match=r"actuated: 'follow' .* choose from \['swing', 'spin', 'push'\]"
    ):
        load_urdf(EVERY_JOINT, actuated=["follow"])


def test_an_inertia_is_turned_and_moved_by_its_origin():
    """A cube of two different halves, by one inertial and by two links welded together."""
    origin = '<origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/>'
    straight = (
        '<inertial><mass value="2"/><inertia ixx="0.3" ixy="0.01" ixz="0.02" iyy="0.4" '
        'iyz="-0.03" izz="0.5"/></inertial>'
    )
    turned = straight.replace("<mass", f"{origin}<mass")
    one = load_urdf(robot(link("base", turned)), base="floating")
    weld = joint("weld", "fixed", "base", "core", origin)
    two = load_urdf(robot(link("base", ""), link("core", straight), weld), base="floating")
    q = one.space.retract(one.space.origin, np.arange(6) / 5)
    masses = [ContinuousSystem(model.system).mass_matrix(q) for model in (one, two)]
    np.testing.assert_allclose(*masses, rtol=0, atol=1e-15)
    R = euler2mat(0.4, 0.5, 0.6, axes="sxyz")
    tensor = R @ [[0.3, 0.01, 0.02], [0.01, 0.4, -0.03], [0.02, -0.03, 0.5]] @ R.T
    c = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(
        masses[0][:3, :3], tensor + 2 * (c @ c * np.eye(3) - np.outer(c, c)), rtol=0, atol=1e-15
    )


def test_a_floating_base_is_named_after_the_root_link():
    model = load_urdf(str(DOUBLE_PENDULUM), base="floating", actuated=["elbow"])
    pose = tuple(f"base_link_{c}" for c in ("qw", "qx", "qy", "qz", "x", "y", "z"))
    assert model.space.names == (*pose, "shoulder", "elbow")
    assert model.system.inputs == ("elbow_torque",)


def test_a_spinning_robot_falls_along_its_parabola_where_its_base_is_on_so3_and_r3():
    errors = {}
    for space in ("SE3", "SO3xR3"):
        model = load_urdf(robot(link("base")), base="floating", space=space)
        dsys, q, v = midpoint(model.system, 0.01), model.space.origin, [3.0, -2.0, 1.0, 1.0, 0, 0]
        x = dsys.simulate(dsys.state(q, v), np.zeros((100, 0))).states[-1]
        errors[space] = np.abs(dsys.configuration(x)[4:] - [1.0, 0.0, -9.81 / 2]).max()
    assert errors["SO3xR3"] < 1e-12 < 1e-6 < errors["SE3"]


def test_a_root_named_world_is_the_world():
    text = robot(link("world", ""), link("a"), joint("j", "continuous", "world", "a"))
    assert tuple(load_urdf(text).tree.frames) == ("a",)
    with pytest.raises(UrdfError, match="'world' cannot move: use base='fixed'"):
        load_urdf(text, base="floating")


def test_links_without_inertia_are_points_and_links_without_mass_carry_nothing():
    point = INERTIAL.replace("0.3", "0")
    bare = link("b", point.replace('value="2"', 'value="0"')) + joint("w", "fixed", "a", "b")
    model = load_urdf(hinge().replace("</robot>", f"{bare}</robot>"))
    assert [body.frame for body in model.bodies] == ["a"]
    (body,) = load_urdf(robot(link("base", point)), base="floating").bodies
    assert not np.any(body.inertia)


def test_prefixes_of_extensions_need_no_declaration():
    others = "<drake:collision_filter_group name='x'/><gazebo reference='a'/></robot>"
    assert load_urdf(hinge().replace("</robot>", others)).space.names == ("j",)


def test_missing_joint_elements_have_the_defaults_of_the_format():
    """An axis is x; a mimic follows one to one; without a limit an effort has none."""
    follower = joint("k", "continuous", "a", "b", '<mimic joint="j"/>')
    text = hinge().replace("</robot>", f"{link('b')}{follower}</robot>")
    model = load_urdf(text)
    a, b = (model.tree.frames[name] for name in "ab")
    assert a.joint.axis == b.joint.axis == (1, 0, 0) and a.position == (0, 0, 0)
    assert (b.mimic.coordinate, b.mimic.ratio, b.mimic.offset) == ("j", 1.0, 0.0)
    assert model.gravity == (0, 0, -9.81)
    assert model.system.input_bounds.tolist() == [[-np.inf, np.inf]]
    assert load_urdf(text, gravity=(0, 1, 0)).gravity == (0, 1, 0)


def test_a_joint_without_ends_has_none_and_one_that_does_not_move_no_friction(caplog):
    limit = '<limit effort="5" velocity="3" lower="0" upper="0"/>'
    rough = '<dynamics damping="0.5" friction="0.1"/>'
    parts = link("base", ""), link("a"), link("b"), link("c")
    with caplog.at_level(logging.WARNING):
        model = load_urdf(
            robot(
                *parts,
                joint("i", "continuous", "base", "a", limit),
                joint("j", "fixed", "a", "b", rough + limit + '<mimic joint="i"/>'),
                joint("k", "planar", "b", "c", rough),
            )
        )
    assert model.tree.frames["a"].limits == CoordinateLimits(velocity=3.0) and not caplog.text
    assert model.system.inputs == ("i_torque",) and model.elements == ()
    assert model.tree.frames["b"].mimic is None


def test_a_robot_s_name_becomes_one_of_a_system():
    model = load_urdf(hinge().replace('name="robot"', 'name="two-armed robot"'))
    assert model.name == model.system.name == "two_armed_robot"


def test_joints_come_in_the_order_of_the_file_each_after_that_of_its_parent():
    parents = {"x": "base", "x1": "x", "x2": "x", "x3": "x1", "y": "base", "y1": "y", "y2": "y"}
    joints = [joint(child, "continuous", parent, child) for child, parent in parents.items()]
    model = load_urdf(robot(link("base", ""), *map(link, reversed(parents)), *joints))
    assert model.space.names == ("x", "x1", "x3", "x2", "y", "y1", "y2")


def test_all_robots_of_the_packages_load_and_objects_without_joints_say_how():
    """Of 21 files 11 are objects without joints; a gripper's fingers have no mass."""
    pytest.importorskip("xacro", reason="see the extra urdf-test")
    refused, reasons = (
        [],
        {"load it with base='floating'": 0, "needs a <mass> and an <inertia>": 0},
    )
    for file in all_files():
        try:
            load_urdf(file)
        except UrdfError as error:
            refused.append(file.stem)
            if file.stem == "schunk_egk40":
                assert "no joint moves, because no link that the joints" in str(error)
                continue
            (reason,) = (reason for reason in reasons if reason in str(error))
            reasons[reason] += 1
            floats = load_urdf(file, base="floating")
            assert floats.space.nv == 6 and floats.is_known_regular == reason.startswith("load")
    assert [*reasons.values()] == [4, 7]
    assert len(refused) == 12 and not {*refused} & {*ROBOTS}


def inertial(old, new):
    """A link whose inertial is written otherwise."""
    return robot(link("a", INERTIAL.replace(old, new)))


def origin(attribute):
    return inertial("<mass", f"<origin {attribute}/><mass")


A, B, C = link("a"), link("b"), link("c")
REFUSED = {
    "no XML": "<robot",
    "no robot": "<model/>",
    "no name": "<robot/>",
    "xacro": robot("<xacro:include filename='x'/>"),
    "an unknown joint type": hinge(kind="ball"),
    "no parent": robot(A, '<joint name="j" type="fixed"><child link="a"/></joint>'),
    "an unknown link": robot(link("base"), joint("j", "fixed", "base", "a")),
    "a world that moves": robot(
        link("base"), link("world"), joint("j", "continuous", "base", "world")
    ),
    "two parents": robot(A, B, C, joint("i", "fixed", "a", "c"), joint("j", "fixed", "b", "c")),
    "a loop": robot(A, B, C, joint("i", "fixed", "b", "c"), joint("j", "fixed", "c", "b")),
    "two roots": robot(A, B),
    "two links of one name": robot(A, A),
    "no limit": hinge(kind="revolute"),
    "an axis of zero": hinge('<axis xyz="0 0 0"/>'),
    "an axis of two": hinge('<axis xyz="0 1"/>'),
    "an axis without numbers": hinge("<axis/>"),
    "a negative damping": hinge('<dynamics damping="-1"/>'),
    "no value in the range": hinge('<limit lower="inf" upper="inf"/>', "revolute"),
    "a negative effort": hinge('<limit effort="-1" velocity="1"/>'),
    **{
        f"a mass of {number}": inertial('"2"', f'"{number}"')
        for number in ("nan", "1e400", "2 3", "1_0", "two")
    },
    "an infinite angle": origin('rpy="inf 0 0"'),
    "an empty number": origin('xyz=""'),
    "commas": origin('rpy="1.5, 1.3 1.5"'),
    "an expression of xacro": origin('rpy="$(arg rpy)"'),
    "no moment of inertia": inertial('ixx="0.3"', ""),
    "an inertial with inertia alone": inertial('<mass value="2"/>', ""),
    "a mimic of a pose": hinge('<mimic joint="i"/>', "floating"),
    "a mimic of nothing": hinge('<mimic joint="i"/>'),
    "no links": '<robot name="r"><deformable/></robot>',
    "nothing": " ",
    "no joints": robot(link("base")),
}


def test_invalid_urdf_files_are_refused(snapshot):
    assert said(REFUSED, load_urdf, UrdfError) == snapshot


def test_a_wrong_base_and_a_missing_file_are_refused():
    with pytest.raises(ValueError, match="base must be 'fixed' or 'floating', got 'free'"):
        load_urdf(DOUBLE_PENDULUM, base="free")
    with pytest.raises(FileNotFoundError):
        load_urdf("no_such.urdf")


def test_a_mass_without_inertia_is_a_point_mass(caplog):
    """A pendulum of 2 kg and 0.5 m."""
    low = '<inertial><origin xyz="0 0 -0.5"/><mass value="2"/></inertial>'
    model = load_urdf(hinge('<axis xyz="0 1 0"/>', child=low))
    assert model.mass_matrix([0.3])[0, 0] == pytest.approx(2 * 0.5**2)
    assert "link 'a'" in caplog.text and "2 kg are a point mass" in caplog.text


def test_joints_that_carry_no_mass_are_fixed(caplog):
    """A camera on a bracket, both without mass; a joint that carries a mass further out moves."""
    names = ["base", "arm", "bracket", "camera", "hand"]
    text = robot(
        link("base", ""),
        *(link(name, "" if name != "hand" else INERTIAL) for name in names[1:]),
        joint("shoulder", "continuous", "base", "arm"),
        joint("pan", "continuous", "arm", "bracket"),
        joint("tilt", "continuous", "bracket", "camera"),
        joint("wrist", "continuous", "arm", "hand", '<axis xyz="0 0 1"/>'),
    )
    model = load_urdf(text)
    assert model.space.names == ("shoulder", "wrist")
    assert [i.coordinate for i in model.inputs] == ["shoulder", "wrist"]
    assert "the joints ['pan', 'tilt'] are fixed: " in caplog.text and "<mass>" in caplog.text
    model.pose(model.configuration(), "camera")


XACRO = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:property name="mass" value="${1.5 * 2}"/>
<link name="base"/><link name="a"><inertial><origin xyz="0 0 -1"/><mass value="${mass}"/>
</inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/></joint>
</robot>"""


def test_a_xacro_file_is_expanded(tmp_path):
    pytest.importorskip("xacro", reason="needs xacro, see the extra urdf-test")
    file = tmp_path / "arm.urdf.xacro"
    file.write_text(XACRO)
    assert load_urdf(file).mass_matrix([0.0])[0, 0] == pytest.approx(3.0)
    file.write_text(XACRO.replace("${mass}", "${weight}"))
    with pytest.raises(UrdfError, match="arm.urdf.xacro: xacro: .*weight"):
        load_urdf(file)


def test_without_xacro_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    file = tmp_path / "arm.urdf.xacro"
    file.write_text(XACRO)
    with pytest.raises(UrdfError, match="need the package xacro: pip install xacro"):
        load_urdf(file)


@pytest.mark.parametrize(
    ("variable", "inside"),
    [("AMENT_PREFIX_PATH", "share/my_arm"), ("ROS_PACKAGE_PATH", "my_arm"), ("", "")],
)
def test_a_file_of_a_package_is_found(variable, inside, tmp_path, monkeypatch):
    """By ROS 2, by ROS 1, or as a Python package."""
    folder = tmp_path / (inside or "my_arm")
    (folder / "urdf").mkdir(parents=True)
    (folder / "urdf" / "arm.urdf").write_text(DOUBLE_PENDULUM.read_text())
    for name in ("AMENT_PREFIX_PATH", "ROS_PACKAGE_PATH"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, f"/nowhere:{tmp_path}")
    else:
        (folder / "__init__.py").write_text("")
        monkeypatch.syspath_prepend(tmp_path)
    uri = "package://my_arm/urdf/arm.urdf"
    assert load_urdf(uri).space.nq == 2
    with pytest.raises(UrdfError, match="no such file in share/my_arm.*source the package's"):
        load_urdf(uri.replace("arm.urdf", "leg.urdf"))
