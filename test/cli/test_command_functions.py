"""Functions of the command without a run: choices, exit codes, Ctrl-C."""

import re
import signal
from types import SimpleNamespace

import numpy as np
import pytest

from nh_control.cli import main
from nh_control.command import arguments, compare_integrators, list_scenarios, run_scenario
from nh_control.command.interruption import Interruption
from nh_control.command.usage import find_scenario
from nh_control.integrators import INTEGRATORS
from nh_control.numerics.files import whole_file, write_npz
from nh_control.runs import launcher
from nh_control.runs.settings import RunSettings
from nh_control.studies.comparison import MethodRow

# --- integrators and comparisons -----------------------------------------------------------------


def test_compared_are_the_chosen_integrators_or_all_accurate_ones():
    assert list(compare_integrators._chosen(["rdp_exp", "midpoint"], INTEGRATORS)) == [
        "rdp_exp",
        "midpoint",
    ]
    chosen = compare_integrators._chosen([], INTEGRATORS)
    assert {n for n, one in INTEGRATORS.items() if one.order >= 4} < set(chosen)
    assert [n for n, one in chosen.items() if one.order < 4] == ["nonholonomic_midpoint"]
    with pytest.raises(ValueError, match=r"\['euler'\], choose of: .*midpoint"):
        compare_integrators._chosen(["rdp_exp", "euler"], INTEGRATORS)


def test_the_default_step_of_comparisons_is_a_fiftieth_of_a_second():
    for command in ("compare", "integrators"):
        assert arguments.parse([command, "snakeboard"]).step == 0.02
        assert arguments.parse([command, "snakeboard", "--step", "0.1"]).step == 0.1


def test_the_progress_of_measurements_leaves_nothing_on_the_screen(capsys):
    rows = [MethodRow(INTEGRATORS[name]) for name in ("midpoint", "rdp_exp")]
    assert list(compare_integrators._with_progress(rows, 2)) == rows
    assert capsys.readouterr().err.endswith("\r" + " " * 60 + "\r")


def readable_at_80_columns(text):
    return max(map(len, text.splitlines())) <= 80 and "…" not in text


def test_every_cell_of_the_table_of_integrators_is_readable(capsys, monkeypatch, snapshot):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["integrators"]) == 0
    out = capsys.readouterr().out
    assert readable_at_80_columns(out) and out == snapshot


def test_numbers_of_measured_integrators_are_readable(capsys, monkeypatch, snapshot):
    monkeypatch.setenv("COLUMNS", "80")
    rows = [
        MethodRow(INTEGRATORS[max(INTEGRATORS, key=len)], "", 26, 1104, 12345.67),
        MethodRow(INTEGRATORS["rk4"], "", 10, 0, 0.31),
        MethodRow(INTEGRATORS["rkmk4_projected"], "has no holonomic constraints"),
    ]
    compare_integrators._print_methods(
        [compare_integrators._values(row, measured=True) for row in rows]
    )
    out = capsys.readouterr().out
    assert readable_at_80_columns(out) and out == snapshot


# --- list ----------------------------------------------------------------------------------------


def test_the_list_marks_inputs_without_limits(capsys, monkeypatch, snapshot):
    monkeypatch.setenv("COLUMNS", "200")
    values = list_scenarios.explained(find_scenario("pendulum_swing_up"))
    bounds = {"free": (-np.inf, np.inf), "pushed": (0.0, np.inf), "held": (-1.0, 1.0)}
    values["inputs"] = [
        {"name": name, "lower": lower, "upper": upper, "unit": "N m"}
        for name, (lower, upper) in bounds.items()
    ]
    list_scenarios._explain(values)
    lines = capsys.readouterr().out.splitlines()
    assert [line.rstrip() for line in lines if line.split()[:1] and line.split()[0] in bounds] == (
        snapshot
    )


def test_the_example_of_a_disturbance_acts_on_the_last_target():
    two = [SimpleNamespace(name="a", n_forces=1), SimpleNamespace(name="b", n_forces=3)]
    assert list_scenarios.example(two).startswith("b:gust:1,0,0,")
    assert list_scenarios.example([]).startswith("TARGET:gust:")


def test_explanations_are_first_sentences():
    assert list_scenarios._first_sentence("A gust, of 1.5 N,\n    that ends. More.") == (
        "A gust, of 1.5 N, that ends"
    )
    assert (
        list_scenarios._first_sentence("At rest.") == "At rest"
        and list_scenarios._first_sentence(None) == ""
    )


# --- run -----------------------------------------------------------------------------------------


@pytest.fixture
def run_nodes(tmp_path, monkeypatch):
    """Return f(outcome, stopped, *arguments) -> exit code of `nh_control run` whose nodes end with
    that outcome, an exception or whether they ended by themselves, and whose recording says why
    it is short.
    """

    def run(outcome, stopped="", *arguments):
        def nodes(*_):
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        def read_recording(experiment, folder, wall_s, stopped_early, error):
            run.told = stopped_early, error
            return SimpleNamespace(stopped=stopped, ros=None), error

        monkeypatch.setattr(launcher, "require_ros", lambda record: None)
        monkeypatch.setattr(launcher, "run", nodes)
        monkeypatch.setattr(run_scenario, "make_experiment", lambda *_: experiment)
        monkeypatch.setattr(run_scenario, "results_folder", lambda *_: tmp_path)
        monkeypatch.setattr(run_scenario, "read_recording", read_recording)
        monkeypatch.setattr(run_scenario, "save_results", lambda *_: print("saved") or {})
        monkeypatch.setattr(run_scenario, "print_results", lambda *_: print("reported"))
        return main(["run", "pendulum_swing_up", *arguments])

    scenario = find_scenario("pendulum_swing_up")
    experiment = SimpleNamespace(steps=10, model=scenario.model(), scenario=scenario)
    return run


FAILURE = launcher.NodeFailed("the plant ended", "plant.log", "step 7 failed")


@pytest.mark.parametrize(
    ("outcome", "stopped", "code", "error", "told"),
    [
        (True, "", 0, "", ("", "")),
        (True, "the recording ends", 1, "the recording ends", ("", "")),
        (False, "interrupted after 3 steps", 130, "", ("interrupted", "")),
        (FAILURE, "the plant ended", 1, "step 7 failed", ("the plant ended", str(FAILURE))),
    ],
)
def test_the_exit_code_of_a_run_of_nodes_tells_its_end(
    outcome, stopped, code, error, told, run_nodes, capsys
):
    """The recording is read with why the nodes ended."""
    assert (run_nodes(outcome, stopped), run_nodes.told) == (code, told)
    said = capsys.readouterr()
    assert said.out == "saved\nreported\n"
    assert error in said.err and ("error:" in said.err) == bool(error)
    assert run_nodes(outcome, stopped, "--no-record") == (code if outcome is not True else 0)
    assert "reported" not in (said := capsys.readouterr().out) and said.startswith("logs in ")


# --- Ctrl-C --------------------------------------------------------------------------------------


@pytest.fixture
def set_handler():
    """Return f(handler), which handles SIGINT until the end of the test."""
    before = signal.getsignal(signal.SIGINT)
    yield lambda handler: signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_raises_unless_running_work_polls_it(set_handler):
    set_handler(signal.default_int_handler)
    with Interruption() as interruption:
        with interruption.waiting():
            assert not interruption.requested
            signal.raise_signal(signal.SIGINT)
            assert interruption.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_raises_and_one_after_the_end_does_not(set_handler):
    set_handler(signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt), Interruption() as interruption, interruption.waiting():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert interruption.requested and not interruption._again.repeating
    interruption._on_signal(signal.SIGINT, None)  # one that was still on its way
    with pytest.raises(KeyboardInterrupt), Interruption() as interruption:
        with interruption.waiting():
            pass
        signal.raise_signal(signal.SIGINT)
    assert interruption.requested


def test_where_ctrl_c_is_ignored_it_stays_so(set_handler):
    set_handler(signal.SIG_IGN)
    with Interruption() as interruption:
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.raise_signal(signal.SIGINT)
    assert not interruption.requested


# --- steps, sizes and full disks -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("compare cart_pole --step 0", "--step: must be a finite number > 0"),
        ("compare cart_pole --duration nan", "--duration: must be a finite number >"),
        ("integrators cart_pole --step=-1", "--step: must be a finite number > 0"),
        ("replay somewhere --step inf", "--step: must be a finite number >= 0"),
        ("run snakeboard --speed-factor -1", "--speed-factor: must be a finite number >= 0"),
        ("run snakeboard --speed-factor inf", "--speed-factor: must be a finite number >= 0"),
        ("run snakeboard --duration nan", "--duration: must be a finite number > 0"),
        ("identify folder --segment 0", "--segment must be a number of seconds > 0"),
        ("identify folder --segment inf", "--segment must be a number of seconds > 0"),
        ("simulate cart_pole --duration 1e9", "steps need .* GiB, this machine has"),
        ("compare cart_pole --step 1e-9 --duration 1", "more than 1_000_000"),
        ("study cart_pole --vary m_pole=1:2:1000000000", "at most 1_000_000"),
        (
            "study cart_pole --vary m_pole=1:2:100000 --seeds 1000",
            "has 100000000 runs, expected at most 10_000_000",
        ),
    ],
)
def test_numbers_that_are_not_finite_or_too_large_are_refused(
    line, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(line.split())
    except SystemExit as ended:
        code = ended.code
    assert code == 2 and re.search(message, capsys.readouterr().err)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    file = tmp_path / "numbers.npz"
    write_npz(file, a=np.arange(3))
    with pytest.raises(OSError, match="no space"), whole_file(file) as out:
        out.write(b"half of")
        raise OSError("no space left on device")
    assert np.load(file)["a"].tolist() == [0, 1, 2] and list(tmp_path.iterdir()) == [file]


def test_a_full_disk_is_one_sentence_and_leaves_no_results(tmp_path, monkeypatch, capsys):
    def full(file, **arrays):
        file.write(b"PK")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    out = tmp_path / "run"
    wanted = ["simulate", "cart_pole", "--duration", "0.1", "--no-plots", "--output", str(out)]
    assert main(wanted) == 1
    assert f"error: cannot write the results to {out}/: [Errno 28]" in capsys.readouterr().err
    assert not list(out.iterdir())


def test_nodes_that_were_too_slow_are_one_sentence():
    def said(rate_hz, missed, speed_factor=1.0, lockstep=False):
        result = SimpleNamespace(
            ros={"rate_hz": rate_hz, "missed_steps": missed},
            experiment=SimpleNamespace(model=SimpleNamespace(h=0.01)),
            loop=SimpleNamespace(trajectory=range(1000)),
        )
        return run_scenario.too_slow(
            result, RunSettings(speed_factor=speed_factor, lockstep=lockstep)
        )

    assert said(99.9, 3) == said(40.0, 0, lockstep=True) == said(40.0, 0, 0.0) == ""
    assert said(49.0, 0, 0.5) == ""
    assert said(60.0, 0).startswith("this machine was too slow for real time: 60 of 100 steps/s")
    assert "200 of 1000 steps late" in said(99.0, 200)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "far",
    [
        ("--fault", "positions:bias=1e200"),
        pytest.param(("--perturb-angle", "1e200"), marks=pytest.mark.slow),
    ],
    ids=lambda o: o[0],
)
def test_numbers_that_are_far_away_come_without_warnings_of_numpy(far, tmp_path, capsys):
    call = ["simulate", "urdf", "--duration", "0.05", "--no-plots", "--output", str(tmp_path)]
    assert main([*call, *far]) in (0, 1)
    assert "overflow" not in capsys.readouterr().err
