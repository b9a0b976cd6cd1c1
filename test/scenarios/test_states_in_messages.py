"""Messages carry the whole state of a scenario, or the scenario is refused."""

import math
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_scenarios import FILES
from refusals import said
from transforms3d.euler import euler2quat
from transforms3d.quaternions import quat2mat

import nh_control as nh
from nh_control import scenarios
from nh_control.cli import main
from nh_control.command import new_scenario
from nh_control.loop.wire_format import (
    UNKNOWN_RATES,
    JointFields,
    MessageStates,
    state_codecs,
    unwrap,
    yaw,
    yaw_wxyz,
)
from nh_control.mechanics.consistent_states import satisfy_constraints
from nh_control.runs.experiment import Experiment
from nh_control.scenarios import BodyState, Joint, PlanarBody, Scenario


def scenario(space, joints=(), **others):
    """A body of unit inertias in a space, pushed along its first velocity."""
    moving = space.nw - len(others.get("first_order", ()))
    system = nh.System(
        name="thing",
        space=space,
        inputs=("push",),
        lagrangian=lambda q, v: ca.sumsqr(v[:moving]) / 2,
        force=lambda q, v, u: ca.vertcat(u, ca.SX(space.nw - 1, 1)),
        **others,
    )
    n = 2 * space.nv
    return Scenario(
        name="thing",
        title="A thing",
        parameters=None,
        make_system=lambda parameters: system,
        integrators={"midpoint": nh.midpoint},
        references={"rest": lambda m: m.simulate(m.state(space.origin), np.zeros((3, m.nu)))},
        weights=(np.eye(n), np.eye(1), np.eye(n)),
        joints=joints,
    )


BUILT_IN = scenarios.built_in()
SLIDES = nh.Rn("x", "y")
POSED = nh.Product(nh.SO3("base_"), nh.Rn("arm"))


def bodies(parameters, q, v):
    still = np.zeros(3)
    return (BodyState("base", "odom", still, np.asarray(q[:4]), still, np.asarray(v[:3])),)


def attitude(bodies):
    (base,) = bodies
    return base.quaternion_wxyz, base.angular_velocity_body


REFUSED = {
    "a coordinate without a joint": scenario(SLIDES, [Joint("a", "x")]),
    "a body without a declaration": scenario(
        nh.Product(nh.Rn("arm"), nh.SE2()), [Joint("arm", "arm")]
    ),
    "an attitude without bodies": scenario(POSED, [Joint("arm", "arm")]),
    "bodies that are drawn alone": replace(
        scenario(POSED, [Joint("arm", "arm")]), to_bodies=bodies
    ),
    "a joint beside bodies": replace(scenario(POSED), to_bodies=bodies, from_bodies=attitude),
    "a velocity that bodies do not tell": replace(
        scenario(nh.SO3("base_")),
        to_bodies=bodies,
        from_bodies=lambda b: (attitude(b)[0], attitude(b)[1][:2]),
    ),
    "a first-order coordinate": scenario(
        nh.Product(nh.Rn("x"), nh.Rn("current")),
        [Joint("a", "x")],
        first_order=("current",),
        first_order_rate=lambda q, v, u: u,
    ),
    "a prescribed coordinate": scenario(SLIDES, [Joint("a", "x")], prescribed=("y",)),
    "two joints of one name": scenario(SLIDES, [Joint("a", "x"), Joint("a", "y")]),
    "a joint of no coordinate": scenario(SLIDES, [Joint("a", "z")]),
    "a joint of an attitude": scenario(nh.SO3("base_"), [Joint("a", "base_qw")]),
    "a body in another order": replace(
        scenario(nh.SE2()), body=PlanarBody("base", "odom", ("x", "y", "theta"))
    ),
    "a body of a vector": replace(
        scenario(nh.Rn("theta", "x", "y")), body=PlanarBody("base", "odom")
    ),
}


def test_a_scenario_whose_messages_do_not_carry_the_whole_state_is_refused(snapshot):
    of_targets = said(REFUSED, lambda made: made.targets(made.make_system(None)))
    assert said(REFUSED, Scenario.model) == of_targets == snapshot


def test_a_joint_that_is_left_out_is_named_by_the_command(tmp_path, capsys):
    text = FILES["cart_double_pendulum"].read_text()
    line = '        Joint("upper_joint", "upper"),\n'
    assert line in text
    file = tmp_path / "left_out.py"
    file.write_text(text.replace(line, ""))
    for call in ("list", "simulate", "run"):
        assert main([call, str(file)]) == 2
        assert "lack the coordinates ['upper']" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*BUILT_IN, *map(str, FILES.values())])
def test_the_state_that_messages_carry_is_that_of_the_scenario(name):
    made, rng = scenarios.get(name), np.random.default_rng(0)
    model = made.model()
    space = model.system.space
    q = space.retract(model.system.nominal_configuration, 0.3 * rng.normal(size=space.nv))
    if model.system.n_holonomic_constraints and name != "marionette":  # its strings may be slack
        q = satisfy_constraints(model.system, q)
    d = np.asarray(ca.DM(space.frame(ca.SX(q)))) @ rng.normal(size=space.nv)
    x = model.measured_state(q, d)
    states = MessageStates(made, model, model, made.parameters)
    for read, written in zip(states.carried(x), (q, model.velocity(x))):
        np.testing.assert_allclose(read, written, atol=1e-12)


def test_two_joints_may_show_one_coordinate_as_the_trucks_of_a_snakeboard_do():
    both = scenario(SLIDES, [Joint("a", "x"), Joint("b", "x", -1.0), Joint("c", "y")])
    assert both.model().nx == 4


def test_joints_of_velocities_with_names_of_their_own_are_shown():
    """Also behind a factor with more coordinates than velocities."""
    space = nh.Product(nh.SO3("base_"), nh.Rn("arm", velocity_names=("speed",)), nh.SE2())
    made = replace(
        scenario(space, [Joint("a", "arm", -1.0)]),
        body=PlanarBody("cart", "odom"),
        to_bodies=bodies,
        from_bodies=attitude,
    )
    model = made.model()
    q, v = np.array([1.0, 0, 0, 0, 0.3, 0.2, 1.0, 2.0]), np.arange(1.0, 8.0)
    states = MessageStates(made, model, model, None)
    for read, written in zip(states.carried(model.measured_state(q, v)), (q, v)):
        np.testing.assert_allclose(read, written, rtol=1e-15)


def test_a_scenario_without_messages_is_simulated_and_not_run_as_nodes(tmp_path, capsys):
    file = new_scenario.write("arm", tmp_path)
    line = '    joints=(Joint("shoulder", "angle"),),\n'
    text = file.read_text()
    assert line in text
    file.write_text(text.replace(line, ""))
    given = str(file), "--duration", "0.05", "--no-plots", "--output", str(tmp_path / "arm")
    assert main(["simulate", *given]) == 0
    assert main(["run", *given, "--overwrite"]) == 2
    assert "lack the coordinates ['angle']" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["snakeboard", "quadrotor_payload"])
def test_commands_of_a_run_by_messages_answer_the_states_that_messages_carry(name):
    """To the bit."""
    experiment = Experiment.make(scenarios.get(name), duration_s=0.2)
    run = experiment.run(by_messages=True).trajectory
    expected = [experiment.tracker.command(k, run.states[k]).u for k in range(len(run))]
    np.testing.assert_array_equal(run.inputs, expected)
    exact = experiment.run().trajectory
    assert 0 < np.abs(run.inputs - exact.inputs).max() < 1e-9


@pytest.mark.parametrize("name", ["satellite", "quadrotor"])
def test_a_body_of_another_name_is_refused(name):
    made = scenarios.get(name)
    space = made.make_system(made.parameters).space
    (body,) = made.to_bodies(made.parameters, space.origin, np.zeros(space.nw))
    with pytest.raises(ValueError, match=f"expected the body {name}, got .'moon'"):
        made.from_bodies((replace(body, frame="moon"),))


# --- Fields of messages: what they say of a state, and the state that is read from th ---


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
