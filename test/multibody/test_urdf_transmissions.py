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
    text = robot(transmission("elbow", "<mechanicalReduction>50</mechanicalReduction>"))
    assert [f.name for f in load_urdf(text).frames] == [f.name for f in load_urdf(PLAIN).frames]
    assert load_urdf(text).system.inputs == load_urdf(PLAIN).system.inputs


@pytest.mark.parametrize(
    ("element", "words"),
    [
        (transmission("wrist", DRAKE), "'wrist': a rotor needs"),
        (transmission("elbow", DRAKE, 2), "one joint and one actuator, got 1 and 2"),
        (transmission("elbow", '<rotor_inertia value="-1"/>'), "inertia >= 0"),
        (
            transmission("elbow", "<mechanicalReduction>a</mechanicalReduction>"),
            "a number",
        ),
        (transmission("elbow", '<rotor_inertia value="a"/>'), "rotor_inertia"),
    ],
)
def test_what_is_no_motor_is_told(element, words):
    with pytest.raises(UrdfError, match=words):
        load_urdf(robot(element))
