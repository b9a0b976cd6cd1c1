"""Masses and inertias of a URDF: judged for links that are welded to each other, accepted where
the user says so; limits, with messages that name what to change; and rotors of transmissions.
"""

import numpy as np
import pytest
from test_urdf import INERTIAL, joint, link, robot

from nh_control import scenarios
from nh_control.cli import main
from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody import UrdfError, load_urdf
from nh_control.scenarios.urdf import DEFAULT

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
        (transmission("wrist", DRAKE), r"'wrist': a rotor needs .*, choose of \['shoulder'"),
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
