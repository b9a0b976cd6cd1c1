"""Fields of messages: what they say of a state, and the state that is read from them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transforms3d.euler import euler2quat
from transforms3d.quaternions import quat2mat

from nh_control import scenarios
from nh_control.loop.wire_format import (
    UNKNOWN_RATES,
    JointFields,
    MessageStates,
    state_codecs,
    unwrap,
    yaw,
    yaw_wxyz,
)

BOARD, QUADS = scenarios.get("snakeboard"), scenarios.get("quadrotor_payload")
SPACE = BOARD.model().system.space
JOINTS, BODY = state_codecs(BOARD, SPACE)
Q, V = np.array([0.1, -0.2, 0.3, 1.0, 2.0]), np.array([1.0, 2.0, -3.0, 4.0, 5.0])


def read(codec, fields, near=(0.0,) * 5):
    """Configuration and velocity that are read, and whether velocities were known."""
    q, v = list(near), [0.0] * 5
    moving = codec.read(fields, q, v)
    return q, v, moving


@given(st.floats(-20, 20), st.floats(-200, 200))
def test_unwrap_is_the_nearest_equal_angle(angle, near):
    unwrapped = unwrap(angle, near)
    assert abs(unwrapped - near) <= math.pi + 1e-9
    assert math.remainder(unwrapped - angle, math.tau) == pytest.approx(0, abs=1e-9)
    assert math.isnan(unwrap(math.nan, near)) and unwrap(angle, math.nan) == angle


@pytest.mark.parametrize("heading", np.linspace(-math.pi + 1e-6, math.pi, 7))
def test_the_heading_of_what_is_tilted_is_that_of_its_x_axis_whatever_the_norm(heading):
    for pitch, roll in ((0.0, 0.0), (0.3, 0.0), (0.0, 0.4), (-0.2, 0.3)):
        wxyz = euler2quat(heading, pitch, roll, "rzyx")
        assert yaw(-2.5 * wxyz) == pytest.approx(heading)
    np.testing.assert_allclose(yaw_wxyz(heading), euler2quat(heading, 0, 0, "rzyx"), atol=1e-15)


def test_joints_show_their_coordinates_with_their_signs():
    assert JOINTS.fields(Q, V) == {
        "rotor_joint": (0.1, 1.0),
        "rear_truck_joint": (-0.2, 2.0),
        "front_truck_joint": (0.2, -2.0),
    }


def test_odometry_has_the_pose_and_the_twist_in_the_axes_of_the_body():
    _, high = state_codecs(replace(BOARD, body=replace(BOARD.body, z=0.5)), SPACE)
    position, wxyz, linear, angular = high.fields(Q, V)["base_link"]
    assert position == (1.0, 2.0, 0.5)
    np.testing.assert_allclose(quat2mat(wxyz)[:, 0], [math.cos(0.3), math.sin(0.3), 0])
    assert (linear, angular) == ((4.0, 5.0, 0.0), (0.0, 0.0, -3.0))


def test_bodies_in_space_show_their_velocities_in_their_axes():
    model, rng = QUADS.model(), np.random.default_rng(0)
    space = model.system.space
    (codec,) = state_codecs(QUADS, space)
    q = space.retract(space.origin, rng.normal(size=space.nv))
    v = model.velocity(model.state(q, rng.normal(size=space.nw)))
    fields, bodies = codec.fields(q, v), QUADS.to_bodies(QUADS.parameters, q, v)
    assert list(fields) == ["payload", "quad1", "quad2"]
    for shown, body in zip(fields.values(), bodies):
        turned = quat2mat(body.quaternion_wxyz) @ shown.linear_velocity
        np.testing.assert_allclose(turned, body.linear_velocity, atol=1e-14)


def test_absent_velocities_and_those_that_are_nan_become_nan():
    joints, body = JOINTS.fields(Q, V), BODY.fields(Q, V)["base_link"]
    still = {name: JointFields(joint.position, math.nan) for name, joint in joints.items()}
    _, v, moving = read(JOINTS, still)
    np.testing.assert_array_equal(v, [math.nan, math.nan, 0, 0, 0])
    assert not moving
    for truck in ("rear_truck_joint", "front_truck_joint"):  # the other one's joint has the rate
        _, v, moving = read(JOINTS, joints | {truck: still[truck]})
        assert v[:2] == [1.0, 2.0] and not moving
    _, v, moving = read(BODY, {"base_link": body._replace(linear_velocity=UNKNOWN_RATES)})
    np.testing.assert_array_equal(v, [0, 0, -3.0, math.nan, math.nan])
    assert not moving


def test_headings_of_a_motion_are_unwrapped_from_state_to_state():
    model = BOARD.model()
    first = model.measured_state([0, 0, 9.0, 0, 0], np.zeros(5))
    states = MessageStates(BOARD, model, model, BOARD.parameters, first)
    for heading in (10.0, 12.5, 15.0, 12.0):
        q, _ = states.carried(model.measured_state([0, 0, heading, 0, 0], np.zeros(5)))
        assert q[2] == pytest.approx(heading)


def test_measured_quaternions_are_normalized_for_the_scenario():
    attitude = lambda bodies: (bodies[0].quaternion_wxyz, np.zeros(3))  # noqa: E731
    (codec,) = state_codecs(replace(QUADS, from_bodies=attitude), QUADS.model().system.space)
    fields = codec.fields(QUADS.model().system.space.origin, codec.rest)
    payload = fields["payload"]._replace(quaternion_wxyz=(0.603, 0.0, 0.804, 0.0))
    q, v = np.zeros(4), np.zeros(3)
    assert codec.read(fields | {"payload": payload}, q, v)
    np.testing.assert_allclose(q, [0.6, 0.0, 0.8, 0.0], atol=1e-15)
