"""What the command hands on and what it ends with: options to the experiment and the nodes, exit
codes, and numbers to tables and JSON; without a run.
"""

import json
import signal
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from nh_control import cli
from nh_control.cli import main
from nh_control.command import arguments, comparing, identifying, listing, replaying, running
from nh_control.command.interruption import Interruption
from nh_control.command.usage import UsageError
from nh_control.command.values import bounded_integer, bounded_number, declared
from nh_control.control.identification import Identification
from nh_control.discrete.results import Conditioning, StepFailed
from nh_control.geometry.spaces import Rn
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics.parameters import Declaration
from nh_control.runs import launcher, output, recording
from nh_control.runs.comparison import Drift, MethodRow, WorkPoint
from nh_control.runs.experiment import Experiment
from nh_control.runs.measurements import Measurements
from nh_control.runs.replay import Replay

FAILED_STEP = StepFailed("arm", 0.1, "no luck", 1.0, 1.0, 25, Conditioning(1.0, 1.0, 1.0))


class Made(Exception):
    """Ends a call with what it was given."""


def words(text):
    """The lines of a text with single spaces, without empty ones."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


# --- what is handed on ---------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """Return f(*options) -> what `Experiment.make` is given, by names."""

    def make(scenario, reference, integrator, step_s, options, perturbation, integral, duration):
        raise Made(scenario.name, reference, integrator, step_s, options, perturbation, integral,
                   duration)  # fmt: skip

    monkeypatch.setattr(Experiment, "make", make)
    progress = SimpleNamespace(phase=lambda text: None)

    def ask(*options):
        args = arguments.parse(["simulate", "snakeboard", *options])
        with pytest.raises(Made) as made:
            running._experiment(args, progress)
        return made.value.args

    return ask


def test_an_experiment_is_the_scenario_s_own_unless_it_is_said(asked):
    name, reference, integrator, step, options, error, integral, duration = asked()
    assert (name, reference, integrator, step, integral, duration) == (
        "snakeboard", "", "", 0.0, False, 0.0,
    )  # fmt: skip
    assert (options.integrator, options.substeps, options.parameters) == ("", 1, {})
    assert (options.disturbances, options.faults) == ((), ())
    assert error == running.find("snakeboard").perturbation


def test_every_option_reaches_the_experiment(asked):
    _, reference, integrator, step, options, error, integral, duration = asked(
        "--reference", "forward", "--integrator", "rdp_exp", "--step", "0.02", "--duration", "1.5",
        "--integral", "--plant-integrator", "rdp_cay", "--plant-substeps", "3",
        "--plant-parameter", "m=1.1", "--plant-parameter", "J=2", "--disturb", "psi:gust:1",
        "--fault", "noise=0.1", "--fault", "psi:bias=1", "--perturb-heading", "0.25",
    )  # fmt: skip
    assert (reference, integrator, step, duration) == ("forward", "rdp_exp", 0.02, 1.5)
    assert integral is True
    assert (options.integrator, options.substeps) == ("rdp_cay", 3)
    assert options.parameters == {"m": 1.1, "J": 2.0}
    assert [str(fault) for fault in options.faults] == ["positions:noise=0.1", "psi:bias=1.0"]
    assert [one.target for one in options.disturbances] == ["psi"]
    assert (error.heading, error.position) == (
        0.25,
        running.find("snakeboard").perturbation.position,
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), launcher.Options(1.0, False, True, True)),
        (
            ("--speed-factor", "0", "--lockstep", "--no-display", "--no-record"),
            launcher.Options(0.0, True, False, False),
        ),
        (("--speed-factor", "2.5"), launcher.Options(2.5, False, True, True)),
    ],
)
def test_options_of_nodes_reach_them(options, expected, monkeypatch, tmp_path):
    required = []

    def run(experiment, given, folder, progress):
        raise Made(given)

    monkeypatch.setattr(launcher, "require_ros", lambda record: required.append(record))
    monkeypatch.setattr(launcher, "run", run)
    model = SimpleNamespace(h=0.1)
    monkeypatch.setattr(running, "_experiment", lambda *_: SimpleNamespace(steps=1, model=model))
    monkeypatch.setattr(running, "_folder", lambda *_: tmp_path)
    with pytest.raises(Made) as made:
        main(["run", "snakeboard", *options])
    assert made.value.args == (expected,) and required == [expected.record]
    assert launcher.Options() == launcher.Options(1.0, False, False, True)


def test_json_needs_a_recording(monkeypatch, capsys):
    monkeypatch.setattr(launcher, "require_ros", lambda record: None)
    assert main(["run", "snakeboard", "--json", "--no-record"]) == 2
    assert "leave --no-record out" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--speed-factor", "--step", "--duration"])
def test_times_and_speeds_are_finite(option, capsys):
    for text in ("-1", "nan", "inf"):
        with pytest.raises(SystemExit):
            main(["run", "snakeboard", option, text])
        assert "must be a finite number" in capsys.readouterr().err


def test_numbers_of_options():
    assert (bounded_number(0)("0"), bounded_integer(1)("1")) == (0.0, 1)
    for read, text, said in (
        (bounded_number(0, open_=True), "0", "must be a finite number > 0, got '0'"),
        (bounded_number(0), "-0.1", "must be a finite number >= 0, got '-0.1'"),
        (bounded_number(), "inf", "must be a finite number, got 'inf'"),
        (bounded_integer(2), "1", "must be an integer >= 2, got '1'"),
    ):
        with pytest.raises(arguments.argparse.ArgumentTypeError, match=said):
            read(text)


def test_declared_values_are_read_as_they_are_declared():
    assert declared(Declaration("lengths", (1.0,), "m", ""), "Arm")("2") == (2.0,)
    assert declared(Declaration("lengths", (1.0, 2.0), "m", ""), "Arm")("2,3") == (2.0, 3.0)
    seed = declared(Declaration("seed", 0, "", "", at_least=0), "Arm")("3")
    assert seed == 3 and type(seed) is int
    for text in ("-1", "1.5"):
        with pytest.raises(arguments.argparse.ArgumentTypeError):
            declared(Declaration("seed", 0, "", "", at_least=0), "Arm")(text)


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
            return SimpleNamespace(failure=failure, trajectory=range(steps), feedback=feedback)

        def enter(self):
            kept.append(self)
            return self

        experiment = SimpleNamespace(steps=10, run=loop)
        monkeypatch.setattr(Interruption, "__enter__", enter)
        monkeypatch.setattr(Interruption, "__exit__", lambda self, *_: None)
        monkeypatch.setattr(running, "_experiment", lambda *_: experiment)
        monkeypatch.setattr(running, "_folder", lambda *_: tmp_path)
        monkeypatch.setattr(running, "_save", lambda result, *_: kept.append(result) or {})
        monkeypatch.setattr(running, "_report", lambda *_: None)
        return main(["simulate", "pendulum_swing_up", *options]), kept[1], asked

    return run


@pytest.mark.parametrize(
    ("steps", "failure", "interrupted", "code", "stopped", "said"),
    [
        (10, None, False, 0, "", ""),
        (4, FAILED_STEP, False, 1, "no luck", "error: arm"),
        (4, None, True, 130, "interrupted after 4 of 10 steps", "interrupted; what there is"),
        (10, None, True, 130, "", "interrupted; what there is, is saved"),
    ],
)
def test_a_simulation_ends_with_the_code_of_what_happened(
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
def test_what_cannot_be_used_or_prepared_is_wrong_usage(error, monkeypatch, capsys):
    def fail(*_):
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


def test_the_arguments_are_those_of_the_process_unless_they_are_given(monkeypatch):
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


def test_a_recording_that_cannot_be_read_is_the_error_unless_there_is_another(
    monkeypatch, tmp_path
):
    def unreadable(*_):
        raise recording.RecordingError("no run")

    e = SimpleNamespace(scenario=None, model=None)
    monkeypatch.setattr(recording, "read", unreadable)
    assert running._recorded(e, tmp_path, 1.0, "", "") == (None, "no run")
    assert running._recorded(e, tmp_path, 1.0, "", "the plant ended") == (None, "the plant ended")
    monkeypatch.setattr(recording, "read", lambda *_: "recorded")
    monkeypatch.setattr(recording, "result", lambda *given: given)
    found, error = running._recorded(e, tmp_path, 1.5, "interrupted", "")
    assert found == ("recorded", e, 1.5, "interrupted") and error == ""


def test_results_are_drawn_unless_there_is_nothing_or_nobody_wants_it(monkeypatch, tmp_path):
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
        files = running._save(result, tmp_path, SimpleNamespace(no_plots=no_plots), progress)
        assert ("path" in files) == drawn and set(files) >= {"results", "summary"}
    assert json.loads((tmp_path / output.SUMMARY).read_text()) == {"of": "it"}


def test_json_has_the_summary_the_folder_and_the_files(monkeypatch, capsys, tmp_path):
    from nh_control.runs import summary

    monkeypatch.setattr(summary, "summarize", lambda result: {"steps": 3})
    running._report(None, {"results": "r.npz"}, tmp_path, SimpleNamespace(json=True))
    told = json.loads(capsys.readouterr().out)
    assert told == {"steps": 3, "output": str(tmp_path), "files": {"results": "r.npz"}}


# --- replay --------------------------------------------------------------------------------------


def replayed(monkeypatch, lockstep, difference, stopped=""):
    """Summary of a replay of two steps with that difference in the second one."""
    space = SimpleNamespace(names=("x", "y"), velocity_names=("x_dot", "y_dot"))
    e = SimpleNamespace(
        scenario=SimpleNamespace(name="arm"),
        plant="the plant",
        model=SimpleNamespace(system=SimpleNamespace(space=space)),
        tracker=SimpleNamespace(reference=SimpleNamespace(name="way")),
    )
    rows = np.zeros((3, 2))
    rows[2] = difference, 0.25 * difference
    outcome = Replay(np.arange(3), rows, 2 * rows, stopped)
    monkeypatch.setattr(recording, "read", lambda *_: SimpleNamespace(missing=4, held=5))
    monkeypatch.setattr("nh_control.runs.replay.replay", lambda *_: outcome)
    run = SimpleNamespace(experiment=e, faults=(), lockstep=lockstep)
    return replaying._of_run(SimpleNamespace(run="folder"), run)


@pytest.mark.parametrize("lockstep", [True, False])
def test_a_replay_of_a_lock_step_run_that_differs_is_stopped_by_it(lockstep, monkeypatch):
    summary = replayed(monkeypatch, lockstep, 0.5)
    stopped = summary.pop("stopped")
    assert ("differs from step 2 on" in stopped) if lockstep else stopped == ""
    assert summary == {
        "scenario": "arm",
        "plant": "the plant",
        "reference": "way",
        "lockstep": lockstep,
        "steps": 2,
        "states_missing": 4,
        "commands_missing": 5,
        "largest_difference": 1.0,
        "first_step_with_difference": 2,
        "differences": {"x": 0.5, "y": 0.125, "x_dot": 1.0, "y_dot": 0.25},
    }
    assert replayed(monkeypatch, lockstep, 0.0)["stopped"] == ""
    assert replayed(monkeypatch, lockstep, 0.0, "failed")["stopped"] == "failed"


def test_what_is_shown_of_a_summary(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    replaying.show(
        {"states_missing": 0, "largest_difference": 0.0, "differences": {"x": 0.5, "y": 1.25},
         "stopped": "", "first": None, "lockstep": False}
    )  # fmt: skip
    assert words(capsys.readouterr().out) == [
        "states missing 0", "largest difference 0", "differences x 0.5, y 1.25", "lockstep False",
    ]  # fmt: skip


def test_first_and_largest_differences_are_of_configurations_and_velocities():
    zero, rows = np.zeros((3, 1)), np.array([[0.0], [0.0], [2.0]])
    steps = np.array([4, 6, 9])
    assert Replay(steps, rows, zero).first == Replay(steps, zero, rows).first == 9
    assert Replay(steps, rows, zero).largest == Replay(steps, zero, rows).largest == 2.0
    assert Replay(steps, zero, zero).first is None


# --- identify ------------------------------------------------------------------------------------

FOUND = Identification(
    ("m",), np.array([1.0]), np.array([1.25]), np.array([[0.0625]]), 0.5, 0.25, 80, 0.125,
    (0.02, 0.001),
)  # fmt: skip


def test_what_was_identified_is_told(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert identifying._summary("arm", FOUND) == {
        "model": "arm",
        "parameters": {"m": {"start": 1.0, "value": 1.25, "deviation": 0.25}},
        "covariance": [[0.0625]],
        "delay_s": {"value": 0.02, "deviation": 0.001},
        "residual_rms_before": 0.5,
        "residual_rms": 0.25,
        "residuals": 80,
        "residual_correlation": 0.125,
    }
    identifying._show("arm", FOUND)
    assert words(capsys.readouterr().out) == [
        "arm",
        "parameter start estimate standard deviation",
        "m 1 1.25 0.25",
        "residuals of 80 numbers: root mean square 0.5 -> 0.25 (m, rad), correlation of one with "
        "the next 0.12",
        "commands act 20 +- 1 ms after their recording",
    ]


class Space:
    """A line."""

    origin = np.zeros(1)

    @staticmethod
    def velocity(q0, q1):
        return q1 - q0


MODEL = SimpleNamespace(
    h=0.1,
    system=SimpleNamespace(space=Space),
    state_space=SimpleNamespace(origin=np.zeros(2)),
    idle=lambda x: np.zeros(1),
)


def test_pieces_of_a_run_have_the_inputs_of_all_steps_between_known_states(monkeypatch):
    known = (0, 1, 3, 4, 5)
    run = SimpleNamespace(
        q=np.arange(6.0)[:, None], inputs=10 + np.arange(5.0)[:, None], known=known
    )
    monkeypatch.setattr(recording, "read", lambda *_: run)
    e = SimpleNamespace(scenario=None, model=MODEL)
    args = SimpleNamespace(run="folder", segment=10.0)
    (piece,) = identifying._of_run(args, SimpleNamespace(experiment=e))
    assert piece.q.ravel().tolist() == list(known) and piece.velocity[0] == pytest.approx(10.0)
    assert [[(u[0], s) for u, s in inputs] for inputs in piece.inputs] == [
        [(10.0, 0.1)], [(11.0, 0.1), (12.0, 0.1)], [(13.0, 0.1)], [(14.0, 0.1)],
    ]  # fmt: skip
    short = SimpleNamespace(run="folder", segment=0.3)
    assert len(identifying._of_run(short, SimpleNamespace(experiment=e))) == 1


def robot(sent):
    """Measurements every 10 ms, with commands at these times in ms."""
    times, q = np.arange(10) * 10**7, np.arange(10.0)[:, None]
    sent = np.array(sent) * 10**6
    u = 1 + np.arange(float(len(sent)))[:, None]
    return Measurements(times, times, q, q, np.ones(10, dtype=bool), u, sent, sent)


def test_of_a_robot_only_the_time_of_its_commands_counts():
    (piece,) = identifying.of_robot(MODEL, robot([25, 75]), 1.0, 0.0)
    assert piece.q.ravel().tolist() == [3, 4, 5, 6, 7] and len(piece.inputs) == 4
    assert all(inputs == [(np.array([1.0]), pytest.approx(0.01))] for inputs in piece.inputs)
    with pytest.raises(ValueError, match="2 of 10 states lie between the first command"):
        identifying.of_robot(MODEL, robot([25, 45]), 1.0, 0.0)
    (all_,) = identifying.of_robot(MODEL, robot([]), 1.0, 0.0)
    assert len(all_.q) == 10


def test_options_of_identify():
    args = arguments.parse(["identify", "folder"])
    assert (args.segment, args.actuation, args.parameter, args.base) == (0.5, None, [], "fixed")
    assert identifying.LEAST == 3
    for text in ("0", "-1", "inf"):
        assert main(["identify", "folder", "--segment", text]) == 2


@pytest.mark.parametrize("actuation", [0.0, 0.03, None])
def test_a_delay_that_is_given_is_not_estimated(actuation, monkeypatch):
    given = []
    monkeypatch.setattr(identifying, "stored_run", lambda args: None)
    monkeypatch.setattr(identifying, "measured", lambda args: ("arm", MODEL, "states"))
    monkeypatch.setattr(identifying, "of_robot", lambda *all_: given.append(all_) or "pieces")
    args = SimpleNamespace(segment=0.7, actuation=actuation)
    model, pieces = identifying._pieces(args)
    if actuation is None:
        assert pieces(0.05) == "pieces" and given == [(MODEL, "states", 0.7, 0.05)]
    else:
        assert pieces == "pieces" and given == [(MODEL, "states", 0.7, actuation)]


# --- integrators and compare ---------------------------------------------------------------------


def test_what_is_measured_of_an_integrator_has_its_column():
    one = INTEGRATORS["rdp_exp"]
    values = comparing._values(MethodRow(one, "no", 4, 7, 1.23456), measured=True)
    assert values == {
        "name": "rdp_exp",
        "order": one.order,
        "kind": "implicit",
        "symmetric": one.symmetric,
        "preserves": ", ".join(one.preserves),
        "state": 4,
        "unknowns": 7,
        "us_per_step": 1.23,
        "refused": "no",
        "source": one.source,
    }
    explicit = next(one for one in INTEGRATORS.values() if one.explicit)
    assert comparing._values(MethodRow(explicit), measured=False)["kind"] == "explicit"
    assert any(len(one.preserves) > 1 for one in INTEGRATORS.values())


COMPARED = SimpleNamespace(
    motion=SimpleNamespace(
        system=SimpleNamespace(name="bowl"),
        duration=2.0,
        intervals=3,
        **{name: np.array([[float(i)]]) for i, name in enumerate("qvu")},
    ),
    uncertainty=1e-12,
    step_s=0.05,
    work={
        "good": (WorkPoint(8, 1e-3, 1e-5), WorkPoint(16, 2e-3, 1e-7)),
        "bad": (WorkPoint(8, 5e-3, 1.0),),
    },
    drifts={"good": Drift(np.arange(2), np.array([0.5, -2.0]), np.array([0.25, 0.125]))},
    refused={"odd": "symmetry"},
)


def test_what_was_compared_is_told_in_numbers_and_words(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    numbers = comparing._numbers(COMPARED)
    assert numbers["motion"] == {"q": [[0.0]], "v": [[1.0]], "u": [[2.0]], "duration_s": 2.0}
    assert numbers["work"]["good"][1] == {"setting": 16, "seconds": 2e-3, "error": 1e-7}
    assert (numbers["energy_step_s"], numbers["uncertainty"]) == (0.05, 1e-12)
    assert numbers["largest_energy_error"] == {"good": 2.0}
    assert numbers["largest_constraint"] == {"good": 0.25}
    assert numbers["refused"] == {"odd": "symmetry"} and numbers["system"] == "bowl"
    comparing._print_times(COMPARED)
    assert words(capsys.readouterr().out)[1:] == [
        "good 1.000 2.000 - - 2.0e+00", "bad - - - - -", "odd: symmetry",
    ]  # fmt: skip


def test_options_of_compare_reach_the_comparison(monkeypatch):
    from nh_control.runs import comparison, motion

    asked = []

    def motion_of(scenario, *given):
        asked.append(given)
        return "motion"

    def made(*given, **_):
        raise Made(*given)

    monkeypatch.setattr(motion, "motion_of", motion_of)
    monkeypatch.setattr(output, "folder", lambda *given: asked.append(given))
    monkeypatch.setattr(comparison, "compare", made)
    monkeypatch.setattr(comparison, "method_table", made)
    with pytest.raises(Made) as compared:
        main(["compare", "snakeboard", "--duration", "3", "--reference", "forward", "--step",
              "0.07", "--methods", "midpoint", "--output", "out", "--overwrite"])  # fmt: skip
    assert asked == [(3.0, "forward"), ("snakeboard-comparison", "out", True)]
    moved, chosen, step = compared.value.args
    assert (moved, list(chosen), step) == ("motion", ["midpoint"], 0.07)
    with pytest.raises(Made) as table:
        main(["integrators", "snakeboard", "--step", "0.07"])
    assert table.value.args[1:] == ("motion", 0.07)


# --- list ----------------------------------------------------------------------------------------


def test_a_scenario_is_explained_with_all_that_can_be_chosen():
    scenario = running.find("snakeboard")
    told = listing.explained(scenario)
    assert (told["scenario"], told["step_s"], told["file"]) == (
        "snakeboard", scenario.step_s, None,
    )  # fmt: skip
    assert [one["name"] for one in told["initial_error"]] == [
        "position", "heading", "momentum", "seed",
    ]  # fmt: skip
    (rotor, _) = told["inputs"]
    assert rotor == {"name": "rotor_torque", "lower": -20.0, "upper": 20.0, "unit": "N m"}
    mass = next(one for one in told["parameters"] if one["name"] == "m")
    assert mass["bound"] == "> 0" and mass["unit"] == "kg"
    targets = {one["name"]: one["values"] for one in told["disturbances"]["targets"]}
    assert list(targets["psi"].values()) == ["N m"] and len(targets["base_link"]) > 1
    gust = told["disturbances"]["kinds"]["gust"]["values"]
    assert [one["name"] for one in gust] == ["start", "duration"]
    kinds = told["faults"]["kinds"]
    assert kinds["delay"]["default_target"] == "measurements"
    assert kinds["lag"]["default_target"] == "commands"
    assert "." not in kinds["lag"]["description"][-1:]
    assert told["faults"]["targets"][:4] == [
        "measurements", "positions", "velocities", "commands",
    ]  # fmt: skip
    space, told = scenario.model().system.space, told["faults"]["targets"]
    assert {*space.tangent_names, *space.velocity_names, "rotor_torque"} <= set(told)
    assert "x" not in told  # what is measured of a place is in the axes of the board


def test_the_overview_says_defaults_steps_and_limits(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    listing._overview(
        {
            "arm": {
                "title": "An arm",
                "references": ["up", "down"],
                "integrators": ["midpoint"],
                "step_s": 0.025,
                "parameters": {"m": 1.5, "lengths": (0.5, 0.25)},
                "actuators": {"torque": (-2.0, 3.0, "N m"), "pull": (0.0, np.inf, "")},
            }
        }
    )
    assert words(capsys.readouterr().out) == [
        "arm: An arm",
        "references up (default), down",
        "integrators midpoint (default)",
        "step 0.025 s",
        "parameters m = 1.5, lengths = 0.5,0.25",
        "actuator torque, -2 ... 3 N m",
        "actuator pull, 0 ... inf",
    ]


def test_what_cannot_be_loaded_is_told_after_the_others(monkeypatch, capsys):
    monkeypatch.setattr(listing, "_all", lambda: ([], [UsageError("broken")]))
    assert main(["list", "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out) == {} and err == "nh_control: error: broken\n"


def test_moved_coordinates_are_inputs_too():
    system = SimpleNamespace(
        inputs=("force",),
        prescribed=("height",),
        input_bounds=np.array([[-1.0, 1.0], [0.0, 2.0]]),
        input_units=("N",),
        nu=1,
        space=Rn("height"),
    )
    scenario = SimpleNamespace(body=None, joints=[SimpleNamespace(coordinate="height", unit="m")])
    assert listing._actuators(scenario, system) == {
        "force": (-1.0, 1.0, "N"), "height": (0.0, 2.0, "m"),
    }  # fmt: skip
