"""Files for ros2_control: scenarios with driven joints, by the names that packages document."""

from xml.etree import ElementTree

import pytest
import yaml

from nh_control import scenarios
from nh_control.cli import main
from nh_control.scenarios.ros2_control import controllers, ros2_control_urdf

SUITABLE = ("cart_pole", "urdf", "snakeboard", "pendulum_swing_up", "car")
CASES = [
    *((name, "position") for name in SUITABLE),
    *(("cart_pole", interface) for interface in ("velocity", "effort")),
]


@pytest.mark.parametrize(("name", "interface"), CASES)
def test_hardware_interface_and_controllers_command_the_driven_joints(name, interface, snapshot):
    """With the parameters that joint_state_topic_hardware_interface and ros2_controllers
    document; the hardware interface has all joints.
    """
    scenario = scenarios.get(name)
    robot = ElementTree.fromstring(ros2_control_urdf(scenario, interface))
    (control,) = robot.findall("ros2_control")
    ElementTree.indent(control)
    assert ElementTree.tostring(control, "unicode") == snapshot
    assert yaml.safe_dump(controllers(scenario, interface)) == snapshot
    joints = {joint.get("name") for joint in control.findall("joint")}
    assert joints <= {joint.get("name") for joint in robot.findall("joint")}


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
