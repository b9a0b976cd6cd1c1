"""`nh_control export` writes a scenario's model, tracker and filter as C code, its tracker as a
ROS 2 package in C++, or its files for ros2_control.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import yaml

from nh_control.command.options import add_robot
from nh_control.command.usage import UsageError, find_scenario, usage_errors, writing
from nh_control.command.values import bounded_number
from nh_control.scenarios import Scenario
from nh_control.scenarios.controllers import CONTROLLERS, INTERFACES
from nh_control.scenarios.ros2_control import RosControl

PACKAGES = {"controller": "controller", "rclcpp": "tracker"}
"""Package kinds by option."""
KINDS = {
    "controller": "write the package NAME_controller: the tracker as a controller of ros2_control "
    "that commands efforts, in C++",
    "tracker": "write the package NAME_tracker: the tracker as a node that answers joint_states "
    "with joint_commands",
}


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser = commands.add_parser("export")
    add = parser.add_argument
    add("scenario", metavar="SCENARIO", help="name, path/to/file.py:NAME, or module:NAME")
    add("--c", action="store_true", help="write C code (C99): NAME.h, NAME.c, NAME_example.c")
    for option, kind in PACKAGES.items():
        add(f"--{option}", dest="packages", action="append_const", const=kind, help=KINDS[kind])
    add(
        "--ros2-control",
        nargs="?",
        const="",
        metavar="INTERFACE",
        help="write NAME.urdf with a hardware interface and NAME_controllers.yaml for controllers "
        f"of ros2_control that command {', '.join(INTERFACES)}, or JOINT:position,JOINT:velocity "
        "(default: the interface of the first of the controllers, or position)",
    )
    add(
        "--controllers",
        nargs="+",
        default=[],
        metavar="NAME",
        help=f"these controllers: {', '.join(CONTROLLERS)} (default: that of the interface)",
    )
    add_robot(parser.add_argument)
    motion = "motion whose gains are written (default: the scenario's first)"
    add("--reference", default="", metavar="NAME", help=motion)
    integrator = "integrator of the model (default: the scenario's first)"
    add("--integrator", default="", metavar="NAME", help=integrator)
    step = "step of the model in s (default: the scenario's)"
    add("--step", type=bounded_number(0, open_=True), default=0.0, metavar="S", help=step)
    add("--no-tracker", action="store_true", help="write no gains")
    add("--integral", action="store_true", help="a tracker with integral action")
    name = "prefix of all names in C (default: the system's name)"
    add("--name", default="", metavar="NAME", help=name)
    add("--output", default=".", metavar="DIR", help="folder of the files (default: this one)")
    parser.set_defaults(command=run)


def _write_controllers(
    scenario: Scenario, interface: str, controllers: list[str], name: str, output: str
) -> None:
    """Write the files for ros2_control."""
    with usage_errors(scenario.file):
        control = RosControl(scenario, interface, controllers)
        urdf, parameters = control.urdf(), control.parameters()
    folder = Path(output)
    with writing(output):
        folder.mkdir(parents=True, exist_ok=True)
        described, controlled = folder / f"{name}.urdf", folder / f"{name}_controllers.yaml"
        described.write_text(urdf, encoding="utf-8")
        controlled.write_text(yaml.safe_dump(parameters, sort_keys=False), encoding="utf-8")
    print(f"wrote {described}, {controlled}")


def run(args: Namespace) -> int:
    """Write the files. Returns the exit code."""
    from nh_control.interop.c_code import export_c
    from nh_control.interop.cpp_package import cpp_package
    from nh_control.scenarios.robot_joints import robot_joints

    kinds = args.packages or []
    if not (args.c or kinds or args.ros2_control is not None):
        raise UsageError(
            "choose what to write: --c for C code, --controller or --rclcpp for a package of ROS "
            "2, or --ros2-control position"
        )
    if kinds and args.no_tracker:
        raise UsageError("--controller and --rclcpp write a tracker: omit --no-tracker")
    scenario = find_scenario(args.scenario, args)
    if args.ros2_control is not None:
        name = args.name or scenario.name
        _write_controllers(scenario, args.ros2_control, args.controllers, name, args.output)
    if not (args.c or kinds):
        return 0
    with usage_errors(scenario.file):
        # packages are built from the C code for the model and the tracker
        robot = robot_joints(scenario) if kinds else None
        model = scenario.model(args.integrator, args.step)
        tracker = None
        # a system without inputs has no tracker
        if model.nu and not args.no_tracker:
            reference = scenario.reference(model, args.reference)
            tracker = scenario.tracker(model, reference, args.integral)
        code = export_c(model, tracker, name=args.name)
        packages = []
        if tracker is not None and robot is not None:
            packages = [cpp_package(kind, code, tracker, robot) for kind in kinds]
    # everything is computed before the first file is written
    with writing(args.output):
        files = code.write(args.output) if args.c else []
        files += [package.write(args.output) for package in packages]
    print("wrote " + ", ".join(map(str, files)))
    return 0
