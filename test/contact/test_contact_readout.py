"""The read-out of contacts: forces, gaps, slips and margins of steps and of runs, in numbers,
figures and pages.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from bodies import HALF, G, ball, box, gripped_snakeboard, point
from refusals import refusal

import nh_control as nh
from nh_control import scenarios
from nh_control.discrete.contact_forces import ContactReadout
from nh_control.figures import contacts as figure
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.saved_results import stored
from nh_control.runs.summary import summarize
from nh_control.scenarios import PlantOptions
from nh_control.scenarios.disturbance import parse
from nh_control.systems import wet_car, wet_snakeboard
from nh_control.view.page import payload
from nh_control.view.sources import of_result


@pytest.fixture(scope="module")
def slide():
    """A box that slides along x, its model and the second of its steps."""
    dsys = box()
    x = dsys.state([1, 0, 0, 0, 0, 0, HALF + 4e-9], [0, 0, 0, 2, 0, 0])
    return dsys, dsys.simulate(x, steps=3).states


def test_forces_of_a_box_change_its_momentum(slide):
    dsys, states = slide
    found = nh.contact_forces(dsys, states[1])
    force = sum(one.force for one in found.values())
    change = (states[2] - states[1])[-3:] / dsys.h
    assert change + [0, 0, G] == pytest.approx(force, abs=1e-6)
    assert force[2] == pytest.approx(G, rel=1e-4) and force[0] == pytest.approx(-G / 2, rel=1e-4)
    corners = list(found.values())
    assert sorted(one.gap for one in corners)[3] < 1e-7 < 0.19 < corners[1].gap
    for one in corners:
        assert one.position[2] == pytest.approx(one.gap, abs=1e-7)
        assert one.slip[0] == pytest.approx(2 - 1.5 * G / 2 * dsys.h, abs=0.03)
        assert one.slides == (one.normal > 1e-3)
        assert one.normal * one.gap == pytest.approx(1e-8, rel=1e-6)  # the barrier


def test_a_table_has_the_rows_of_its_steps(slide):
    dsys, states = slide
    readout = ContactReadout(dsys)
    table = readout.table(states[:3], np.zeros((3, 0)))
    assert table.names == readout.names == tuple(f"body_{i}" for i in range(1, 9))
    assert table.friction.shape == (3, 8, 2) and table.force.shape == (3, 8, 3)
    for k, x in enumerate(states[:3]):
        for i, one in enumerate(readout(x).values()):
            row = [table.normal[k, i], table.gap[k, i], table.margin[k, i], table.slides[k, i]]
            assert row == [one.normal, one.gap, one.margin, one.slides]
    assert len(readout.table(np.zeros((0, dsys.nx)), np.zeros((0, 0))).normal) == 0


def test_what_a_contact_has_not_is_no_number():
    smooth = ball(friction=0.0)
    (found,) = nh.contact_forces(smooth, smooth.state([0, HALF, 0], [1, 0, 0])).values()
    assert np.isnan(found.margin) and found.friction.shape == (0,) and not found.slides
    assert np.isnan(found.position).all() and np.isnan(found.force).all()
    board = gripped_snakeboard(load=1.0)
    found = nh.contact_forces(board, board.state(np.zeros(5), np.zeros(5)), [0, 0])
    assert list(found) == ["grip_1", "grip_2"]
    assert all(np.isnan(one.gap) and one.normal == 0 for one in found.values())
    assert all(one.friction.shape == (1,) and 0 < one.margin <= 1 for one in found.values())


def test_the_margin_is_the_part_of_friction_that_is_left():
    """A point that sticks on a slope with half of its friction."""
    dsys = point(np.arctan(0.25), 0.5)
    x = dsys.simulate(dsys.state([0, 1e-12], [0, 0]), steps=3).states[-1]
    assert nh.contact_forces(dsys, x)["floor"].margin == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("make", [wet_car, wet_snakeboard])
def test_forces_of_wheels_act_where_their_rows_say(make):
    """The power of a unit force at its place is the row's velocity."""
    system = make().numeric
    q, v, _ = system.symbols
    e = ca.SX.sym("e", system.space.nv)
    moved = ca.jacobian(system.space.retract(q, e), e) @ system.space.frame(q).T @ v
    rate = ca.substitute(moved, e, ca.SX.zeros(system.space.nv))
    at, moving = np.array([0.3, 0.4, 0.7, 1.0, -2.0]), np.array([0.2, -0.3, 0.5, 2.0, 0.4])
    rows = ca.Function("rows", [q, v], [system.constraint_rows(q) @ v])
    slips = np.asarray(rows(at, moving))[:, 0]
    assert system.grips
    for grip in system.grips:
        place = grip.place(q, system.parameters)
        velocity = ca.jacobian(place[:, 0], q) @ rate
        power = ca.Function("power", [q, v], [place[:, 1:].T @ velocity])
        spinning = system.name == "wet_car" and len(grip.rows) == 2
        found = np.asarray(power(at, moving))[:, 0] - [0, 0.3 * moving[0]][: 1 + spinning]
        assert found == pytest.approx(slips[list(grip.rows)])


def test_what_does_not_fit_is_refused(snapshot):
    floor, grips = ball().system.contacts[0], wet_car().grips
    calls = (
        lambda: ContactReadout(nh.midpoint(nh.systems.pendulum(), 0.01)),
        lambda: replace(ball().system, contacts=(replace(floor, place=lambda q: q),)),
        lambda: replace(wet_car(), grips=tuple(replace(grip, name="same") for grip in grips)),
    )
    assert [refusal(call) for call in calls] == snapshot


@pytest.fixture(scope="module")
def skid():
    options = PlantOptions(disturbances=(parse("ground:gust:0.95,start=0.3,duration=0.5"),))
    experiment = Experiment.make(scenarios.get("wet_snakeboard"), options=options, duration_s=1.2)
    return Result(experiment, experiment.run(), None, 0.0)


def test_runs_have_their_contacts(skid, tmp_path):
    table, arrays = skid.contacts, skid.arrays
    assert table.margin.shape == (120, 2) and table.names == ("rear_wheels", "front_wheels")
    assert table.slides[32:80].all() and not table.slides[:30].any()
    x, u = skid.loop.trajectory.states[40], [*skid.loop.trajectory.inputs[40], 0.95]
    one = nh.contact_forces(skid.experiment.plant, x, u)["front_wheels"]
    assert table.friction[40, 1, 0] == one.friction[0]
    skid.save(tmp_path / "results.npz")
    again = stored(tmp_path / "results.npz")
    for name in ("normal", "friction", "gap", "slip", "margin", "position", "force", "names"):
        key = f"contact_{name}"
        np.testing.assert_array_equal(again.arrays[key], arrays[key])
    told = summarize(skid)["contacts"]["front_wheels"]
    assert told["steps_sliding"] == table.slides[:, 1].sum() and told["gap_min_m"] is None
    assert told["friction_max_N"] == pytest.approx(np.abs(table.friction[:, 1]).max())


def test_the_figure_shows_frictions_and_margins(skid):
    friction, margin = figure.contacts(skid).axes[:2]
    assert friction.get_ylabel() == "friction (N)" and "margin" in margin.get_ylabel()
    np.testing.assert_array_equal(margin.lines[1].get_ydata(), skid.contacts.margin[:, 1])


def test_pages_show_forces_as_arrows(skid):
    shown = of_result(skid)
    assert shown.run.names[-2:] == ("contact rear_wheels", "contact front_wheels")
    data = payload(shown)
    assert [data["frames"][one["frame"]] for one in data["arrows"]] == list(shown.run.names[-2:])
    titles = [curves.title for curves in shown.curves]
    assert "friction" in titles and "margin of friction" in titles
