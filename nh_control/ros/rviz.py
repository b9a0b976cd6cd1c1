"""The rviz configuration for a scenario: displays, views and sizes that fit its system."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nh_control.runs import topics
from nh_control.scenarios import Scenario
from nh_control.scenarios.shown import BodyState
from nh_control.view.animation import Poses
from nh_control.view.camera import box

COMMON_FRAME = "world"
"""The common frame of several robots, which stand side by side."""
ROBOT_MODELS = ("snakeboard", "urdf")
"""Scenarios whose robot model is shown. The shapes of other scenarios are shown as markers."""
SMALLEST_M = 0.05
FRACTION = 0.3
"""Fraction of the window's height that the system fills."""
FIELD = math.pi / 4
"""Vertical field of view of rviz (rad)."""
WINDOW = 1400, 900
"""Width and height of the window in pixels."""
TOOLS = "Interact", "MoveCamera", "FocusCamera", "Measure"
LATCHED, NEW = "Transient Local", "Volatile"


@dataclass(frozen=True)
class Robot:
    """A robot's namespace, the prefix of its frames, and its position along y in "world" (m; None
    for a single robot).
    """

    namespace: str
    prefix: str
    y: float | None = None


def shows_robot_model(scenario: Scenario) -> bool:
    """Whether rviz shows the robot's URDF, with robot_state_publisher."""
    return scenario.origin["scenario"] in ROBOT_MODELS


def configuration(scenario: Scenario, robots: Sequence[Robot]) -> dict[str, Any]:
    """Return the configuration for these robots. Each robot's topics are in its namespace, and its
    frames have its prefix. The sizes of arrows, axes, lines and the grid are proportional to the
    size of the system. The view follows the body that travels.
    """
    # the system's size is that of the box around its shapes at the origin of its space
    visual = scenario.visual_model()
    space = scenario.system.space
    start = np.array([space.origin], dtype=float)
    low, high = box(visual, Poses.of(visual, scenario.parameters, start))
    size = max(float(np.max(high - low)), SMALLEST_M)
    body = scenario.body or next(iter(scenario.resting_bodies(space)), None)
    moving, center = "" if body is None else body.frame, (low + high) / 2
    if isinstance(body, BodyState):
        # the focal point is relative to the target frame, which moves with the body
        center = center - body.position
    first = robots[0]
    several = first.y is not None
    shown = [_of_robot(scenario, moving, size, robot) for robot in robots]
    groups = [_group(robot.namespace, displays) for robot, displays in zip(robots, shown)]
    return {
        "Panels": [],  # rviz hides docks only if the file contains Qt's window state
        "Visualization Manager": {
            "Class": "",
            "Name": "root",
            "Enabled": True,
            "Value": True,
            "Displays": [_grid(size), _frames(size), *(groups if several else shown[0])],
            "Global Options": {
                "Background Color": "48; 48; 48",
                "Fixed Frame": COMMON_FRAME if several else first.prefix + visual.parent,
                "Frame Rate": 30,
            },
            "Tools": _tools(scenario, first),
            "Views": _views(first.prefix + (moving or visual.parent), center, size),
        },
        "Window Geometry": {
            "Width": WINDOW[0],
            "Height": WINDOW[1],
            "X": 60,
            "Y": 60,
        },
    }


def _of_robot(scenario: Scenario, moving: str, size: float, robot: Robot) -> list[dict[str, Any]]:
    """The displays of one robot."""
    # use absolute names, because one rviz shows the topics of several robots
    root = f"/{robot.namespace}/" if robot.namespace else "/"
    model = shows_robot_model(scenario)
    displays = [
        _display(
            "MarkerArray",
            "Markers",
            Topic=_topic(f"{root}markers", NEW, 10),
            Namespaces={"plant": False, "reference": True, "trail": True} if model else {},
        )
    ]
    if model:
        described: dict[str, Any] = {
            "Description Source": "Topic",
            "Description Topic": _topic(f"{root}robot_description", LATCHED, 1),
            "TF Prefix": robot.prefix.rstrip("/"),
        }
        displays.insert(0, _display("RobotModel", "Robot", **described))
    # the odometry display follows the body that travels
    odometry = "odom" if scenario.body is not None else topics.odometry_of(moving)
    if moving:
        displays += [
            _display(
                "Path",
                "Reference",
                Topic=_topic(f"{root}reference", LATCHED, 1),
                Color="252; 175; 62",
                **{"Line Style": "Billboards", "Line Width": 0.01 * size},
                Offset={"X": 0, "Y": 0, "Z": 0.005 * size},
            ),
            _display(
                "Odometry",
                "Odometry",
                Topic=_topic(f"{root}{odometry}", NEW, 10),
                Covariance={"Value": False},
                Keep=50,
                Shape={
                    "Value": "Arrow",
                    "Alpha": 0.6,
                    "Color": "114; 159; 207",
                    "Head Length": 0.08 * size,
                    "Head Radius": 0.04 * size,
                    "Shaft Length": 0.2 * size,
                    "Shaft Radius": 0.015 * size,
                },
                **{"Position Tolerance": size / 2, "Angle Tolerance": 0.3},
            ),
        ]
    return displays


def _grid(size: float) -> dict[str, Any]:
    """The ground grid. The width of its cells (m) is a power of ten."""
    # the power of ten nearest to the system's size
    cell = 10.0 ** round(math.log10(size))
    look = {"Plane Cell Count": 40, "Cell Size": cell, "Alpha": 0.4, "Color": "160; 160; 164"}
    return _display("Grid", "Grid", Plane="XY", **{"Reference Frame": "<Fixed Frame>"}, **look)


def _frames(size: float) -> dict[str, Any]:
    """The axes of all frames."""
    look = {"Marker Scale": 0.2 * size, "Show Arrows": False, "Show Names": False}
    return _display("TF", "Frames", **look)


def _tools(scenario: Scenario, robot: Robot) -> list[dict[str, Any]]:
    """The tools, including one that sends goals to the first robot if it accepts them."""
    tools: list[dict[str, Any]] = [{"Class": f"rviz_default_plugins/{name}"} for name in TOOLS]
    if "goal" in topics.goals(scenario):
        topic = f"/{robot.namespace}/goal".replace("//", "/")
        tools.append({"Class": "rviz_default_plugins/SetGoal", "Topic": _topic(topic, NEW, 5)})
    return tools


def _views(frame: str, center: np.ndarray, size: float) -> dict[str, Any]:
    """The view of the system, which follows a frame, and a saved view from above."""
    # at this distance the window is size / FRACTION high: 2 d tan(FIELD / 2) = size / FRACTION
    distance = size / FRACTION / (2 * math.tan(FIELD / 2))
    focus = dict(zip("XYZ", (float(x) for x in center)))
    current = {"Distance": distance, "Focal Point": focus, "Pitch": 0.4, "Yaw": 4.3}
    above = {"Scale": FRACTION * WINDOW[1] / size, "Angle": 0, "X": 0, "Y": 0}
    return {
        "Current": _view("Orbit", "Current View", frame, size, current),
        "Saved": [_view("TopDownOrtho", "From above", frame, size, above)],
    }


def _view(kind: str, name: str, frame: str, size: float, more: dict[str, Any]) -> dict[str, Any]:
    clip = {"Near Clip Distance": 0.01 * size, "Target Frame": frame}
    return {"Class": f"rviz_default_plugins/{kind}", "Name": name, **clip, **more}


def _display(kind: str, name: str, **properties: Any) -> dict[str, Any]:
    shown = {"Name": name, "Enabled": True, "Value": True}
    return {"Class": f"rviz_default_plugins/{kind}", **shown, **properties}


def _group(name: str, displays: list[dict[str, Any]]) -> dict[str, Any]:
    return {"Class": "rviz_common/Group", "Name": name, "Enabled": True, "Displays": displays}


def _topic(name: str, durability: str, depth: int) -> dict[str, Any]:
    reliable = {"History Policy": "Keep Last", "Reliability Policy": "Reliable"}
    return {"Value": name, "Depth": depth, "Durability Policy": durability, **reliable}
