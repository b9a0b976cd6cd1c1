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
HARDWARE = {
    "joint_commands_topic",
    "joint_states_topic",
    "trigger_joint_command_threshold",
    "sum_wrapped_joint_states",
}
"""Parameters that joint_state_topic_hardware_interface documents."""
JOINT_TRAJECTORY = {"joints", "command_joints", "command_interfaces", "state_interfaces"}
FORWARD = {"joints", "interface_name"}
"""Parameters that ros2_controllers document, of those that are necessary."""


CASES = [
    *((name, "position") for name in SUITABLE),
    *(("cart_pole", interface) for interface in ("velocity", "effort")),
]


@pytest.mark.parametrize(("name", "interface"), CASES)
def test_the_hardware_interface_has_all_joints_and_commands_the_driven_ones(name, interface):
    scenario = scenarios.get(name)
    robot = ElementTree.fromstring(ros2_control_urdf(scenario, interface))
    (control,) = robot.findall("ros2_control")
    assert control.get("type") == "system"
    plugin = control.find("hardware/plugin").text
    assert plugin == "joint_state_topic_hardware_interface/JointStateTopicSystem"
    given = {one.get("name"): one.text for one in control.findall("hardware/param")}
    assert given.keys() <= HARDWARE and given["joint_states_topic"] == "/robot_joint_states"
    assert float(given["trigger_joint_command_threshold"]) == -1  # every command is sent
    joints = {joint.get("name"): joint for joint in control.findall("joint")}
    assert list(joints) == [joint.name for joint in scenario.joints]
    assert set(joints) <= {joint.get("name") for joint in robot.findall("joint")}
    commands = {
        joint: [c.get("name") for c in element.findall("command_interface")]
        for joint, element in joints.items()
    }
    assert {joint for joint, has in commands.items() if has} == set(SUITABLE[name])
    assert all(has in ([], [interface]) for has in commands.values())
    for element in joints.values():
        states = [state.get("name") for state in element.findall("state_interface")]
        assert states == ["position", "velocity"]
        float(element.find("state_interface/param").text)


@pytest.mark.parametrize(("name", "interface"), CASES)
def test_controllers_command_the_same_joints(name, interface):
    scenario = scenarios.get(name)
    file = yaml.safe_load(yaml.safe_dump(controllers(scenario, interface)))
    manager = file.pop("controller_manager")["ros__parameters"]
    assert manager.pop("update_rate") == round(1 / scenario.step_s)
    ((controller, of_node),) = file.items()
    assert set(manager) == {"joint_state_broadcaster", controller}
    own = of_node["ros__parameters"]
    assert own["joints"] == SUITABLE[name]
    kind = manager[controller]["type"]
    known = JOINT_TRAJECTORY if kind.startswith("joint_trajectory") else FORWARD
    assert own.keys() <= known
    assert interface in (own.get("interface_name"), *own.get("command_interfaces", ()))


@pytest.mark.parametrize("name", ["quadrotor_payload", "chaplygin_sleigh"])
def test_scenarios_without_driven_joints_are_refused(name):
    with pytest.raises(ValueError, match="ros2_control needs a joint for every input"):
        ros2_control_urdf(scenarios.get(name))
    with pytest.raises(ValueError, match="interface must be one of position, velocity, effort"):
        controllers(scenarios.get("cart_pole"), "force")


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
