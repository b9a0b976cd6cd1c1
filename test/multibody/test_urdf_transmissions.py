"""Rotors of a URDF's transmissions: the mass matrix of a robot with geared motors."""

import numpy as np
import pytest

from nh_control.mechanics.continuous import ContinuousSystem
from nh_control.multibody.urdf import UrdfError, load_urdf
from nh_control.scenarios.urdf import DEFAULT

J, N = 2e-4, 50.0
PLAIN = DEFAULT.read_text()


def robot(*transmissions, text=PLAIN):
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
    before, both = mass_matrix(PLAIN, q), robot(transmission("elbow", values))
    change = mass_matrix(both, q) - before
    np.testing.assert_allclose(change, J * np.outer([1, N], [1, N]), atol=1e-8)


def test_a_rotor_on_the_fixed_base_is_its_reflected_inertia():
    q = np.array([0.3, -0.4])
    change = mass_matrix(robot(transmission("shoulder", DRAKE)), q) - mass_matrix(PLAIN, q)
    np.testing.assert_allclose(change, np.diag([N**2 * J, 0.0]), atol=1e-8)


def test_transmissions_without_a_rotor_inertia_change_nothing():
    for ratio in ("50", "reduction"):
        elbow = transmission("elbow", f"<mechanicalReduction>{ratio}</mechanicalReduction>")
        model, plain = load_urdf(robot(elbow)), load_urdf(PLAIN)
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
        load_urdf(robot(element))


def test_names_of_rotors_do_not_meet_those_of_links_and_of_other_rotors():
    link = '<link name="elbow_rotor"/>' + weld("w", "elbow_rotor")
    q, motor = np.array([0.3, -0.4]), transmission("elbow", DRAKE)
    one, two = (mass_matrix(robot(link, *[motor] * n), q) for n in (1, 2))
    np.testing.assert_allclose(two - one, one - mass_matrix(PLAIN, q), atol=1e-8)


def test_a_fixed_joint_of_the_same_name_does_not_take_the_motor():
    text = robot('<link name="b"/>', weld("elbow", "b"), transmission("elbow", DRAKE))
    both = robot(transmission("elbow", DRAKE))
    q = np.array([0.3, -0.4])
    np.testing.assert_allclose(mass_matrix(text, q), mass_matrix(both, q), rtol=1e-14)
