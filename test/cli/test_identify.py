"""`nh_control identify`: parameters from what the sensors of a run or of a robot measured,
not from its true states.
"""

import json

import numpy as np
import pytest
import yaml

pytest.importorskip("rosbags", reason="needs rosbags: install the extra 'ros'")
from recorded_messages import joint_state, write

from nh_control import scenarios
from nh_control.cli import main
from nh_control.command import identify_parameters
from nh_control.control.identification import Identification
from nh_control.runs import launcher, output, recording
from nh_control.runs.experiment import Experiment
from nh_control.runs.identification import of_robot, of_run
from nh_control.runs.measured_run import MeasuredRun
from nh_control.runs.measurements import Measurements
from nh_control.runs.settings import RunSettings
from nh_control.scenarios import PlantOptions, fault

NOISE, STEPS = 1e-3, 200


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """The folder of a run with noise of NOISE rad whose step 7 was lost, and measured angles."""
    tmp_path = tmp_path_factory.mktemp("noisy")
    scenario = scenarios.get("pendulum_swing_up")
    options = PlantOptions(parameters={"m": 1.05}, faults=(fault.parse(f"noise={NOISE}"),))
    experiment = Experiment.make(scenario, options=options)
    h, joint = experiment.model.h, scenario.joints[0].name
    u = 2.0 * np.sin(0.05 * np.arange(STEPS))[:, None]
    run = experiment.plant.simulate(experiment.plant.state([0.3], [0.0]), u)
    exact = run.states[:, 0]
    angles = exact + np.random.default_rng(0).normal(scale=NOISE, size=STEPS + 1)
    given = launcher.parameters(experiment, RunSettings(), tmp_path)
    text = yaml.safe_dump({"/**": {"ros__parameters": given}})
    (tmp_path / output.PARAMETERS).write_text(text)
    recorded = []
    for k in range(STEPS + 1):
        ns = round(k * h * 1e9)
        true, measured = (joint_state(ns, [joint], q[k : k + 1], [0.0]) for q in (exact, angles))
        recorded.append(("/ground_truth/joint_states", true, ns))
        if k != 7:
            recorded.append(("/joint_states", measured, ns + 1))
        if k < STEPS:
            command = joint_state(ns, experiment.model.inputs, effort=u[k])
            recorded.append(("/joint_commands", command, ns + 2))
    write(tmp_path / output.RECORDING, recorded)
    return tmp_path, scenario, experiment, angles


def test_measured_states_are_read_with_their_faults_and_without_what_was_lost(noisy):
    folder, scenario, experiment, angles = noisy
    bag, model = folder / output.RECORDING, experiment.model
    read = recording.read_measured(bag, scenario, model)
    assert read.steps.tolist() == [k for k in range(STEPS + 1) if k != 7]
    np.testing.assert_array_equal(read.q[:, 0], angles[read.steps])
    true = recording.read(bag, scenario, model).q[:, 0]
    assert NOISE / 2 < np.std(true - angles) < 2 * NOISE


def test_a_noisy_fit_is_as_uncertain_as_its_measurements(noisy, capsys):
    folder = str(noisy[0])
    assert main(["identify", folder, "--parameter", "m", "--json"]) == 0
    shown = capsys.readouterr()
    assert "had simulated faults" in shown.err and "measured states" in shown.err
    found = json.loads(shown.out)
    mass = found["parameters"]["m"]
    assert found["residual_rms"] == pytest.approx(NOISE, rel=0.2)
    assert abs(mass["value"] - 1.05) < 3 * mass["deviation"] and 1e-5 < mass["deviation"] < 0.02


def test_a_simulated_run_is_identified_from_what_its_sensors_measured(tmp_path, capsys):
    """Measurements are lost, too, and the angle of the true states would give 1e-9."""
    command = ["simulate", "pendulum_swing_up", "--plant-parameter", "m=1.05", "--no-plots"]
    faults = ["--fault", f"positions:noise={NOISE}", "--fault", "dropout=0.1"]
    assert main([*command, *faults, "--duration", "3", "--output", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    for place in ("run", "run/results.npz"):
        assert main(["identify", str(tmp_path / place), "--parameter", "m", "--json"]) == 0
        out, told = capsys.readouterr()
        found = json.loads(out)
        assert "had simulated faults" in told
        value, deviation = (found["parameters"]["m"][key] for key in ("value", "deviation"))
        assert 1e-6 < abs(value - 1.05) < 4 * deviation
        assert found["residual_rms"] == pytest.approx(NOISE, rel=0.15)
        assert found["residuals"] < 0.95 * 300


# --- what is fitted, and how it is printed -----

FOUND = Identification(
    ("m",), np.array([1.0]), np.array([1.25]), np.array([[0.0625]]), 0.5, 0.25, 80, 0.125,
    (0.02, 0.001), {"theta": 0.001}, None,
)  # fmt: skip


MODEL = scenarios.get("pendulum_swing_up").model("", 0.1)


def test_what_was_identified_is_told(capsys, monkeypatch, snapshot):
    monkeypatch.setenv("COLUMNS", "200")
    assert identify_parameters._summary("arm", FOUND) == snapshot(name="numbers")
    identify_parameters._show("arm", FOUND)
    assert capsys.readouterr().out == snapshot(name="text")


def test_segments_contain_the_inputs_of_all_steps_between_known_states():
    known = np.array([0, 1, 3, 4, 5])
    states = MeasuredRun(known, known[:, None].astype(float), 10 + np.arange(5.0)[:, None])
    motion = of_run(MODEL, states)
    (piece,) = motion.pieces(MODEL, 10.0)
    assert piece.values.ravel().tolist() == list(known)
    assert [[(u[0], s) for u, s in inputs] for inputs in piece.inputs] == [
        [(10.0, 0.1)], [(11.0, 0.1), (12.0, 0.1)], [(13.0, 0.1)], [(14.0, 0.1)],
    ]  # fmt: skip
    assert len(motion.pieces(MODEL, 0.3)) == 1


def robot(sent):
    """Return measurements every 10 ms, with commands at these times in ms."""
    times, q = np.arange(10) * 10**7, np.arange(10.0)[:, None]
    sent = np.array(sent) * 10**6
    u = 1 + np.arange(float(len(sent)))[:, None]
    return Measurements(times, times, q, q, u, sent, sent)


def test_of_a_robot_only_the_time_of_its_commands_counts():
    (piece,) = of_robot(MODEL, robot([25, 75])).pieces(MODEL, 1.0)
    assert piece.values.ravel().tolist() == [3, 4, 5, 6, 7] and len(piece.inputs) == 4
    assert all(inputs == [(np.array([1.0]), pytest.approx(0.01))] for inputs in piece.inputs)
    with pytest.raises(ValueError, match="2 of 10 states lie between the first command"):
        of_robot(MODEL, robot([25, 45]))
    (all_,) = of_robot(MODEL, robot([])).pieces(MODEL, 1.0)
    assert len(all_.values) == 10
