"""Free motions from a start that the user gives, of every scenario, and robots without motors."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from urdf_robots import PASSIVE

import nh_control as nh
from nh_control import scenarios
from nh_control.cli import main
from nh_control.runs.experiment import Experiment
from nh_control.scenarios import Joint, PlantOptions, UnknownName
from nh_control.scenarios.free_motion import lasting


@pytest.fixture
def passive(tmp_path):
    file = tmp_path / "passive.urdf"
    file.write_text(PASSIVE)
    return file


@pytest.fixture
def simulated(passive, tmp_path, capsys):
    """Return f(*arguments) -> arrays, summary and output of a simulation of the pendulum."""

    def simulate(*arguments):
        folder = tmp_path / "out"
        given = "--urdf", str(passive), "--output", str(folder), "--overwrite", *arguments
        assert main(["simulate", "urdf", *given]) == 0
        arrays = np.load(folder / "results.npz")
        return arrays, json.loads((folder / "summary.json").read_text()), capsys.readouterr().out

    return simulate


@pytest.mark.parametrize("how", [("--open-loop",), ("--reference", "free")])
def test_a_robot_without_motors_moves_freely_from_its_rest(simulated, how):
    arrays, summary, shown = simulated("--no-plots", "--duration", "0.5", *how)
    assert np.abs(arrays["states"]).max() < 1e-12 and arrays["inputs"].shape == (100, 0)
    assert summary["error"]["largest"] == 0 and "the system has no inputs" in shown


def test_a_pose_that_is_given_is_where_it_starts(simulated):
    """And from there it moves as SciPy says, into figures of which none is empty."""
    arrays, summary, shown = simulated(
        "--reference", "free:hinge=1.0,hinge_dot=0.5", "--duration", "1"
    )
    assert arrays["states"][0, 0] == 1.0 and arrays["times"][-1] == pytest.approx(1.0)
    inertia = 0.08 + 1 * 0.5**2
    exact = solve_ivp(
        lambda t, s: [s[1], -9.81 * 0.5 * np.sin(s[0]) / inertia], (0, 1), [1.0, 0.5], rtol=1e-10
    ).y[:, -1]
    np.testing.assert_allclose(arrays["states"][-1], [exact[0], inertia * exact[1]], atol=2e-4)
    assert summary["energy_J"]["initial"] == pytest.approx(summary["energy_J"]["final"], rel=1e-4)
    assert not {"inputs", "error"} & set(shown) and "tracking" not in shown


def test_figures_and_films_of_a_robot_without_motors(simulated, tmp_path):
    simulated("--reference", "free:hinge=1.0", "--duration", "0.2")
    folder = tmp_path / "out"
    drawn = {file.stem for file in folder.glob("*.png")}
    assert drawn == {"path", "states", "energy", "constraints"}
    assert main(["view", str(folder)]) == 0
    assert main(["film", str(folder), str(tmp_path / "film.gif"), "--rate", "10"]) == 0


def test_another_mass_of_the_plant_is_a_difference_from_the_model(passive):
    scenario = scenarios.get("urdf", str(passive))
    options = PlantOptions(parameters={"hinge_damping": 0.1})
    experiment = Experiment.make(scenario, "free:hinge=0.5", options=options, duration_s=0.5)
    loop = experiment.run()
    assert experiment.steps == 100 and np.abs(loop.errors[0]).max() < 1e-30
    assert 1e-3 < np.abs(loop.errors[-1, 0]) < 0.5


def test_every_scenario_has_free_motions():
    """Also beside a tracker that would hold the end of other references."""
    arm = scenarios.get("urdf")
    experiment = Experiment.make(
        arm, "free:shoulder=0.4,elbow_dot=-1", perturbation=arm.no_perturbation, duration_s=0.1
    )
    assert not experiment.tracker.hold
    model, x0 = experiment.model, experiment.x0
    np.testing.assert_allclose(model.configuration(x0), [0.4, 0.0])
    np.testing.assert_allclose(model.velocity(x0), [0.0, -1.0], atol=1e-12)
    loop = experiment.run()
    assert len(loop.trajectory) == 20 and np.abs(loop.errors).max() < 1e-8
    satellite = scenarios.get("satellite")
    model = satellite.model()
    turned = satellite.reference(model, "free:qw=0.6,qx=0.8,wheel1_dot=2,duration=0.1")
    np.testing.assert_allclose(turned.states[0, :4], [0.6, 0.8, 0, 0], atol=1e-12)
    with pytest.raises(ValueError, match="must lie on its manifold"):
        satellite.reference(model, "free:qw=0.6")


def test_the_other_coordinates_of_a_loop_follow():
    """A pendulum whose bob has coordinates of its own."""
    import casadi as ca

    system = nh.System(
        "bob",
        nh.Rn("x", "z"),
        lambda q, v: ca.sumsqr(v) / 2 - 9.81 * q[1],
        holonomic_constraint=lambda q: ca.sumsqr(q) - 1,
        nominal=(0.0, -1.0),
    )
    scenario = scenarios.Scenario(
        name="bob",
        title="Bob",
        parameters=None,
        make_system=lambda parameters: system,
        integrators={"midpoint": nh.midpoint},
        references={"rest": lambda m: m.simulate(m.state([0.0, -1.0], [0.0, 0.0]), (), steps=3)},
        weights=(np.eye(4), np.eye(0), np.eye(4)),
    )
    start = scenario.reference(scenario.model(), "free:x=0.6").states[0]
    assert Experiment.make(scenario).x0[:2].tolist() == [0.0, -1.0]
    np.testing.assert_allclose(start[:2], [0.6, -0.8], atol=1e-9)


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("free:angle=1", "'angle'.*choose one of: x, theta, x_dot, theta_d"),
        *(
            (f"free:{wrong}", r"must be a finite number.*free\[:NAME=VALUE")
            for wrong in ("x=far", "x", "x=nan", "duration=0")
        ),
    ],
)
def test_starts_that_are_none_are_refused(reference, words):
    scenario = scenarios.get("cart_pole")
    with pytest.raises(ValueError, match=words):
        scenario.reference(scenario.model(), reference)


def test_a_free_motion_lasts_as_long_as_the_run_unless_it_says_how_long():
    assert lasting("free", 2.0) == "free:duration=2.0"
    assert lasting("free:x=1", 2.0) == "free:x=1,duration=2.0"
    for kept in ("free:duration=1", "swing_up"):
        assert lasting(kept, 2.0) == kept
    assert lasting("free", 0.0) == "free"


# --- Joint trajectories in files as references of scenarios ---


WAY = "time_s,elbow,shoulder\n0,0,0\n1.5,0.5,-0.3\n"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "way.csv").write_text(WAY)
    return tmp_path / "way.csv"


def test_the_file_of_a_joint_trajectory_is_a_reference(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    scenario = scenarios.get("urdf")
    experiment = Experiment.make(scenario, "way.csv", perturbation=scenario.no_perturbation)
    assert experiment.tracker.reference.name == str(file)  # where nodes find it, too
    assert experiment.labels == ("double_pendulum", "way")
    run = experiment.run()
    assert np.abs(run.errors).max() <= 1e-11
    np.testing.assert_allclose(run.trajectory.states[-1, :2], [-0.3, 0.5], atol=1e-9)


def test_a_joint_may_follow_its_coordinate_with_another_sign_and_name(file):
    turned = replace(
        scenarios.get("urdf"), joints=(Joint("shoulder", "shoulder"), Joint("wrist", "elbow", -1))
    )
    file.write_text(WAY.replace("elbow", "wrist"))
    reference = turned.reference(turned.model(), str(file))
    np.testing.assert_allclose(reference.states[-1, :2], [-0.3, -0.5], atol=1e-9)
    hidden = replace(turned, joints=turned.joints[:1])
    with pytest.raises(ValueError, match=r"lack the coordinates \['elbow'\]"):
        hidden.reference(hidden.model(), str(file))


def test_other_references_are_named_with_the_files_that_may_be_given():
    scenario = scenarios.get("urdf")
    with pytest.raises(UnknownName, match=r"choose one of: hold; or a joint .*file.csv or .yaml"):
        scenario.reference(scenario.model(), "way")
    with pytest.raises(FileNotFoundError):
        scenario.reference(scenario.model(), "way.yaml")


def test_a_scenario_with_fewer_actuators_than_joints_has_no_joint_trajectories(file):
    scenario = scenarios.get("cart_pole")
    with pytest.raises(ValueError, match="with an actuator.* 2 coordinates and 1 inputs"):
        scenario.reference(scenario.model(), str(file))
