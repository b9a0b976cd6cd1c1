"""The claims of [kobilarov2010]."""

from dataclasses import replace

import numpy as np
import pytest

from nh_control.numerics.progress import Progress
from nh_control.papers import PAPERS
from nh_control.papers import kobilarov2010_cusps as cusps
from nh_control.papers import kobilarov2010_maps as maps
from nh_control.papers import kobilarov2010_motions as motions
from nh_control.papers import kobilarov2010_runs as runs
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


@pytest.mark.parametrize("number", ["structure", "orders", "oscillation", "maps", "theorem_1"])
def test_what_the_paper_says_holds(number):
    result = outcome(number)
    assert result.statements and all(s.holds for s in result.statements)


def test_figure_2_names_the_rk2_of_the_paper_s_claim():
    """RK2 on (q, v) is worse than GNI and RDP; RK2 on (q, rho) is not."""
    result = outcome("2")
    rows = [("RK2 on (q, ρ)" in s.ours, s.holds) for s in result.statements]
    assert rows == [(False, True), (True, False)] * 2
    n = result.numbers
    for value in ("largest_distance", "energy_error"):
        worse = max(n["GNI"][value], n["RDP"][value])
        assert n["RK2 on (q, ρ)"][value] < worse < n["RK2"][value]


def test_the_snakeboard_for_all_steering_angles_has_the_constraints_of_34():
    """The rows of (34) are combinations of the others, and these are independent at pi/2."""
    q = [0.3, 0.7, 0.4, 0.1, -0.2]
    system = motions.any_steering(motions.BOARD).numeric
    printed, regular = (
        np.array(runs.ca.DM(one.constraint_matrix(runs.ca.SX(q))))
        for one in (snakeboard(motions.BOARD).numeric, system)
    )
    assert np.linalg.matrix_rank(np.vstack([printed, regular])) == 2
    q[1] = np.pi / 2
    assert np.linalg.matrix_rank(np.array(runs.ca.DM(system.constraint_matrix(q)))) == 2


def test_the_speed_of_the_snakeboard_is_changed_by_the_rotor_s_torque_alone():
    """`(w sqrt(1 - k sin^2 phi))'` of the continuous motion, beyond 90 degrees, too."""
    p = motions.BOARD
    continuous = runs.ContinuousSystem(motions.any_steering(p))
    k, rng = p.I / (p.m * p.l**2), np.random.default_rng(4)
    for phi in (0.4, 1.5, 2.2):
        w, rates, torque = rng.normal(), rng.normal(size=2), rng.normal(size=2)
        q, root = np.array([0.1, phi, 0.2, 0.0, 0.0]), np.sqrt(1 - k * np.sin(phi) ** 2)
        v = np.array([*rates, w * np.sin(phi), -w * p.l * np.cos(phi), 0.0])
        a = continuous.acceleration(q, v, torque)
        w_rate = a[2] * np.sin(phi) - a[3] * np.cos(phi) / p.l
        w_rate += v[2] * np.cos(phi) * rates[1] + v[3] * np.sin(phi) * rates[1] / p.l
        slope = w_rate * root - w * k * np.sin(phi) * np.cos(phi) * rates[1] / root
        assert slope == pytest.approx(-np.sin(phi) * torque[0] / (p.m * p.l**2 * root), rel=1e-9)
        assert 2 * p.J * a[1] == pytest.approx(torque[1])


def test_the_steering_passes_90_degrees_with_light_axles_alone():
    t = np.linspace(0, 10, 2001)
    for J in (0.1, 1.0):
        phi, h = cusps.steering(t, J), t[1]
        assert phi[0] == pytest.approx(np.pi / 3)
        assert (phi[1] - phi[0]) / h == pytest.approx(-0.02, abs=1e-3)
        force = 2 * J * np.diff(phi, 2) / h**2
        np.testing.assert_allclose(force, np.sin(2 * np.pi * t[1:-1]), atol=1e-3)
    assert cusps.heaviest() == pytest.approx(1.1, abs=0.01)


def test_the_least_speed_of_boards_is_that_of_their_motions():
    """By the path, `w = omega sin(phi) - v_forward cos(phi) / l` at half steps; the bound is
    for I = 0, and I > 0 adds to the start.
    """
    for l, I, J in ((0.7, 0.4, 0.1), (0.3, 0.07, 1.2)):
        p = replace(motions.BOARD, l=l, I=I, J=J)
        inputs = motions.mean_torques(2000)
        dsys = cusps.rdp(motions.any_steering(p), motions.BOARD_S / 2000)
        q, v = motions.board_start(p)
        path = dsys.simulate(dsys.state(q, v, inputs[0]), inputs).states[:, :5]
        rates = np.diff(path, axis=0) / dsys.h
        phi, theta = (path[:-1, 1:3] + path[1:, 1:3]).T / 2
        forward = np.cos(theta) * rates[:, 3] + np.sin(theta) * rates[:, 4]
        speed = rates[:, 2] * np.sin(phi) - forward * np.cos(phi) / l
        k = I / (p.m * l**2)
        speed *= np.sqrt(1 - k * np.sin(phi) ** 2)
        start = -(1 + 2.5 * I * np.sin(np.pi / 3)) * np.sqrt(1 - 3 * k / 4) / (p.m * l**2)
        lost = 1 - (speed / start).min()
        bound = 1 - cusps.least_speed(J, k)
        assert lost * (1 + 2.5 * I * np.sin(np.pi / 3)) == pytest.approx(bound, rel=0.03)
        assert bound > 0.01


@pytest.fixture
def few_boards(monkeypatch):
    for name, value in (
        ("AXLES", (0.15, 1.2)),
        ("SHOWN", (0.15, 1.2)),
        ("STEPS", 2000),
        ("INERTIAS", (0.05, 0.2, 1.2)),
        ("RATIOS", (0.1, 0.9)),
    ):
        monkeypatch.setattr(cusps, name, value)


def test_the_printed_data_give_no_cusps_but_by_steering_past_90_degrees(few_boards):
    outcome = cusps.cusps(Progress())
    claim, passes = outcome.statements
    assert (claim.holds, passes.holds) == (False, True)
    assert "the printed data give no cusp while |phi| < 90 degrees" in claim.ours
    assert "2 with J = 0.15, 0 with J = 1.2" in passes.ours
    assert outcome.numbers["least_relative_speed"] == pytest.approx(0.91, abs=0.005)
    assert "I < 0.9 m l^2" in claim.ours and "at least 91 %" in claim.ours
    left, right = outcome.draw().axes
    light, dots, heavy = left.lines
    assert len(dots.get_xdata()) == 2 and dots.get_label() == "cusps"
    np.testing.assert_array_equal(right.lines[1].get_ydata(), [2, 0])


def test_a_wrong_map_of_se2_does_not_hold(monkeypatch):
    cay = maps.se2.cay
    monkeypatch.setattr(maps.se2, "cay", lambda v: cay(v) + maps.ca.vertcat(0, 0, 1e-6))
    result = maps.maps(Progress())
    assert [s.holds for s in result.statements] == [True, False, True, True, True]
    assert result.numbers["order_of_(42)"] == pytest.approx(4, abs=0.05)
