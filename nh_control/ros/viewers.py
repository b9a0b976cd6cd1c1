"""Viewers in a launch: the robots' models and positions, and one rviz for all robots."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from ament_index_python import get_packages_with_prefixes
from launch.actions import LogInfo
from launch.logging import launch_config
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from nh_control.ros.arguments import argument
from nh_control.ros.rviz import COMMON_FRAME, Robot

CLOCK = ("/clock", "clock")
"""The remapping from /clock to the clock in the robot's namespace."""
ROBOTS = (
    argument("robots", "how many robots, or their names, with spaces between them", "2"),
    argument("spacing", "distance between the robots along y in rviz", 3.0, unit="m"),
)


def robots(text: dict[str, str]) -> list[Robot]:
    """Return the robots that the argument values name. Raises ValueError for invalid or duplicate
    names.
    """
    if "robots" not in text:
        namespace, prefix = text["namespace"].strip("/"), text["frame_prefix"] or "auto"
        automatic = f"{namespace}/" if namespace else ""
        return [Robot(namespace, automatic if prefix == "auto" else prefix)]
    names = text["robots"].replace(",", " ").split()
    if len(names) == 1 and names[0].isdigit() and int(names[0]):
        names = [f"robot{i + 1}" for i in range(int(names[0]))]
    # a ROS namespace is a letter followed by letters, digits and underscores
    valid = all(re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) for name in names)
    if not names or not valid or len(set(names)) < len(names):
        raise ValueError(
            f"launch argument 'robots': expected a number of robots, or different names of "
            f"letters, digits and _, got '{text['robots']}'"
        )
    try:
        spacing = float(text["spacing"])
    except ValueError:
        raise ValueError(
            f"launch argument 'spacing': expected a number, got '{text['spacing']}'"
        ) from None
    return [Robot(name, f"{name}/", spacing * i) for i, name in enumerate(names)]


def node(package: str, executable: str, namespace: str, parameters: list, **more: Any) -> Node:
    """Return a node that logs to the screen."""
    return Node(
        package=package,
        executable=executable,
        namespace=namespace,
        parameters=parameters,
        output="screen",
        **more,
    )


def model(robot: Robot, urdf: str, sim_time: dict[str, bool], local_clock: bool) -> Node | LogInfo:
    """Return the robot_state_publisher of a robot with the given URDF, or a warning if the package
    is missing.
    """
    described = {
        "robot_description": ParameterValue(urdf, value_type=str),
        "publish_frequency": 50.0,
        **({"frame_prefix": robot.prefix} if robot.prefix else {}),
    }
    name = "robot_state_publisher"
    return _warning("robot_state_publisher", "the robot model is not shown") or node(
        name,
        name,
        robot.namespace,
        [described, sim_time],
        **({"remappings": [CLOCK]} if local_clock else {}),
    )


def place(robot: Robot, parent: str) -> Node | LogInfo:
    """Return the publisher of a robot's place in "world", or a warning if its package is
    missing.
    """
    arguments = ["--y", f"{robot.y:g}", "--frame-id", COMMON_FRAME]
    arguments += ["--child-frame-id", robot.prefix + parent]
    return _warning("tf2_ros", "the robots have no common frame") or node(
        "tf2_ros", "static_transform_publisher", robot.namespace, [], arguments=arguments
    )


def rviz(
    configuration: dict[str, Any],
    name: str,
    sim_time: dict[str, bool],
    local_clock: bool,
    namespace: str,
) -> Node | LogInfo:
    """Write the configuration as `<name>.rviz` to the launch's log folder, and return rviz with
    this configuration, or a warning if rviz is not installed.
    """
    missing = _warning("rviz2", "there is no picture")
    if missing:
        return missing
    file = Path(launch_config.log_dir) / f"{name}.rviz"
    file.write_text(yaml.safe_dump(configuration, sort_keys=False), encoding="utf-8")
    return node(
        "rviz2",
        "rviz2",
        namespace,
        [sim_time],
        arguments=["--display-config", str(file)],
        **({"remappings": [CLOCK]} if local_clock else {}),
    )


def _warning(package: str, consequence: str) -> LogInfo | None:
    """Return a warning if an optional package is not installed, otherwise None."""
    if package in get_packages_with_prefixes():
        return None
    return LogInfo(msg=f"WARNING: {package} is not installed: {consequence}")
