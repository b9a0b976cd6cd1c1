"""Scenarios' predictive trackers: plans that are late by choice, legs, weights and margins."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import nh_control as nh
from nh_control.control.optimal.mpc import MpcTracker
from nh_control.control.trackers import LateMpc, is_late, linear
from nh_control.loop.reference_sequence import ReferenceLeg, ReferenceSequence
from nh_control.scenarios import MpcOptions, constraints_along, get, mpc_tracker

SCENARIO = get("cart_pole")


@cache
def model():
    """The cart-pole at rest on top, for 120 steps of 0.02 s."""
    dsys = SCENARIO.model(step_s=0.02)
    states = np.tile([0.0, np.pi, 0.0, 0.0], (121, 1))
    return dsys, nh.Trajectory(dsys.h, states, np.zeros((120, 1)), dsys.state_names, dsys.inputs)


def tracker(**options):
    return mpc_tracker(SCENARIO, *model(), MpcOptions(**{"horizon_s": 0.4} | options))


START = np.array([0.2, np.pi + 0.1, 0.1, 0.0])


def errors(late):
    """Errors of a pushed run with a share of its plans late, and how many were."""
    dsys, mpc, x, memory = model()[0], tracker(late=late, seed=4), START, None
    found = []
    for k in range(100):
        command = mpc.command(k, x, memory)
        x, memory = dsys.step(x, command.u + 0.3 * np.sin(k)), command.memory
        found.append(command.error)
    assert memory.late == sum(is_late(mpc, k) for k in range(1, 100))
    return np.array(found), memory.late


def test_with_plans_that_are_late_the_error_hardly_grows():
    on_time, late, later = (errors(share) for share in (0.0, 0.3, 0.7))
    assert on_time[1] == 0 and 20 < late[1] < 40 and 60 < later[1] < 80
    sizes = [np.linalg.norm(found[:, :2]) for found, _ in (on_time, late, later)]
    assert sizes[1] < 1.1 * sizes[0] and sizes[2] < 1.1 * sizes[0]
    again = errors(0.3)
    np.testing.assert_array_equal(again[0], late[0])


def test_a_plan_goes_on_in_the_next_leg_and_weights_and_reference_can_change():
    dsys, rest = model()
    mpc, moved = tracker(), replace(rest, states=rest.states + [0.05, 0, 0, 0])
    sequence = ReferenceSequence(mpc)
    memory = None
    for k in range(3):
        memory = sequence.command(k, START, memory).memory
    sequence.add(ReferenceLeg(3, mpc.with_reference(moved)))
    warm = sequence.command(3, START, memory)
    assert warm.memory.k == 3 and not np.array_equal(
        warm.memory.states, sequence.command(3, START).memory.states
    )
    assert warm.u == pytest.approx(sequence.command(3, START).u, abs=0.3)
    assert sequence.command(4, START, warm.memory).memory.k == 4
    heavier = mpc.with_weights({0: 100.0}, {})
    assert linear(heavier).diagonal_weights[0][0] == pytest.approx(100.0)
    assert abs(heavier.command(0, START).u - mpc.command(0, START).u) > 0.5
    assert type(heavier) is MpcTracker and heavier.hold
    np.testing.assert_array_equal(heavier.limits, linear(heavier).limits)
    late = tracker(late=0.5, seed=1)
    for other in (late.with_weights({0: 100.0}, {}), late.with_reference(moved)):
        assert isinstance(other, LateMpc)
        assert [is_late(other, k) for k in range(9)] == [is_late(late, k) for k in range(9)]


def test_options_are_checked():
    for words, options in (
        ("horizon", {"horizon_s": -1.0}),
        ("iteration", {"iterations": 0}),
        ("share", {"late": 1.5}),
        ("roof", {"constraints": ("roof",)}),
    ):
        with pytest.raises(ValueError, match=words):
            tracker(**{"horizon_s": 0.4} | options)
    assert MpcOptions.of({"late": 0.5, "constraints": ["track"]}).constraints == ("track",)
    assert constraints_along(SCENARIO, model()[0], "swing_up", ()) == ()
