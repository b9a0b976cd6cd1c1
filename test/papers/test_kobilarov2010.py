"""The claims of [kobilarov2010]."""

import numpy as np
import pytest

from nh_control.mechanics.coordinates import in_coordinates
from nh_control.numerics.progress import Progress
from nh_control.papers import PAPERS
from nh_control.papers import kobilarov2010_motions as motions
from nh_control.papers.kobilarov2010_structure import board_start
from nh_control.systems import snakeboard

PAPER = PAPERS["kobilarov2010"]


def outcome(number):
    return PAPER.experiment(number).compute(Progress())


@pytest.mark.slow
def test_figure_4_gni_and_rdp_follow_the_snakeboard_rk2_does_not():
    result = outcome("4")
    n = result.numbers
    assert max(n["GNI"]["largest_distance"], n["RDP"]["largest_distance"]) < 0.006
    assert n["RK2"]["largest_distance"] > 0.15
    assert n["RK2 on (q, ρ)"]["largest_distance"] < 0.003
    assert all(s.holds for s in result.statements)


def test_the_start_of_figure_4_is_the_paper_s():
    p = motions.BOARD
    q, v = motions.board_start(p)
    system = snakeboard(p)
    constraint = system.numeric.constraint_matrix(motions.ca.SX(q)) @ v
    assert np.abs(np.array(motions.ca.DM(constraint))).max() < 1e-15
    momentum = np.sin(2 * q[1]) * (p.m * p.l**2 * v[2] + p.I * v[0])
    momentum -= 2 * p.l * np.cos(q[1]) ** 2 * p.m * v[3]
    assert momentum == pytest.approx(-1, rel=1e-14)
    assert (q[0], q[1], *v[:2]) == (np.pi / 2, np.pi / 3, 2.5, -0.02)


@pytest.mark.parametrize("number", ["2", "orders", "structure", "oscillation"])
def test_what_the_paper_says_holds(number, interpreted):
    result = outcome(number)
    assert result.statements and all(s.holds for s in result.statements)


def test_rk2_converges_to_the_true_motion():
    system = in_coordinates(snakeboard())
    q, v = board_start()
    continuous, ends = motions.ContinuousSystem(system), []
    c, s = np.cos(q[2]), np.sin(q[2])
    v = np.array([*v[:3], c * v[3], s * v[3]])
    for steps in (20, 40, 80):
        path, _ = motions.rk2(continuous, q, v, 1 / steps, np.zeros((steps, 2)))
        ends.append(path[-1])
    coarse, fine = (np.linalg.norm(b - a) for a, b in zip(ends, ends[1:]))
    assert np.log2(coarse / fine) == pytest.approx(2, abs=0.1)


@pytest.mark.slow
def test_the_whole_paper(tmp_path):
    from nh_control.cli import main

    out = tmp_path / "out"
    assert main(["paper", "kobilarov2010", "--output", str(out)]) == 0
    files = {"figure_2", "figure_3", "figure_4", "orders", "structure", "oscillation"}
    assert {f.stem for f in out.glob("*.png")} == files
    assert "| NO |" not in (out / "table.md").read_text()
