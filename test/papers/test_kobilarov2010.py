"""The claims of [kobilarov2010]."""

import numpy as np
import pytest

from nh_control.mechanics.coordinates import in_coordinates
from nh_control.numerics.progress import Progress
from nh_control.papers import PAPERS
from nh_control.papers import kobilarov2010_maps as maps
from nh_control.papers import kobilarov2010_motions as motions
from nh_control.papers import kobilarov2010_runs as runs
from nh_control.papers.kobilarov2010_structure import board_start
from nh_control.systems import snakeboard

PAPER = PAPERS["kobilarov2010"]


def outcome(number):
    return PAPER.experiment(number).compute(Progress())


def test_the_start_of_figure_4_is_the_paper_s():
    p = motions.BOARD
    q, v = motions.board_start(p)
    system = snakeboard(p)
    constraint = system.numeric.constraint_matrix(runs.ca.SX(q)) @ v
    assert np.abs(np.array(runs.ca.DM(constraint))).max() < 1e-15
    momentum = np.sin(2 * q[1]) * (p.m * p.l**2 * v[2] + p.I * v[0])
    momentum -= 2 * p.l * np.cos(q[1]) ** 2 * p.m * v[3]
    assert momentum == pytest.approx(-1, rel=1e-14)
    assert (q[0], q[1], *v[:2]) == (np.pi / 2, np.pi / 3, 2.5, -0.02)


@pytest.mark.parametrize("number", ["structure", "orders", "oscillation", "maps"])
def test_what_the_paper_says_holds(number, interpreted):
    result = outcome(number)
    assert result.statements and all(s.holds for s in result.statements)


def test_figure_2_names_the_rk2_of_the_paper_s_claim(interpreted):
    """RK2 on (q, v) is worse than GNI and RDP; RK2 on (q, rho) is not."""
    result = outcome("2")
    rows = [("RK2 on (q, ρ)" in s.ours, s.holds) for s in result.statements]
    assert rows == [(False, True), (True, False)] * 2
    n = result.numbers
    for value in ("largest_distance", "energy_error"):
        worse = max(n["GNI"][value], n["RDP"][value])
        assert n["RK2 on (q, ρ)"][value] < worse < n["RK2"][value]


def test_figure_2_shows_the_path_and_a_close_up_of_the_cusp(interpreted):
    figure = outcome("2").draw()
    path, energy = figure.axes
    (inset,) = path.child_axes
    true = path.lines[0].get_xydata()
    k = np.argmin(np.linalg.norm(np.diff(true, axis=0), axis=1))
    assert 0.4 < k / len(true) < 0.6  # as much of the path before the cusp as after it
    (left, right), (low, high) = inset.get_xlim(), inset.get_ylim()
    assert left < true[k, 0] < right and low < true[k, 1] < high
    assert right - left < 0.15 * np.ptp(true[:, 0])
    assert len(inset.lines) == len(path.lines) == 1 + len(energy.lines) - 1


def test_a_wrong_map_of_se2_does_not_hold(monkeypatch):
    cay = maps.se2.cay
    monkeypatch.setattr(maps.se2, "cay", lambda v: cay(v) + maps.ca.vertcat(0, 0, 1e-6))
    result = maps.maps(Progress())
    assert [s.holds for s in result.statements] == [True, False, True, True, True]
    assert result.numbers["order_of_(42)"] == pytest.approx(4, abs=0.05)


def test_rk2_converges_to_the_true_motion():
    system = in_coordinates(snakeboard())
    q, v = board_start()
    continuous, ends = runs.ContinuousSystem(system), []
    c, s = np.cos(q[2]), np.sin(q[2])
    v = np.array([*v[:3], c * v[3], s * v[3]])
    for steps in (20, 40, 80):
        path, _ = runs.rk2(continuous, q, v, 1 / steps, np.zeros((steps, 2)))
        ends.append(path[-1])
    coarse, fine = (np.linalg.norm(b - a) for a, b in zip(ends, ends[1:]))
    assert np.log2(coarse / fine) == pytest.approx(2, abs=0.1)


def test_systems_are_sketched_with_the_paper_s_letters_at_their_frames():
    from nh_control.papers import sketch

    sleigh = PAPER.experiment("1").compute(Progress()).draw()
    (axes,) = sleigh.axes
    assert {text.get_text() for text in axes.texts} == {"θ, (x, y)", "(xₛ, yₛ)"}
    assert axes.get_title() == "Chaplygin sleigh" and axes.collections
    board = motions.SNAKEBOARD
    (axes,) = sketch.draw(board).axes
    places = {text.get_text(): text.get_position_3d() for text in axes.texts}
    front = board.visual.poses(board.parameters, board.q)["front_truck"].position
    np.testing.assert_allclose(places["−φ"], front)
