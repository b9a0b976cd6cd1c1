"""`nh_control study`: from a file or from options to tables, files and figures; an interrupted
study continues.
"""

import json
import re
import shutil
import signal
import sqlite3
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from command import ROOT, nh_control
from in_process_workers import InProcess

from nh_control.command import arguments, run_study, study_report
from nh_control.runs import output
from nh_control.studies import Store, WorkersLost, make_study, read, run_indices
from nh_control.studies.study_file import KEYS

TRAPPED = ROOT / "test" / "studies" / "trapped.py"
SCENARIO = f"{TRAPPED}:SCENARIO"
ANGLES = [round(0.01 * i, 2) for i in range(40)]
FILE = "scenario: trapped.py:SCENARIO\nset: {duration: 0.04}\nvary: {perturb.angle: %s}\n"


@pytest.fixture
def call(call):
    """Return f(*arguments) -> (exit code, stdout, stderr) of `nh_control study`."""

    def run(*words):
        done = call("study", *words)
        return done.returncode, done.stdout, done.stderr

    return run


def stored(folder):
    with sqlite3.connect(folder / output.RUNS) as database:
        return database.execute("SELECT run, wall_s FROM runs").fetchall()


def test_a_study_file_gives_results_and_figures(call, tmp_path, monkeypatch, sketched):
    monkeypatch.setattr(run_study, "worker_pool", lambda *_: InProcess())
    (tmp_path / "basin.yaml").write_text(
        f"scenario: {SCENARIO}\nset: {{duration: 0.1}}\nvary:\n  perturb.angle: 0.1:2.5:4\n"
        f"  m: 0.8:1.2:2\n  integrator: [midpoint, midpoint_left]\n"
    )
    code, out, err = call("basin.yaml")
    assert code == 0 and not err
    assert "16 of 16 runs" in out and "ValueError: too far: 2.5" in out
    assert "midpoint_left" in out and "rank correlation" in out
    folder = tmp_path / "nh_control_output" / "trapped-study"
    assert {file.name for file in folder.iterdir()} == {
        output.STUDY, output.RUNS, output.STATISTICS, "errors.png", "basin.png", "sensitivity.png",
    }  # fmt: skip
    numbers = json.loads((folder / output.STATISTICS).read_text())
    assert numbers["failed"]["count"] == 4 and numbers["failures"][0]["runs"] == 4
    study = make_study(read(tmp_path / "basin.yaml"))
    with sqlite3.connect(folder / output.RUNS) as database:
        rows = database.execute(
            'SELECT run, "perturb.angle", m, integrator, final_error, failure FROM runs'
        ).fetchall()
    assert sorted(rows) == [
        (run.index, *run.values, None if run.failure else run.metrics[0], run.failure)
        for run in run_indices(study, range(16))
    ]


def test_options_and_files_define_the_same_study(tmp_path):
    def study(*words):
        return run_study.study_and_folder(arguments.parse(["study", *words]))[0]

    file = tmp_path / "s.yaml"
    file.write_text(
        f"scenario: {SCENARIO}\nvary: {{m: 1:2, perturb.angle: 1:30}}\nset: {{duration: 1}}\n"
        f"disturb: ['theta:gust:0.1']\nfault: delay=0.01\npoints: 8\nseeds: 2\nseed: 3\n"
        f"sampling: sobol\nsuccess: 0.1\n"
    )
    options = [
        "--vary", "m=1:2", "--vary", "perturb.angle=1:30", "--set", "duration=1", "--disturb",
        "theta:gust:0.1", "--fault", "delay=0.01", "--points", "8", "--seeds", "2", "--seed", "3",
        "--sampling", "sobol", "--success", "0.1",
    ]  # fmt: skip
    assert study(str(file)) == study(SCENARIO, *options)
    assert study(str(file), "--seed", "4", "--vary", "m=1,2").vary[0].values == (1, 2)
    assert study(SCENARIO, "--vary", "m=0.2:1.0", "--seeds", "1000").total == 1000


@pytest.mark.slow
def test_the_study_of_the_documentation_is_valid():
    page = (ROOT / "doc" / "tutorials" / "study.md").read_text()
    (text,) = re.findall(r"^```yaml\n(scenario: .*?)^```$", page, re.MULTILINE | re.DOTALL)
    import yaml

    study = make_study(yaml.load(text, yaml.BaseLoader))
    assert study.total > 100
    (run,) = run_indices(study, [study.total // 2])
    assert not run.failure and run.success


@pytest.mark.parametrize(
    "words, said",
    [
        (("nothing.yaml",), "No such file"),
        (("pendulum",), "unknown scenario 'pendulum'"),
        ((SCENARIO,), "nothing varies"),
        ((SCENARIO, "--vary", "mass=1:2", "--points", "2"), "unknown setting of trapped 'mass'"),
        ((SCENARIO, "--vary", "m"), "must be NAME=VALUE"),
        ((SCENARIO, "--vary", "m=1,2", "--command-of", "2"), "the runs are 0 ... 1"),
        ((SCENARIO, "--vary", "m=1,2", "--overwrite"), "add --output DIR"),
        ((".",), "has no study"),
        ((SCENARIO, "--vary", "m=1,2", "--workers", "-1", "--output", "o"), "1 or more"),
    ],
)
def test_errors_of_usage_name_the_remedy(call, words, said):
    code, out, err = call(*words)
    assert code == 2 and said in err and not out


@pytest.mark.parametrize(
    "words, package, extra",
    [(("--scheduler", "local"), "distributed", "dask"), (("--parquet",), "pyarrow", "study")],
)
def test_missing_extras_are_named_before_the_study_starts(
    call, monkeypatch, tmp_path, words, package, extra
):
    monkeypatch.setitem(sys.modules, package, None)
    code, _, err = call(SCENARIO, "--vary", "m=1,2", *words)
    assert code == 2 and f"pip install 'nh_control[{extra}]'" in err
    assert not list(tmp_path.iterdir())


def test_results_are_never_mixed_or_lost(call, tmp_path, monkeypatch):
    monkeypatch.setattr(run_study, "run_all", lambda *_: True)  # no runs: what is refused
    words = (SCENARIO, "--output", "out", "--no-plots", "--vary")
    call(*words, "m=1,2")
    code, _, err = call(*words, "m=1,2,3")
    assert code == 2 and "another study (vary: {'m': '1,2,3'} here" in err
    code, _, err = call("out", "--seeds", "4")
    assert code == 2 and "seeds: 4 here, 0 there" in err
    (tmp_path / "out" / "mine.txt").write_text("kept")
    call(*words, "m=1,2,3", "--overwrite")
    assert "1,2,3" in (tmp_path / "out" / output.STUDY).read_text()
    assert (tmp_path / "out" / "mine.txt").read_text() == "kept"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    code, _, err = call(SCENARIO, "--output", "other", "--vary", "m=1,2")
    assert code == 2 and "other is not empty" in err


def test_the_command_of_a_run_is_printed(call):
    code, out, _ = call("pendulum_swing_up", "--vary", "m=0.8,1.5", "--command-of", "1")
    assert code == 0
    assert out == "nh_control simulate pendulum_swing_up --plant-parameter m=1.5\n"


def trap(folder, angle, how):
    """Write a scenario whose run at this angle sends a signal to the parent of its process."""
    shutil.copy(TRAPPED, folder)
    text = json.dumps({"angle": angle, "once": True, "parent": True, "signal": how})
    (folder / "trap.json").write_text(text)


@pytest.mark.slow
def test_a_killed_study_continues_with_the_missing_runs(tmp_path):
    trap(tmp_path, ANGLES[30], signal.SIGKILL)
    (tmp_path / "study.yaml").write_text(FILE % ANGLES)
    study = make_study({**read(tmp_path / "study.yaml"), "scenario": f"{tmp_path}/trapped.py"})
    words = ("--workers", "1", "--no-plots", "--json")
    assert nh_control("study", "study.yaml", *words, cwd=tmp_path).returncode == -signal.SIGKILL
    folder = tmp_path / "nh_control_output" / "trapped-study"
    before = stored(folder)
    assert 0 < len(before) < 40
    second = nh_control("study", "nh_control_output/trapped-study", *words, cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout)["runs"] == 40
    assert sorted(index for index, _ in stored(folder)) == list(range(40))
    assert set(before) <= set(stored(folder)), "what was there has not been made again"
    with sqlite3.connect(folder / output.RUNS) as database:
        errors = database.execute("SELECT final_error FROM runs ORDER BY run").fetchall()
    assert errors == [(run.metrics[0],) for run in run_indices(study, range(40))]


@pytest.mark.slow
def test_ctrl_c_keeps_finished_runs_and_names_the_command_to_continue(tmp_path):
    trap(tmp_path, np.linspace(0, 1, 30_000)[3], signal.SIGINT)
    (tmp_path / "study.yaml").write_text(FILE % "0:1:30000")
    done = nh_control("study", "study.yaml", "--workers", "1", "--no-plots", cwd=tmp_path)
    assert done.returncode == 130
    runs = stored(tmp_path / "nh_control_output" / "trapped-study")
    assert 0 < len(runs) < 30_000
    assert f"{len(runs)} of 30000 runs are saved" in done.stderr
    assert "`nh_control study nh_control_output/trapped-study` executes" in done.stderr
    assert "Traceback" not in done.stderr


# --- options and ends ----------------------------------------------------------------------------


def test_every_option_of_a_study_is_a_key_of_its_file():
    words = (
        "--urdf arm.urdf --base floating --sampling sobol --points 3 --seeds 2 --seed 1 "
        "--accept-any-inertia --wheels left --success 0.1 --monitor --vary m=1:2 --set step=0.1 "
        "--disturb x:gust:1 --disturb y:gust:1 --fault noise=1 --fault x:bias=1 --same-noise "
        "--autopilot betaflight --require success>=0.9 --require effort.max<5"
    )
    data = run_study.merged_settings(
        {"scenario": "urdf"}, arguments.parse(["study", "urdf", *words.split()])
    )
    assert data == {
        "scenario": "urdf", "urdf": "arm.urdf", "base": "floating", "accept_any_inertia": True,
        "wheels": "left", "autopilot": "betaflight", "sampling": "sobol",
        "points": "3", "seeds": "2", "seed": "1", "success": "0.1", "monitor": "true",
        "vary": {"m": "1:2"}, "set": {"step": "0.1"}, "disturb": ["x:gust:1", "y:gust:1"],
        "fault": ["noise=1", "x:bias=1"], "same_noise": "true",
        "require": ["success>=0.9", "effort.max<5"],
    }  # fmt: skip
    assert set(data) == set(KEYS)
    file = {"scenario": "arm", "disturb": ["x:gust:1"], "fault": ["noise=1"], "seed": "4"}
    plain = run_study.merged_settings(file, arguments.parse(["study", "arm", "--seed", "5"]))
    assert plain == {**file, "seed": "5", "vary": {}, "set": {}}


def test_piped_tables_keep_every_column_beside_a_long_reason(capsys):
    study_report._table("", ("", "share", "runs"), [("the controller failed " * 9, "5 %", "17")])
    assert capsys.readouterr().out.splitlines()[1].split()[-3:] == ["5", "%", "17"]


@pytest.fixture
def ended(monkeypatch, tmp_path):
    """Return f(done or an error, failed, runs) -> numbers of a study of 4 runs that ends so."""

    def end(done, failed=0, runs=0):
        def run_all(*_):
            if isinstance(done, Exception):
                raise done
            return done

        share = {"count": failed, "share": failed / runs if runs else None}
        numbers = {"runs": runs, "failed": share, "failures": [], "requirements": []}
        four = SimpleNamespace(total=4, is_external=False)
        monkeypatch.setattr(run_study, "study_and_folder", lambda args: (four, tmp_path))
        monkeypatch.setattr(Store, "make", lambda folder, study: nullcontext())
        monkeypatch.setattr(run_study, "run_all", run_all)
        saved = numbers, {"statistics": "s.json"}
        monkeypatch.setattr(run_study, "save_statistics", lambda *_: saved)
        monkeypatch.setattr("nh_control.command.study_report.show", lambda *_: print("tables"))
        return numbers

    return end


@pytest.mark.parametrize(
    ("done", "failed", "runs", "code"),
    [(True, 0, 4, 0), (True, 3, 4, 0), (True, 4, 4, 1), (False, 0, 2, 130), (False, 2, 2, 130)],
)
def test_the_exit_code_of_a_study_tells_its_end(done, failed, runs, code, ended, call, tmp_path):
    numbers = ended(done, failed, runs)
    returned, out, err = call("x")
    assert returned == code
    assert out == f"tables\nresults in {tmp_path}/: runs.sqlite, s.json\n"
    how = f"{runs} of 4 runs are saved; `nh_control study {tmp_path}` executes the missing runs"
    assert ("interrupted" in err) == (not done)
    assert done or err.splitlines()[-1] == f"nh_control: interrupted; {how}"
    returned, out, _ = call("x", "--json")
    files = {"runs": str(tmp_path / "runs.sqlite"), "statistics": "s.json"}
    assert json.loads(out) == {**numbers, "output": str(tmp_path), "files": files}
    assert returned == code


def test_a_study_without_workers_fails_and_names_the_command_to_continue(ended, call, tmp_path):
    ended(WorkersLost("nobody left"))
    code, _, err = call("x")
    assert code == 1 and err.splitlines()[-2:] == [
        f"nh_control: `nh_control study {tmp_path}` continues this study",
        "nh_control: error: nobody left",
    ]
