"""The tracker for a robot's joints, as a ROS 2 C++ package around the exported C code. The package
contains a controller for ros2_control, or a node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nh_control.control.tracking import LqrTracker
from nh_control.interop.c_code import CCode

TEMPLATES = Path(__file__).parent / "templates"
PLACEHOLDER = re.compile(r"@(\w+)@")
"""A template's placeholder for the text with the given name."""
CORE = ("tracker_core.hpp", "tracker_settings.hpp", "model.hpp")
FILES = {
    "controller": {
        "package.xml": "controller_package.xml",
        "CMakeLists.txt": "controller_CMakeLists.txt",
        "README.md": "controller_README.md",
        "plugin.xml": "plugin.xml",
        "config/controllers.yaml": "controllers.yaml",
        "src/tracker_controller.cpp": "tracker_controller.cpp",
    },
    "tracker": {
        "package.xml": "node_package.xml",
        "CMakeLists.txt": "node_CMakeLists.txt",
        "README.md": "node_README.md",
        "config/tracker.yaml": "tracker.yaml",
        "src/tracker_node.cpp": "tracker_node.cpp",
    },
}
"""Templates for the packages, by path. Both packages also contain the core."""
START_POSITION, START_VELOCITY = 0.2, 0.5
"""Default limits on a joint's distance (m, rad; m/s, rad/s) from the reference's initial state."""


@dataclass(frozen=True)
class RobotJoint:
    """A joint whose value is `sign` times a coordinate, and whether it is `tracked`."""

    name: str
    sign: float
    unit: str
    tracked: bool


@dataclass(frozen=True)
class JointEffort:
    """A joint's effort, by the joint's index. The model's `input` equals `gain` times the
    effort.
    """

    joint: int
    input: int
    gain: float


@dataclass(frozen=True)
class RobotJoints:
    """The joints in the order of the coordinates, and the efforts in the order of the inputs."""

    joints: tuple[RobotJoint, ...]
    efforts: tuple[JointEffort, ...]


@dataclass(frozen=True)
class CppPackage:
    """The texts of a package's files, by path within the folder `name`."""

    name: str
    files: Mapping[str, str]

    def write(self, folder: str | Path) -> Path:
        """Write the package to a subfolder of a folder, and return the subfolder. Raises
        OSError.
        """
        top = Path(folder, self.name)
        for path, text in self.files.items():
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_text(text, encoding="utf-8")
        return top


def cpp_package(kind: str, code: CCode, tracker: LqrTracker, robot: RobotJoints) -> CppPackage:
    """The package NAME_controller with a plugin for controller_manager (`kind` "controller"), or
    the package NAME_tracker with a node that answers joint_states ("tracker"). Both contain the
    same core and the tracker's C code.
    """
    package = f"{code.name.lower()}_{kind}"
    words = _words(tracker, robot, package, code.name)
    # this template is part of other templates, so it is filled in first
    words["settings"] = _filled("settings.yaml", words).rstrip("\n")
    names = FILES[kind] | {f"src/{file}": file for file in CORE}
    files = {path: _filled(template, words) for path, template in names.items()}
    source = {f"src/{code.name}.h": code.header, f"src/{code.name}.c": code.source}
    return CppPackage(package, files | source)


def _filled(template: str, words: Mapping[str, str]) -> str:
    """The template's text, with the placeholders replaced by the words."""
    text = TEMPLATES.joinpath(template).read_text(encoding="utf-8")
    return PLACEHOLDER.sub(lambda match: words[match[1]], text)


def _words(tracker: LqrTracker, robot: RobotJoints, package: str, name: str) -> dict[str, str]:
    dsys, hold, integral = tracker.dsys, tracker.hold, tracker.disturbance_gain > 0
    # joints in the order of the inputs
    driven = [robot.joints[effort.joint].name for effort in robot.efforts]
    is_node = package.endswith("_tracker")
    return {
        "package": package,
        "PACKAGE": package.upper(),
        "name": name,
        "NAME": name.upper(),
        "model": str(dsys),
        "reference": tracker.reference.name or "its reference",
        "step_s": repr(float(dsys.h)),
        "rate": str(round(1 / dsys.h)),
        "memory": f"{name.upper()}_NM" if integral else "1",
        "memory_name": "memory" if integral else "",
        "memory_passed": "memory, " if integral else "",
        "integral": "with integral action, " if integral else "",
        "start_position": str(START_POSITION),
        "start_velocity": str(START_VELOCITY),
        "start_topic": "reference_start" if is_node else "~/reference_start",
        "at_end": "hold" if hold else "zero",
        "at_end_choices": f"{'hold, ' if hold else ''}zero effort, or error",
        "n_joints": str(len(robot.joints)),
        "joints": "\n".join(map(_joint, robot.joints)),
        "joint_names": ", ".join(joint.name for joint in robot.joints),
        "n_efforts": str(len(robot.efforts)),
        "efforts": "\n".join(map(_effort, robot.efforts)),
        "effort_names": ", ".join(driven),
        "scales": ", ".join("1.0" for _ in driven),
    }


def _joint(joint: RobotJoint) -> str:
    """C++ text of a `nh_control::Joint`."""
    tracked = "true" if joint.tracked else "false"
    return f'        {{"{joint.name}", {joint.sign!r}, {tracked}, "{joint.unit}"}},'


def _effort(effort: JointEffort) -> str:
    """C++ text of a `nh_control::Effort`."""
    return f"        {{{effort.joint}, {effort.input}, {effort.gain!r}}},"
