"""Mechanisms that are driven through their stretched positions, and such that lock there: a step
without a configuration that closes the loop says so.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from linkages import sling

import nh_control as nh
from nh_control.mechanics.consistent_states import satisfy_constraints
from nh_control.multibody import Body, Distance, JointConstraint, Multibody, Point, revolute

ENGINES = pytest.mark.parametrize("kernel", (True, False), ids=("kernel", "generated"))


def four_bar(crank, coupler, rocker):
    """A four-bar on a ground of 1 m, whose crank is driven; it hangs down at 0."""
    lengths = {"crank": crank, "coupler": coupler, "rocker": rocker}
    frames = [
        revolute("crank", axis="y"),
        revolute("coupler", "crank", axis="y", position=(0, 0, -crank)),
        revolute("rocker", axis="y", position=(1.0, 0, 0)),
    ]
    bodies = [
        Body(name, 1.0, (0, 0, -length / 2), (0.03, 0.03, 0.01))
        for name, length in lengths.items()
    ]
    ends = Point("coupler", (0, 0, -coupler)), Point("rocker", (0, 0, -rocker))
    pin = JointConstraint("pin", "revolute", *ends, axis="y")
    return Multibody("four_bar", frames, bodies, constraints=[pin], prescribed=["crank"])


def driven(model, kernel, start, rate):
    """Its steps, the state at the crank angle `start`, and inputs that turn the crank."""
    dsys = nh.midpoint(model if kernel else replace(model.system, name="generated"), 0.01)
    q = satisfy_constraints(dsys.system, [-1.0, 0.3, start])
    angles = start + rate * dsys.h * np.arange(1, 501)
    return dsys, dsys.measured_state(q, np.zeros(3)), angles[:, None]


@ENGINES
@pytest.mark.parametrize("rate", (2.0, -2.0))
def test_a_crank_turns_through_the_stretched_positions_of_its_rocker(kernel, rate):
    """A crank and rocker of Grashof: crank and coupler are aligned twice in a turn."""
    dsys, x, angles = driven(four_bar(0.3, 0.9, 0.7), kernel, 0.0, rate)
    run = dsys.simulate(x, angles).states
    assert abs(run[-1, 2]) > 3 * np.pi
    opened = [dsys.system.mechanics.consistency(q, [])[0] for q in dsys.configuration(run[::50])]
    np.testing.assert_allclose(np.array(opened), 0, atol=1e-10)


@ENGINES
@pytest.mark.parametrize("rate", (2.0, -2.0))
def test_a_crank_that_drives_its_four_bar_into_a_dead_point_locks(kernel, rate):
    """At `2 asin(0.6)` the crank reaches as far as coupler and rocker together, 1.2 m."""
    dsys, x, angles = driven(four_bar(1.0, 0.6, 0.6), kernel, -0.9, rate)
    with pytest.raises(nh.StepFailed, match="the mechanism is locked at crank = ") as failed:
        dsys.simulate(x, angles)
    dead = -np.pi / 2 + np.sign(rate) * 2 * np.arcsin(0.6)
    step = failed.value.step
    assert (angles[step - 1, 0] - dead) * rate < 0 < (angles[step, 0] - dead) * rate
    message = str(failed.value)
    assert f"at step {step} (t = {step * 0.01:g} s): the loop cannot close" in message
    assert ("JointConstraint 'pin'" if kernel else "of holonomic_constraint") in message
    assert message.endswith("change lengths so that the loop closes")


def test_a_failure_of_a_loop_that_closes_has_no_such_sentence():
    """A sling whose hand leaps away faster than the mass can follow along one line."""
    dsys = nh.midpoint(sling(), 0.1)
    x = dsys.measured_state([0.0, -0.5, 0.0, 0.0, 0.0], [100.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(nh.StepFailed) as failed:
        dsys.step(x, [0.1, 0.0, 0.0])
    assert "cannot close" not in str(failed.value)


def test_a_triangle_that_is_stretched_says_at_which_length():
    """Two unit rods on a ground of 1.5 m, whose ends an actuator drives apart: to 3.5 m."""
    plant = nh.System(
        "triangle",
        nh.Rn("left", "right", "length"),
        lambda q, v: ca.sumsqr(v) / 2,
        holonomic_constraint=lambda q: (
            (1.5 + ca.sin(q[1]) - ca.sin(q[0])) ** 2
            + (ca.cos(q[1]) - ca.cos(q[0])) ** 2
            - (1.5 + q[2]) ** 2
        ),
        prescribed=("length",),
    )
    dsys = nh.midpoint(plant, 0.01)
    x = dsys.measured_state(np.zeros(3), [0.0, 0.0, 1.0])
    with pytest.raises(nh.StepFailed, match="locked at length = 2.01: .*rows .0.") as failed:
        dsys.simulate(x, 0.01 * np.arange(1, 400)[:, None])
    assert failed.value.step == 200


@ENGINES
def test_a_triangle_whose_sides_do_not_meet_says_which(kernel):
    """Rods of 1 m on a ground of 1.5 m, whose ends a third rod shall keep 4 m apart."""
    frames = [revolute("left", axis="y"), revolute("right", axis="y", position=(1.5, 0, 0))]
    bodies = [Body(name, 1.0, (0, 0, 0.5), (0.1, 0.1, 0.01)) for name in ("left", "right")]
    side = Distance("side", Point("left", (0, 0, 1)), Point("right", (0, 0, 1)), 4.0)
    model = Multibody("triangle", frames, bodies, constraints=[side])
    dsys = nh.midpoint(model if kernel else replace(model.system, name="generated"), 0.01)
    with pytest.raises(nh.StepFailed, match="cannot close, no configuration nearby") as failed:
        dsys.step(dsys.measured_state([0.0, 0.0], [0.0, 0.0]))
    assert ("Distance 'side'" if kernel else "of holonomic_constraint") in str(failed.value)
