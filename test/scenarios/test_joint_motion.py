"""Joint trajectories in files as references of scenarios."""

from dataclasses import replace

import numpy as np
import pytest

from nh_control import scenarios
from nh_control.runs.experiment import Experiment
from nh_control.scenarios import Joint, UnknownName

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
    with pytest.raises(ValueError, match="each with an actuator.* 2 coordinates and 1 inputs"):
        scenario.reference(scenario.model(), str(file))
