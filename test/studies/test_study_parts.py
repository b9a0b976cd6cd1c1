"""Parts of a study in isolation: settings and weights, metrics, tasks and workers, and tables."""

import asyncio
import os
import signal
import sys
import threading
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.command import study_report
from nh_control.control.optimal.mpc import MpcTracker
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.mechanics.parameters import NODES
from nh_control.runs import design as design_module
from nh_control.runs.design import Design
from nh_control.runs.experiment import Experiment
from nh_control.runs.settings import (
    OPTIONS,
    ORIGIN,
    SETTINGS,
    MpcSettings,
    PlantSettings,
    RunSettings,
    short_name,
)
from nh_control.studies import (
    DaskCluster,
    ProcessPool,
    Store,
    command,
    dask_preload,
    make_study,
    pools,
)
from nh_control.studies import sampling as sampling_module
from nh_control.studies import study as study_module
from nh_control.studies import study_file as reading_module
from nh_control.studies.sampling import SAMPLINGS
from nh_control.studies.scheduler import _failed_run, _TaskQueue
from nh_control.studies.settings import Settings, _gather_fields
from nh_control.studies.statistics import CONFIDENCE
from nh_control.studies.study import Study
from nh_control.studies.study_file import differences
from nh_control.studies.variation import parse, value
from nh_control.studies.worker import METRICS, Run, Worker

SWING = scenarios.get("pendulum_swing_up")


def pendulum(**keys):
    return make_study({"scenario": "pendulum_swing_up", **keys})


# --- variations ---------------------------------------------------------------------------------


def test_a_normal_distribution_has_finite_quantiles():
    assert np.isfinite(parse("a", "normal:1:0.1").quantile(0.0))
    assert parse("a", "normal:1:0.1").quantile(0.5) == 1.0


def test_texts_become_values_of_their_type():
    found = [value(text) for text in ("3", "3.0", "true", "false", "inner")]
    assert found == [3, 3.0, True, False, "inner"]
    assert [type(one) for one in found] == [int, float, bool, bool, str]
    assert str(parse("a", "0.123456789:2")) == "0.123456789:2.0"
    assert not parse("a", "true,false").is_numeric and parse("a", "1,2.5").is_numeric


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


@pytest.mark.parametrize("sampling", ["monte_carlo", "latin_hypercube", "sobol", "saltelli"])
def test_the_seed_determines_the_points(sampling):
    """Another seed gives other points; another process gives the same points."""
    points = []
    for seed in ("0", "5", "0"):
        sampling_module._plan.cache_clear()
        study = pendulum(vary={"m": "1:2", "l": "1:2"}, points="8", sampling=sampling, seed=seed)
        points.append([study.point(i) for i in range(study.total)])
    assert points[0] == points[2] and not set(points[0]) & set(points[1])


def test_a_study_of_a_robot_contains_its_file_and_base(monkeypatch):
    class Found(Exception):
        pass

    def get(*given):
        raise Found(given)

    origin = (("scenario", "urdf"), ("urdf", "arm.urdf"), ("base", "floating"))
    monkeypatch.setattr(study_module.scenarios, "get", get)
    with pytest.raises(Found, match=r"\('urdf', 'arm.urdf', 'floating', False, ''\)"):
        Study(origin, (parse("m", "1,2"),)).load()
    assert reading_module.scenarios is study_module.scenarios
    with pytest.raises(Found, match=r"\('urdf', 'arm.urdf', 'floating', False, ''\)"):
        make_study(dict(origin))


def test_differences_name_all_keys():
    one, other = (
        pendulum(vary={"m": vary}, points="4", success=success, sampling=sampling)
        for vary, success, sampling in (("1:2", "0.1", "sobol"), ("1:3", "0.2", "monte_carlo"))
    )
    assert differences(one, other) == (
        "vary: {'m': '1.0:2.0'} here, {'m': '1.0:3.0'} there; sampling: sobol here, monte_carlo "
        "there; success: 0.1 here, 0.2 there"
    )


# --- settings ------------------------------------------------------------------------------------


def settings(scenario=SWING):
    return Settings(scenario, (), (), {})


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


def test_every_option_of_simulate_is_a_setting_of_studies():
    options = {short_name(entry) for entry in SETTINGS.values() if entry.only != NODES}
    groups = {"model_parameter", "weight_factor", "plant_parameter", "perturb"}
    origin = {*ORIGIN}
    assert options - OPTIONS.keys() == groups | origin | {"disturb", "fault"}
    assert OPTIONS.keys() <= options


def test_a_predictive_tracker_is_set_by_its_options():
    given = {"controller": "mpc", "mpc_horizon": 0.7, "mpc_late": 0.5, "mpc_seed": 4,
             "mpc_constraint": "gates posts"}  # fmt: skip
    expected = MpcSettings(0.7, late=0.5, seed=4, constraints=["gates", "posts"])
    assert settings().run({**given, "m": 1.0}).mpc == expected
    assert settings().run({"controller": "mpc"}).mpc == MpcSettings()
    assert dict(settings().design(given)) == given
    with pytest.raises(ValueError, match="'controller' must be one of lqr, mpc, got 'pid'"):
        settings().run({"controller": "pid"})
    with pytest.raises(ValueError, match="controller=mpc in a study"):
        settings().run({"mpc_horizon": 1.0, "mpc_late": 0.1})
    study = pendulum(vary={"mpc_late": "0,0.5"}, set={"controller": "mpc", "mpc_horizon": "0.3"})
    assert command(study, 1) == (
        "nh_control simulate pendulum_swing_up --controller mpc --mpc-horizon 0.3 --mpc-late 0.5"
    )


def test_runs_of_a_study_are_by_the_predictive_tracker():
    study = pendulum(
        vary={"mpc_late": "0,0.5"},
        set={"controller": "mpc", "mpc_horizon": "0.3", "duration": "0.2"},
    )
    on_time, late = (Worker(study).experiment(study.values(i)) for i in range(2))
    assert isinstance(on_time.tracker, MpcTracker) and on_time.tracker.horizon == 15
    assert (on_time.mpc.late, late.mpc.late) == (0.0, 0.5)
    assert not Worker(study).run(1).failure


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


def test_weights_of_prescribed_inputs_come_last(monkeypatch):
    system = SimpleNamespace(inputs=("push", "turn"), prescribed=("height",))
    weights = np.eye(2), np.ones((3, 3)), None
    scenario = SimpleNamespace(make_system=lambda p: system, parameters=None, weights=weights)
    space, method = SimpleNamespace(tangent_names=("x", "p")), SimpleNamespace(memory=())
    scenario.model = lambda: SimpleNamespace(state_space=space, ndx=2, method=method)
    Q, R, Qf = design_module._weighted(scenario, {"height": 4.0, "push": 9.0, "p": 25.0})
    assert R.tolist() == [[9, 3, 6], [3, 1, 2], [6, 2, 4]]
    assert Q.tolist() == [[1, 0], [0, 25]] and Qf is None


def test_several_numbers_of_one_parameter_may_change():
    owner = SimpleNamespace(lengths=(0.1, 0.2, 0.3))
    found = _gather_fields(owner, {"lengths.2": 3.0, "lengths.0": 1.0, "mass": 5.0})
    assert found == {"lengths": (1.0, 0.2, 3.0), "mass": 5.0}


# --- runs ----------------------------------------------------------------------------------------


def test_metrics_have_their_definition():
    errors = np.array([0.3, -0.4, 0.1])
    result = SimpleNamespace(
        configuration_error=lambda: np.abs(errors),
        loop=SimpleNamespace(
            saturated=np.array([[True, False], [False, False]]),
            constraint=np.array([[-0.5], [0.2]]),
            energy=np.array([1.0, 2.0, 7.0]),
        ),
        experiment=SimpleNamespace(
            steps=2,
            model=SimpleNamespace(energy=lambda x: x),
            tracker=SimpleNamespace(target=lambda k: 2.0 * k),
        ),
    )
    assert {name: metric.of(result) for name, metric in METRICS.items()} == {
        "final_error": 0.1,
        "largest_error": 0.4,
        "rms_error": pytest.approx(np.sqrt(0.26 / 3)),
        "saturated": 0.25,
        "constraint": 0.5,
        "energy_error": 3.0,
    }


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


def test_metrics_have_units_and_tables_the_confidence():
    assert {name: metric.unit for name, metric in METRICS.items()} == {
        "final_error": "m, rad", "largest_error": "m, rad", "rms_error": "m, rad",
        "saturated": "", "constraint": "m", "energy_error": "J",
    }  # fmt: skip
    assert study_report.INTERVAL == f"{100 * CONFIDENCE:g} %" == "95 %"


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


def test_a_refused_setting_fails_the_run(trapped):
    values = {**trapped.values(0), "m": -1.0}
    with pytest.raises(ValueError, match="m must be a finite number > 0"):
        Worker(trapped).experiment(values)


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
        Run(i, (float(i),), None, metrics, i == 0, 10 + i, 0.5, "bad" if i else "") for i in (2, 0)
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
    assert tasks.room(4) == 12
    assert tasks.give_back([7, 8], alone=True) == [] and tasks.room(4) == 1
    for suspect in ([7], [8]):
        assert tasks.next() == suspect and tasks.room(4) == 1
    assert tasks.next() == [0] and tasks.room(4) == 12


# --- workers -------------------------------------------------------------------------------------


def test_a_pool_has_one_process_per_core_by_default():
    assert ProcessPool().count == (os.cpu_count() or 1) and ProcessPool(3).count == 3


def test_closing_a_pool_cancels_tasks_that_have_not_started():
    told = []
    with ProcessPool(1) as pool:
        pool._pool = SimpleNamespace(shutdown=lambda **how: told.append(how))
    assert told == [{"cancel_futures": True}]


def test_processes_use_one_thread_each_by_default(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    pool, seen = ProcessPool(1), []
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
    monkeypatch.setattr(
        pool._pool, "submit", lambda *_: seen.append([os.environ.get(name) for name in names])
    )
    pool.submit(None, [0])
    assert seen == [["7", "1"]]
    assert os.environ["OMP_NUM_THREADS"] == "7" and "MKL_NUM_THREADS" not in os.environ


def test_a_process_ignores_ctrl_c_and_ends_with_its_parent(monkeypatch):
    ended, watched = [], []
    parent = SimpleNamespace(join=lambda: ended.append("parent"))
    monkeypatch.setattr(pools, "parent_process", lambda: parent)
    monkeypatch.setattr(pools.os, "_exit", ended.append)
    pools._end_with_parent()
    assert ended == ["parent", 1]
    thread = SimpleNamespace(start=lambda: watched.append("started"))
    monkeypatch.setattr(
        pools.threading,
        "Thread",
        lambda target, daemon: watched.append((target, daemon)) or thread,
    )
    for begin in (pools._begin, lambda: dask_preload.dask_setup(None)):
        before = signal.getsignal(signal.SIGINT)
        try:
            begin()
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        finally:
            signal.signal(signal.SIGINT, before)
    assert watched == [(pools._end_with_parent, True), "started"]
    monkeypatch.setattr(pools, "parent_process", lambda: None)
    pools._end_with_parent()
    assert ended == ["parent", 1]


def test_each_linear_algebra_library_has_one_thread(monkeypatch):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    with pools._one_thread_each():
        assert [os.environ[name] for name in names] == ["1"] * 3
    assert not set(names) & set(os.environ)


def test_a_broken_pool_is_replaced_and_its_tasks_are_lost():
    pool, broken = ProcessPool(1), BrokenProcessPool("gone")
    old, first, second = pool._pool, Future(), Future()
    first.set_exception(broken)
    late = threading.Timer(0.05, lambda: second.set_exception(broken))
    late.start()
    assert pool.wait_any([first, second]) == [first, second]
    assert pool._pool is not old and pool.runs(first) is None
    third = Future()
    third.set_exception(ValueError("wrong"))
    with pytest.raises(ValueError, match="wrong"):
        pool.runs(third)

    def refuse(*_):
        raise broken

    pool._pool.submit = refuse
    assert pool.runs(pool.submit(None, [0])) is None


class DaskFuture:
    """A future of Dask: what it raises or gives, and how it has ended."""

    def __init__(self, status="pending", outcome=None):
        self.status, self.outcome, self.callbacks = status, outcome, []

    def add_done_callback(self, callback):
        self.callbacks.append(callback)

    def done(self):
        return self.status != "pending"

    def result(self):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Dask:
    """The part of dask.distributed that the package uses."""

    scheduler = SimpleNamespace(KilledWorker=type("KilledWorker", (Exception,), {}))

    def __init__(self):
        self.threads, self.asked, self.closed, self.began = {}, 0, [], []
        self.not_starting, self.not_closing, self.future = 0, {}, DaskFuture()

    def LocalCluster(self, **how):
        """One of its own."""
        self.began.append(how["n_workers"])
        if self.not_starting:
            self.not_starting -= 1
            raise RuntimeError("Nanny failed to start.")
        return SimpleNamespace(close=lambda: self.close("cluster"))

    def Client(self, address):
        """At an address."""

        def nthreads():
            self.asked += 1
            return self.threads

        return SimpleNamespace(
            nthreads=nthreads,
            close=lambda: self.close("client"),
            submit=lambda *_, **how: self.future,
        )

    def close(self, name):
        """Ends as it is to."""
        self.closed.append(name)
        if name in self.not_closing:
            raise self.not_closing[name]


@pytest.fixture
def dask(monkeypatch):
    """A stand-in for Dask; the test moves its clock."""
    dask = Dask()
    dask.now = 100.0
    monkeypatch.setitem(sys.modules, "distributed", dask)
    monkeypatch.setattr(pools, "time", SimpleNamespace(monotonic=lambda: dask.now))
    return dask


def test_the_size_of_a_cluster_is_updated_every_two_seconds(dask):
    cluster = DaskCluster("tcp://host:8786")
    assert cluster.count == 1 and cluster.count == 1 and dask.asked == 1
    dask.threads = {"a": 2, "b": 3}
    dask.now += 2.1
    assert cluster.count == 5 and dask.asked == 2


def test_the_study_closes_its_own_cluster(dask):
    with DaskCluster("tcp://host:8786"):
        pass
    assert dask.closed == ["client"] and not dask.began
    with DaskCluster("local", 3):
        pass
    assert dask.closed == ["client", "client", "cluster"] and dask.began == [3]


@pytest.mark.parametrize("error", [asyncio.TimeoutError(), OSError("gone"), AssertionError()])
def test_a_cluster_that_does_not_close_loses_no_runs(dask, caplog, error):
    dask.not_closing = {"client": error, "cluster": error}
    with DaskCluster("local", 1):
        pass
    assert dask.closed == ["client", "cluster"]
    assert len(caplog.messages) == 2 and repr(error) in caplog.messages[0]


def test_a_worker_that_is_killed_while_the_cluster_starts_is_started_again(dask):
    dask.not_starting = 1
    with DaskCluster("local", 2):
        assert dask.began == [2, 2]
    dask.not_starting = 2
    with pytest.raises(pools.WorkersLost, match="2 workers .Nanny failed.*free memory"):
        DaskCluster("local", 2)


def test_wait_any_returns_as_soon_as_a_task_of_the_cluster_has_ended(dask, monkeypatch):
    cluster = DaskCluster("tcp://host:8786")
    first, second = cluster.submit(None, [0]), DaskFuture()
    monkeypatch.setattr(pools, "POLL_S", 0.001)
    assert cluster.wait_any([first, second]) == []
    monkeypatch.setattr(pools, "POLL_S", 1000.0)
    first.status = "finished"
    first.callbacks[0](first)
    assert cluster.wait_any([first, second]) == [first]
    assert not cluster._ended.is_set()


def test_a_task_of_a_cluster_returns_its_runs_or_is_lost_or_raises(dask):
    cluster = DaskCluster("tcp://host:8786")
    assert cluster.runs(DaskFuture("finished", ["run"])) == ["run"]
    assert cluster.runs(DaskFuture("error", dask.scheduler.KilledWorker())) is None
    for error in (ValueError("of a run"), OSError("of a run")):
        with pytest.raises(type(error), match="of a run"):
            cluster.runs(DaskFuture("error", error))
    for status, error in (("cancelled", CancelledError()), ("finished", OSError("closed"))):
        with pytest.raises(pools.WorkersLost, match="tcp://host:8786 is lost; start it again"):
            cluster.runs(DaskFuture(status, error))


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
    study = SimpleNamespace(success=0.07, settings=SimpleNamespace(scenario=scenario))
    numbers = {
        "runs": 48, "planned": 60, "success": share, "failed": none,
        "failures": [{"reason": "bad", "runs": 5, "first_run": 3}],
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
