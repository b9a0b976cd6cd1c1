"""A scenario for ros2_control: its URDF with the element `<ros2_control>`, and the parameters of
controllers, which command the plant by joint_state_topic_hardware_interface.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from nh_control.mechanics.system import System
from nh_control.scenarios.driven_joints import driven_joints
from nh_control.scenarios.robot_description import robot_description
from nh_control.scenarios.scenario import Scenario

PLUGIN = "joint_state_topic_hardware_interface/JointStateTopicSystem"
COMMANDS, STATES = "robot_joint_commands", "robot_joint_states"
"""Topics between the hardware interface and the plant."""
INTERFACES = ("position", "velocity", "effort")
CONTROLLERS = {
    "position": "joint_trajectory_controller",
    "velocity": "velocity_controller",
    "effort": "effort_controller",
}
"""Name of the controller that commands an interface."""
BROADCASTER = "joint_state_broadcaster"
FASTEST_HZ = 1000


def ros2_control_urdf(scenario: Scenario, interface: str = "position", namespace: str = "") -> str:
    """The URDF of a scenario with its hardware interface: every joint has the states position and
    velocity, and those that one input drives alone the command `interface`.

    Topics are in a `namespace`. Raises ValueError for another interface, and for a scenario
    without such joints.
    """
    driven = commanded_joints(scenario, interface)
    robot = ElementTree.fromstring(robot_description(scenario))
    control = SubElement(robot, "ros2_control", name=f"{scenario.name}_plant", type="system")
    hardware = SubElement(control, "hardware")
    SubElement(hardware, "plugin").text = PLUGIN
    prefix = f"/{namespace}/".replace("//", "/")
    for name, value in (
        ("joint_commands_topic", prefix + COMMANDS),
        ("joint_states_topic", prefix + STATES),
        ("trigger_joint_command_threshold", "-1"),
    ):
        _parameter(hardware, name, value)
    start = _start(scenario)
    for joint in scenario.joints:
        element = SubElement(control, "joint", name=joint.name)
        if joint.name in driven:
            SubElement(element, "command_interface", name=interface)
        position = SubElement(element, "state_interface", name="position")
        _parameter(position, "initial_value", f"{start[joint.name]:.12g}")
        SubElement(element, "state_interface", name="velocity")
    ElementTree.indent(robot)
    return ElementTree.tostring(robot, encoding="unicode", xml_declaration=True) + "\n"


def controllers(scenario: Scenario, interface: str = "position") -> dict[str, Any]:
    """Parameters of the controller manager and its controllers: a broadcaster of states, and for
    positions a joint_trajectory_controller, for velocities and efforts a
    forward_command_controller. Raises ValueError as `ros2_control_urdf` does.
    """
    driven, name = commanded_joints(scenario, interface), CONTROLLERS[interface]
    forward = "forward_command_controller/ForwardCommandController"
    types = {
        "position": "joint_trajectory_controller/JointTrajectoryController",
        "velocity": forward,
        "effort": forward,
    }
    own: dict[str, Any] = {"joints": driven}
    if interface == "position":
        own |= {"command_interfaces": [interface], "state_interfaces": ["position", "velocity"]}
    else:
        own |= {"interface_name": interface}
    manager = {
        "update_rate": min(FASTEST_HZ, round(1 / scenario.step_s)),
        BROADCASTER: {"type": f"{BROADCASTER}/JointStateBroadcaster"},
        name: {"type": types[interface]},
    }
    return {
        "controller_manager": {"ros__parameters": manager},
        name: {"ros__parameters": own},
    }


def commanded_joints(scenario: Scenario, interface: str) -> list[str]:
    """Joints that one input drives alone, in the order of the inputs; raises ValueError if there
    are none, if an input drives none, or for another interface.
    """
    if interface not in INTERFACES:
        raise ValueError(f"interface must be one of {', '.join(INTERFACES)}, got {interface!r}")
    system: System = scenario.make_system(scenario.parameters)
    driven = driven_joints(scenario.joints, system, system.nu)
    if not driven or len(driven) < system.nu:
        raise ValueError(
            f"{scenario.name}: ros2_control needs a joint for every input, which it alone "
            f"drives; {len(driven)} of {system.nu} inputs have one"
        )
    return [one.name for one in sorted(driven, key=lambda one: one.input)]


def _start(scenario: Scenario) -> dict[str, float]:
    """Positions of the joints at the start of the default reference."""
    model = scenario.model()
    q = model.configuration(scenario.reference(model).states[0])
    names = model.system.space.names
    return {j.name: j.sign * float(q[names.index(j.coordinate)]) for j in scenario.joints}


def _parameter(parent: Element, name: str, value: str) -> None:
    SubElement(parent, "param", name=name).text = value
