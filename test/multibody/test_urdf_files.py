"""Files of URDFs: their encodings and XML declarations, and the names in them."""

import codecs

import numpy as np
import pytest
from test_urdf import INERTIAL, joint, link, robot

from nh_control import scenarios
from nh_control.multibody import UrdfError, load_urdf
from nh_control.runs import topics
from nh_control.scenarios import PlantOptions
from nh_control.scenarios.disturbance import parse
from nh_control.scenarios.robot_description import robot_description
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
    assert "link a: mesh $(arg folder)/a.stl is an expression of xacro: run xacro" in caplog.text


def test_pictures_without_extent_are_left_out():
    assert not drawn('<cylinder radius="0" length="1"/>')
    with pytest.raises(UrdfError, match="<cylinder radius> must be a finite number, got 'inf'"):
        drawn('<cylinder radius="inf" length="1"/>')


def test_names_with_expressions_of_xacro_are_warned_of(caplog):
    arm = joint("$(arg prefix)j", "continuous", "base", "${side}_arm")
    load_urdf(robot(link("base", ""), link("${side}_arm"), arm))
    assert "['$(arg prefix)j', '${side}_arm'] have expressions of xacro: run" in caplog.text


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
