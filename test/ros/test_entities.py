"""Bodies one by one: what is set is what is shown, and all others stay."""

from dataclasses import replace

import numpy as np
import pytest

from nh_control import scenarios

pytest.importorskip("rclpy", reason="needs ROS 2: pip install -e '.[ros]'")

from bob import BOB, from_bodies, to_bodies  # noqa: E402
from geometry_msgs.msg import Pose, Twist  # noqa: E402

from nh_control.ros.messages import conversions  # noqa: E402
from nh_control.ros.messages.entities import Entities  # noqa: E402

STARTS = {"snakeboard": "", "quadrotor_payload": "hover", "satellite": ""}
LONG = pytest.param("quadrotor_payload", marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=["snakeboard", "satellite", LONG])
def bodies(request):
    """Entities of a scenario, its model and a state in motion."""
    scenario = scenarios.get(request.param)
    dsys = scenario.model()
    at_rest = scenario.reference(dsys, STARTS[request.param]).states[-1]
    space = dsys.system.space
    v = 0.3 * np.cos(np.arange(space.nw))
    turned = space.retract(dsys.configuration(at_rest), 0.2 * np.ones(space.nv))
    state = dsys.state(turned, v)
    entities = Entities(scenario, dsys, scenario.parameters, "robot/")
    assert entities.names
    return entities, dsys, state


def made(name, prefix=""):
    scenario = scenarios.get(name)
    dsys = scenario.model()
    return Entities(scenario, dsys, scenario.parameters, prefix), dsys


@pytest.fixture(scope="module")
def board():
    """A snakeboard on the way."""
    entities, dsys = made("snakeboard")
    return entities, dsys, dsys.measured_state([0.0, 0.0, 0.3, 1.0, 2.0], np.zeros(5))


def shown(entities, x):
    """Position, orientation, linear and angular velocity of all bodies."""
    rows = {}
    for name in entities.names:
        pose, twist = Pose(), Twist()
        assert entities.show(name, x, pose, twist).startswith("robot/")
        p, o, v, w = pose.position, pose.orientation, twist.linear, twist.angular
        rows[name] = np.array([p.x, p.y, p.z, o.w, o.x, o.y, o.z, v.x, v.y, v.z, w.x, w.y, w.z])
    return rows


def test_what_is_shown_and_set_again_changes_nothing(bodies):
    entities, dsys, x = bodies
    for name in entities.names:
        pose, twist = Pose(), Twist()
        frame = entities.show(name, x, pose, twist)
        assert np.abs(entities.moved(name, x, frame, pose, twist) - x).max() < 1e-9
        assert np.abs(entities.moved(name, x, "", None, None) - x).max() < 1e-9


def test_twists_are_velocities_in_the_parent_s_axes(bodies):
    entities, dsys, x = bodies
    ahead = dsys.step(x, dsys.idle(x))
    before, after = shown(entities, x), shown(entities, ahead)
    for name in entities.names:
        v = 0.5 * (before[name][7:10] + after[name][7:10])
        rate = (after[name][:3] - before[name][:3]) / dsys.h
        assert np.abs(rate - v).max() < 2e-2 * max(1.0, np.abs(v).max())


def test_a_body_in_space_is_turned_and_spun_in_its_parent_s_axes():
    entities, dsys = made("satellite")
    space = dsys.system.space
    x = dsys.state(space.origin, 0.1 * np.ones(space.nw))
    (name, *_), pose, twist = entities.names, Pose(), Twist()
    entities.show(name, x, pose, twist)
    turn = np.array([0.8, 0.0, 0.0, 0.6])
    pose.orientation.w, pose.orientation.z = 0.8, 0.6
    twist.angular.x, twist.angular.y, twist.angular.z = 0.3, -0.2, 0.1
    for given in ((pose, twist), (pose, None), (None, twist)):
        moved = entities.moved(name, x, "", *given)
        now, other = Pose(), Twist()
        entities.show(name, moved, now, other)
        o, w = now.orientation, other.angular
        there = turn if given[0] else np.array([1.0, 0.0, 0.0, 0.0])
        assert np.array([o.w, o.x, o.y, o.z]) == pytest.approx(there, abs=1e-12)
        if given[1]:
            assert [w.x, w.y, w.z] == pytest.approx([0.3, -0.2, 0.1], abs=1e-12)
        else:  # the body spins about its own axes as before
            assert dsys.velocity(moved) == pytest.approx(dsys.velocity(x), abs=1e-12)


@pytest.fixture
def twins():
    """A pendulum's bob and its twin, by which its state is known; its model."""

    def both(p, q, v):
        (bob,) = to_bodies(p, q, v)
        return [bob, replace(bob, frame="twin")]

    scenario = replace(BOB, to_bodies=both, from_bodies=lambda bodies: from_bodies(bodies[1:]))
    dsys = scenario.model()
    return Entities(scenario, dsys, scenario.parameters, "robot/"), dsys


def test_of_several_bodies_the_one_that_is_named_is_moved(twins):
    entities, dsys = twins
    assert entities.names == ["bob", "twin"]
    x, pose, twist = dsys.state([0.3], [0.2]), Pose(), Twist()
    entities.show("twin", dsys.state([0.5], [0.7]), pose, twist)
    moved = entities.moved("twin", x, "robot/odom", pose, twist)
    assert [*dsys.configuration(moved), *dsys.velocity(moved)] == pytest.approx([0.5, 0.7])
    assert entities.moved("bob", x, "robot/odom", pose, twist) == pytest.approx(x)
    with pytest.raises(ValueError, match="twin in the frame 'odom'; expected 'robot/odom'"):
        entities.moved("twin", x, "odom", pose, twist)


@pytest.mark.slow
def test_a_body_is_moved_and_turned_alone():
    entities, dsys = made("quadrotor_payload", "robot/")
    x = scenarios.get("quadrotor_payload").reference(dsys, "hover").states[0]
    pose, twist = Pose(), Twist()
    entities.show("quad1", x, pose, twist)
    pose.orientation.w, pose.orientation.x = np.cos(0.1), np.sin(0.1)
    twist.angular.x = 0.3
    before, after = (
        shown(entities, x),
        shown(entities, entities.moved("quad1", x, "", pose, twist)),
    )
    assert after["quad1"][3:5] == pytest.approx([np.cos(0.1), np.sin(0.1)], abs=1e-12)
    assert after["quad1"][10:] == pytest.approx([0.3, 0.0, 0.0], abs=1e-12)
    for name in ("payload", "quad2"):
        assert after[name] == pytest.approx(before[name], abs=1e-9)


@pytest.mark.parametrize(
    ("frame", "change", "error"),
    [
        ("map", lambda p, t: None, "base_link in the frame 'map'; expected 'odom'"),
        ("", lambda p, t: setattr(p.orientation, "w", 2.0), "no unit quaternion"),
        ("", lambda p, t: conversions.set_wxyz(p.orientation, (0, 1, 0, 0)), "in the plane"),
        ("", lambda p, t: conversions.set_wxyz(p.orientation, (0, 0, 1, 0)), "in the plane"),
        ("", lambda p, t: setattr(p.orientation, "y", 1e-4), "moves in the plane"),
        ("", lambda p, t: setattr(p.position, "z", 0.1), "moves in the plane"),
        ("", lambda p, t: setattr(p.position, "z", -1e-4), "moves in the plane"),
        ("", lambda p, t: setattr(p.position, "x", np.nan), "not finite"),
        ("", lambda p, t: setattr(t.linear, "x", np.inf), "not finite"),
    ],
)
def test_poses_and_twists_that_cannot_be_are_refused(board, frame, change, error):
    (entities, _, x), pose, twist = board, Pose(), Twist()
    pose.orientation.w = 1.0
    change(pose, twist)
    with pytest.raises(ValueError, match=error):
        entities.moved("base_link", x, frame, pose, twist)


def test_a_twist_out_of_the_plane_is_not_shown_after_a_planar_body_is_moved(board):
    (entities, _, x), twist = board, Twist()
    (name,) = entities.names
    twist.linear.z, twist.angular.x = 3.0, 2.0
    np.testing.assert_allclose(entities.moved(name, x, "", None, twist), x, atol=1e-15)
    entities.show(name, x, Pose(), twist)
    assert twist == Twist()
