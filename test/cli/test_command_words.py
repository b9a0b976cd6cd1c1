"""The printed results of commands: tables and JSON of replays, identifications, comparisons and
studies.
"""

import json
import sys
from argparse import Namespace
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nh_control.cli import main
from nh_control.command import (
    arguments,
    compare_integrators,
    identify_parameters,
    list_scenarios,
    replay_run,
    run_study,
)
from nh_control.command.usage import UsageError, find_scenario
from nh_control.control.identification import Identification
from nh_control.geometry.spaces import Rn
from nh_control.integrators import INTEGRATORS
from nh_control.runs import output, recording
from nh_control.runs.measurements import Measurements
from nh_control.runs.replay import Replay
from nh_control.studies import Store, WorkersLost
from nh_control.studies.comparison import Drift, MethodRow, WorkPoint
from nh_control.studies.study_file import KEYS


def words(text):
    """Return the nonempty lines of a text with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


class Made(Exception):
    """Ends a call with its arguments."""


# --- replay --------------------------------------------------------------------------------------


def replayed(monkeypatch, lockstep, difference, stopped=""):
    """Return the summary of a replay of two steps with this difference in the second step."""
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
    monkeypatch.setattr(
        recording, "read", lambda *_: SimpleNamespace(missing=4, n_repeated_commands=5)
    )
    monkeypatch.setattr("nh_control.runs.replay.replay", lambda *_: outcome)
    run = SimpleNamespace(experiment=e, faults=(), lockstep=lockstep)
    return replay_run._of_run(Namespace(run="folder"), run)


@pytest.mark.parametrize("lockstep", [True, False])
def test_a_difference_stops_the_replay_of_a_lock_step_run(lockstep, monkeypatch):
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


@pytest.mark.parametrize("command", ["replay", "identify"])
def test_an_unreadable_recording_is_an_error_of_usage_with_a_remedy(
    command, monkeypatch, capsys, tmp_path
):
    assert main([command, str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path} is no folder of `nh_control run`; for a recording add --scenario" in said
    (tmp_path / "parameters.yaml").write_text("/**: {ros__parameters: {speed: 1}}")
    assert main([command, str(tmp_path)]) == 2
    assert "parameters.yaml is not of a run by `nh_control run`" in capsys.readouterr().err
    assert main([command, str(tmp_path / "none"), "--scenario", "pendulum_swing_up"]) == 2
    assert capsys.readouterr().err.startswith(f"nh_control: error: {tmp_path / 'none'}: ")
    monkeypatch.setitem(sys.modules, "rosbags", None)
    assert main([command, str(tmp_path)]) == 2
    assert "recordings need rosbags" in capsys.readouterr().err


def test_what_is_shown_of_a_summary(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    replay_run.show(
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


def test_what_a_robot_s_replay_says(monkeypatch):
    """Of three states, one of which was refused; one answer has no recorded command beside it."""
    from nh_control.loop import hardware_estimate, hardware_tracker
    from nh_control.runs import tracker_replay

    space = SimpleNamespace(nv=1)
    model = SimpleNamespace(
        inputs=("a", "b"),
        system=SimpleNamespace(space=space),
        state_space=SimpleNamespace(tangent_names=("x", "p_x")),
    )
    scenario = SimpleNamespace(
        name="arm",
        body=None,
        reference=lambda model, name: SimpleNamespace(name=name),
        tracker=lambda model, reference: None,
    )
    answers = [
        SimpleNamespace(command=SimpleNamespace(u=np.array(u), error=np.array(error)))
        for u, error in (([1.0, 2.0], [0.5, 9]), ([0.0, 0.0], [-1.5, 9]), ([3.0, 0.0], [0.0, 9]))
    ]
    told = np.array([[2.0, 0.0], [np.nan, np.nan], [0.0, 0.0]])
    outcome = tracker_replay.TrackerReplay(answers, told, ["early", "too old"])
    asked = []
    monkeypatch.setattr(tracker_replay, "replay", lambda *_: outcome)
    monkeypatch.setattr(
        hardware_tracker,
        "HardwareTracker",
        lambda sequence, estimate, timing, body: asked.append(timing),
    )
    monkeypatch.setattr(
        "nh_control.loop.reference_sequence.ReferenceSequence", lambda tracker: None
    )
    monkeypatch.setattr(
        hardware_estimate, "FilteredState", lambda model, *numbers: asked.append(numbers)
    )
    monkeypatch.setattr(hardware_estimate, "MeasuredState", lambda model: asked.append("measured"))
    states = type("States", (), {"u": np.zeros((7, 2)), "__len__": lambda self: 5})()
    monkeypatch.setattr(replay_run, "measured", lambda args: (scenario, model, states))
    summary = replay_run._of_robot(
        Namespace(reference="way", estimator="kalman", no_compensation=False, run="folder")
    )
    assert asked == [(1e-3, 1.0), hardware_tracker.Timing(compensate=True)]
    assert summary.pop("model") == str(model)
    assert summary == {
        "scenario": "arm", "reference": "way", "states": 5, "states_refused": 2,
        "last_refusal": "too old", "commands_recorded": 7, "commands_compared": 2,
        "differences": {"a": 3.0, "b": 2.0},
        "differences_rms": {"a": pytest.approx(5**0.5), "b": pytest.approx(2**0.5)},
        "largest_error": {"x": 1.5}, "stopped": "",
    }  # fmt: skip
    replay_run._of_robot(
        Namespace(reference="way", estimator="none", no_compensation=True, run="folder")
    )
    assert asked[2:] == ["measured", hardware_tracker.Timing(compensate=False)]


# --- identify ------------------------------------------------------------------------------------

FOUND = Identification(
    ("m",), np.array([1.0]), np.array([1.25]), np.array([[0.0625]]), 0.5, 0.25, 80, 0.125,
    (0.02, 0.001),
)  # fmt: skip


def test_what_was_identified_is_told(capsys, monkeypatch, snapshot):
    monkeypatch.setenv("COLUMNS", "200")
    assert identify_parameters._summary("arm", FOUND) == snapshot(name="numbers")
    identify_parameters._show("arm", FOUND)
    assert capsys.readouterr().out == snapshot(name="text")


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


def test_segments_contain_the_inputs_of_all_steps_between_known_states():
    known = np.array([0, 1, 3, 4, 5])
    states = SimpleNamespace(
        steps=known, q=known[:, None].astype(float), commands=10 + np.arange(5.0)[:, None]
    )
    experiment = SimpleNamespace(model=MODEL)
    args = Namespace(run="folder", segment=10.0)
    (piece,) = identify_parameters._of_run(args, experiment, states, ())
    assert piece.q.ravel().tolist() == list(known) and piece.velocity[0] == pytest.approx(10.0)
    assert [[(u[0], s) for u, s in inputs] for inputs in piece.inputs] == [
        [(10.0, 0.1)], [(11.0, 0.1), (12.0, 0.1)], [(13.0, 0.1)], [(14.0, 0.1)],
    ]  # fmt: skip
    short = Namespace(run="folder", segment=0.3)
    assert len(identify_parameters._of_run(short, experiment, states, ())) == 1


def robot(sent):
    """Return measurements every 10 ms, with commands at these times in ms."""
    times, q = np.arange(10) * 10**7, np.arange(10.0)[:, None]
    sent = np.array(sent) * 10**6
    u = 1 + np.arange(float(len(sent)))[:, None]
    return Measurements(times, times, q, q, u, sent, sent)


def test_of_a_robot_only_the_time_of_its_commands_counts():
    (piece,) = identify_parameters.of_robot(MODEL, robot([25, 75]), 1.0, 0.0)
    assert piece.q.ravel().tolist() == [3, 4, 5, 6, 7] and len(piece.inputs) == 4
    assert all(inputs == [(np.array([1.0]), pytest.approx(0.01))] for inputs in piece.inputs)
    with pytest.raises(ValueError, match="2 of 10 states lie between the first command"):
        identify_parameters.of_robot(MODEL, robot([25, 45]), 1.0, 0.0)
    (all_,) = identify_parameters.of_robot(MODEL, robot([]), 1.0, 0.0)
    assert len(all_.q) == 10


def test_options_of_identify():
    args = arguments.parse(["identify", "folder"])
    assert (args.segment, args.actuation, args.parameter, args.base) == (0.5, None, [], "fixed")
    assert identify_parameters.LEAST == 3


@pytest.mark.parametrize("actuation", [0.0, 0.03, None])
def test_a_delay_that_is_given_is_not_estimated(actuation, monkeypatch):
    given = []
    monkeypatch.setattr(identify_parameters, "stored_run", lambda args: None)
    monkeypatch.setattr(identify_parameters, "measured", lambda args: ("arm", MODEL, "states"))
    monkeypatch.setattr(
        identify_parameters, "of_robot", lambda *all_: given.append(all_) or "pieces"
    )
    args = Namespace(scenario="arm", segment=0.7, actuation=actuation)
    model, pieces = identify_parameters._pieces(args)
    if actuation is None:
        assert pieces(0.05) == "pieces" and given == [(MODEL, "states", 0.7, 0.05)]
    else:
        assert pieces == "pieces" and given == [(MODEL, "states", 0.7, actuation)]


# --- integrators and compare ---------------------------------------------------------------------


def test_each_measurement_of_an_integrator_has_its_column():
    one = INTEGRATORS["rdp_exp"]
    values = compare_integrators._values(MethodRow(one, "no", 4, 7, 1.23456), measured=True)
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
    assert compare_integrators._values(MethodRow(explicit), measured=False)["kind"] == "explicit"
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


def test_a_comparison_is_printed_in_numbers_and_words(capsys, monkeypatch, snapshot):
    monkeypatch.setenv("COLUMNS", "200")
    assert compare_integrators._numbers(COMPARED) == snapshot(name="numbers")
    compare_integrators._print_times(COMPARED)
    assert capsys.readouterr().out == snapshot(name="text")


def test_options_of_compare_reach_the_comparison(monkeypatch):
    from nh_control.studies import comparison, motion

    asked, motion_known = [], SimpleNamespace(duration=3.0)

    def motion_of(scenario, *given):
        asked.append(given)
        return motion_known

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
    assert (moved, list(chosen), step) == (motion_known, ["midpoint"], 0.07)
    with pytest.raises(Made) as table:
        main(["integrators", "snakeboard", "--step", "0.07"])
    assert table.value.args[1:] == (motion_known, 0.07)


def test_a_comparison_writes_numbers_and_two_figures(monkeypatch, capsys, tmp_path):
    from nh_control.figures import comparison as figures
    from nh_control.figures import style
    from nh_control.studies import comparison, motion

    drawn = []
    monkeypatch.setattr(motion, "motion_of", lambda *_: SimpleNamespace(duration=1.0))
    monkeypatch.setattr(comparison, "compare", lambda *_, **__: COMPARED)
    monkeypatch.setattr(figures, "work_precision", lambda found: ("work", found))
    monkeypatch.setattr(figures, "energy", lambda found: ("energy", found))
    monkeypatch.setattr(style, "save", lambda draw, file: drawn.append((file, draw())))
    words = ["compare", "snakeboard", "--output", str(tmp_path / "out"), "--json"]
    assert main(words) == 0
    assert drawn == [
        (tmp_path / "out" / "work_precision.png", ("work", COMPARED)),
        (tmp_path / "out" / "energy.png", ("energy", COMPARED)),
    ]
    numbers = json.loads(capsys.readouterr().out)
    assert numbers == json.loads((tmp_path / "out" / "numbers.json").read_text())
    assert numbers == compare_integrators._numbers(COMPARED)
    assert main(words) == 2 and "is not empty" in capsys.readouterr().err
    assert main([*words[:-1], "--overwrite"]) == 0
    said = capsys.readouterr().out
    assert said.endswith(f"{tmp_path / 'out'}: work_precision.png, energy.png, numbers.json\n")


# --- list ----------------------------------------------------------------------------------------


def test_the_file_of_a_scenario_and_targets_of_its_faults_are_listed():
    scenario = find_scenario("snakeboard")
    assert list_scenarios.explained(replace(scenario, file="board.py"))["file"] == "board.py"
    targets = set(list_scenarios.explained(scenario)["faults"]["targets"])
    space = scenario.model().system.space
    assert {*space.tangent_names, *space.velocity_names, "rotor_torque"} <= targets
    assert "x" not in targets  # what is measured of a place is in the axes of the board


def test_the_overview_shows_defaults_steps_and_limits(capsys, monkeypatch, snapshot):
    monkeypatch.setenv("COLUMNS", "200")
    list_scenarios._overview(
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
    assert capsys.readouterr().out == snapshot


def test_scenarios_that_cannot_be_loaded_are_listed_last(monkeypatch, capsys):
    monkeypatch.setattr(list_scenarios, "_all", lambda: ([], [UsageError("broken")]))
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
    assert list_scenarios._actuators(scenario, system) == {
        "force": (-1.0, 1.0, "N"), "height": (0.0, 2.0, "m"),
    }  # fmt: skip


# --- study ---------------------------------------------------------------------------------------


def test_a_study_uses_the_requested_workers(monkeypatch):
    from nh_control import studies

    monkeypatch.setattr(studies, "DaskCluster", lambda *given: ("cluster", *given))
    monkeypatch.setattr(studies, "ProcessPool", lambda *given: ("processes", *given))
    asked = [Namespace(scheduler=address, workers=3) for address in ("", "local")]
    assert [run_study.worker_pool(args) for args in asked] == [
        ("processes", 3), ("cluster", "local", 3),
    ]  # fmt: skip


def test_options_extend_a_study_file(tmp_path):
    given = ("--vary", "m=1,2", "--set", "step=0.1", "--set", "integrator=midpoint")
    args = arguments.parse(["study", "x.yml", *given])
    data = {
        "scenario": "arm",
        "vary": {"l": "1:2", "m": "3"},
        "set": {"duration": "1", "step": "0.2"},
        "seed": "4",
    }
    assert run_study.merged_settings(data, args) == {
        "scenario": "arm", "seed": "4", "vary": {"l": "1:2", "m": "1,2"},
        "set": {"duration": "1", "step": "0.1", "integrator": "midpoint"},
    }  # fmt: skip
    file = tmp_path / "swing.yml"
    file.write_text("scenario: pendulum_swing_up\nvary: {m: '1,2'}\n")
    study, folder = run_study.study_and_folder(arguments.parse(["study", str(file)]))
    assert study.total == 2 and folder is None


def test_every_option_of_a_study_is_a_key_of_its_file():
    words = (
        "--urdf arm.urdf --base floating --sampling sobol --points 3 --seeds 2 --seed 1 "
        "--accept-any-inertia --wheels left --success 0.1 --monitor --vary m=1:2 --set step=0.1 "
        "--disturb x:gust:1 --disturb y:gust:1 --fault noise=1 --fault x:bias=1"
    )
    data = run_study.merged_settings(
        {"scenario": "urdf"}, arguments.parse(["study", "urdf", *words.split()])
    )
    assert data == {
        "scenario": "urdf", "urdf": "arm.urdf", "base": "floating", "accept_any_inertia": True,
        "wheels": "left",
        "sampling": "sobol",
        "points": "3", "seeds": "2", "seed": "1", "success": "0.1", "monitor": "true",
        "vary": {"m": "1:2"}, "set": {"step": "0.1"}, "disturb": ["x:gust:1", "y:gust:1"],
        "fault": ["noise=1", "x:bias=1"],
    }  # fmt: skip
    assert set(data) == set(KEYS)
    file = {"scenario": "arm", "disturb": ["x:gust:1"], "fault": ["noise=1"], "seed": "4"}
    plain = run_study.merged_settings(file, arguments.parse(["study", "arm", "--seed", "5"]))
    assert plain == {**file, "seed": "5", "vary": {}, "set": {}}


@pytest.mark.parametrize(
    ("done", "failed", "runs", "code"),
    [(True, 0, 4, 0), (True, 3, 4, 0), (True, 4, 4, 1), (False, 0, 2, 130), (False, 2, 2, 130)],
)
def test_the_exit_code_of_a_study_tells_its_end(
    done, failed, runs, code, monkeypatch, capsys, tmp_path
):
    numbers = {"runs": runs, "failed": {"count": failed}}
    monkeypatch.setattr(
        run_study, "study_and_folder", lambda args: (SimpleNamespace(total=4), tmp_path)
    )
    monkeypatch.setattr(Store, "make", lambda folder, study: nullcontext())
    monkeypatch.setattr(run_study, "run_all", lambda *_: done)
    monkeypatch.setattr(
        run_study, "save_statistics", lambda *_: (numbers, {"statistics": "s.json"})
    )
    monkeypatch.setattr("nh_control.command.study_report.show", lambda *_: print("tables"))
    assert main(["study", "x"]) == code
    out, err = capsys.readouterr()
    assert out == f"tables\nresults in {tmp_path}/: runs.sqlite, s.json\n"
    how = f"{runs} of 4 runs are saved; `nh_control study {tmp_path}` makes the missing runs"
    assert done or err.splitlines()[-1] == f"nh_control: interrupted; {how}"
    assert not done or "interrupted" not in err
    assert main(["study", "x", "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    files = {"runs": str(tmp_path / "runs.sqlite"), "statistics": "s.json"}
    assert told == {**numbers, "output": str(tmp_path), "files": files}


def test_a_study_without_workers_fails_and_names_the_command_to_continue(
    monkeypatch, capsys, tmp_path
):
    def lost(*_):
        raise WorkersLost("nobody left")

    monkeypatch.setattr(
        run_study, "study_and_folder", lambda args: (SimpleNamespace(total=4), tmp_path)
    )
    monkeypatch.setattr(Store, "make", lambda folder, study: nullcontext())
    monkeypatch.setattr(run_study, "run_all", lost)
    assert main(["study", "x"]) == 1
    assert capsys.readouterr().err.splitlines()[-2:] == [
        f"nh_control: `nh_control study {tmp_path}` continues this study",
        "nh_control: error: nobody left",
    ]


@pytest.mark.parametrize("parquet", [True, False])
def test_a_study_is_written_as_parquet_on_request(parquet, monkeypatch, tmp_path):
    monkeypatch.setattr("nh_control.studies.statistics.statistics", lambda *_: {"runs": 1})
    store = SimpleNamespace(
        columns=lambda: {"run": []}, study=None, folder=tmp_path,
        write_parquet=lambda: tmp_path / "runs.parquet",
    )  # fmt: skip
    args = Namespace(parquet=parquet, no_plots=False)
    progress = SimpleNamespace(phase=lambda text: None)
    numbers, files = run_study.save_statistics(store, args, progress)
    assert numbers == {"runs": 1} and ("parquet" in files) == parquet
    assert json.loads((tmp_path / output.STATISTICS).read_text()) == numbers
