"""Files for ros2_control: scenarios with driven joints, by the names that packages document."""

from xml.etree import ElementTree

import pytest
import yaml

from nh_control import scenarios
from nh_control.cli import main
from nh_control.scenarios.ros2_control import controllers, ros2_control_urdf

SUITABLE = {
    "cart_pole": ["cart_joint"],
    "urdf": ["shoulder", "elbow"],
    "snakeboard": ["rotor_joint", "rear_truck_joint"],
    "pendulum_swing_up": ["pendulum_joint"],
    "car": ["rear_wheels_joint", "steering_joint"],
}


@pytest.mark.parametrize("interface", ["position", "velocity", "effort"])
def test_files_have_the_parameters_that_packages_document(interface, snapshot):
    """Of joint_state_topic_hardware_interface and ros2_controllers, for a cart with a pole."""
    scenario = scenarios.get("cart_pole")
    robot = ElementTree.fromstring(ros2_control_urdf(scenario, interface))
    (control,) = robot.findall("ros2_control")
    ElementTree.indent(control)
    file = yaml.safe_dump(controllers(scenario, interface))
    assert f"{ElementTree.tostring(control, 'unicode')}{file}" == snapshot


@pytest.mark.parametrize("name", SUITABLE)
def test_the_driven_joints_are_commanded_of_all(name):
    scenario = scenarios.get(name)
    robot = ElementTree.fromstring(ros2_control_urdf(scenario, "position"))
    joints = robot.findall("ros2_control/joint")
    driven = [joint.get("name") for joint in joints if joint.find("command_interface") is not None]
    assert driven == SUITABLE[name]
    names = [joint.get("name") for joint in joints]
    assert names == [joint.name for joint in scenario.joints]
    assert set(names) <= {joint.get("name") for joint in robot.findall("joint")}
    file = controllers(scenario, "position")
    rate = file.pop("controller_manager")["ros__parameters"]["update_rate"]
    ((_, of_node),) = file.items()
    assert of_node["ros__parameters"]["joints"] == driven and rate == round(1 / scenario.step_s)


@pytest.mark.parametrize(
    ("name", "interface", "words"),
    [
        ("quadrotor_payload", "position", "ros2_control needs a joint for every input"),
        ("chaplygin_sleigh", "position", "ros2_control needs a joint for every input"),
        ("cart_pole", "force", "interface must be one of position, velocity, effort"),
    ],
)
def test_what_cannot_be_driven_is_refused(name, interface, words):
    for make in (ros2_control_urdf, controllers):
        with pytest.raises(ValueError, match=words):
            make(scenarios.get(name), interface)


def test_topics_may_be_in_a_namespace():
    text = ros2_control_urdf(scenarios.get("cart_pole"), namespace="r1")
    assert ">/r1/robot_joint_commands<" in text


def test_the_command_writes_both_files(tmp_path, capsys):
    asked = ["export", "cart_pole", "--ros2-control", "effort"]
    assert main([*asked, "--output", str(tmp_path)]) == 0
    assert "cart_pole_controllers.yaml" in capsys.readouterr().out
    assert ElementTree.parse(tmp_path / "cart_pole.urdf").find("ros2_control") is not None
    written = yaml.safe_load((tmp_path / "cart_pole_controllers.yaml").read_text())
    assert written == controllers(scenarios.get("cart_pole"), "effort")
    assert main(["export", "cart_pole"]) == 2
    assert "--ros2-control" in capsys.readouterr().err
