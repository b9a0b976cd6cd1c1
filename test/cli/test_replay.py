"""A recorded run's commands to the plant, again: no difference, or the step where it begins."""

import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

pytest.importorskip("rosbags", reason="needs rosbags: install the extra 'ros'")

from nh_control import scenarios
from nh_control.cli import main
from nh_control.command import identifying, replaying
from nh_control.runs import launcher, stored
from nh_control.runs.decoding import RecordingError, StateDecoder, chosen
from nh_control.runs.experiment import Experiment
from nh_control.runs.launcher import Options
from nh_control.runs.measurements import Measurements
from nh_control.runs.recording import Recording
from nh_control.runs.replay import replay
from nh_control.scenarios import PlantOptions, disturbance

STEPS = 60


@pytest.mark.parametrize("stopped, code", [("", 0), ("it differs from step 7 on", 1)])
def test_the_command_fails_where_a_replay_does(stopped, code, monkeypatch, capsys):
    monkeypatch.setattr(replaying, "stored_run", lambda args: "run")
    monkeypatch.setattr(replaying, "_of_run", lambda args, run: {"stopped": stopped})
    assert main(["replay", "folder", "--json"]) == code
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"stopped": stopped}
    assert shown.err == (f"nh_control: error: {stopped}\n" if stopped else "")


@pytest.fixture
def simulated_stamps(monkeypatch):
    """What a robot's recording is made of whose stamps begin at 0, with one command."""
    scenario = scenarios.get("pendulum_swing_up")
    stamps, wall = np.arange(5) * 20_000_000, 1_790_000_000 * 10**9
    rows, sent = np.zeros((5, 1)), np.array([wall])
    moving = np.ones(5, dtype=bool)
    states = Measurements(stamps, wall + stamps, rows, rows, moving, rows[:1], sent, stamps[:1])
    for module in (replaying, identifying):
        monkeypatch.setattr(module, "measured", lambda args: (scenario, scenario.model(), states))
    return ["folder", "--scenario", "pendulum_swing_up"]


def test_a_recording_with_stamps_of_another_clock_is_not_replayed_over_years(
    simulated_stamps, capsys
):
    assert main(["replay", *simulated_stamps]) == 2
    told = capsys.readouterr().err
    assert "none of 5 states was answered" in told and "--no-compensation takes others" in told
    assert main(["replay", *simulated_stamps, "--no-compensation"]) == 0


def test_nothing_is_identified_from_stamps_of_another_clock(simulated_stamps, capsys):
    assert main(["identify", *simulated_stamps, "--parameter", "m"]) == 2
    told = capsys.readouterr().err
    assert "0 of 5 states lie between the first command and the last" in told


@pytest.fixture(scope="module")
def run():
    """An experiment with another plant and wind, and what a recorder would have of it."""
    scenario = scenarios.get("snakeboard")
    options = PlantOptions("", 2, {"m": 1.05}, (disturbance.parse("base_link:gust:1,0,0"),))
    experiment = Experiment.make(scenario, options=options, duration_s=STEPS * scenario.step_s)
    states = []
    x, model = experiment.x0, experiment.model
    decoder = StateDecoder(scenario, model.system.space)
    loop = experiment.run()
    for x in loop.trajectory.states:
        at = model.configuration(x), model.velocity(x)
        states.append(decoder.carried(experiment.plant_parameters, *at))
    q, v = (np.array(column) for column in zip(*states))
    steps = tuple(range(STEPS + 1))
    return experiment, Recording(q, v, loop.trajectory.inputs, 0, 1.0, {}, steps, 0)


def test_the_commands_of_a_run_give_its_states(run):
    experiment, recording = run
    again = replay(experiment, recording)
    # the loop's states went through those of the model, with other velocities to round-off
    assert again.largest < 1e-12 and again.stopped == "" and len(again.steps) == STEPS + 1


def test_a_command_that_was_not_applied_shows_at_the_next_step(run):
    experiment, recording = run
    inputs = recording.inputs.copy()
    inputs[40] += 1e-3
    before, after = (replay(experiment, r) for r in (recording, replace(recording, inputs=inputs)))
    both = np.abs(before.configurations - after.configurations).max(axis=1)
    assert both[:41].max() == 0 and both[41] > 1e-9 and after.largest > 1e-6


def test_only_recorded_states_are_compared(run):
    experiment, recording = run
    q = recording.q.copy()
    q[17] += 1.0
    assert replay(experiment, replace(recording, q=q)).largest == 1.0
    known = tuple(k for k in recording.known if k != 17)
    assert replay(experiment, replace(recording, q=q, known=known)).largest < 1e-12


@pytest.mark.parametrize("hold", [False, True])
def test_what_is_to_be_held_is_held_without_commands(run, hold, tmp_path):
    held = replace(run[0], scenario=replace(run[0].scenario, hold=hold))
    given = launcher.parameters(held, Options(), tmp_path)
    assert given.get("fallback") == ("hold" if hold else None)


def test_a_floating_robot_is_found_again_as_one(run, tmp_path, monkeypatch):
    robot = scenarios.get("urdf", base="floating")
    plain = replace(run[0], options=PlantOptions(), perturbation=None)
    given = {**launcher.parameters(plain, Options(), tmp_path), **robot.origin}
    for other in ("disturb", "perturb"):
        given.pop(other, None)
    (tmp_path / "parameters.yaml").write_text(yaml.safe_dump({"/**": {"ros__parameters": given}}))
    monkeypatch.setattr(Experiment, "make", lambda scenario, *rest: scenario)
    assert stored.load(tmp_path).experiment.origin == robot.origin


def test_a_run_is_found_again_by_the_parameters_of_its_nodes(run, tmp_path, capsys):
    experiment, _ = run
    given = {"/**": {"ros__parameters": launcher.parameters(experiment, Options(), tmp_path)}}
    file = tmp_path / "parameters.yaml"
    file.write_text(yaml.safe_dump(given))
    again = stored.load(tmp_path)
    assert not again.lockstep and again.faults == ()
    np.testing.assert_array_equal(again.experiment.x0, experiment.x0)
    assert again.experiment.plant_parameters == experiment.plant_parameters
    assert again.experiment.options.substeps == 2 and again.experiment.steps == STEPS
    np.testing.assert_array_equal(again.experiment.disturbance, experiment.disturbance)
    given["/**"]["ros__parameters"]["fault"] = ["rotor_torque:lost"]
    file.write_text(yaml.safe_dump(given))
    assert main(["replay", str(tmp_path)]) == 2
    assert "had faults on purpose (rotor_torque:lost)" in capsys.readouterr().err
    file.write_text("{}")
    assert main(["replay", str(tmp_path)]) == 2
    assert "is not of a run by `nh_control run`" in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "other")]) == 2
    assert "of a recording say --scenario NAME" in capsys.readouterr().err


def test_the_topics_of_a_recording_are_those_nearest_to_the_root():
    def found(*names):
        connections = [type("Connection", (), {"topic": name})() for name in names]
        return chosen(connections, ("joint_states", "odom"))

    assert found("/reference/joint_states", "/joint_states", "/joint_states", "/tf") == {
        "/joint_states": "joint_states"
    }
    assert found("/arm/reference/odom", "/arm/odom") == {"/arm/odom": "odom"}
    with pytest.raises(RecordingError, match="several robots: /a/odom, /b/odom"):
        found("/a/odom", "/b/odom")
