"""Runs of a study: the index determines a run, and each run is stored once, even if workers
fail.
"""

import json
import shutil
import signal
import sqlite3
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from in_process_workers import InProcess

from nh_control.cli import main
from nh_control.runs.experiment import Result
from nh_control.scenarios import fault
from nh_control.studies import (
    DaskCluster,
    ProcessPool,
    Store,
    command,
    make_study,
    run_indices,
    run_missing,
)
from nh_control.studies.fault_settings import label, with_named_faults, with_values
from nh_control.studies.pools import WorkersLost
from nh_control.studies.scheduler import WORKER_LOST, results
from nh_control.studies.study_file import to_yaml
from nh_control.studies.worker import METRICS, StudyRun, Worker, metrics_of

FOLDER = Path(__file__).parent
ANGLES = [round(0.01 * i, 2) for i in range(40)]


def pendulum(**keys):
    return make_study({"scenario": f"{FOLDER}/trapped.py:SCENARIO", **keys})


@pytest.fixture
def trap(tmp_path):
    """Return f(**trap) -> the study of a scenario with that trap, over ANGLES."""
    shutil.copy(FOLDER / "trapped.py", tmp_path)

    def make(angles=ANGLES, **trap):
        if trap:
            (tmp_path / "trap.json").write_text(json.dumps(trap))
        return make_study(
            {
                "scenario": f"{tmp_path}/trapped.py:SCENARIO",
                "vary": {"perturb.angle": ",".join(map(str, angles))},
                "set": {"duration": "0.04"},
            }
        )

    return make


def run_all(study, folder, workers, **how):
    """Return the columns of all runs, and whether all runs are stored."""
    folder.mkdir(exist_ok=True)
    with Store.make(folder, study) as store, workers:
        complete = run_missing(store, workers, **how)
        return store.columns(), complete


def numbers(runs):
    """Return the columns that do not depend on the worker or its speed."""
    return [(r.index, r.values, r.seed, r.metrics, r.success, r.steps, r.failure) for r in runs]


VARIED = {
    "perturb.angle": "-0.3:0.3",
    "m": "0.8:1.2",
    "plant_substeps": "1,2",
    "integrator": "midpoint,midpoint_left",
}
NOISY = {**VARIED, "disturb.theta.correlation": "0.1:1"}
GUSTY = {**VARIED, "disturb.theta.start": "0:0.1"}


def test_a_run_equals_the_simulation_of_its_command(tmp_path, monkeypatch, capsys):
    import shlex

    monkeypatch.chdir(tmp_path)
    study = pendulum(
        vary={**GUSTY, "fault.delay": "0:0.03", "weight.theta": "0.5:2"},
        set={"duration": "0.4", "model.m": "1.1"},
        disturb=["theta:gust:0.1"], fault="torque:bias=0.02,start=0.1", points="6",
        sampling="latin_hypercube",
    )  # fmt: skip
    for run in run_indices(study, range(3)):
        words = shlex.split(command(study, run.index))[1:]
        assert main([*words, "--no-plots", "--json"]) == 0
        summary = json.loads(capsys.readouterr().out)
        found = dict(zip(("final", "largest"), run.metrics))
        assert found == {key: summary["error"][key] for key in found}
        assert run.metrics[-1] == (
            summary["energy_J"]["final"] - summary["energy_J"]["reference_final"]
        )
        assert run.steps == summary["steps"] == 20


def test_commands_contain_vector_parameters_and_robot_files():
    study = make_study(
        {
            "scenario": "quadrotor_payload",
            "vary": {"lengths.1": "0.7,0.9"},
            "set": {"step": "0.02", "lengths.0": "0.5"},
        }
    )
    assert command(study, 1) == (
        "nh_control simulate quadrotor_payload --step 0.02 --plant-parameter lengths=0.5,0.9"
    )
    designed = pendulum(vary={"weight.theta": "1,2"}, set={"model.m": "1.5"})
    assert command(designed, 1).endswith(
        "SCENARIO --model-parameter m=1.5 --weight-factor theta=2"
    )


def test_the_monitored_output_is_a_metric_on_request():
    """The metric is the least margin of a satellite's wheels to their limits in the run."""
    keys = {
        "scenario": "satellite",
        "vary": {"perturb.attitude": "0.1,0.2"},
        "set": {"duration": "0.4"},
    }
    plain, asked = make_study(keys), make_study({**keys, "monitor": "true"})
    assert list(metrics_of(asked)) == [*metrics_of(plain), "least_speed_margin"]
    (run,), bench = run_indices(asked, [1]), Worker(asked)
    experiment = bench.experiment(asked.values(1))
    result = Result(experiment, experiment.run(), None, 0.0)
    assert run.metrics[:-1] == run_indices(plain, [1])[0].metrics
    assert run.metrics[-1] == result.monitored.min() < 500
    assert read_again(asked) == asked and read_again(plain) == plain
    with pytest.raises(ValueError, match="leave monitor out"):
        pendulum(vary={"m": "1,2"}, monitor="true")


def read_again(study):
    return make_study(yaml.load(to_yaml(study), yaml.BaseLoader))


def test_a_study_varies_faults_by_name():
    """The pendulum's tracker measures with a bias, and with noise of the run's seed."""
    vary, duration = {"fault.theta:bias": "0,0.1"}, {"duration": "0.4"}
    study = pendulum(
        vary=vary, set={**duration, "perturb.angle": "0"}, fault=["noise=0.001"], seeds="2"
    )
    runs = run_indices(study, range(4))
    assert not any(run.failure for run in runs) and len({run.metrics for run in runs}) == 4
    assert min(run.metrics[0] for run in runs[2:]) > 5 * max(run.metrics[0] for run in runs[:2])
    assert command(study, 3).endswith(
        "--fault positions:noise=0.001,seed=1 --fault theta:bias=0.1"
    )
    stuck = pendulum(vary={"fault.torque:stuck.start": "0.1,0.2"}, set=duration)
    assert command(stuck, 0).endswith("--fault torque:stuck,start=0.1")


def test_several_targets_may_have_the_same_kind_of_fault():
    two = [fault.parse("theta:bias=0.1"), fault.parse("theta_dot:bias=0.2")]
    assert with_named_faults(two, ["fault.theta:noise", "m"])[:2] == tuple(two)
    assert [label(one) for one in with_named_faults(two, ["fault.theta:noise", "m"])] == [
        "theta:bias", "theta_dot:bias", "theta:noise"
    ]  # fmt: skip
    set_ = with_values(two, {"fault.theta_dot:bias": 0.5, "fault.theta:bias.start": 1.0})
    assert [str(one) for one in set_] == ["theta:bias=0.1,start=1.0", "theta_dot:bias=0.5"]
    with pytest.raises(ValueError, match="at most one fault of each kind and target"):
        with_named_faults([*two, two[0]], [])
    with pytest.raises(ValueError, match="set fault.theta:bias or let it vary"):
        with_named_faults([], ["fault.theta:bias.start"])


def test_runs_are_independent_of_each_other():
    study = pendulum(vary=NOISY, set={"duration": "0.1"}, disturb=["theta:noise:0.1"], seeds="6")
    together = numbers(run_indices(study, range(6)))
    assert numbers(run_indices(study, [5, 3, 1])) == [together[i] for i in (5, 3, 1)]
    assert len({row[3] for row in together}) == 6
    assert not any(row[-1] for row in together)


def test_weights_and_model_parameters_change_the_tracker():
    def errors(**vary):
        study = pendulum(vary=vary, set={"duration": "1", "perturb.angle": "0.2"})
        return [run.metrics[0] for run in run_indices(study, range(study.total))]

    plain, heavier = errors(**{"weight.theta": "1,100"})
    assert heavier < plain / 2
    assert errors(**{"weight.torque": "1,0.01"})[1] < plain / 2
    assert errors(**{"weight.theta": "100,1"}) == [heavier, plain]
    both, plant_only = errors(**{"model.m": "1.3"})[0], errors(m="1.3")[0]
    assert both < plant_only and both != plain
    assert errors(open_loop="false,true")[0] == plain != errors(open_loop="true")[0]


def test_a_failed_run_is_stored_with_its_reason(trap):
    bad = run_indices(trap(angles=[0.1, 2.5, 0.2]), range(3))
    assert [run.failure for run in bad] == ["", "ValueError: too far: 2.5", ""]
    assert np.isnan(bad[1].metrics).all() and not bad[1].success and bad[0].steps == 2


def test_a_metric_that_is_not_finite_fails_the_run(trap, monkeypatch):
    endless = replace(METRICS["energy_error"], of=lambda result: np.inf)
    monkeypatch.setitem(METRICS, "energy_error", endless)
    run = Worker(trap()).run(0)
    assert "not finite" in run.failure and not run.success
    assert np.isnan(run.metrics).all()


@pytest.mark.slow
def test_the_study_completes_after_the_loss_of_a_process(tmp_path, trap):
    study = trap(angle=ANGLES[20], once=True, parent=False, signal=signal.SIGKILL)
    columns, complete = run_all(study, tmp_path / "out", ProcessPool(2))
    assert not (tmp_path / "trap.json").exists()
    assert complete and columns["run"].tolist() == list(range(40))
    assert set(columns["failure"]) == {""}


class Dying(InProcess):
    """A pool that loses all tasks in progress, once or always, with those of some indices."""

    count = 3

    def __init__(self, deadly, times=1000):
        self.deadly, self.times, self.tasks = deadly, times, []

    def submit(self, study, indices):
        self.tasks.append(list(indices))
        future = super().submit(study, indices)
        future.deadly = bool(self.deadly & set(indices))
        return future

    def wait_any(self, futures):
        if self.times and any(future.deadly for future in futures):
            self.times -= 1
            for future in futures:
                future.lost = True
            return futures
        return futures[:1]

    def runs(self, future):
        return None if hasattr(future, "lost") else super().runs(future)


def test_a_run_that_kills_every_worker_is_identified(tmp_path, trap):
    columns, complete = run_all(trap(), tmp_path / "out", Dying({7, 23}))
    assert complete and columns["run"].tolist() == list(range(40))
    assert columns["failure"].tolist() == [WORKER_LOST if i in (7, 23) else "" for i in range(40)]


def test_a_run_succeeds_after_one_loss_of_its_worker(tmp_path, trap):
    workers = Dying({7}, times=1)
    columns, complete = run_all(trap(), tmp_path / "out", workers)
    assert complete and columns["run"].tolist() == list(range(40))
    assert set(columns["failure"]) == {""}
    assert [7] in workers.tasks, "made again by itself"


def test_a_run_fails_after_it_ends_its_process_twice_alone(tmp_path, trap):
    columns, complete = run_all(trap(), tmp_path / "out", Dying({7}, times=2))
    assert complete and set(columns["failure"]) == {""}
    columns, _ = run_all(trap(), tmp_path / "again", Dying({7}, times=3))
    assert np.flatnonzero(columns["failure"] != "").tolist() == [7]


def test_an_error_that_prevents_all_runs_is_raised(trap):
    class Broken(InProcess):
        def submit(self, study, indices):
            future = Future()
            future.set_exception(OSError("no memory"))
            return future

    with pytest.raises(OSError, match="no memory"):
        list(results(trap(), iter([0, 1]), Broken(), lambda: False))


def test_the_study_ends_if_the_first_run_kills_every_worker(trap):
    with pytest.raises(WorkersLost, match="before run 0"):
        list(results(trap(), iter([0, 1]), Dying({0, 1}), lambda: False))


def test_a_run_is_stored_once_by_one_process(tmp_path, trap):
    study = trap()
    with Store.make(tmp_path, study) as store:
        store.add(run_indices(study, [0, 1]))
        with pytest.raises(sqlite3.IntegrityError):
            store.add(run_indices(study, [2, 1]))
        assert list(store.missing()) == list(range(2, 40)), "all of a task or nothing"
        with (
            pytest.raises(ValueError, match="another process .* wait for it"),
            Store.make(tmp_path, study),
        ):
            pass


def test_a_stopped_study_continues_in_the_same_process(tmp_path, trap):
    study, told = trap(angles=np.linspace(0, 1, 400)), []
    columns, complete = run_all(
        study, tmp_path / "out", InProcess(), progress=told.append, stop=lambda: len(told) >= 5
    )
    assert not complete and 5 <= len(columns["run"]) < 400
    before = len(told)
    columns, complete = run_all(study, tmp_path / "out", InProcess(), progress=told.append)
    assert complete and told == [*range(1, before + 1), *range(before + 1, 401)]


def test_a_study_that_is_stopped_after_its_last_run_is_complete(tmp_path):
    class Made(InProcess):
        def submit(self, study, indices):
            future = Future()
            made = [
                StudyRun(i, study.point(i), None, (0.1,) * len(METRICS), 1, 5, 9.0)
                for i in indices
            ]
            future.set_result(made)
            return future

    study, told = pendulum(vary={"m": "1,2"}), []
    columns, complete = run_all(
        study, tmp_path / "out", Made(), progress=told.append, stop=lambda: len(told) == 2
    )
    assert complete and columns["run"].tolist() == [0, 1]
    assert run_all(study, tmp_path / "out", Made(), stop=lambda: True)[1]


def test_a_store_refuses_another_study(tmp_path):
    Store.make(tmp_path, pendulum(vary={"m": "1,2"}, seeds="2"))
    Store.make(tmp_path, pendulum(vary={"m": "1,2"}, seeds="2"))
    with pytest.raises(ValueError, match="another study .*seeds: 3 here, 2 there.*--overwrite"):
        Store.make(tmp_path, pendulum(vary={"m": "1,2"}, seeds="3"))


def test_columns_may_differ_by_case_only(tmp_path):
    study = make_study({"scenario": "car", "vary": {"l": "0.5,0.6", "I": "1,2"}})
    with Store.make(tmp_path, study) as store:
        assert store.names[2:4] == ("l", "I")
    from nh_control.studies.store import _distinct

    assert _distinct(["m", "M", "m_"]) == ["m", "M_", "m__"]


@pytest.mark.slow
def test_a_dask_study_completes_after_the_loss_of_a_worker(tmp_path, trap):
    pytest.importorskip("distributed")
    study = trap(angle=ANGLES[20], once=True, parent=False, signal=signal.SIGKILL)
    columns, complete = run_all(study, tmp_path / "out", DaskCluster("local", 2))
    assert not (tmp_path / "trap.json").exists()
    assert complete and columns["run"].tolist() == list(range(40))
    runs = run_indices(study, range(40))
    for name, values in zip(METRICS, zip(*(run.metrics for run in runs))):
        np.testing.assert_array_equal(columns[name], values)
    assert columns["steps"].tolist() == [run.steps for run in runs]


def test_parquet_contains_the_same_runs(tmp_path, trap):
    parquet = pytest.importorskip("pyarrow.parquet")
    study = trap(angles=[0.1, 2.5])
    with Store.make(tmp_path, study) as store:
        store.add(run_indices(study, range(2)))
        table = parquet.read_table(store.write_parquet()).to_pydict()
        assert table["run"] == [0, 1] and table["failure"][1] == "ValueError: too far: 2.5"
        np.testing.assert_array_equal(table["final_error"], store.columns()["final_error"])
