"""Files for ros2_control: scenarios with driven joints, by the names that packages document."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest
import yaml
from urdf_robots import rover

from nh_control import scenarios
from nh_control.cli import main
from nh_control.multibody import load_urdf
from nh_control.scenarios.controllers import CONTROLLERS
from nh_control.scenarios.robot_description import robot_description
from nh_control.scenarios.ros2_control import RosControl
from nh_control.scenarios.urdf import urdf
from nh_control.scenarios.urdf_base import base_of_robot
from nh_control.scenarios.wheeled_base import AckermannBase, DifferentialBase

SUITABLE = {
    "cart_pole": ["cart_joint"],
    "urdf": ["shoulder", "elbow"],
    "snakeboard": ["rotor_joint", "rear_truck_joint"],
    "pendulum_swing_up": ["pendulum_joint"],
    "car": ["rear_wheels_joint", "steering_joint"],
}


def of_nodes(control):
    """The parameters of all nodes."""
    return {name: one["ros__parameters"] for name, one in control.parameters().items()}


@pytest.mark.parametrize("interface", ["position", "velocity", "effort", "position+velocity"])
def test_files_have_the_parameters_that_packages_document(interface, snapshot):
    """Of joint_state_topic_hardware_interface and ros2_controllers, for a cart with a pole."""
    control = RosControl(scenarios.get("cart_pole"), interface)
    (element,) = ElementTree.fromstring(control.urdf()).findall("ros2_control")
    ElementTree.indent(element)
    file = yaml.safe_dump(control.parameters())
    assert f"{ElementTree.tostring(element, 'unicode')}{file}" == snapshot


@pytest.mark.parametrize(
    ("name", "controller", "commands", "plant"),
    [
        ("differential_drive", "diff_drive_controller", ["velocity"] * 2, "velocity"),
        (
            "car",
            "bicycle_steering_controller",
            ["velocity", "position"],
            "rear_wheels_joint:velocity,steering_joint:position",
        ),
    ],
)
def test_controllers_of_vehicles_know_their_geometry(name, controller, commands, plant, snapshot):
    control = RosControl(scenarios.get(name), names=[controller])
    assert [kind for kinds in control.commands.values() for kind in kinds] == commands
    assert control.command_interface == plant
    assert control.parameters()[controller]["ros__parameters"] == snapshot


def test_wheels_of_a_urdf_are_those_of_controllers_of_vehicles():
    rear, front = ["rear_left", "rear_right:sideways"], ["front_left", "front_right:sideways"]
    wheels = ("rear_left_joint", "rear_right_joint")
    two = load_urdf(rover(), "floating", wheels=rear)
    assert base_of_robot(two, wheels) == DifferentialBase(*wheels, 0.1, 0.5)
    assert base_of_robot(two, wheels[:1]) is None
    four = load_urdf(rover("front"), "floating", wheels=[*rear, *front])
    steered = ("steering_left", "steering_right")
    base = base_of_robot(four, {*wheels, *steered})
    assert base == AckermannBase(wheels, steered, 0.1, 0.6, 0.5, 0.5)
    car = replace(scenarios.get("car"), base=lambda p: base)
    given = CONTROLLERS["ackermann_steering_controller"].make(car, "", {})
    assert given["traction_joints_names"] == ["rear_right_joint", "rear_left_joint"]
    assert given["steering_joints_names"] == ["steering_right", "steering_left"]
    with pytest.raises(ValueError, match="use ackermann_steering_controller"):
        CONTROLLERS["diff_drive_controller"].make(car, "", {})


def test_several_controllers_share_an_interface():
    names = ["effort_controller", "pid_controller", "joint_trajectory_controller"]
    control = RosControl(scenarios.get("cart_pole"), names=names)
    parameters = of_nodes(control)
    assert list(parameters) == ["controller_manager", *names]
    assert control.command_interface == "effort"
    gains, limits = parameters["pid_controller"]["gains"]["cart_joint"], 15.0
    assert (gains["u_clamp_min"], gains["u_clamp_max"]) == (-limits, limits)
    # three poles at -10 rad/s of the cart with its pole, 1.3 kg
    assert [gains[n] for n in "pid"] == pytest.approx([390.0, 1300.0, 39.0])


def test_joints_have_the_limits_of_the_scenario():
    robot = ElementTree.fromstring(robot_description(scenarios.get("cart_pole")))
    (limit,) = robot.findall("joint[@name='cart_joint']/limit")
    values = {key: float(value) for key, value in limit.attrib.items()}
    speed = (15.0 / 1.3 * 2.4) ** 0.5  # by 15 N from rest to rest in the range
    assert values == pytest.approx({"lower": -1.2, "upper": 1.2, "effort": 15, "velocity": speed})
    robot = ElementTree.fromstring(robot_description(scenarios.get("car")))
    steering = robot.find("joint[@name='steering_joint']")
    assert steering.get("type") == "revolute"
    assert steering.find("limit").attrib == {
        "lower": "-1.5",
        "upper": "1.5",
        "effort": "60",
        "velocity": "0.6",
    }


def test_the_root_link_has_no_inertia(tmp_path):
    file = tmp_path / "rover.urdf"
    file.write_text(rover())
    car = ElementTree.fromstring(robot_description(scenarios.get("car")))
    of_file = ElementTree.fromstring(RosControl(urdf(file)).urdf())
    for robot, mass in ((car, 1200.0), (of_file, 21.0)):
        children = {child.get("link") for child in robot.iterfind("joint/child")}
        (root,) = (link for link in robot.findall("link") if link.get("name") not in children)
        assert root.find("inertial") is None
        masses = [float(m.get("value")) for m in robot.iterfind("link/inertial/mass")]
        assert sum(masses) == pytest.approx(mass)


@pytest.mark.parametrize("name", SUITABLE)
def test_the_driven_joints_are_commanded_of_all(name):
    scenario = scenarios.get(name)
    control = RosControl(scenario, "position")
    robot = ElementTree.fromstring(control.urdf())
    joints = robot.findall("ros2_control/joint")
    driven = [joint.get("name") for joint in joints if joint.find("command_interface") is not None]
    assert driven == SUITABLE[name]
    names = [joint.get("name") for joint in joints]
    assert names == [joint.name for joint in scenario.joints]
    assert set(names) <= {joint.get("name") for joint in robot.findall("joint")}
    states = [one.get("name") for one in joints[-1].findall("state_interface")]
    assert states == ["position", "velocity", "effort"]
    parameters = of_nodes(control)
    assert parameters["joint_trajectory_controller"]["joints"] == driven
    assert parameters["controller_manager"]["update_rate"] == round(1 / scenario.step_s)


@pytest.mark.parametrize(
    ("name", "interface", "names", "words"),
    [
        ("quadrotor_payload", "position", [], "every input must drive exactly one joint"),
        ("chaplygin_sleigh", "", [], "every input must drive exactly one joint"),
        ("cart_pole", "force", [], "command interface effort, position or velocity, or one"),
        ("cart_pole", "", ["gripper"], "unknown controller 'gripper'"),
        ("cart_pole", "", ["diff_drive_controller"], "it is for vehicles"),
        ("car", "", ["diff_drive_controller"], "use bicycle_steering_controller"),
        ("car", "velocity", ["bicycle_steering_controller"], "steering_joint:position"),
        ("cart_pole", "position", ["pid_controller"], "use interface:=effort"),
        ("cart_pole", "", ["effort_controller", "velocity_controller"], "interface:=velocity"),
    ],
)
def test_what_cannot_be_driven_is_refused(name, interface, names, words):
    with pytest.raises(ValueError, match=words):
        RosControl(scenarios.get(name), interface, names)


def test_topics_may_be_in_a_namespace():
    text = RosControl(scenarios.get("cart_pole")).urdf(namespace="r1")
    assert ">/r1/robot_joint_commands<" in text


def test_the_command_writes_both_files(tmp_path, capsys):
    asked = ["export", "cart_pole", "--ros2-control", "effort"]
    assert main([*asked, "--output", str(tmp_path)]) == 0
    assert "cart_pole_controllers.yaml" in capsys.readouterr().out
    assert ElementTree.parse(tmp_path / "cart_pole.urdf").find("ros2_control") is not None
    written = yaml.safe_load((tmp_path / "cart_pole_controllers.yaml").read_text())
    assert written == RosControl(scenarios.get("cart_pole"), "effort").parameters()
    asked = ["export", "cart_pole", "--ros2-control", "--controllers", "pid_controller"]
    assert main([*asked, "--output", str(tmp_path)]) == 0
    written = yaml.safe_load((tmp_path / "cart_pole_controllers.yaml").read_text())
    assert "pid_controller" in written
    assert main(["export", "cart_pole"]) == 2
    assert "--ros2-control" in capsys.readouterr().err
