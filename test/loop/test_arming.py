"""Which limits and ranges disarm hardware, and what is commanded after that."""

from functools import cache

import numpy as np
import pytest
from refusals import refusal
from transforms3d.quaternions import axangle2quat, qmult

from nh_control import scenarios
from nh_control.control.damping import DAMPING_S, damping_input
from nh_control.loop.arming import (
    Arming,
    ArmingLimits,
    ArmingRefused,
    DisarmCommand,
    DisarmedInputs,
    SafeRange,
    quantities,
)

FREE = np.zeros(1)


@cache
def made(name):
    scenario = scenarios.get(name)
    return scenario, scenario.model()


# Permission --------------------------------------------------------------------------------------


def test_nothing_is_armed_unasked_and_every_disarming_is_counted_with_its_first_reason():
    arming = Arming(ArmingLimits(error=0.1))
    assert not arming.armed and arming.reason == "not armed yet"
    arming.disarm("by request")
    assert arming.disarmed == 0 and arming.reason == "not armed yet"
    for count in (1, 2, 3):
        arming.arm(1.0)
        assert arming.armed and arming.reason == ""
        arming.disarm("by request")
        arming.disarm("again")
        assert not arming.armed and (arming.disarmed, arming.reason) == (count, "by request")
    arming.observe(1.0, np.ones(1), False)
    assert (arming.disarmed, arming.reason) == (3, "by request")
    assert Arming(ArmingLimits(), armed=True).reason == ""


@pytest.mark.parametrize(
    ("limits", "observed", "reason"),
    [
        ({"error": 0.2}, ([0.1, -0.2], False), ""),
        ({"error": 0.2}, ([0.1, -0.21], False), "tracking error 0.21 is beyond 0.2"),
        ({"error": 0.2}, ([np.nan], False), "tracking error nan is beyond 0.2"),
        ({}, ([9.0], False, ""), ""),
        ({}, ([0.0], False, "cart_joint = 2 is not in -1 ... 1"), "cart_joint = 2 is not in"),
        ({"error": 0.2}, ([0.3], False, "cart_joint = 2"), "cart_joint = 2"),
    ],
)
def test_an_error_beyond_its_limit_and_a_range_that_is_left_disarm(limits, observed, reason):
    arming = Arming(ArmingLimits(**limits), armed=True)
    error, *more = observed
    arming.observe(1.0, np.array(error), *more)
    assert arming.armed is (reason == "") and arming.reason.startswith(reason)


def test_silence_is_since_the_last_state_or_arming_and_back_in_time_it_begins_again():
    arming = Arming(ArmingLimits(silence_s=0.5), armed=True)
    arming.observe(10.0, FREE, False)
    arming.observe(20.0, FREE, False)
    arming.check_silence(20.5)
    arming.check_silence(5.0)
    arming.check_silence(5.5)
    assert arming.armed
    arming.check_silence(5.6)
    assert not arming.armed and arming.reason == "no usable state for 0.6 s"
    arming.observe(6.0, FREE, False)
    arming.arm(6.5)
    arming.check_silence(7.0)
    assert arming.armed


def test_saturation_counts_without_interruption_and_anew_after_arming_or_back_in_time():
    arming = Arming(ArmingLimits(saturation_s=0.5), armed=True)
    for now_s, saturated in (
        *((50.0, True), (50.4, True), (50.45, False), (50.9, True)),
        *((20.0, True), (20.4, True)),  # not as old as the clock
    ):
        arming.observe(now_s, FREE, saturated)
        assert arming.armed
    arming.disarm("by request")
    arming.arm(20.4)
    for now_s in (20.9, 21.4):  # for just so long
        arming.observe(now_s, FREE, True)
        assert arming.armed
    arming.observe(21.5, FREE, True)
    assert arming.reason == "an input was saturated for 0.6 s"


def test_arming_is_refused_without_a_state_of_late():
    arming = Arming(ArmingLimits(silence_s=0.5))
    with pytest.raises(ArmingRefused, match="no usable state in the last 0.5 s; check"):
        arming.arm(10.0)
    arming.observe(10.0, FREE, False)
    for later in (10.6, 9.0):  # too late, and a clock that went back
        with pytest.raises(ArmingRefused, match="no usable state"):
            arming.arm(later)
    assert not arming.armed and arming.disarmed == 0
    arming.arm(10.5)
    assert arming.armed


def test_arming_is_refused_beyond_a_limit_until_a_state_is_within_it():
    arming = Arming(ArmingLimits(error=0.2))
    arming.observe(1.0, np.array([0.1, -0.3]), False)
    with pytest.raises(ArmingRefused, match="tracking error 0.3 is beyond 0.2; bring the robot"):
        arming.arm(1.0)
    arming.observe(1.1, np.zeros(2), False, violation="cart_joint = 2 is not in -1 ... 1")
    with pytest.raises(ArmingRefused, match="cart_joint = 2"):
        arming.arm(1.1)
    assert not arming.armed and arming.reason == "not armed yet"
    arming.observe(1.2, np.array([0.2, 0.0]), False)
    arming.arm(1.2)
    assert arming.armed and arming.reason == ""


# Ranges ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("q", "said"),
    [
        ([0.5, 3.0], ""),
        ([1.0, 4.0], ""),
        ([-1.0, -4.0], ""),
        ([1.25, 3.0], "cart_joint = 1.25 is not in -1 ... 1"),
        ([-1.001, 3.0], "cart_joint = -1.001 is not in -1 ... 1"),
        ([0.0, -5.0], "pole_joint = -5 is not in -4 ... 4"),
        ([np.nan, 0.0], "cart_joint = nan is not in -1 ... 1"),
    ],
)
def test_a_joint_may_stay_in_its_range_only(q, said):
    scenario, dsys = made("cart_pole")
    ranges = [" cart_joint : -1 : 1 ", "pole_joint:-4:4", "  "]
    assert SafeRange(scenario, dsys.system.space, ranges).violation(np.array(q)) == said


def test_joints_that_turn_the_other_way_and_planar_bodies_have_ranges_as_they_are_shown():
    scenario, dsys = made("snakeboard")
    space = dsys.system.space
    q = np.zeros(space.nq)
    for name, value in zip(("phi", *scenario.body.coordinates), (0.3, 0.1, 2.0, -3.0)):
        q[space.names.index(name)] = value
    assert {name: of(q) for name, of in quantities(scenario, space).items()} == {
        "rotor_joint": 0.0,
        "rear_truck_joint": 0.3,
        "front_truck_joint": -0.3,
        "base_link.heading": 0.1,
        "base_link.x": 2.0,
        "base_link.y": -3.0,
    }


def test_bodies_in_space_have_a_place_and_the_tilt_of_their_z_axis_whatever_their_heading():
    scenario, dsys = made("quadrotor_payload")
    q = scenario.reference(dsys, "hover").states[0][: dsys.system.space.nq].copy()
    heading, axis = axangle2quat([0.0, 0.0, 1.0], 0.7), [np.cos(1.0), np.sin(1.0), 0.0]
    bodies = scenario.to_bodies(scenario.parameters, q, np.zeros(dsys.system.space.nw))
    found = quantities(scenario, dsys.system.space)
    for body in bodies:
        place = [found[f"{body.frame}.{name}"](q) for name in "xyz"]
        np.testing.assert_array_equal(place, body.position)
    start = dsys.system.space.names.index("quad2_qw")
    tilts = lambda: {name: of(q) for name, of in found.items() if name.endswith(".tilt")}
    others = {name: tilt for name, tilt in tilts().items() if name != "quad2.tilt"}
    assert others["payload.tilt"] == 0.0 and others["quad1.tilt"] > 0.5
    for angle in (0.0, 0.4, 2.0, np.pi):
        q[start : start + 4] = qmult(axangle2quat(axis, angle), heading)
        assert tilts() == {**others, "quad2.tilt": pytest.approx(angle, abs=1e-7)}


def test_ranges_and_limits_that_are_none_are_refused(snapshot):
    scenario, dsys = made("cart_pole")
    wrong = ("cart_joint", "cart_joint:-1:1:2", "cart_joint:1:x", "cart_joint:1:1",
             "cart_joint:nan:1", "cart:-1:1")  # fmt: skip
    told = [refusal(lambda: SafeRange(scenario, dsys.system.space, [one])) for one in wrong]
    for name in ("silence_s", "error", "saturation_s"):
        told += [refusal(lambda: ArmingLimits(**{name: one})) for one in (-1.0, np.nan, np.inf)]
    assert told == snapshot


# Commands after a disarming ----------------------------------------------------------------------


def test_what_is_commanded_after_a_disarming():
    _, dsys = made("cart_pole")
    x, u = dsys.state([0.1, 0.2], [1.0, -2.0]), np.array([3.0])
    expected = {"none": None, "zero": [0.0], "hold": u, "damp": damping_input(dsys, x, DAMPING_S)}
    assert np.abs(expected["damp"]).max() > 0.1
    for kind, value in expected.items():
        after = DisarmedInputs(dsys, DisarmCommand(kind))
        assert after.command(fresh=False) is None
        after.update(x + 1.0, u)
        after.update(x)  # a state that had no command
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
