"""Files of URDFs: their encodings and XML declarations, and the names in them."""

import codecs

import numpy as np
import pytest
from test_urdf import INERTIAL, joint, link, robot

from nh_control import scenarios
from nh_control.cli import main
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody import UrdfError, load_urdf
from nh_control.runs import topics
from nh_control.scenarios import PlantOptions
from nh_control.scenarios.disturbance import parse
from nh_control.scenarios.robot_description import robot_description
from nh_control.scenarios.urdf import DEFAULT
from nh_control.scenarios.urdf_meshes import shapes

TEXT = robot(link("base", ""), link("bücher"), joint("j", "continuous", "base", "bücher"))
BARE = TEXT.removeprefix('<?xml version="1.0"?>')


def declared(encoding):
    return f'<?xml version="1.0" encoding="{encoding}"?>\n{BARE}'


FILES = {
    "a blank line first": ("\n" + TEXT).encode(),
    "a comment first": ("<!-- license -->\n" + TEXT).encode(),
    "Latin 1": declared("ISO-8859-1").encode("latin-1"),
    "Windows": declared("windows-1252").encode("cp1252"),
    "UTF-16 with a mark": declared("UTF-16").encode("utf-16"),
    "UTF-16 without": declared("UTF-16").encode("utf-16-be"),
    "UTF-8": declared("utf-8").encode(),
    "UTF-8 with a mark": codecs.BOM_UTF8 + TEXT.encode(),
    "no declaration": BARE.encode(),
    "a zero at the end": TEXT.encode() + b"\r\n\0",
}


@pytest.mark.parametrize("case", FILES)
def test_files_are_read_in_the_encoding_that_they_have(case, tmp_path):
    """Also by the scenario and by nodes, which publish the text."""
    file = tmp_path / "robot.urdf"
    file.write_bytes(FILES[case])
    assert [frame.name for frame in load_urdf(file).frames] == ["base", "bücher"]
    published = robot_description(scenarios.from_urdf(file))
    assert [frame.name for frame in load_urdf(published).frames] == ["base", "bücher"]
    assert published.encode("utf-8").lstrip().startswith(b"<")


@pytest.mark.parametrize("before", ["\n", "\ufeff", "<!-- a -->\n", "\n\n  <!-- <robot> -->"])
def test_a_text_may_begin_before_its_declaration(before):
    assert load_urdf(before + TEXT).space.names == ("j",)
    assert load_urdf(before + declared("ISO-8859-1")).space.names == ("j",)


def test_what_cannot_be_decoded_names_the_file_and_the_remedy(tmp_path):
    file = tmp_path / "robot.urdf"
    for data in (TEXT.encode("latin-1"), declared("no-such-code").encode()):
        file.write_bytes(data)
        with pytest.raises(UrdfError, match="robot.urdf: .*; save the file as UTF-8"):
            load_urdf(file)


NAMED = {
    "no XML": (load_urdf, "<robot"),
    "an element": (load_urdf, "<robot name='r'><link/></robot>"),
    "no name": (load_urdf, "<robot/>"),
    "another format": (load_urdf, "<sdf/>"),
    "a picture": (shapes, robot(link("a", "<visual><geometry><cone/></geometry></visual>"))),
    "a color": (shapes, robot('<material name="m"><color rgba="1, 0 0 1"/></material>')),
}


@pytest.mark.parametrize("case", NAMED)
def test_refusals_name_the_file(case, tmp_path):
    (read, text), file = NAMED[case], tmp_path / "robot.urdf"
    file.write_text(text)
    with pytest.raises(UrdfError, match=str(file)):
        read(file)


def drawn(geometry):
    return shapes(robot(link("a", f"<visual><geometry>{geometry}</geometry></visual>")))


def test_meshes_named_by_expressions_of_xacro_are_left_out_with_the_remedy(caplog):
    assert not drawn('<mesh filename="$(arg folder)/a.stl"/>')
    assert "link a: mesh $(arg folder)/a.stl is a xacro expression: run xacro" in caplog.text


def test_pictures_without_extent_are_left_out():
    assert not drawn('<cylinder radius="0" length="1"/>')
    with pytest.raises(UrdfError, match="<cylinder radius> must be a finite number, got 'inf'"):
        drawn('<cylinder radius="inf" length="1"/>')


def test_names_with_expressions_of_xacro_are_warned_of(caplog):
    arm = joint("$(arg prefix)j", "continuous", "base", "${side}_arm")
    load_urdf(robot(link("base", ""), link("${side}_arm"), arm))
    assert "['$(arg prefix)j', '${side}_arm'] contain xacro expressions: run" in caplog.text


@pytest.mark.parametrize(
    ("joints", "links", "parameters"),
    [
        (["8", "9"], ["1a", "2"], ["_1a_mass", "_2_mass", "_8_damping", "_9_damping"]),
        (
            ["left arm", "vier²", "class", "a:b", "关"],
            ["l/1", "l.1", "µ", "lambda", "ß"],
            ["l_1_mass", "l_1_mass_2", "left_arm_damping", "vier2_damping", "__damping"],
        ),
        (["a-b", "a_b", "a b"], ["x", "y", "z"], ["x_mass", "a_b_damping", "a_b_damping_2"]),
    ],
)
def test_names_may_have_any_characters(joints, links, parameters):
    parents = ["base", *links]
    swing = '<axis xyz="0 1 0"/><origin xyz="0 0 -1"/><limit effort="50" velocity="9"/>'
    chain = [joint(n, "continuous", p, c, swing) for n, p, c in zip(joints, parents, links)]
    hanging = INERTIAL.replace("<mass", '<origin xyz="0 0 -0.5"/><mass')
    text = robot(link("base", ""), *(link(name, hanging) for name in links), *chain)
    scenario = scenarios.from_urdf(text.replace('name="robot"', 'name="3-dof röbot"'))
    assert [one.name for one in scenario.joints] == joints
    names = [f for f in vars(scenario.parameters) if f in parameters]
    assert len(names) == len(parameters) and all(n.isascii() for n in vars(scenario.parameters))
    heavier = scenario.plant_parameters(PlantOptions(parameters={parameters[0]: 4.0}))
    q = np.full(len(joints), 0.1)
    before, after = (
        scenario.make_system(p).model.mass_matrix(q) for p in (scenario.parameters, heavier)
    )
    assert np.abs(after - before).max() > 0.1


def test_targets_of_disturbances_may_have_colons():
    assert parse("a:b:gust:2,start=1").target == "a:b"


def test_topics_of_bodies_are_names_of_ros():
    fly = joint("fly", "floating", "world", "2 hull")
    scenario = scenarios.from_urdf(robot(link("world", ""), link("2 hull"), fly))
    assert topics.odometry(scenario) == ["_2_hull/odom"]


# --- Masses and inertias of a URDF: judged for links that are welded to each other, a ---


HINGE = joint("j", "continuous", "base", "a", '<axis xyz="0 1 0"/>')
WELD = joint("weld", "fixed", "a", "b")
PART = 1e-3
DUMMY = (
    '<inertial><mass value="0.001"/><inertia ixx="1e-3" ixy="1e-3" ixz="1e-3" iyy="1e-3" '
    'iyz="1e-3" izz="1e-3"/></inertial>'
)
NO_MASS = DUMMY.replace('value="0.001"', 'value="0"')
WRONG = INERTIAL.replace('izz="0.3"', 'izz="0.7"')


@pytest.mark.parametrize("dummy", [DUMMY, NO_MASS])
def test_an_impossible_inertia_of_one_of_several_welded_links_is_a_warning(dummy, caplog):
    """The sum counts, and the dummy's numbers are part of it."""
    model = load_urdf(robot(link("base", ""), link("a"), link("b", dummy), HINGE, WELD))
    assert "link 'b': " in caplog.text and "link 'a'" not in caplog.text
    np.testing.assert_allclose(model.mass_matrix([0.2]), [[0.3 + PART]], rtol=1e-15)


def test_impossible_inertias_are_refused_unless_accepted(caplog):
    """Those of links that are welded together by both names."""
    alone = robot(link("base", ""), link("a", WRONG), HINGE)
    text = robot(link("base", ""), link("a"), link("b", WRONG.replace("0.7", "7")), HINGE, WELD)
    for wrong, names, warned in (
        (text, "links 'a' and 'b'", "b"),
        (alone, "URDF of 'robot': link 'a'", "a"),
    ):
        words = f"{names}: inertia violates the triangle inequality.*accept_any_inertia=True"
        with pytest.raises(UrdfError, match=words):
            load_urdf(wrong)
        assert load_urdf(wrong, accept_any_inertia=True).space.names == ("j",)
        assert f"link '{warned}': inertia violates the triangle inequality" in caplog.text
    light = alone.replace('<mass value="2"', '<mass value="0.1"')
    (body,) = load_urdf(light, accept_any_inertia=True).bodies
    assert body.mass == 0.1 and body.inertia[2][2] == 0.7
    with pytest.raises(UrdfError, match="mass must be positive"):
        load_urdf(alone.replace('"2"', '"-2"'), accept_any_inertia=True)


def test_links_that_do_not_move_may_have_any_inertia(caplog):
    model = load_urdf(robot(link("base", WRONG), link("a"), HINGE))
    assert model.space.names == ("j",) and "link 'base': inertia violates" in caplog.text


def test_a_thin_rod_is_a_body():
    rod = INERTIAL.replace('ixx="0.3"', 'ixx="0"')
    model = load_urdf(robot(link("base", ""), link("a", rod), HINGE))
    np.testing.assert_allclose(model.mass_matrix([0.2]), [[0.3]])


def test_the_round_off_of_no_inertia_is_a_point_mass():
    noise = INERTIAL.replace("0.3", "1e-20").replace('izz="1e-20"', 'izz="-3e-20"')
    low = noise.replace("<mass", '<origin xyz="0 0 -0.5"/><mass')
    model = load_urdf(robot(link("base", ""), link("a", low), HINGE))
    np.testing.assert_allclose(model.mass_matrix([0.2]), [[2 * 0.5**2]])


def test_an_inertia_without_mass_says_what_to_do():
    text = robot(link("base", ""), link("a", NO_MASS), HINGE)
    with pytest.raises(UrdfError, match="'a': mass must be positive.* accept_any_inertia=True"):
        load_urdf(text)
    model = load_urdf(text, accept_any_inertia=True)
    np.testing.assert_allclose(model.mass_matrix([0.2]), [[PART]])


def test_the_remedy_is_an_option_of_scenarios_and_the_command(tmp_path, capsys):
    file = str(tmp_path / "wrong.urdf")
    (tmp_path / "wrong.urdf").write_text(robot(link("base", ""), link("a", WRONG), HINGE))
    scenario = scenarios.get("urdf", file, accept_any_inertia=True)
    assert scenarios.of_origin(scenario.origin).origin == scenario.origin
    assert scenarios.of_origin(scenario.origin | {"accept_any_inertia": "true"})
    refused, option = ["list", "urdf", "--urdf", file], "--accept-any-inertia"
    assert main(refused) == 2 and option in capsys.readouterr().err
    assert main([*refused, option]) == 0
    with pytest.raises(ValueError, match="'snakeboard' takes no robot"):
        scenarios.get("snakeboard", accept_any_inertia=True)


LIMITS = {
    "revolute": ("revolute", "", "type='continuous'"),
    "prismatic": ("prismatic", "", "lower='-inf' upper='inf'"),
    "an empty range": ("prismatic", '<limit lower="1" upper="-1"/>', "lower='-inf' upper='inf'"),
    "a negative speed": ("revolute", '<limit upper="1" velocity="-1"/>', "leave out"),
}


@pytest.mark.parametrize("case", LIMITS)
def test_messages_of_limits_name_the_joint_and_a_remedy_that_helps(case):
    kind, limit, remedy = LIMITS[case]
    with pytest.raises(UrdfError, match=f"joint 'j': .*{remedy}"):
        load_urdf(robot(link("base", ""), link("a"), joint("j", kind, "base", "a", limit)))
    unlimited = '<limit lower="-inf" upper="inf"/>'
    load_urdf(robot(link("base", ""), link("a"), joint("j", kind, "base", "a", unlimited)))


@pytest.mark.parametrize("inertial", ["", INERTIAL.replace("0.3", "0")])
def test_a_floating_base_is_no_remedy_for_what_could_not_float(inertial):
    """A plane without mass, and a point mass."""
    with pytest.raises(UrdfError, match="no joint moves: add a joint; .*needs a <mass> and an"):
        load_urdf(robot(link("plane", inertial)))


def test_arms_without_masses_say_so():
    with pytest.raises(UrdfError, match=r"no link that the joints \['j'\] move has a mass"):
        load_urdf(robot(link("base", ""), link("a", ""), HINGE))
    fixed = joint("f", "fixed", "world", "base")
    with pytest.raises(UrdfError, match="no joint moves: add a joint; "):
        load_urdf(robot(link("world", ""), link("base"), fixed))


# --- rotors ---

J, N = 2e-4, 50.0
PLAIN = DEFAULT.read_text()


def geared(*transmissions, text=PLAIN):
    """The double pendulum with these elements."""
    named = '<robot xmlns:drake="http://drake.mit.edu" name'
    return text.replace("<robot name", named).replace(
        "</robot>", "".join(transmissions) + "</robot>"
    )


def transmission(joint, values, actuators=1):
    """A transmission of a joint."""
    actuator = f'<actuator name="m">{values}</actuator>' * actuators
    return f'<transmission name="t"><joint name="{joint}"/>{actuator}</transmission>'


def weld(name, child):
    """A fixed joint on the lower link."""
    links = f'<parent link="lower_link"/><child link="{child}"/>'
    return f'<joint name="{name}" type="fixed">{links}</joint>'


DRAKE = f'<drake:gear_ratio value="{N}"/><drake:rotor_inertia value="{J}"/>'
PLAIN_TAGS = f'<mechanicalReduction>{N}</mechanicalReduction><rotor_inertia value="{J}"/>'


def mass_matrix(text, q):
    return ContinuousSystem(load_urdf(text).system).mass_matrix(q)


@pytest.mark.parametrize("values", [DRAKE, PLAIN_TAGS])
def test_a_rotor_on_a_moving_link_couples_joints_as_in_the_literature(values):
    """T = J (q1' + n q2')^2 / 2 of the motor of the elbow, on the upper link."""
    q = np.array([0.3, -0.4])
    before, both = mass_matrix(PLAIN, q), geared(transmission("elbow", values))
    change = mass_matrix(both, q) - before
    np.testing.assert_allclose(change, J * np.outer([1, N], [1, N]), atol=1e-8)


def test_a_rotor_on_the_fixed_base_is_its_reflected_inertia():
    q = np.array([0.3, -0.4])
    change = mass_matrix(geared(transmission("shoulder", DRAKE)), q) - mass_matrix(PLAIN, q)
    np.testing.assert_allclose(change, np.diag([N**2 * J, 0.0]), atol=1e-8)


def test_transmissions_without_a_rotor_inertia_change_nothing():
    for ratio in ("50", "reduction"):
        elbow = transmission("elbow", f"<mechanicalReduction>{ratio}</mechanicalReduction>")
        model, plain = load_urdf(geared(elbow)), load_urdf(PLAIN)
        assert [f.name for f in model.frames] == [f.name for f in plain.frames]
        assert model.system.inputs == plain.system.inputs


@pytest.mark.parametrize(
    ("element", "words"),
    [
        (transmission("wrist", DRAKE), r"'wrist': a rotor needs .*, choose from \['shoulder'"),
        (transmission("elbow", DRAKE, 2), "one joint and one actuator, got 1 and 2"),
        (transmission("elbow", '<rotor_inertia value="-1"/>'), "inertia >= 0"),
        (
            transmission(
                "elbow", '<mechanicalReduction>a</mechanicalReduction><rotor_inertia value="1"/>'
            ),
            "'t': <mechanicalReduction> must be a finite number, got 'a'",
        ),
        (transmission("elbow", '<rotor_inertia value="a"/>'), "rotor_inertia"),
    ],
)
def test_what_is_no_motor_is_told(element, words):
    with pytest.raises(UrdfError, match=words):
        load_urdf(geared(element))


def test_names_of_rotors_do_not_meet_those_of_links_and_of_other_rotors():
    link = '<link name="elbow_rotor"/>' + weld("w", "elbow_rotor")
    q, motor = np.array([0.3, -0.4]), transmission("elbow", DRAKE)
    one, two = (mass_matrix(geared(link, *[motor] * n), q) for n in (1, 2))
    np.testing.assert_allclose(two - one, one - mass_matrix(PLAIN, q), atol=1e-8)


def test_a_fixed_joint_of_the_same_name_does_not_take_the_motor():
    text = geared('<link name="b"/>', weld("elbow", "b"), transmission("elbow", DRAKE))
    both = geared(transmission("elbow", DRAKE))
    q = np.array([0.3, -0.4])
    np.testing.assert_allclose(mass_matrix(text, q), mass_matrix(both, q), rtol=1e-14)
