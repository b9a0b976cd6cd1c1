"""What comes of a run, without nodes: its summary in numbers and words, and the same run read back
from a recording.
"""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from nh_control import scenarios
from nh_control.command import run_scenario
from nh_control.figures.style import save
from nh_control.numerics.progress import Progress
from nh_control.runs import output
from nh_control.runs.experiment import Experiment, Result
from nh_control.runs.recording import COUNTS, JITTER, Recording
from nh_control.runs.summary import summarize
from nh_control.scenarios import MonitoredOutput, PlantOptions, disturbance, fault

pytest.importorskip("rosbags", reason="needs rosbags: install the extra 'ros'")
from nh_control.runs import recording  # noqa: E402


@pytest.fixture(scope="module")
def board():
    """Half a second of the snakeboard under LQR; the plant takes two steps per command."""
    return Experiment.make(
        scenarios.get("snakeboard"), options=PlantOptions(substeps=2), duration_s=0.5
    )


@pytest.fixture(scope="module")
def run(board):
    return Result(board, board.run(), board.run(feedback=False), wall_s=2.0)


def recorded(run, steps=None, **changes):
    """Return the recording of the first steps of a run."""
    trajectory, model = run.loop.trajectory, run.experiment.model
    steps = len(trajectory) if steps is None else steps
    states = trajectory.states[: steps + 1]
    q, v = (np.array([part(x) for x in states]) for part in (model.configuration, model.velocity))
    inputs, known = trajectory.inputs[:steps], tuple(range(steps + 1))
    whole = Recording(q, v, inputs, 0, 0.25, {}, known, 0, steps - 1, steps)
    return replace(whole, **changes)


def test_the_summary_has_the_numbers_of_the_run(board, run):
    summary, total = summarize(run), run.configuration_error()
    error, energy = summary["error"], summary["energy_J"]
    assert (error["initial"], error["final"], error["largest"]) == (
        total[0],
        total[-1],
        total.max(),
    )
    assert error["reduction"] == pytest.approx(total[0] / total[-1])
    opened = run.configuration_error(run.open_loop)
    assert error["open_loop_final"] == opened[-1] != total[-1]
    for part in run.error_parts:
        told = error["parts"][part.name]
        assert (told["initial"], told["final"]) == (part.values[0], part.values[-1])
        assert told["rms"] == pytest.approx(np.linalg.norm(part.values) / len(part.values) ** 0.5)
    assert (energy["initial"], energy["final"]) == tuple(run.loop.energy[[0, -1]])
    assert energy["reference_final"] == board.model.energy(run.targets[-1])
    assert energy["reference_final"] != board.model.energy(run.targets[0])
    for i, told in enumerate(summary["inputs"].values()):
        assert told["max"] == np.abs(run.loop.trajectory.inputs[:, i]).max()
        assert told["saturated_steps"] == run.loop.saturated[:, i].sum()
        assert told["limits"] == [None if np.isinf(x) else x for x in board.tracker.limits[i]]
    assert summary["constraint_residual_max_m"] == np.abs(run.loop.constraint).max()
    assert (summary["steps"], summary["steps_planned"]) == (board.steps, board.steps)


def watched(run, names, values):
    """Return the run of a scenario whose monitored values (N, names) must be above 1 m."""
    monitor = MonitoredOutput("gap", names, "m", lambda p, q, v, u, w: values[0], 1.0, "too near")
    scenario = replace(run.experiment.scenario, monitor=monitor)
    found = replace(run, experiment=replace(run.experiment, scenario=scenario))
    found.__dict__["monitored"] = values
    return found


def test_the_summary_has_the_least_monitored_value_and_the_steps_below_the_limit(run):
    steps = len(run.loop.trajectory)
    values = np.full((steps, 2), 3.0)
    values[4:6, 0] = 1.0, 0.5  # the limit itself is too little
    found = watched(run, ("left", "right"), values)
    summary, common = summarize(found), {"unit": "m", "warning": "too near"}
    assert summary["monitored"] == {
        "left gap": {"min": 0.5, "steps_with_warning": 2, **common},
        "right gap": {"min": 3.0, "steps_with_warning": 0, **common},
    }
    assert Result.monitored.func(found).shape == (steps, 2)
    with pytest.raises(ValueError, match="snakeboard has no monitor"):
        summarize(run) | {"all": run.monitored}


def test_a_run_without_a_step_has_a_summary_and_no_figures(board, tmp_path):
    begun = board.run(stop=lambda: True)
    summary = summarize(watched(Result(board, begun, None, 0.1, stopped="at once"), ("a",), []))
    assert summary["constraint_residual_max_m"] == 0.0 and summary["monitored"] == {}
    assert summary["steps"] == 0 and summary["energy_J"]["final"] == begun.energy[0]
    begun, args = Result(board, begun, None, 0.1), Namespace(no_plots=False)
    _, files = run_scenario.save_results(begun, tmp_path, args, Progress())
    assert set(files) == {"results", "summary"}


def test_a_run_read_back_is_the_run(board, run):
    counts = {name: str(3 + i) for i, name in enumerate(COUNTS)}
    back = recording.result(recorded(run, diagnostics=counts), board, 2.0)
    assert back.stopped == "" and back.ros["difference_to_simulation"] < 1e-12
    assert [back.ros[name] for name in COUNTS] == [3, 4, 5, 6, 7, 8]
    assert back.ros["rate_hz"] == pytest.approx((board.steps - 1) / 0.25)
    for name in ("errors", "energy", "constraint"):
        np.testing.assert_allclose(
            getattr(back.loop, name), getattr(run.loop, name), rtol=1e-9, atol=1e-12
        )
    np.testing.assert_array_equal(back.loop.saturated, run.loop.saturated)


@pytest.mark.parametrize("step", [0, 7, -1])
def test_the_difference_to_the_simulation_is_the_largest_of_all_states(board, run, step):
    back = recorded(run)
    back.v[step, 0] += 0.5
    found = recording.result(back, board, 2.0).ros["difference_to_simulation"]
    moved = board.model.state(back.q[step], back.v[step]) - run.loop.trajectory.states[step]
    assert found == pytest.approx(np.abs(moved).max(), rel=1e-9)


@pytest.fixture(scope="module")
def windy():
    """A plant that differs from the model, in wind; its rotor lags behind the commands."""
    options = PlantOptions(
        "", 2, {"m": 1.05}, (disturbance.parse("base_link:gust:1,0,0"),),
        (fault.parse("rotor_torque:lag=0.02"),),
    )  # fmt: skip
    experiment = Experiment.make(scenarios.get("snakeboard"), options=options, duration_s=0.2)
    return Result(experiment, experiment.run(), experiment.run(feedback=False), 1.0)


def test_a_run_of_another_plant_with_wind_and_faults_is_read_back(windy):
    loop = windy.loop
    told = recorded(windy, inputs=loop.commands, missing=3, n_repeated_commands=2)
    back = recording.result(told, windy.experiment, 2.0)
    assert back.wall_s == 2.0 and back.ros["states_missing_in_recording"] == 3
    assert not np.array_equal(loop.commands, loop.trajectory.inputs)
    np.testing.assert_array_equal(back.loop.commands, loop.commands)
    for name in ("errors", "energy", "constraint"):
        np.testing.assert_allclose(
            getattr(back.loop, name), getattr(loop, name), rtol=1e-9, atol=1e-12
        )
    for mine, its in ((back.loop, loop), (back.open_loop, windy.open_loop)):
        np.testing.assert_allclose(
            mine.trajectory.states, its.trajectory.states, rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(
            mine.trajectory.inputs, its.trajectory.inputs, rtol=0, atol=1e-12
        )
    assert back.ros["difference_to_simulation"] < 1e-12


def test_saturation_counts_commands_not_actuator_faults(windy):
    """A lagging rotor reaches its limit later than its command."""
    _, upper = windy.experiment.tracker.limits.T
    inputs = np.tile([upper[0], 0.0], (3, 1))
    loop = recording.closed_loop(recorded(windy, 3, inputs=inputs), windy.experiment)
    assert (loop.trajectory.inputs[:, 0] < upper[0]).all()
    np.testing.assert_array_equal(loop.saturated, [[True, False]] * 3)


def test_a_step_that_cannot_be_repeated_has_no_residual(board, run):
    inputs = run.loop.trajectory.inputs.copy()
    inputs[7] = 1e9
    loop = recording.closed_loop(recorded(run, inputs=inputs), board)
    missing = np.isnan(loop.constraint).any(axis=1)
    assert missing[7] and missing.sum() == 1
    summary = summarize(replace(run, loop=loop))
    assert summary["constraint_residual_max_m"] == np.nanmax(np.abs(loop.constraint))


def test_inputs_at_either_limit_are_saturated(board, run):
    lower, upper = board.tracker.limits.T
    inputs = np.array([lower, [0.0, upper[1]], [np.nextafter(upper[0], 0.0), 0.0]])
    loop = recording.closed_loop(recorded(run, 3, inputs=inputs), board)
    np.testing.assert_array_equal(loop.saturated, [[True, True], [False, True], [False, False]])


def test_commands_that_are_not_recorded_and_a_controller_that_ends_are_warned_of(board, run):
    def warned(got, last, fallback):
        counts = {"commands_accepted": got - 2, "commands_rejected": 2, "fallback_steps": fallback}
        told = recorded(run, diagnostics={k: str(n) for k, n in counts.items()})
        told = replace(told, last_command=last, n_command_messages=board.steps)
        return run_scenario.command_warnings(recording.result(told, board, 1.0))

    steps = board.steps
    assert warned(steps, steps - 1, 0) == warned(steps, 0, 0) == ("", "")
    lost, silent = warned(steps + 7, steps - 1, 0)
    assert lost.startswith("warning: the recording lacks 7 commands that the plant received")
    assert silent == ""
    lost, silent = warned(steps, 0, steps - 5)
    h = board.model.h
    assert lost == "" and f"no command from the controller since t = {h:.4g} s" in silent
    assert f"the fallback acted in {steps - 5} of the last {steps - 1} steps" in silent


def test_a_short_recording_reports_its_end_and_the_last_diagnostics(board, run):
    said = {"message": "failed: step 7"}
    early = recording.result(recorded(run, 6, diagnostics=said), board, 1.0)
    assert early.stopped.startswith(f"after 6 of {board.steps} steps: ")
    assert early.stopped.endswith("failed: step 7")
    assert early.ros["difference_to_simulation"] < 1e-12  # as far as there is one
    assert [early.ros[name] for name in (*COUNTS, *JITTER)] == [0] * 9
    last = recording.result(recorded(run, board.steps - 1), board, 1.0).stopped
    assert last.startswith(f"after {board.steps - 1} of {board.steps} steps: ")
    ended = recording.result(recorded(run, wall_s=0.0), board, 1.0, "the recorder died")
    assert ended.stopped.startswith(
        f"after {board.steps} of {board.steps} steps: the recorder died"
    )
    assert ended.stopped.endswith(": none")
    assert ended.ros["rate_hz"] == 0.0


def test_a_gust_acts_in_its_own_steps_only(board):
    gust = disturbance.parse("psi:gust:0.5,start=0.1,duration=0.2")
    pushed = replace(board, options=PlantOptions(disturbances=(gust,)))
    h, force = pushed.model.h, pushed.disturbance[:, 0]
    first, last = round(0.1 / h), round(0.3 / h)
    assert len(force) == pushed.steps and not force[:first].any() and not force[last:].any()
    np.testing.assert_array_equal(force[first:last], 0.5)


def test_a_stopped_run_keeps_its_finished_steps(board):
    """A native run of few steps is asked before its first one only."""
    begun = board.run(stop=lambda: True)
    assert len(begun.trajectory) == 0 and begun.failure is None
    np.testing.assert_array_equal(begun.trajectory.states, [board.x0])
    assert len(begun.errors) == len(begun.energy) == 1
    assert len(begun.saturated) == len(begun.constraint) == 0
    seen = []
    board.run(progress=seen.append)
    assert seen[0] == 0 and seen == sorted(set(seen)) and seen[-1] <= board.steps


def test_a_result_folder_is_new_and_empty_or_refused(tmp_path, monkeypatch):
    """Overwriting removes the files of a run or a study only."""
    monkeypatch.chdir(tmp_path)
    first, second = (output.folder("board", None) for _ in range(2))
    assert first != second and first.is_dir() and second == first.with_name("board-2")
    assert first == Path("nh_control_output/board")
    with pytest.raises(ValueError, match="add --output DIR"):
        output.folder("board", None, overwrite=True)
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(FileExistsError, match="is a file"):
        output.folder("board", "file")
    for _ in range(2):  # it is still empty
        assert output.folder("board", "new/deep").is_dir()
    mine = {"mine.txt", "photo.png", "thesis/plant.log", "thesis/other.txt"}
    ours = {"results.npz", "summary.json", "parameters.yaml", "study.yaml", "runs.sqlite",
            "runs.parquet", "statistics.json", "recording/run.mcap", "logs/plant.log"}  # fmt: skip
    out = tmp_path / "new" / "deep"
    for name in (*mine, *ours):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("something")
    save(Figure, out / "tension.png")
    with pytest.raises(FileExistsError, match="not empty.*--overwrite"):
        output.folder("board", "new/deep")
    assert output.folder("board", "new/deep", overwrite=True) == Path("new/deep")
    assert {str(one.relative_to(out)) for one in out.rglob("*") if one.is_file()} == mine


@pytest.mark.parametrize("name", ["recording", "logs"])
def test_overwriting_leaves_a_folder_that_holds_something_else(name, tmp_path):
    (tmp_path / name).mkdir()
    for file in ("run.mcap", "plant.log", "thesis.txt"):
        (tmp_path / name / file).write_text("mine")
    (tmp_path / output.PARAMETERS).touch()
    output.folder("board", str(tmp_path), overwrite=True)
    assert (tmp_path / name / "thesis.txt").exists()
    assert not (tmp_path / output.PARAMETERS).exists()
