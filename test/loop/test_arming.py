"""Ranges that a robot may not leave, and what it is commanded after it has, without ROS."""

from functools import cache

import numpy as np
import pytest
from transforms3d.quaternions import axangle2quat

from nh_control import scenarios
from nh_control.control.damping import DAMPING_S, damping_input
from nh_control.loop.arming import DisarmCommand, DisarmedInputs, SafeRange, quantities


@cache
def made(name):
    scenario = scenarios.get(name)
    return scenario, scenario.model()


def test_a_joint_may_stay_in_its_range_only():
    scenario, dsys = made("cart_pole")
    safe = SafeRange(scenario, dsys.system.space, ["cart_joint:-1:1", "pole_joint:-4:4", ""])
    assert safe.violation(np.array([0.5, 3.0])) == ""
    assert safe.violation(np.array([1.25, 3.0])) == "cart_joint = 1.25 is not in -1 ... 1"
    assert safe.violation(np.array([0.0, -5.0])) == "pole_joint = -5 is not in -4 ... 4"
    assert "nan is not in" in safe.violation(np.array([np.nan, 0.0]))


def test_joints_that_turn_the_other_way_and_planar_bodies_have_ranges_as_they_are_shown():
    scenario, dsys = made("snakeboard")
    names = dsys.system.space.names
    q = np.zeros(len(names))
    q[names.index("phi")] = 0.3
    for name, value in zip(scenario.body.coordinates, (0.1, 2.0, -3.0)):
        q[names.index(name)] = value
    shown = {name: of(q) for name, of in quantities(scenario, dsys.system.space).items()}
    assert shown == {
        "rotor_joint": 0.0,
        "rear_truck_joint": 0.3,
        "front_truck_joint": -0.3,
        "base_link.heading": 0.1,
        "base_link.x": 2.0,
        "base_link.y": -3.0,
    }


@pytest.mark.parametrize("angle", [0.0, 0.4, 2.0, np.pi])
def test_the_tilt_of_a_body_is_the_angle_of_its_z_axis_whatever_its_heading(angle):
    scenario, dsys = made("satellite")
    turn = axangle2quat([np.cos(1.0), np.sin(1.0), 0.0], angle)
    w, x, y, z = turn
    heading = np.array([np.cos(0.35), 0.0, 0.0, np.sin(0.35)])
    turned = np.array(
        [
            w * heading[0] - z * heading[3],
            x * heading[0] + y * heading[3],
            y * heading[0] - x * heading[3],
            z * heading[0] + w * heading[3],
        ]
    )
    space = dsys.system.space
    q = space.origin.copy()
    rows = [i for i in range(space.nq - 3) if np.isclose(np.linalg.norm(q[i : i + 4]), 1.0)]
    q[rows[0] : rows[0] + 4] = turned
    assert quantities(scenario, space)["satellite.tilt"](q) == pytest.approx(angle, abs=1e-7)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cart_joint", "a range is written NAME:LOW:HIGH"),
        ("cart_joint:1:x", "a range is written NAME:LOW:HIGH"),
        ("cart_joint:1:1", "is empty"),
        ("cart_joint:nan:1", "is empty"),
        ("cart:-1:1", "unknown cart_pole quantity with a range 'cart'"),
    ],
)
def test_ranges_that_are_none_are_refused(text, said):
    scenario, dsys = made("cart_pole")
    with pytest.raises(ValueError, match=said):
        SafeRange(scenario, dsys.system.space, [text])


# --- commands after a disarming ------------------------------------------------------------------


def test_what_is_commanded_after_a_disarming():
    _, dsys = made("cart_pole")
    x, u = dsys.state([0.1, 0.2], [1.0, -2.0]), np.array([3.0])
    expected = {"none": None, "zero": [0.0], "hold": u, "damp": damping_input(dsys, x, DAMPING_S)}
    assert np.abs(expected["damp"]).max() > 0.1
    for kind, value in expected.items():
        after = DisarmedInputs(dsys, DisarmCommand(kind))
        assert after.command(fresh=False) is None
        after.update(x, u)
        heard_no_more = [0.0] if kind == "damp" else value
        for got, want in ((after.command(False), heard_no_more), (after.command(True), value)):
            assert got is want if want is None else np.array_equal(got, want)


def test_what_is_moved_at_will_stays_where_it_is_and_not_where_the_reference_starts():
    scenario, dsys = made("marionette")
    first, x = scenario.reference(dsys).states[[0, 50]]
    after = DisarmedInputs(dsys, DisarmCommand.ZERO)
    after.update(x)
    np.testing.assert_array_equal(after.command(fresh=True), dsys.idle(x))
    assert np.abs(dsys.idle(x) - dsys.idle(first)).max() > 1e-3
