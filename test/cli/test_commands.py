"""The commands: what they read, print and end with, without a run."""

import json
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from command import MAIN, environment

from nh_control import cli, scenarios
from nh_control.cli import main
from nh_control.command import (
    arguments,
    compare_integrators,
    list_scenarios,
    replay_run,
    run_scenario,
)
from nh_control.command.arguments import EXAMPLES
from nh_control.command.interruption import Interruption
from nh_control.command.list_scenarios import explained
from nh_control.command.usage import UsageError, find_scenario
from nh_control.command.values import assignment, bounded_integer, bounded_number, reader
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.integrators import INTEGRATORS, midpoint
from nh_control.mechanics.parameters import Declaration
from nh_control.numerics.files import whole_file, write_npz
from nh_control.runs import launcher, measurements
from nh_control.runs.experiment import Experiment
from nh_control.runs.settings import RunSettings
from nh_control.scenarios.urdf import DEFAULT
from nh_control.studies.comparison import Comparison, Drift, MethodRow, WorkPoint
from nh_control.studies.motion import InitialValueProblem
from nh_control.systems import pendulum


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """Tables are printed into 200 columns."""
    monkeypatch.setenv("COLUMNS", "200")


# --- integrators and comparisons -----------------------------------------------------------------


def test_compared_are_the_chosen_integrators_or_all_accurate_ones():
    wanted = ["rdp_exp", "midpoint"]
    assert list(compare_integrators._chosen(wanted, INTEGRATORS)) == wanted
    chosen = compare_integrators._chosen([], INTEGRATORS)
    assert {n for n, one in INTEGRATORS.items() if one.order >= 4} < set(chosen)
    assert [n for n, one in chosen.items() if one.order < 4] == ["nonholonomic_midpoint"]
    own = INTEGRATORS.with_additional({"mine": midpoint, "midpoint": midpoint})
    assert list(own) == [*INTEGRATORS, "mine"] and own["midpoint"] is INTEGRATORS["midpoint"]
    assert list(compare_integrators._chosen([], own)) == [*chosen, "mine"]


def test_tables_of_integrators_are_readable_at_80_columns(capsys, monkeypatch, snapshot):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["integrators"]) == 0
    all_ = capsys.readouterr().out
    rows = [
        MethodRow(INTEGRATORS[max(INTEGRATORS, key=len)], "", 26, 1104, 12345.67),
        MethodRow(INTEGRATORS["rk4"], "", 10, 0, 0.31),
        MethodRow(INTEGRATORS["rkmk4_projected"], "has no holonomic constraints"),
    ]
    compare_integrators._print_methods(
        [compare_integrators._values(row, measured=True) for row in rows]
    )
    measured = capsys.readouterr().out
    assert all_ == snapshot(name="all") and measured == snapshot(name="measured")
    for out in (all_, measured):
        assert max(map(len, out.splitlines())) <= 80 and "…" not in out


def test_a_comparison_is_printed_in_numbers_and_words(capsys, snapshot):
    compared = Comparison(
        InitialValueProblem(pendulum(), [0.5], [1.0], 2.0, [[2.0]]),
        uncertainty=1e-12,
        step_s=0.05,
        work={
            "good": (WorkPoint(8, 1e-3, 1e-5), WorkPoint(16, 2e-3, 1e-7)),
            "bad": (WorkPoint(8, 5e-3, 1.0),),
        },
        drifts={"good": Drift(np.arange(2), np.array([0.5, -2.0]), np.array([0.25, 0.125]))},
        refused={"odd": "symmetry"},
    )
    assert json.dumps(compare_integrators._numbers(compared), indent=1) == snapshot(name="numbers")
    compare_integrators._print_times(compared)
    assert capsys.readouterr().out == snapshot(name="text")


# --- list ----------------------------------------------------------------------------------------


def test_the_file_of_a_scenario_and_targets_of_its_faults_are_listed():
    scenario = find_scenario("snakeboard")
    assert list_scenarios.explained(replace(scenario, file="board.py"))["file"] == "board.py"
    targets = set(list_scenarios.explained(scenario)["faults"]["targets"])
    space = scenario.model().system.space
    assert {*space.tangent_names, *space.velocity_names, "rotor_torque"} <= targets
    assert "x" not in targets  # what is measured of a place is in the axes of the board


def test_the_overview_shows_defaults_steps_and_limits(capsys, snapshot):
    entry = {
        "title": "An arm",
        "references": ["up", "down"],
        "integrators": ["midpoint"],
        "step_s": 0.025,
        "parameters": {"m": 1.5, "lengths": (0.5, 0.25)},
        "actuators": {"torque": (-2.0, 3.0, "N m"), "pull": (0.0, np.inf, "")},
    }
    list_scenarios._overview({"arm": entry})
    assert capsys.readouterr().out == snapshot


def test_scenarios_that_cannot_be_loaded_are_listed_last(monkeypatch, capsys):
    monkeypatch.setattr(list_scenarios, "_all", lambda: ({}, [UsageError("broken")]))
    assert main(["list", "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out) == {} and err == "nh_control: error: broken\n"


# --- what is read --------------------------------------------------------------------------------


def test_the_help_of_a_scenario_shows_errors_parameters_and_targets(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["run", "snakeboard", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    board = find_scenario("snakeboard")
    targets = list(board.targets(board.make_system(board.parameters)).values())
    for text in (
        f"in m (default: {board.perturbation.position})",
        "--perturb-seed N",
        "Parameters of snakeboard: ",
        "m (kg)",
        "Disturbances may act on: ",
        list_scenarios.example(targets),
    ):
        assert text in said
    assert "TARGET:gust" not in said.partition("Parameters of")[2]


@pytest.mark.parametrize("before", [["--perturb-position=0.2"], ["--perturb-position", "0.2"]])
def test_an_initial_error_may_stand_before_the_scenario(before):
    args = arguments.parse(["simulate", *before, "snakeboard"])
    assert (args.scenario.name, args.perturb_position) == ("snakeboard", 0.2)


@pytest.mark.parametrize("command", ["replay", "identify"])
def test_an_unreadable_recording_is_an_error_of_usage_with_a_remedy(
    command, monkeypatch, capsys, tmp_path
):
    assert main([command, str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert (
        f"{tmp_path} is not a folder written by `nh_control run`; for a recording, add --scenario"
        in said
    )
    (tmp_path / "parameters.yaml").write_text("/**: {ros__parameters: {speed: 1}}")
    assert main([command, str(tmp_path)]) == 2
    assert (
        "parameters.yaml does not belong to a run of `nh_control run`" in capsys.readouterr().err
    )
    assert main([command, str(tmp_path / "none"), "--scenario", "pendulum_swing_up"]) == 2
    assert capsys.readouterr().err.startswith(f"nh_control: error: {tmp_path / 'none'}: ")
    monkeypatch.setitem(sys.modules, "rosbags", None)
    assert main([command, str(tmp_path)]) == 2
    assert "recordings need rosbags" in capsys.readouterr().err


def test_a_recorded_robot_has_its_file_base_integrator_and_step(monkeypatch):
    robot = ["--urdf", str(DEFAULT), "--base", "floating", "--accept-any-inertia"]
    of_model = ["--integrator", "midpoint_order4", "--step", "0.25"]
    words = "folder", "--scenario", "urdf", *robot, *of_model
    args, _ = (arguments.parse([command, *words]) for command in ("replay", "identify"))
    monkeypatch.setattr(measurements, "read", lambda folder, *_: folder)
    scenario, model, read = replay_run.measured(args)
    assert scenario.origin["base"] == "floating" and scenario.origin["accept_any_inertia"]
    wanted = scenario.model("midpoint_order4").method.name
    assert (model.h, model.method.name, str(read)) == (0.25, wanted, "folder")


def test_numbers_of_parameters_are_one_or_several():
    assert assignment("m=1.1") == ("m", 1.1) and assignment("l=1,2") == ("l", (1.0, 2.0))
    for text in ("m", "m=", "m=x", "m=1,,2"):
        with pytest.raises(arguments.argparse.ArgumentTypeError, match="must be NAME=VALUE"):
            assignment(text)


def test_declared_values_are_read_with_their_type():
    assert (bounded_number(0)("0"), bounded_integer(1)("1")) == (0.0, 1)
    assert reader(Declaration("lengths", (1.0,), "m", ""))("2") == (2.0,)
    assert reader(Declaration("lengths", (1.0, 2.0), "m", ""))("2,3") == (2.0, 3.0)
    seed = reader(Declaration("seed", 0, "", "", at_least=0))("3")
    assert seed == 3 and type(seed) is int
    for text in ("-1", "1.5"):
        with pytest.raises(arguments.argparse.ArgumentTypeError):
            reader(Declaration("seed", 0, "", "", at_least=0))(text)


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


# --- run -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (("--view",), "needs aiohttp: pip install 'nh_control[view]'"),
        (("--json", "--no-record"), "omit --no-record"),
    ],
)
def test_what_a_run_of_nodes_lacks_is_told_first(options, remedy, monkeypatch, capsys):
    monkeypatch.setattr(launcher, "require_ros", lambda record: None)
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    assert main(["run", "snakeboard", *options]) == 2
    assert remedy in capsys.readouterr().err


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


def test_an_unreadable_recording_is_the_error_unless_a_node_failed(tmp_path):
    scenario = find_scenario("pendulum_swing_up")
    e = SimpleNamespace(scenario=scenario, model=scenario.model())
    found, unreadable = run_scenario.read_recording(e, tmp_path, 1.0, "", "")
    assert found is None and str(tmp_path) in unreadable
    ended = "the plant ended"
    assert run_scenario.read_recording(e, tmp_path, 1.0, "", ended) == (None, ended)


# --- errors and Ctrl-C ---------------------------------------------------------------------------

FAILED_STEP = StepFailed("arm", 0.1, "no luck", 1.0, 1.0, 25, Conditioning(1.0, 1.0, 1.0))


@pytest.mark.parametrize("error", [ValueError("bad"), OSError("bad"), FAILED_STEP])
def test_invalid_input_is_an_error_of_usage(error, monkeypatch, capsys):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(Experiment, "make", fail)
    assert main(["simulate", "pendulum_swing_up"]) == 2
    out, err = capsys.readouterr()
    assert err.splitlines()[-1].endswith(f"nh_control: error: {error}") and not out


@pytest.mark.parametrize(
    ("error", "requested", "code"),
    [
        (UsageError("no"), False, 2),
        (KeyboardInterrupt(), False, 130),
        (RuntimeError("of a library"), True, 130),
        (RuntimeError("a defect"), False, None),
    ],
)
def test_errors_have_codes_and_defects_are_shown(error, requested, code, monkeypatch, capsys):
    def fail(argv):
        raise error

    monkeypatch.setattr(arguments, "parse", fail)
    monkeypatch.setattr(cli, "Interruption", lambda: made)
    made = Interruption()
    made.requested = requested
    if code is None:
        with pytest.raises(RuntimeError, match="a defect"):
            main([])
    else:
        assert main([]) == code
        said = "error: no" if code == 2 else "interrupted"
        assert capsys.readouterr().err == f"nh_control: {said}\n"


def test_in_another_thread_nobody_is_interrupted():
    before, seen = signal.getsignal(signal.SIGINT), []

    def work():
        with Interruption() as made:
            seen.append((made.requested, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(False, before)]


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


@pytest.mark.parametrize("name", scenarios.built_in())
def test_every_reference_has_a_meaning_of_its_own(name):
    meanings = list(explained(scenarios.get(name))["references"].values())
    assert all(len(text) > 10 and not text[0].islower() for text in meanings), meanings
    assert len(set(meanings)) == len(meanings) and not any(
        "[" in t and "]" not in t for t in meanings
    )


# --- files ---------------------------------------------------------------------------------------


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

    monkeypatch.setattr(np, "savez", full)
    out = tmp_path / "run"
    wanted = ["simulate", "cart_pole", "--duration", "0.1", "--no-plots", "--output", str(out)]
    assert main(wanted) == 1
    assert f"error: cannot write the results to {out}/: [Errno 28]" in capsys.readouterr().err
    assert not list(out.iterdir())


def test_a_reader_that_ends_early_ends_the_command_quietly():
    words = [sys.executable, "-c", MAIN, "list", "cart_pole"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=environment(), stdout=pipe, stderr=pipe, text=True) as listed:
        listed.stdout.close()
        assert (listed.stderr.read(), listed.wait(60)) == ("", 1)


def test_a_broken_pipe_of_another_program_is_an_error(monkeypatch, tmp_path):
    def fails(argv):
        raise BrokenPipeError

    monkeypatch.setattr(cli, "_main", fails)
    with open(tmp_path / "out", "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.raises(BrokenPipeError):
            main([])


def test_the_program_alone_shows_five_commands_that_work(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert len(EXAMPLES) == 5
    for example in EXAMPLES:
        assert f"nh_control {example} " in shown
        assert callable(arguments.parse(example.split()).command)
