"""Parts of a study in isolation: settings and weights, metrics, tasks, and tables."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import nh_control as nh
from nh_control import scenarios
from nh_control.command import study_report
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.runs.design import Design
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.settings import PlantSettings, RunSettings
from nh_control.studies import Store, command, make_study
from nh_control.studies.sampling import SAMPLINGS
from nh_control.studies.scheduler import _failed_run, _TaskQueue
from nh_control.studies.settings import Settings
from nh_control.studies.worker import METRICS, StudyRun, Worker

SWING = scenarios.get("pendulum_swing_up")


def pendulum(**keys):
    return make_study({"scenario": "pendulum_swing_up", **keys})


# --- variations ---------------------------------------------------------------------------------


def test_a_number_of_points_replaces_the_grid_by_samples():
    study = pendulum(vary={"m": "1:2:5"}, points="7")
    assert (study.sampling, study.total) == ("monte_carlo", 7)
    assert study.success == 0.05 and study.seed == 0 and SAMPLINGS[0] == "grid"
    drawn = pendulum(vary={"m": "1:2"}, set={"perturb.seed": "1"}, seeds="5")
    assert drawn.total == 5 and drawn.values(3)["perturb.seed"] == 1  # seeds are points alone
    with pytest.raises(ValueError, match="leave points out"):
        pendulum(vary={"m": "1:2:5"}, points="7", sampling="grid")
    with pytest.raises(ValueError, match="leave seeds out"):
        pendulum(vary={"m": "1:2:5"}, set={"perturb.seed": "1"}, seeds="2")


# --- settings ------------------------------------------------------------------------------------


def settings(scenario=SWING):
    return Settings(scenario, (), (), {}, scenario.model())


def test_the_tracker_depends_on_its_design_settings_only():
    design = {"reference": "swing_up", "integrator": "midpoint", "step": 0.01, "duration": 1.0,
              "integral": True, "model.m": 2.0, "weight.theta": 3.0}  # fmt: skip
    others = {"m": 1.1, "perturb.angle": 0.1, "plant_substeps": 2, "plant_integrator": "midpoint",
              "open_loop": True, "disturb.theta.start": 1.0}  # fmt: skip
    assert dict(settings().design({**others, **design})) == design


def test_the_plant_equals_the_model_by_default():
    assert settings().run({}) == RunSettings()
    own = settings().run(
        {"plant_integrator": "midpoint", "plant_substeps": 3, "m": 1.5, "model.l": 2.0}
    )
    assert own.plant == PlantSettings("midpoint", 3, {"m": 1.5})
    assert own.model_parameters == {"l": 2.0}


def test_scaled_weights_stay_symmetric():
    Q, R = np.array([[4.0, 1.0], [1.0, 2.0]]), np.array([[3.0]])
    scenario = replace(SWING, weights=(Q, R, 10 * Q))
    changed = Design(weights={"theta": 4.0, "torque": 9.0}).of(scenario)
    np.testing.assert_allclose(changed.weights[0], [[16.0, 2.0], [2.0, 2.0]])
    np.testing.assert_allclose(changed.weights[1], [[27.0]])
    np.testing.assert_allclose(changed.weights[2], [[160.0, 20.0], [20.0, 20.0]])
    without_end = replace(SWING, weights=(Q, R, None))
    assert Design(weights={"theta": 4.0}).of(without_end).weights[2] is None
    heavier = Design({"m": 2.5}).of(SWING)
    assert heavier.parameters.m == 2.5 != SWING.parameters.m


def test_parameters_of_the_plant_override_the_model_of_the_run():
    payload = scenarios.get("quadrotor_payload")
    found = settings(payload).run({"lengths.0": 5.0, "model.lengths.1": 9.0})
    first, _ = payload.parameters.lengths
    assert found.model_parameters == {"lengths": (first, 9.0)}
    assert found.plant.parameters == {"lengths": (5.0, 9.0)}


# --- runs ----------------------------------------------------------------------------------------


@pytest.fixture
def trapped():
    """A study of three angles with seeds."""
    return make_study(
        {
            "scenario": f"{Path(__file__).parent}/trapped.py:SCENARIO",
            "vary": {"perturb.angle": "0,0.1,0.2"},
            "set": {"duration": "0.1"},
            "seeds": "2",
        }
    )


def test_metrics_are_those_of_the_simulation(trapped):
    experiment = Worker(trapped).experiment(trapped.values(3))
    loop = experiment.run()
    loop = replace(loop, saturated=np.arange(len(loop.saturated))[:, None] == 0)
    result = Result(experiment, loop, None, 0.0)
    error = result.configuration_error()
    target = experiment.model.energy(experiment.tracker.target(experiment.steps))
    found = {name: metric.of(result) for name, metric in METRICS.items()}
    assert found == {
        "final_error": error[-1],
        "largest_error": error.max(),
        "rms_error": pytest.approx(np.sqrt(np.mean(error**2))),
        "saturated": 1 / experiment.steps,
        "constraint": 0.0,
        "energy_error": loop.energy[-1] - target,
    }
    assert found["energy_error"] != 0


def test_weights_of_prescribed_inputs_come_last():
    height = nh.System("lift", nh.Rn("x", "height"), lambda q, v: v[0] ** 2 / 2,
                       prescribed=("height",), inputs=("push",),
                       force=lambda q, v, u: ca.vertcat(u, 0))  # fmt: skip
    scenario = replace(SWING, make_system=lambda p: height, joints=(),
                       weights=(np.eye(4), np.ones((2, 2)), None))  # fmt: skip
    changed = Design(weights={"height": 4.0, "push": 9.0}).of(scenario)
    assert changed.weights[1].tolist() == [[9, 6], [6, 4]]


def test_a_run_contains_its_seed_initial_error_and_time(trapped):
    bench = Worker(trapped)
    run = bench.run(3)
    assert (run.index, run.values, run.seed) == (3, (0.1,), 1) and 0.0 < run.wall_s < 60.0
    experiment = bench.experiment(trapped.values(3))
    assert (experiment.perturbation.angle, experiment.perturbation.seed) == (0.1, 1)
    assert abs(experiment.x0[0]) == pytest.approx(0.1)


def test_an_error_at_the_limit_is_a_success(trapped):
    run = Worker(trapped).run(3)
    for success, expected in ((run.metrics[0], True), (0.999 * run.metrics[0], False)):
        assert Worker(replace(trapped, success=success)).run(3).success is expected


def test_a_failed_step_is_the_reason_of_a_failed_run(trapped, monkeypatch):
    bench, made = Worker(trapped), Experiment.run
    failure = StepFailed("arm", 0.1, "no luck", 1.0, 1.0, 25, Conditioning(1.0, 1.0, 1.0))

    def short(self, *how):
        loop = made(self, *how)
        states, inputs = loop.trajectory.states[:4], loop.trajectory.inputs[:3]
        trajectory = replace(loop.trajectory, states=states, inputs=inputs)
        return replace(loop, trajectory=trajectory, failure=failure)

    monkeypatch.setattr(Experiment, "run", short)
    run = bench.run(2)
    assert "no luck" in run.failure and not run.success and np.isnan(run.metrics).all()
    assert run.steps == 3, "of 5"


def test_a_run_of_a_lost_process_is_a_row_like_others(trapped):
    lost = _failed_run(trapped, 5)
    assert (lost.index, lost.values, lost.seed, lost.success) == (5, (0.2,), 1, False)
    assert len(lost.metrics) == len(METRICS) and np.isnan(lost.metrics).all()


def test_commands_contain_an_option_for_each_setting():
    study = pendulum(
        vary={"plant_substeps": "1,2"},
        set={"integral": "true", "open_loop": "false", "plant_integrator": "midpoint_left"},
    )
    assert command(study, 1) == (
        "nh_control simulate pendulum_swing_up --integral --plant-integrator midpoint_left "
        "--plant-substeps 2"
    )
    robot = replace(pendulum(vary={"m": "1,2"}), scenario=(("scenario", "urdf"), ("base", "x")))
    robot.__dict__["settings"] = pendulum(vary={"m": "1,2"}).settings
    assert command(robot, 0) == "nh_control simulate urdf --base x --plant-parameter m=1"
    spaced = replace(robot, scenario=(("scenario", "my arm.py:ARM"),))
    spaced.__dict__["settings"] = robot.__dict__["settings"]
    assert command(spaced, 1) == "nh_control simulate 'my arm.py:ARM' --plant-parameter m=2"


# --- storage -------------------------------------------------------------------------


def test_columns_are_sorted_by_run_with_missing_values_as_nan(tmp_path):
    study = pendulum(vary={"m": "1,2,3"})
    metrics = tuple(range(len(METRICS)))
    runs = [
        StudyRun(i, (float(i),), None, metrics, i == 0, 10 + i, 0.5, "bad" if i else "")
        for i in (2, 0)
    ]
    with Store.make(tmp_path, study) as store:
        store.add(runs)
        columns = store.columns()
        assert len(store) == 2 and list(store.missing()) == [1]
    assert columns["run"].tolist() == [0, 2] and columns["steps"].tolist() == [10, 12]
    assert (
        np.isnan(columns["seed"].astype(float)).all() and columns["wall_s"].tolist() == [0.5] * 2
    )
    assert columns["success"].tolist() == [1, 0] and columns["failure"].tolist() == ["", "bad"]


# --- tasks ---------------------------------------------------------------------------------------


def test_tasks_grow_gradually_to_half_a_second():
    tasks, sizes = _TaskQueue(iter(range(10**6))), []
    for wall_s in (*5 * [2**-9], 2**-16, 2**-16, 2**-3, 2**3):
        chunk = tasks.next()
        sizes.append(len(chunk))
        tasks.record([SimpleNamespace(wall_s=wall_s)] * len(chunk))
    assert sizes == [1, 4, 16, 64, 256, 256, 1024, 2000, 4] and len(tasks.next()) == 1


def test_after_a_loss_one_task_runs_at_a_time():
    tasks = _TaskQueue(iter(range(5)))
    assert tasks.capacity(4) == 12
    assert tasks.give_back([7, 8], alone=True) == [] and tasks.capacity(4) == 1
    for suspect in ([7], [8]):
        assert tasks.next() == suspect and tasks.capacity(4) == 1
    assert tasks.next() == [0] and tasks.capacity(4) == 12


# --- workers -------------------------------------------------------------------------------------


# --- tables --------------------------------------------------------------------------------------


def test_the_tables_show_the_statistics(capsys, monkeypatch, snapshot):
    monkeypatch.setenv("COLUMNS", "200")
    share = {"count": 12, "share": 0.25, "low": 0.125, "high": 0.375}
    none = {"count": 0, "share": None, "low": None, "high": None}
    metric = {"unit": "m", "min": -2.0, "max": 0.0, "mean": 1.5, "low": 1.25, "high": 1.75,
              "std": 0.5, "q05": 0.05, "q50": 0.1, "q95": 0.2, "worst_run": 7}  # fmt: skip
    sobol = {
        "first": {"index": 0.25, "low": 0.125, "high": 0.375},
        "total": {"index": 0.5, "low": 0.375, "high": 0.625},
    }
    scenario = SimpleNamespace(name="robot")
    study = SimpleNamespace(
        success=0.07, settings=SimpleNamespace(scenario=scenario), run_requirements=()
    )
    numbers = {
        "runs": 48, "planned": 60, "success": share, "failed": none,
        "failures": [{"reason": "bad", "runs": 5, "first_run": 3}],
        "requirements": [{"text": "success >= 20 %", "met": True, "reason": "success = 0.25"}],
        "metrics": {
            "final_error": metric,
            "single": {**metric, "unit": "", "high": None, "std": None},
            "constraint": {**metric, "min": 0.0},
        },
        "by_value": {"reference": {"circle": {**share, "runs": 24, "median_error": 0.0625}}},
        "sensitivity": {
            "final_error": {"m": {"correlation": 0.75, "low": 0.5, "high": 0.9}, "l": None},
            "single": {"m": None, "l": None},
            "constraint": {"m": None, "l": None},
        },
        "sobol_indices": {"m": sobol},
    }  # fmt: skip
    study_report.show(study, numbers)
    assert capsys.readouterr().out == snapshot
