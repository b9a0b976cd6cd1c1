"""Launch description of a plant that ros2_control controllers command, and of the tracker for a
robot that ros2_control drives.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml
from ament_index_python import get_packages_with_prefixes
from launch.actions import LogInfo, OpaqueFunction
from launch.events.process import ProcessExited
from launch.logging import launch_config
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchContext, LaunchDescription
from nh_control.ros import viewers
from nh_control.ros.arguments import SCENARIO, argument, is_true, robot_arguments
from nh_control.ros.bringup import find
from nh_control.scenarios import Scenario
from nh_control.scenarios.controllers import CONTROLLERS, EFFORT
from nh_control.scenarios.names import UnknownName
from nh_control.scenarios.ros2_control import BROADCASTER, COMMANDS, STATES, RosControl

PATIENCE_S = "60"
"""Maximum time for which the spawners wait, as a command-line argument. Controllers become active
only when the plant, which provides the clock, takes steps.
"""
NEEDED = ("controller_manager", "joint_state_topic_hardware_interface", "robot_state_publisher")
MANAGER = "controller_manager"
ARGUMENTS = (
    argument(SCENARIO.name, SCENARIO.entry.description, "urdf"),
    *robot_arguments(),
    argument(
        "interface",
        "quantity that the controllers command: position, velocity, effort or position+velocity, "
        "or position or velocity for each driven joint, JOINT:position,JOINT:velocity; empty = "
        "the quantity that the first of `controllers` commands, or else position",
    ),
    argument(
        "controllers",
        "controllers to load, separated by commas; the first one is active. Choose from "
        f"{', '.join(CONTROLLERS)}, or from controllers_file; empty = the controller of the "
        "interface, or all of controllers_file",
    ),
    argument(
        "controllers_file",
        "YAML file of the controllers; empty = a file that is written for the scenario",
    ),
    argument(
        "tracker",
        "the tracker sends commands through the effort_controller; needs interface:=effort",
        False,
    ),
)


def description(_: str, launch_file: str) -> LaunchDescription:
    """The launch description of the plant, the controller manager with its hardware interface, the
    controllers and, on request, the tracker. Every node uses the plant's time.
    """

    def start(context: LaunchContext) -> list[Node | LogInfo]:
        text = {a.name: context.launch_configurations[a.name].strip() for a in ARGUMENTS}
        return actions(find(context, text["scenario"]), text)

    declared = [argument.declare() for argument in ARGUMENTS]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def actions(scenario: Scenario, text: dict[str, str]) -> list[Node | LogInfo]:
    """The actions for the argument values in `text`. Raises ValueError for arguments that do not
    match.
    """
    interface, tracks = text["interface"], is_true(text["tracker"])
    if tracks and interface != EFFORT:
        raise ValueError("launch argument 'tracker': it sends efforts; set interface:=effort")
    # an empty list selects the interface's controller
    names = [name.strip() for name in text["controllers"].split(",") if name.strip()]
    file = text["controllers_file"]
    if file:
        types = _controller_types(file)
        names = _chosen(names, types, file)
        control = RosControl(scenario, interface)
    else:
        control = RosControl(scenario, interface, names)
        names = list(control.names)
        types = {name: CONTROLLERS[name].plugin for name in names}
        file = _written(control.parameters())
    # without this check, a missing package would only show up as the crash of a process
    installed = get_packages_with_prefixes()
    needed = [*NEEDED, *(types[name].partition("/")[0] for name in names)]
    missing = [name for name in dict.fromkeys(needed) if name not in installed]
    if missing:
        raise ValueError(f"install {', '.join(missing)} for controllers of ros2_control")
    sim_time = {"use_sim_time": True}
    described = {"robot_description": ParameterValue(control.urdf(), value_type=str)}
    # controllers set the pace: the plant neither waits for a tracker nor ends with a reference
    plant = {
        **scenario.origin,
        "command_interface": control.command_interface,
        "clock": "global",
        "on_finish": "continue",
        "wait_for_tracker": False,
    }
    # topics of joint_state_topic_hardware_interface
    renamed = [("joint_states", STATES), ("joint_commands", COMMANDS)]
    # spawners load all controllers, and activate the broadcaster and the first one
    active, inactive = [BROADCASTER, *names[:1]], names[1:]
    patience = ["--switch-timeout", PATIENCE_S, "--service-call-timeout", PATIENCE_S]
    options, follow = ["--param-file", file, *patience], []
    # the tracker starts when the controllers are active, so that it can be armed at once
    if tracks:
        tracking = {
            **scenario.origin,
            "source": "hardware",
            "hardware.armed": True,
            "hardware.command_array": f"{names[0]}/commands",
        }
        follow.append(viewers.node("nh_control", "tracker", "", [tracking, sim_time]))

    def spawned(event: ProcessExited, _: LaunchContext) -> list[Node]:
        """The nodes that start once the controllers are active."""
        return [] if event.returncode else follow

    started = [
        viewers.node("nh_control", "plant", "", [plant], remappings=renamed),
        viewers.node("robot_state_publisher", "robot_state_publisher", "", [described, sim_time]),
        viewers.node(MANAGER, "ros2_control_node", "", [file, sim_time]),
        viewers.node(MANAGER, "spawner", "", [], arguments=[*active, *options], on_exit=spawned),
    ]
    if inactive:
        others = [*inactive, "--inactive", *options]
        started.append(viewers.node(MANAGER, "spawner", "", [], arguments=others))
    return started


def _controller_types(file: str) -> dict[str, str]:
    """The controller types in a controller manager's YAML file, by controller name. Raises
    ValueError if the file contains no controllers.
    """
    try:
        content = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ValueError(f"launch argument 'controllers_file': {error}") from error
    nodes = content if isinstance(content, dict) else {}
    managers = [content for name, content in nodes.items() if name.strip("/") in (MANAGER, "**")]
    entries = [
        manager.get("ros__parameters", {}) for manager in managers if isinstance(manager, dict)
    ]
    types = {
        name: value["type"]
        for parameters in entries
        for name, value in parameters.items()
        if isinstance(value, dict) and isinstance(value.get("type"), str)
    }
    if not types:
        raise ValueError(
            f"launch argument 'controllers_file': {file} has no controllers; expected "
            f"{MANAGER}: ros__parameters: NAME: type: PACKAGE/CLASS"
        )
    return types


def _chosen(names: list[str], types: Mapping[str, str], file: str) -> list[str]:
    """The controllers to load from a file: those in `names`, or all of them if `names` is empty.
    Raises UnknownName.
    """
    for name in names:
        if name not in types:
            raise UnknownName(f"controller in {file}", name, types)
    return names or [name for name in types if name != BROADCASTER]


def _written(parameters: dict) -> str:
    """Write the parameters to a file in the launch's log folder, and return its path."""
    file = Path(launch_config.log_dir) / "controllers.yaml"
    file.write_text(yaml.safe_dump(parameters, sort_keys=False), encoding="utf-8")
    return str(file)
