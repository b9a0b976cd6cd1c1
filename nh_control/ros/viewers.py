"""Viewers of a launch: the robots' models, their places and one rviz for all robots."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ament_index_python import get_packages_with_prefixes
from launch.actions import LogInfo
from launch.logging import launch_config
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from nh_control.ros.arguments import argument

WORLD = "world"
"""The common frame of several robots, which stand side by side."""
CLOCK = ("/clock", "clock")
"""The remapping from /clock to the clock in the robot's namespace."""
ROBOTS = (
    argument("robots", "how many robots, or their names, with spaces between them", "2"),
    argument("spacing", "distance between the robots along y in rviz", 3.0, unit="m"),
)


@dataclass(frozen=True)
class Robot:
    """A robot's namespace, the prefix of its frames, and its place in WORLD along y in m (None for
    a single robot).
    """

    namespace: str
    prefix: str
    y: float | None = None


def robots(text: dict[str, str]) -> list[Robot]:
    """Return the robots of the arguments' texts; raises ValueError for invalid or equal names."""
    if "robots" not in text:
        namespace, prefix = text["namespace"].strip("/"), text["frame_prefix"] or "auto"
        own = f"{namespace}/" if namespace else ""
        return [Robot(namespace, own if prefix == "auto" else prefix)]
    given = text["robots"].replace(",", " ").split()
    if len(given) == 1 and given[0].isdigit() and int(given[0]):
        given = [f"robot{i + 1}" for i in range(int(given[0]))]
    valid = all(re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) for name in given)
    if not given or not valid or len(set(given)) < len(given):
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
    return [Robot(name, f"{name}/", spacing * i) for i, name in enumerate(given)]


def node(package: str, executable: str, namespace: str, given: list, **more: Any) -> Node:
    """Return a node that logs to the screen."""
    return Node(
        package=package,
        executable=executable,
        namespace=namespace,
        parameters=given,
        output="screen",
        **more,
    )


def model(robot: Robot, urdf: str, sim_time: dict[str, bool], own_clock: bool) -> Node | LogInfo:
    """Return the robot_state_publisher of a robot with this URDF, or a warning."""
    given = {
        "robot_description": ParameterValue(urdf, value_type=str),
        "publish_frequency": 50.0,
        **({"frame_prefix": robot.prefix} if robot.prefix else {}),
    }
    name = "robot_state_publisher"
    return _warning("robot_state_publisher", "the robot model is not shown") or node(
        name,
        name,
        robot.namespace,
        [given, sim_time],
        **({"remappings": [CLOCK]} if own_clock else {}),
    )


def place(robot: Robot, parent: str) -> Node | LogInfo:
    """Return the publisher of a robot's place in WORLD, or a warning."""
    arguments = ["--y", f"{robot.y:g}", "--frame-id", WORLD]
    arguments += ["--child-frame-id", robot.prefix + parent]
    return _warning("tf2_ros", "the robots have no common frame") or node(
        "tf2_ros", "static_transform_publisher", robot.namespace, [], arguments=arguments
    )


def rviz(
    shown: Sequence[Robot],
    config: Path,
    parent: str,
    topics: Sequence[str],
    sim_time: dict[str, bool],
) -> Node | LogInfo:
    """Return one rviz for all robots, or a warning. The file `config` has the displays of one
    robot; `topics` are relative to its namespace.
    """
    missing = _warning("rviz2", "there is no picture")
    if missing:
        return missing
    first = shown[0]
    frame = WORLD if first.y is not None else first.prefix + parent if parent else ""
    if any(robot.prefix for robot in shown):
        configuration = view(yaml.safe_load(config.read_text(encoding="utf-8")), shown)
        config = Path(launch_config.log_dir) / config.name
        config.write_text(yaml.safe_dump(configuration, sort_keys=False), encoding="utf-8")
    given = ["--display-config", str(config), *(["--fixed-frame", frame] if frame else [])]
    return node(
        "rviz2",
        "rviz2",
        first.namespace,
        [sim_time],
        arguments=given,
        remappings=[("/" + topic, topic) for topic in topics],
    )


def view(configuration: dict, shown: Sequence[Robot]) -> dict:
    """Adapt the configuration of rviz for one robot without a prefix to the robots `shown`: frames
    get their prefixes; each of several robots gets a group of displays with topics in its
    namespace.
    """
    configuration = copy.deepcopy(configuration)
    manager = configuration["Visualization Manager"]
    views = manager["Views"]
    for one in (views["Current"], *views["Saved"]):
        if one["Target Frame"] != "<Fixed Frame>":
            one["Target Frame"] = shown[0].prefix + one["Target Frame"]
    if len(shown) == 1:
        manager["Displays"] = [_of_robot(one, shown[0]) for one in manager["Displays"]]
        return configuration
    common = [one for one in manager["Displays"] if not _topics(one)]
    own = [one for one in manager["Displays"] if _topics(one)]
    groups = [
        {
            "Class": "rviz_common/Group",
            "Name": robot.namespace,
            "Enabled": True,
            "Displays": [_of_robot(one, robot, f"/{robot.namespace}") for one in own],
        }
        for robot in shown
    ]
    manager["Displays"] = common + groups
    return configuration


def _of_robot(display: dict, robot: Robot, namespace: str = "") -> dict:
    """Return a copy of a display for this robot, with topics in `namespace`."""
    display = copy.deepcopy(display)
    if "TF Prefix" in display:
        display["TF Prefix"] = robot.prefix.rstrip("/")
    for key in _topics(display):
        display[key]["Value"] = namespace + display[key]["Value"]
    return display


def _topics(display: dict) -> list[str]:
    """Return the keys of a display that contain topics."""
    return [key for key, value in display.items() if key.endswith("Topic") and "Value" in value]


def _warning(package: str, consequence: str) -> LogInfo | None:
    """Return a warning if an optional package is not installed, else None."""
    if package in get_packages_with_prefixes():
        return None
    return LogInfo(msg=f"WARNING: {package} is not installed: {consequence}")
