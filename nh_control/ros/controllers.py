"""Launch description of a plant that controllers of ros2_control command, and of the tracker
before a robot that ros2_control drives.
"""

from __future__ import annotations

from pathlib import Path

import yaml
from ament_index_python import get_packages_with_prefixes
from launch.actions import LogInfo, OpaqueFunction
from launch.logging import launch_config
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchContext, LaunchDescription
from nh_control.ros import viewers
from nh_control.ros.arguments import SCENARIO, argument, is_true, robot
from nh_control.ros.bringup import find
from nh_control.scenarios import Scenario
from nh_control.scenarios.ros2_control import (
    BROADCASTER,
    COMMANDS,
    CONTROLLERS,
    INTERFACES,
    STATES,
    controllers,
    ros2_control_urdf,
)

NEEDED = ("controller_manager", "joint_state_topic_hardware_interface", "robot_state_publisher")
MANAGER = "controller_manager"
ARGUMENTS = (
    argument(SCENARIO.name, SCENARIO.entry.description, "urdf"),
    *robot(),
    argument("interface", "what controllers command", "position", INTERFACES),
    argument("controllers_file", "YAML file of the controllers; empty = made of the scenario"),
    argument(
        "tracker", "the tracker commands, by the effort_controller; needs interface:=effort", False
    ),
)


def description(_: str, launch_file: str) -> LaunchDescription:
    """The launch description: plant, controller manager with hardware interface, controllers, and
    on request the tracker. Every node takes the plant's time.
    """

    def start(context: LaunchContext) -> list[Node | LogInfo]:
        text = {a.name: context.launch_configurations[a.name].strip() for a in ARGUMENTS}
        return actions(find(context, text["scenario"]), text)

    declared = [argument.declare() for argument in ARGUMENTS]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def actions(scenario: Scenario, text: dict[str, str]) -> list[Node | LogInfo]:
    """The actions for the arguments' texts; raises ValueError for those that do not fit."""
    interface, tracks = text["interface"], is_true(text["tracker"])
    if tracks and interface != "effort":
        raise ValueError("launch argument 'tracker': it sends efforts, give interface:=effort")
    installed = get_packages_with_prefixes()
    missing = [name for name in NEEDED if name not in installed]
    if missing:
        raise ValueError(f"install {', '.join(missing)} for controllers of ros2_control")
    urdf = ros2_control_urdf(scenario, interface)
    file = text["controllers_file"] or _written(controllers(scenario, interface))
    sim_time = {"use_sim_time": True}
    described = {"robot_description": ParameterValue(urdf, value_type=str)}
    plant = {
        **scenario.origin,
        "command_interface": interface,
        "clock": "global",
        "on_finish": "continue",
        "wait_for_tracker": False,
    }
    renamed = [("joint_states", STATES), ("joint_commands", COMMANDS)]
    spawned = [BROADCASTER, CONTROLLERS[interface]]
    started = [
        viewers.node("nh_control", "plant", "", [plant], remappings=renamed),
        viewers.node("robot_state_publisher", "robot_state_publisher", "", [described, sim_time]),
        viewers.node(MANAGER, "ros2_control_node", "", [file, sim_time]),
        viewers.node(MANAGER, "spawner", "", [], arguments=[*spawned, "--param-file", file]),
    ]
    if tracks:
        given = {
            **scenario.origin,
            "source": "hardware",
            "hardware.armed": True,
            "hardware.command_array": f"{CONTROLLERS[interface]}/commands",
        }
        started.append(viewers.node("nh_control", "tracker", "", [given, sim_time]))
    return started


def _written(parameters: dict) -> str:
    """The file in the launch's log folder with these parameters."""
    file = Path(launch_config.log_dir) / "controllers.yaml"
    file.write_text(yaml.safe_dump(parameters, sort_keys=False), encoding="utf-8")
    return str(file)
