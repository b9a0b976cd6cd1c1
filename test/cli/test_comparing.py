"""Comparisons of integrators: errors, energies and costs of a motion, and the two commands."""

import json
from dataclasses import replace

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.cli import main
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.discrete.trajectory import Trajectory
from nh_control.geometry.spaces import Rn
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics.system import System
from nh_control.studies import comparison
from nh_control.studies.comparison import Drifts, Reference, compare, method_table, seconds_at
from nh_control.studies.motion import Flow, InitialValueProblem, motion_of
from nh_control.systems import pendulum, snakeboard

METHODS = ("midpoint", "midpoint_order4", "midpoint_order6")


def quartic() -> InitialValueProblem:
    """A user's own system: a ball in a quartic bowl."""
    system = System("bowl", Rn("q"), lambda q, v: v[0] ** 2 / 2 - q[0] ** 4 / 4)
    return InitialValueProblem(system, [1.0], [0.3], 2.0)


def test_errors_fall_with_the_order_and_energies_are_those_of_the_motion():
    motion = quartic()
    chosen = {name: INTEGRATORS[name] for name in (*METHODS, "rdp_exp")}
    found = compare(motion, chosen, 0.02, solvers=("DOP853",), longest_s=0.015)
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
    assert "symmetry" in rows["rdp_exp"].refused and rows["rdp_exp"].microseconds is None


def test_every_piecewise_constant_input_has_a_step():
    reference = Reference(InitialValueProblem(pendulum(), [0.3], [0.0], 1.0, np.ones((20, 1))))
    (point,) = comparison.work_precision(reference, INTEGRATORS["midpoint"], longest_s=0.0)
    assert point.setting == 20


def test_the_motion_of_a_scenario_has_the_inputs_of_its_reference():
    board = scenarios.get("snakeboard")
    motion, path = motion_of(board), board.reference(board.model())
    assert motion.u.shape == (16, 2) and motion.duration == 10.0
    assert motion.u[[3, 7]] == pytest.approx(
        np.array([_mean(path, k * 0.625, (k + 1) * 0.625) for k in (3, 7)])
    )
    with pytest.raises(ValueError, match="parking ends after 14.8 s.*motion of 20 s"):
        motion_of(board, 20.0)
    with pytest.raises(ValueError, match="marionette.*prescribed"):
        motion_of(scenarios.get("marionette"), 1.0)


def test_a_motion_goes_where_its_reference_goes():
    board = scenarios.get("snakeboard")
    path = board.reference(board.model(), "slalom")
    flow = Flow(motion_of(board, reference="slalom"))
    _, seen = flow.solve("DOP853", path.times[:1001:50], rtol=1e-8)
    off = seen[:, 3:5] - path.states[:1001:50, 3:5]
    assert np.linalg.norm(off, axis=1).max() < 0.8 < 18 < seen[-1, 3]


def _mean(path, start, end):
    """Return the mean of piecewise constant inputs between two times."""
    edges = np.clip(path.times, start, end)
    return np.diff(edges) @ path.inputs / (end - start)


@pytest.mark.slow
def test_motions_with_constant_inputs_are_free():
    coasting = motion_of(scenarios.get("rolling_disk"), 30.0, "circle")
    assert coasting.u.shape == (1, 2) and coasting.duration == 30.0
    resting = motion_of(scenarios.get("urdf"), 1.0)
    assert resting.u.shape == (1, 2) and resting.v == pytest.approx([1.0, 1.0])


def test_inputs_change_more_often_if_the_motion_leaves_the_domain():
    """A steering motion stops after half a second; with its mean over a second it passes pi/2."""

    def stopping(model):
        inputs = np.zeros((1600, 2))
        inputs[:50, 1] = -2 * 2.4 / 0.5
        return model.simulate(model.state([0, 0.7, 0, 0, 0], [0, 2.0, 0, 0, 0]), inputs)

    board = replace(scenarios.get("snakeboard"), references={"stopping": stopping})
    assert len(motion_of(board, 16.0).u) == 32


def test_order_is_that_of_the_integrator_under_inputs_in_turn():
    u = np.array([[1.0], [-2.0], [0.5], [1.5]])
    motion = InitialValueProblem(pendulum(), [0.3], [0.0], 2.0, u)
    assert np.array_equal(motion.inputs_at(np.array([0.0, 0.6, 1.9, 2.0])), u[[0, 1, 3, 3]])
    reference, make = Reference(motion), INTEGRATORS["midpoint_order4"].make
    each, errors = np.array([5, 8, 12, 18]), []
    for steps in each:
        dsys = make(motion.system, 0.5 / steps)
        run = dsys.simulate(dsys.state(motion.q, motion.v), u, every=steps)
        errors.append(reference.error(dsys.configuration(run.states[-1])))
    assert abs(-np.polyfit(np.log(each), np.log(errors), 1)[0] - 4) <= 0.2
    chosen = {"midpoint_order4": INTEGRATORS["midpoint_order4"]}
    found = compare(motion, chosen, 0.1, ("DOP853",), longest_s=1e-9)
    (point,), drift = found.work["midpoint_order4"], found.drifts["midpoint_order4"]
    assert point.setting == 8 and len(drift.times) == 21 and drift.times[-1] == 2.0
    assert np.abs(drift.energy).max() < 1e-3 and found.uncertainty < 1e-11


def test_drifts_are_parts_of_the_largest_kinetic_energy_at_no_more_than_the_nodes():
    motion = quartic()
    fine, coarse = Drifts(Reference(motion), 0.01, nodes=50), Drifts(Reference(motion), 5.0)
    assert len(fine.times) == 51 and coarse.times.tolist() == [0.0, 2.0]
    run = INTEGRATORS["midpoint"].make(motion.system, 0.01)
    states = run.simulate(run.state(motion.q, motion.v), np.zeros((200, 0))).states
    energies = np.array([run.energy(x) for x in states[::4]])
    drift = fine.of_integrator(INTEGRATORS["midpoint"]).energy
    accurate = run.with_step(1e-3)
    path = accurate.simulate(accurate.state(motion.q, motion.v), np.zeros((2000, 0))).states
    largest = max(accurate.velocity(x)[0] ** 2 / 2 for x in path[::40])
    assert drift * largest == pytest.approx(energies - (0.3**2 / 2 + 1 / 4), abs=1e-9)
    assert np.isfinite(coarse.of_solver("DOP853", 1e-8).energy).all()


def test_a_constraint_s_error_is_the_largest_of_positions_and_velocities():
    """A mass on a circle about an attracting point; an input pulls it along x."""
    circle = System(
        "circle", Rn("x", "y"), lambda q, v: (v[0] ** 2 + v[1] ** 2) / 2,
        holonomic_constraint=lambda q: q[0] ** 2 + q[1] ** 2 - 1,
    )  # fmt: skip
    values = comparison._energy_and_constraint(circle)
    assert values([0.6, -0.9], [1.0, 2.0]) == (2.5, pytest.approx(0.17))
    assert values([0.6, -0.7], [0.0, 0.0]) == (0.0, pytest.approx(0.15))
    belt = System(
        "belt", Rn("x", "y"), lambda q, v: (v[0] ** 2 + v[1] ** 2) / 2,
        velocity_constraint=lambda q: np.array([[0.0, 1.0]]), velocity_drift=lambda q: q[0],
    )  # fmt: skip
    assert comparison._energy_and_constraint(belt)([0.5, 0.0], [0.0, 0.2])[1] == pytest.approx(0.3)


def test_solvers_have_one_tolerance_and_failures_a_name(monkeypatch):
    """The tolerance is 1e-6, as the figures say."""

    class Seen(Drifts):
        def of_solver(self, solver, tolerance):
            tolerances.append(tolerance)
            return super().of_solver(solver, tolerance)

        def of_integrator(self, integrator):
            raise StepFailed("bowl", 0.1, "no luck", 1.0, 1.0, 25, Conditioning(1.0, 1.0, 1.0))

    tolerances = []
    monkeypatch.setattr(comparison, "Drifts", Seen)
    found = compare(
        quartic(), {"midpoint": INTEGRATORS["midpoint"]}, 0.1, ("RK45",), longest_s=1e-9
    )
    assert tolerances == [1e-6] and list(found.drifts) == ["RK45"]
    assert "midpoint" in found.work
    assert found.refused == {"midpoint": "no energy at h = 0.1 s: no luck"}


@pytest.mark.parametrize("duration, v", [(8.0, 1.0), (9.5, 0.5)])
def test_a_motion_is_slowed_down_to_spare_a_tenth_of_the_way_to_the_end_of_the_domain(duration, v):
    """Of 10 m it may take 9."""
    slide = System("slide", Rn("x"), lambda q, v: v[0] ** 2 / 2, domain=lambda q: 10 - q[0])
    resting = lambda model: Trajectory(model.h, np.zeros((1001, 2)), np.zeros((1000, 0)))  # noqa: E731
    scenario = replace(
        scenarios.get("pendulum_swing_up"),
        parameters=None,
        make_system=lambda _: slide,
        references={"rest": resting},
        joints=(),
    )
    assert motion_of(scenario, duration).v == pytest.approx([v])


def test_motions_are_checked():
    motion = motion_of(scenarios.get("snakeboard"), 5.0)
    for wrong in (dict(q=[0.0]), dict(v=[np.nan] * 5), dict(duration=0.0), dict(u=[0.0])):
        with pytest.raises(ValueError, match="snakeboard: "):
            InitialValueProblem(
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
    assert "['euler'], choose from: " in capsys.readouterr().err
    assert main(["compare", "marionette"]) == 2 and "prescribed" in capsys.readouterr().err


OWN = """
from dataclasses import replace
import nh_control as nh

def mine(system, h):
    return nh.midpoint(system, h)

def broken(system, h):
    raise ZeroDivisionError("no step")

DECLARED = nh.integrators.Integrator(
    "declared", nh.midpoint, order=2, explicit=False, symmetric=True
)
CART = replace(nh.scenarios.get("cart_pole"), integrators={"mine": mine, "declared": DECLARED})
BROKEN = replace(CART, integrators={"mine": mine, "broken": broken})
WRONG = replace(
    CART,
    integrators={
        "mine": mine,
        "refusing": replace(DECLARED, refuses=lambda system: "has a cart"),
    },
)
"""


@pytest.fixture
def own_file(tmp_path):
    file = tmp_path / "cart.py"
    file.write_text(OWN)
    return file


@pytest.mark.slow
def test_a_scenario_s_own_integrators_are_listed_and_compared(own_file, tmp_path, capsys):
    """Functions without properties, an Integrator with them."""
    assert main(["integrators", str(own_file), "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(INTEGRATORS) | {"mine", "declared"} == set(rows)
    assert [rows["mine"][key] for key in ("order", "kind", "symmetric")] == [None] * 3
    assert [rows["declared"][k] for k in ("order", "kind", "symmetric")] == [2, "implicit", True]
    assert rows["mine"]["unknowns"] == rows["midpoint"]["unknowns"] > 0
    given = ["--methods", "mine", "midpoint", "--output", str(tmp_path / "out"), "--json"]
    assert main(["compare", str(own_file), *given, "--duration", "0.2"]) == 0
    work = json.loads(capsys.readouterr().out)["work"]
    assert {"mine", "midpoint"} < set(work)
    assert work["mine"][0]["error"] == work["midpoint"][0]["error"]


def test_a_scenario_runs_on_its_own_integrator_and_says_what_it_refuses(own_file):
    found = scenarios.get(f"{own_file}:CART")
    model = found.model()
    assert found.plant(model).method.name == model.method.name
    assert found.model("declared").nx == model.nx
    with pytest.raises(ValueError, match="declared cannot take cart_pole, which has a cart"):
        scenarios.get(f"{own_file}:WRONG").model("refusing")


@pytest.mark.parametrize(
    "command", ["compare", pytest.param("integrators", marks=pytest.mark.slow)]
)
def test_an_error_in_an_own_integrator_names_its_line(command, own_file, tmp_path, capsys):
    options = ["--methods", "broken", "--output", str(tmp_path / "out")]
    call = [command, f"{own_file}:BROKEN", *(options if command == "compare" else ())]
    assert main(call) == 2
    assert "line 9" in (said := capsys.readouterr().err) and "no step" in said
