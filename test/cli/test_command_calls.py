"""The calls of the command: options of the experiment and the nodes, exit codes, and printed
results.
"""

import json
import signal
import sys
import threading
from argparse import Namespace
from types import SimpleNamespace

import pytest

from nh_control import cli
from nh_control.cli import main
from nh_control.command import arguments, list_scenarios, replay_run, run_scenario
from nh_control.command.interruption import Interruption
from nh_control.command.usage import UsageError, find_scenario
from nh_control.command.values import assignment, bounded_integer, bounded_number, reader
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.mechanics.parameters import Declaration
from nh_control.runs import launcher, output, recording
from nh_control.runs.experiment import Experiment
from nh_control.runs.settings import RunSettings
from nh_control.scenarios import MpcOptions

FAILED_STEP = StepFailed("arm", 0.1, "no luck", 1.0, 1.0, 25, Conditioning(1.0, 1.0, 1.0))


class Made(Exception):
    """Ends a call with its arguments."""


# --- what is handed on ---------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """Return f(*options) -> the arguments of `Experiment.make`."""

    def make(scenario, **others):
        raise Made(scenario.name, *others.values())

    monkeypatch.setattr(Experiment, "make", make)
    progress = SimpleNamespace(phase=lambda text: None)

    def ask(*options):
        args = arguments.parse(["simulate", "snakeboard", *options])
        with pytest.raises(Made) as made:
            run_scenario.make_experiment(args, progress)
        return made.value.args

    return ask


def test_an_experiment_uses_the_scenario_s_defaults(asked):
    name, reference, integrator, step, options, error, integral, duration, mpc, estimate = asked()
    assert mpc is None and estimate == "state"
    assert (name, reference, integrator, step, integral, duration) == (
        "snakeboard", "", "", 0.0, False, 0.0,
    )  # fmt: skip
    assert (options.integrator, options.substeps, options.parameters) == ("", 1, {})
    assert (options.disturbances, options.faults) == ((), ())
    assert error == find_scenario("snakeboard").perturbation


def test_every_option_reaches_the_experiment(asked):
    _, reference, integrator, step, options, error, integral, duration, mpc, estimate = asked(
        "--reference", "forward", "--integrator", "rdp_exp", "--step", "0.02", "--duration", "1.5",
        "--integral", "--plant-integrator", "rdp_cay", "--plant-substeps", "3",
        "--plant-parameter", "m=1.1", "--plant-parameter", "J=2", "--disturb", "psi:gust:1",
        "--fault", "noise=0.1", "--fault", "psi:bias=1", "--perturb-heading", "0.25",
        "--controller", "mpc", "--mpc-horizon", "0.5", "--mpc-iterations", "2",
        "--mpc-constraint", "gates", "--mpc-late", "0.25", "--mpc-seed", "3",
        "--estimate", "sensors",
    )  # fmt: skip
    assert estimate == "sensors"
    assert mpc == MpcOptions(0.5, 2, ("gates",), 0.25, 3)
    assert (reference, integrator, step, duration) == ("forward", "rdp_exp", 0.02, 1.5)
    assert integral is True
    assert (options.integrator, options.substeps) == ("rdp_cay", 3)
    assert options.parameters == {"m": 1.1, "J": 2.0}
    assert [str(fault) for fault in options.faults] == ["positions:noise=0.1", "psi:bias=1.0"]
    assert [one.target for one in options.disturbances] == ["psi"]
    assert (error.heading, error.position) == (
        0.25,
        find_scenario("snakeboard").perturbation.position,
    )


def test_the_help_of_a_scenario_shows_errors_parameters_and_targets(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    with pytest.raises(SystemExit) as ended:
        main(["run", "snakeboard", "--help"])
    said = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert ended.value.code == 0 and not any(
        "default: 0" in line and "0.0" in line for line in said
    )
    perturbation = find_scenario("snakeboard").perturbation
    position = next(line for line in said if line.startswith("--perturb-position M "))
    assert position.endswith(f"in m (default: {perturbation.position})")
    assert any(line.startswith("--perturb-seed N") for line in said)
    for text in (
        "--step S step of model, reference and commands in s (default: the scenario's)",
        "--duration S simulated time in s (default: the reference's length)",
        "--plant-substeps N steps of the plant's integrator in one step of the model (default: 1)",
        "--integral estimate a constant disturbance of the momenta and compensate it",
    ):
        assert text in said
    speed = next(line for line in said if line.startswith("--speed-factor X"))
    assert speed.endswith("0 = as fast as possible (default: 1.0)")
    (end,) = (line for line in said if line.startswith("Parameters of snakeboard: "))
    assert "m (kg)" in end and "Disturbances may act on: " in end
    assert list_scenarios.example(board_targets()) in end and "TARGET" not in end


def board_targets():
    board = find_scenario("snakeboard")
    return list(board.targets(board.make_system(board.parameters)).values())


@pytest.mark.parametrize("before", [["--perturb-position=0.2"], ["--perturb-position", "0.2"]])
def test_an_initial_error_may_stand_before_the_scenario(before):
    args = arguments.parse(["simulate", *before, "snakeboard"])
    assert (args.scenario.name, args.perturb_position) == ("snakeboard", 0.2)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), RunSettings()),
        (
            ("--speed-factor", "0", "--lockstep", "--no-display", "--no-record"),
            RunSettings(speed_factor=0.0, lockstep=True, display=False, record=False),
        ),
        (("--speed-factor", "2.5"), RunSettings(speed_factor=2.5)),
        (("--view",), RunSettings(view=True)),
    ],
)
def test_options_of_nodes_reach_them(options, expected, monkeypatch, tmp_path):
    required = []

    def run(experiment, given, folder, progress):
        raise Made(given)

    monkeypatch.setattr(launcher, "require_ros", lambda record: required.append(record))
    monkeypatch.setattr(launcher, "run", run)
    scenario = find_scenario("snakeboard")
    experiment = SimpleNamespace(steps=1, model=scenario.model(), scenario=scenario)
    monkeypatch.setattr(run_scenario, "make_experiment", lambda *_: experiment)
    monkeypatch.setattr(run_scenario, "results_folder", lambda *_: tmp_path)
    with pytest.raises(Made) as made:
        main(["run", "snakeboard", *options])
    (given,) = made.value.args
    names = ("speed_factor", "lockstep", "display", "record", "view")
    assert [given[name] for name in names] == [expected[name] for name in names]
    assert required == [expected.record]


def test_a_view_without_aiohttp_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(launcher, "require_ros", lambda record: None)
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    assert main(["run", "snakeboard", "--view"]) == 2
    assert "needs aiohttp: pip install 'nh_control[view]'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["list", "simulate", "run", "replay", "identify"])
def test_a_robot_is_loaded_with_its_file_base_integrator_and_step(command, monkeypatch):
    def find(*given):
        found.append(given)
        if command in ("list", "simulate", "run"):
            raise Made
        return SimpleNamespace(model=model)

    def model(*given):
        raise Made(*given)

    found, words = [], [command, "urdf"]
    for module in (list_scenarios, replay_run, arguments):
        monkeypatch.setattr(module, "find_scenario", find)
    if command in ("replay", "identify"):
        words = [command, "folder", "--scenario", "urdf"]
    robot = ["--urdf", "arm.urdf", "--base", "floating", "--accept-any-inertia"]
    for options in ([], robot):
        with pytest.raises(Made):
            main([*words, *options])
    assert found == [("urdf", "", "fixed", False), ("urdf", "arm.urdf", "floating", True)]
    if command in ("replay", "identify"):
        with pytest.raises(Made) as made:
            main([*words, "--integrator", "rk4", "--step", "0.25"])
        assert made.value.args == ("rk4", 0.25)


def test_numbers_of_parameters_are_one_or_several():
    assert assignment("m=1.1") == ("m", 1.1) and assignment("l=1,2") == ("l", (1.0, 2.0))
    for text in ("m", "m=", "m=x", "m=1,,2"):
        with pytest.raises(arguments.argparse.ArgumentTypeError, match="must be NAME=VALUE"):
            assignment(text)


def test_json_needs_a_recording(monkeypatch, capsys):
    monkeypatch.setattr(launcher, "require_ros", lambda record: None)
    assert main(["run", "snakeboard", "--json", "--no-record"]) == 2
    assert "leave --no-record out" in capsys.readouterr().err


def test_declared_values_are_read_with_their_type():
    assert (bounded_number(0)("0"), bounded_integer(1)("1")) == (0.0, 1)
    assert reader(Declaration("lengths", (1.0,), "m", ""))("2") == (2.0,)
    assert reader(Declaration("lengths", (1.0, 2.0), "m", ""))("2,3") == (2.0, 3.0)
    seed = reader(Declaration("seed", 0, "", "", at_least=0))("3")
    assert seed == 3 and type(seed) is int
    for text in ("-1", "1.5"):
        with pytest.raises(arguments.argparse.ArgumentTypeError):
            reader(Declaration("seed", 0, "", "", at_least=0))(text)


# --- what it ends with ---------------------------------------------------------------------------


@pytest.fixture
def simulate(monkeypatch, tmp_path):
    """Return f(steps, failure, interrupted, *options) -> (exit code, result): a simulation of ten
    steps of which so many are made.
    """

    def run(steps, failure=None, interrupted=False, *options):
        kept, asked = [], []

        def loop(feedback=True, progress=None, stop=None):
            asked.append(feedback)
            kept[0].requested |= interrupted
            assert stop() == kept[0].requested, "a loop of many steps hears Ctrl-C"
            return SimpleNamespace(failure=failure, trajectory=range(steps), feedback=feedback)

        def enter(self):
            kept.append(self)
            return self

        model = find_scenario("pendulum_swing_up").model()
        experiment = SimpleNamespace(steps=10, run=loop, model=model)
        monkeypatch.setattr(Interruption, "__enter__", enter)
        monkeypatch.setattr(Interruption, "__exit__", lambda self, *_: None)
        monkeypatch.setattr(run_scenario, "make_experiment", lambda *_: experiment)
        monkeypatch.setattr(run_scenario, "results_folder", lambda *_: tmp_path)
        monkeypatch.setattr(
            run_scenario, "save_results", lambda result, *_: kept.append(result) or {}
        )
        monkeypatch.setattr(run_scenario, "print_results", lambda *_: None)
        return main(["simulate", "pendulum_swing_up", *options]), kept[1], asked

    return run


@pytest.mark.parametrize(
    ("steps", "failure", "interrupted", "code", "stopped", "said"),
    [
        (10, None, False, 0, "", ""),
        (4, FAILED_STEP, False, 1, "no luck", "error: arm"),
        (4, None, True, 130, "interrupted after 4 of 10 steps", "interrupted; the finished"),
        (10, None, True, 130, "", "interrupted; the finished steps are saved"),
    ],
)
def test_the_exit_code_of_a_simulation_tells_its_end(
    steps, failure, interrupted, code, stopped, said, simulate, capsys
):
    ended, result, asked = simulate(steps, failure, interrupted)
    assert ended == code and (stopped in result.stopped if stopped else result.stopped == "")
    err = capsys.readouterr().err
    assert said in err and (bool(err) == bool(said))
    assert asked == [True, False] and result.feedback and 0.0 <= result.wall_s < 60.0
    assert (result.open_loop is None) == interrupted


def test_an_open_loop_is_its_own_comparison(simulate):
    code, result, asked = simulate(10, None, False, "--open-loop")
    assert code == 0 and asked == [False] and not result.feedback
    assert result.open_loop is result.loop


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


def test_the_arguments_of_the_process_are_the_default(monkeypatch):
    seen = []

    def parse(argv):
        seen.append(argv)
        return SimpleNamespace(command=lambda args: 0)

    monkeypatch.setattr(arguments, "parse", parse)
    monkeypatch.setattr(sys, "argv", ["nh_control", "list"])
    assert main() == main(["new"]) == main([]) == 0
    assert seen == [["list"], ["new"], []]


def test_in_another_thread_nobody_is_interrupted():
    before, seen = signal.getsignal(signal.SIGINT), []

    def work():
        with Interruption() as made:
            seen.append((made.requested, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(False, before)]


def test_an_unreadable_recording_is_the_error_unless_a_node_failed(monkeypatch, tmp_path):
    def unreadable(*_):
        raise recording.RecordingError("no run")

    e = SimpleNamespace(scenario=None, model=None)
    monkeypatch.setattr(recording, "read", unreadable)
    assert run_scenario.read_recording(e, tmp_path, 1.0, "", "") == (None, "no run")
    assert run_scenario.read_recording(e, tmp_path, 1.0, "", "the plant ended") == (
        None,
        "the plant ended",
    )
    monkeypatch.setattr(recording, "read", lambda *_: "recorded")
    monkeypatch.setattr(recording, "result", lambda *given: given)
    found, error = run_scenario.read_recording(e, tmp_path, 1.5, "interrupted", "")
    assert found == ("recorded", e, 1.5, "interrupted") and error == ""


def test_figures_are_drawn_unless_empty_or_disabled(monkeypatch, tmp_path):
    from nh_control import figures
    from nh_control.runs import summary

    monkeypatch.setattr(summary, "summarize", lambda result: {"of": "it"})
    monkeypatch.setattr(figures, "save_all", lambda *_: {"path": "path.png"})
    progress = SimpleNamespace(phase=lambda text: None)
    for steps, no_plots, drawn in ((5, False, True), (5, True, False), (0, False, False)):
        result = SimpleNamespace(
            save=lambda file: None,
            loop=SimpleNamespace(trajectory=range(steps)),
            experiment=SimpleNamespace(scenario=SimpleNamespace(file="")),
        )
        files = run_scenario.save_results(result, tmp_path, Namespace(no_plots=no_plots), progress)
        assert ("path" in files) == drawn and set(files) >= {"results", "summary"}
    assert json.loads((tmp_path / output.SUMMARY).read_text()) == {"of": "it"}
