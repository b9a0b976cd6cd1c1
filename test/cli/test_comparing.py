"""Comparisons of integrators: errors, energies and costs of a motion, and the two commands."""

import json

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.cli import main
from nh_control.geometry.spaces import Rn
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics.system import System
from nh_control.numerics import compiled
from nh_control.runs.comparison import Motion, compare, method_table, motion_of, seconds_at
from nh_control.systems import snakeboard

METHODS = ("midpoint", "midpoint_order4", "midpoint_order6")


@pytest.fixture(autouse=True)
def virtual_machine(monkeypatch):
    monkeypatch.setattr(compiled, "compiler", lambda: None)


def quartic() -> Motion:
    """A user's own system: a ball in a quartic bowl."""
    system = System("bowl", Rn("q"), lambda q, v: v[0] ** 2 / 2 - q[0] ** 4 / 4)
    return Motion(system, [1.0], [0.3], 2.0)


def test_errors_fall_with_the_order_and_energies_are_those_of_the_motion():
    motion = quartic()
    chosen = {name: INTEGRATORS[name] for name in (*METHODS, "rdp_exp")}
    found = compare(motion, chosen, 0.02, solvers=("DOP853",), longest_s=0.03)
    assert list(found.work) == [*METHODS, "DOP853"] and "symmetry" in found.refused["rdp_exp"]
    for name in METHODS:
        points, order = found.work[name], INTEGRATORS[name].order
        kept = [p for p in points if 20 * found.uncertainty < p.error < 1e-3]
        n, error = (np.log([getattr(p, a) for p in kept]) for a in ("setting", "error"))
        assert len(kept) >= 4 and abs(-np.polyfit(n, error, 1)[0] - order) <= 0.4, name
    at = {n: seconds_at(points, 1e-6) for n, points in found.work.items()}
    assert at["midpoint_order4"] < np.inf and seconds_at(found.work["midpoint"], 0.0) == np.inf
    largest = {name: np.abs(drift.energy).max() for name, drift in found.drifts.items()}
    assert 1e-6 < largest["midpoint"] < 1e-3 and largest["midpoint_order6"] < 1e-10
    assert found.drifts["midpoint"].times[-1] == pytest.approx(2.0)
    assert found.drifts["midpoint"].constraint.max() == 0.0


def test_the_table_has_numbers_or_a_reason():
    rows = {
        row.integrator.name: row
        for row in method_table(
            {name: INTEGRATORS[name] for name in (*METHODS, "rdp_exp")}, quartic(), 0.05, steps=5
        )
    }
    assert [rows[n].unknowns for n in METHODS] == [1, 5, 9]
    assert all(rows[n].state_size == 2 and rows[n].microseconds > 0 for n in METHODS)
    assert "symmetry" in rows["rdp_exp"].refused and rows["rdp_exp"].microseconds == 0


def test_a_scenarios_motion_stays_in_the_domain_of_its_model():
    motion = motion_of(scenarios.get("snakeboard"), 5.0)
    assert motion.u.shape == (2,) and motion.duration == 5.0
    assert abs(motion.q[1] + 5.0 * motion.v[1]) < np.pi / 2, "the trucks turn freely"
    with pytest.raises(ValueError, match="marionette.*prescribed"):
        motion_of(scenarios.get("marionette"), 1.0)
    for wrong in (dict(q=[0.0]), dict(v=[np.nan] * 5), dict(duration=0.0), dict(u=[0.0])):
        with pytest.raises(ValueError, match="snakeboard: "):
            Motion(
                **{
                    **dict(system=snakeboard(), q=motion.q, v=motion.v, duration=1.0, u=[0, 0]),
                    **wrong,
                }
            )


@pytest.mark.slow
def test_the_commands(tmp_path, capsys):
    assert main(["integrators", "--json"]) == 0
    table = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(table) == list(INTEGRATORS) and table["midpoint_order6"]["order"] == 6
    assert main(["integrators"]) == 0 and "nonholonomic_midpoint_order8" in capsys.readouterr().out
    out = tmp_path / "out"
    names = ("nonholonomic_midpoint", "nonholonomic_midpoint_order4")
    arguments = ["compare", "snakeboard", "--reference", "forward", "--duration", "0.5"]
    arguments += ["--output", str(out), "--methods", *names]
    assert main(arguments) == 0
    assert {f.name for f in out.iterdir()} == {"work_precision.png", "energy.png", "numbers.json"}
    numbers = json.loads((out / "numbers.json").read_text())
    assert set(numbers["work"]) == {*names, "DOP853", "RK45", "LSODA"}
    assert names[1] in capsys.readouterr().out
    assert main(["compare", "snakeboard", "--methods", "euler"]) == 2
    assert "no integrators ['euler']" in capsys.readouterr().err
    assert main(["compare", "marionette"]) == 2 and "prescribed" in capsys.readouterr().err
