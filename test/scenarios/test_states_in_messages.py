"""Messages carry the whole state of a scenario, or the scenario is refused."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from own_scenarios import FILES

import nh_control as nh
from nh_control import scenarios
from nh_control.cli import main
from nh_control.command import new_scenario
from nh_control.loop.wire_format import MessageStates
from nh_control.mechanics.consistent_states import satisfy_constraints
from nh_control.runs.experiment import Experiment
from nh_control.scenarios import Body, BodyState, Joint, Scenario


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
    "a coordinate without a joint": (
        scenario(SLIDES, [Joint("a", "x")]),
        r"lack the coordinates \['y'\].*Joint\('y', 'y'\)",
    ),
    "a body without a declaration": (
        scenario(nh.Product(nh.Rn("arm"), nh.SE2()), [Joint("arm", "arm")]),
        r"lack the coordinates \['theta', 'x', 'y'\].*body=Body\(",
    ),
    "an attitude without bodies": (
        scenario(POSED, [Joint("arm", "arm")]),
        "lack the coordinates.*base_qw.*from_bodies",
    ),
    "bodies that are drawn alone": (
        replace(scenario(POSED, [Joint("arm", "arm")]), to_bodies=bodies),
        "lack the coordinates.*base_qw.*from_bodies",
    ),
    "a joint beside bodies": (
        replace(scenario(POSED), to_bodies=bodies, from_bodies=attitude),
        r"lack the coordinates \['arm'\].*Joint\('arm', 'arm'\)",
    ),
    "a velocity that bodies do not tell": (
        replace(
            scenario(nh.SO3("base_")),
            to_bodies=bodies,
            from_bodies=lambda b: (attitude(b)[0], attitude(b)[1][:2]),
        ),
        "lack the velocities",
    ),
    "a first-order coordinate": (
        scenario(
            nh.Product(nh.Rn("x"), nh.Rn("current")),
            [Joint("a", "x")],
            first_order=("current",),
            first_order_rate=lambda q, v, u: u,
        ),
        r"lack the coordinates \['current'\].*Joint\('current', 'current', unit='A'\)",
    ),
    "a prescribed coordinate": (
        scenario(SLIDES, [Joint("a", "x")], prescribed=("y",)),
        r"lack the coordinates \['y'\]",
    ),
    "two joints of one name": (
        scenario(SLIDES, [Joint("a", "x"), Joint("a", "y")]),
        r"names of joints must differ, got \['a', 'a'\]",
    ),
    "a joint of no coordinate": (
        scenario(SLIDES, [Joint("a", "z")]),
        "the joint 'a', 'z', choose one of: x, y",
    ),
    "a joint of an attitude": (
        scenario(nh.SO3("base_"), [Joint("a", "base_qw")]),
        "the joint 'a', 'base_qw'",
    ),
    "a body in another order": (
        replace(scenario(nh.SE2()), body=Body("base", "odom", ("x", "y", "theta"))),
        r"the body 'base' needs the coordinates of an SE2, in their order",
    ),
    "a body of a vector": (
        replace(scenario(nh.Rn("theta", "x", "y")), body=Body("base", "odom")),
        r"the body 'base' needs the coordinates of an SE2",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_scenario_whose_messages_do_not_carry_the_whole_state_is_refused(case):
    made, message = REFUSED[case]
    system = made.make_system(None)
    for read in (made.model, lambda: made.targets(system)):
        with pytest.raises(ValueError, match=f"(?s){message}"):
            read()


def test_a_joint_that_is_left_out_is_named_by_the_command(tmp_path, capsys):
    text = FILES["cart_double_pendulum"].read_text()
    line = '        Joint("upper_joint", "upper"),\n'
    assert line in text
    file = tmp_path / "left_out.py"
    file.write_text(text.replace(line, ""))
    for call in ("list", "simulate", "run"):
        assert main([call, str(file)]) == 2
        assert "lack the coordinates ['upper']" in capsys.readouterr().err


MOVABLE = [name for name in BUILT_IN if name != "marionette"]
"""Without strings that would have to be made taut."""


@pytest.mark.parametrize("name", [*MOVABLE, *map(str, FILES.values())])
def test_the_state_that_messages_carry_is_that_of_the_scenario(name):
    made, rng = scenarios.get(name), np.random.default_rng(0)
    model = made.model()
    space = model.system.space
    q = space.retract(model.system.nominal_configuration, 0.3 * rng.normal(size=space.nv))
    if model.system.n_holonomic_constraints:
        q = satisfy_constraints(model.system, q)
    d = np.asarray(ca.DM(space.frame(ca.SX(q)))) @ rng.normal(size=space.nv)
    v = model.velocity(model.state(q, d))
    states = MessageStates(made, model, model, made.parameters)
    for read, written in zip(states.carried(model.measured_state(q, v)), (q, v)):
        np.testing.assert_allclose(read, written, atol=1e-12)


def test_two_joints_may_show_one_coordinate_as_the_trucks_of_a_snakeboard_do():
    both = scenario(SLIDES, [Joint("a", "x"), Joint("b", "x", -1.0), Joint("c", "y")])
    assert both.model().nx == 4


def test_joints_of_velocities_with_names_of_their_own_are_shown():
    """Also behind a factor with more coordinates than velocities."""
    space = nh.Product(nh.SO3("base_"), nh.Rn("arm", velocity_names=("speed",)), nh.SE2())
    made = replace(
        scenario(space, [Joint("a", "arm", -1.0)]),
        body=Body("cart", "odom"),
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
