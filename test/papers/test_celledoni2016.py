"""The claims of [celledoni2016]: at reduced length, and the whole paper."""

import numpy as np
import pytest

from nh_control.numerics.progress import Progress
from nh_control.papers import PAPERS
from nh_control.papers import celledoni2016_chaotic as chaotic
from nh_control.papers import celledoni2016_cost as cost
from nh_control.papers import celledoni2016_disk as disk
from nh_control.papers import celledoni2016_gearbox as gearbox
from nh_control.papers import celledoni2016_sleigh as sleigh
from nh_control.papers import celledoni2016_yaw as disk_yaw


def test_the_rolling_disk_is_the_paper_s():
    """(2) to (8), and the motion by two independent computations."""
    outcome = PAPERS["celledoni2016"].experiment("1").compute(Progress())
    assert [s.holds for s in outcome.statements] == [True] * 5
    off = outcome.numbers["distance_of_methods_from_5"]
    assert set(off) == set(chaotic.METHODS) and min(off.values()) < 1e-12
    assert min(off[name] for name in chaotic.VARIATIONAL) > 1e-4
    distance = outcome.numbers["distance_of_6_from_5"]
    assert any(f"{distance:.0e} of the circle of (5)" in s.ours for s in outcome.statements)
    sketch, paths = outcome.draw().axes
    assert {text.get_text() for text in sketch.texts} >= {"φ"}
    for name, run in disk.steps().items():
        (path,) = [one for one in paths.lines if one.get_label() == name]
        np.testing.assert_allclose(path.get_xydata(), run[::4, 2:], atol=1e-12)


def test_the_printed_basis_of_the_disk_is_not_orthogonal(monkeypatch):
    """With an angle other than theta, the complement and the bracket are wrong, and the rest
    agrees.
    """
    right = disk.normal
    monkeypatch.setattr(disk, "normal", lambda angle: right(angle + 0.1))
    outcome = disk.figure_1(Progress())
    assert [s.holds for s in outcome.statements] == [False, False, True, True, True]


def test_the_tangent_of_exp_adds_yaw_inertia_and_two_others_do_not():
    motions = disk_yaw.yaw_motions()
    for name, motion in motions.items():
        expected = [disk_yaw.predicted(h) if name in disk_yaw.HEAVY else 0.0 for h in (0.2, 0.1)]
        np.testing.assert_allclose(motion.added[:2], expected, rtol=3e-3, atol=1e-13)
    assert disk_yaw.predicted(0.1) == pytest.approx(0.03, rel=1e-12)
    far = {name: motion.distance[1] for name, motion in motions.items()}
    assert far["RDP exp"] / far["SI-DLA"] == pytest.approx(233, abs=1)
    assert far["RDP exp"] / far["RDP sccsk"] == pytest.approx(14.6, abs=0.1)
    assert far["RDP exp, truncated"] < 1e-12
    assert [s.holds for s in disk_yaw._of_yaw(motions)] == [True, True]
    heavier = motions | {"RDP exp": disk_yaw.Yaw(motions["SI-DLA"].distance, np.full(4, 0.031))}
    assert [s.holds for s in disk_yaw._of_yaw(heavier)] == [False, False]


def test_the_energy_by_hand_is_that_of_the_system():
    dsys = chaotic.INTEGRATORS["gonzalez"].make(chaotic.chaotic_quartic(), 0.1)
    x = dsys.state(*chaotic.random_start(np.random.default_rng(0)))
    assert chaotic._energies(x[None])[0] == pytest.approx(dsys.energy(x), rel=1e-14)
    assert dsys.energy(x) == pytest.approx(3.06, rel=1e-14)


def test_the_gearbox_at_the_beginning():
    run = gearbox.long_run(1500.0)
    assert 1400 < run.times[-1] <= 1500
    numbers = run.numbers()
    energy, constraint = (numbers["largest_relative_energy_error"], numbers["largest_constraint"])
    assert 0.03 < energy["SI-DLA"] < 0.04  # of twenty random starts eight grow; this one
    assert np.all(np.diff(run.energy["SI-DLA"][:: len(run.times) // 5]) > 0)
    assert max(energy["Gonzalez-R"], energy["Gonzalez-F"]) < 5e-13
    assert max(constraint["Gonzalez-R"], constraint["SI-DLA"]) < 1e-14
    assert constraint["Gonzalez-F"] > 1e-3


def test_proposition_4_1():
    found = sleigh.equilibria()
    assert len(found) == 18
    for e in found:
        assert e.displacement < 1e-15
        assert e.eigenvalue == pytest.approx(e.formula, rel=1e-12)
        assert (0 < e.eigenvalue < 1) == (e.growth < 1) == (e.rho_2 > 0)


@pytest.mark.parametrize("number", ["3", "stability", "suslov"])
def test_the_claims_about_sleigh_and_suslov_hold(number):
    outcome = PAPERS["celledoni2016"].experiment(number).compute(Progress())
    assert outcome.statements and all(s.holds for s in outcome.statements)


def test_unknowns_of_remark_3_4_are_those_of_the_methods(monkeypatch):
    """3n - m in (15), n + m in (14) on (9); more operations: Gonzalez-R, and (15) on the disk."""
    monkeypatch.setattr(cost, "_step_us", lambda dsys: 1.0)
    few = {name: cost.SYSTEMS[name] for name in ("disk", "gearbox")}  # the third takes long
    monkeypatch.setattr(cost, "SYSTEMS", few)
    found = cost.costs()
    sizes = {"disk": (4, 2), "gearbox": (3, 2)}
    assert set(found) == set(sizes)
    for name, (n, m) in sizes.items():
        by = found[name]
        unknowns = [by[k].unknowns for k in (cost.FULL, cost.REDUCED, cost.BY_QR)]
        assert unknowns == [3 * n - m, n + m, n + m]
        assert by[cost.BY_QR].operations > by[cost.REDUCED].operations
    assert [s.holds for s in cost.statements(found)] == [True, False, True]


def test_wrong_unknowns_or_a_cheap_factorization_do_not_hold():
    def by(full, reduced, qr_operations):
        return {
            cost.REDUCED: cost.Cost(reduced, 100.0, 1.0),
            cost.FULL: cost.Cost(full, 200.0, 2.0),
            cost.BY_QR: cost.Cost(reduced, qr_operations, 3.0),
        }

    right = {"disk": by(10, 6, 150.0), "gearbox": by(7, 5, 150.0)}
    right["chaotic system"] = by(15, 13, 150.0)
    assert [s.holds for s in cost.statements(right)] == [True, True, True]
    wrong = right | {"gearbox": by(8, 5, 90.0)}
    assert [s.holds for s in cost.statements(wrong)] == [False, True, False]
