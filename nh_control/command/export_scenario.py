"""`nh_control export`: a scenario's model, tracker and filter as C code, or its files for
ros2_control.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import yaml

from nh_control.command.options import add_robot
from nh_control.command.usage import UsageError, find_scenario, usage_errors, writing
from nh_control.command.values import bounded_number
from nh_control.scenarios import Scenario, ros2_control
from nh_control.scenarios.ros2_control import INTERFACES


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser = commands.add_parser(
        "export",
        help="write a scenario's step, exact derivatives, LQR tracker and Kalman filter as C code "
        "that depends on nothing, for microcontrollers and C++ controllers; or URDF and "
        "parameters for ros2_control",
    )
    add = parser.add_argument
    add("scenario", metavar="SCENARIO", help="name, path/to/file.py:NAME, or module:NAME")
    add("--c", action="store_true", help="write C code (C99): NAME.h, NAME.c, NAME_example.c")
    add(
        "--ros2-control",
        choices=INTERFACES,
        metavar="INTERFACE",
        help="write NAME.urdf with a hardware interface and NAME_controllers.yaml for controllers "
        f"of ros2_control that command {', '.join(INTERFACES)}",
    )
    add_robot(parser.add_argument)
    motion = "motion whose gains are written (default: the scenario's first)"
    add("--reference", default="", metavar="NAME", help=motion)
    integrator = "integrator of the model (default: the scenario's first)"
    add("--integrator", default="", metavar="NAME", help=integrator)
    step = "step of the model in s (default: the scenario's)"
    add("--step", type=bounded_number(0, open_=True), default=0.0, metavar="S", help=step)
    add("--no-tracker", action="store_true", help="write no gains")
    name = "prefix of all names in C (default: the system's name)"
    add("--name", default="", metavar="NAME", help=name)
    add("--output", default=".", metavar="DIR", help="folder of the files (default: this one)")
    parser.set_defaults(command=run)


def _write_controllers(scenario: Scenario, interface: str, name: str, output: str) -> None:
    """Write the files for ros2_control."""
    with usage_errors(scenario.file):
        urdf = ros2_control.ros2_control_urdf(scenario, interface)
        parameters = ros2_control.controllers(scenario, interface)
    folder = Path(output)
    with writing(output):
        folder.mkdir(parents=True, exist_ok=True)
        described, controlled = folder / f"{name}.urdf", folder / f"{name}_controllers.yaml"
        described.write_text(urdf, encoding="utf-8")
        controlled.write_text(yaml.safe_dump(parameters, sort_keys=False), encoding="utf-8")
    print(f"wrote {described}, {controlled}")


def run(args: Namespace) -> int:
    """Write the files; returns the exit code."""
    from nh_control.interop.c_code import export_c

    if not (args.c or args.ros2_control):
        raise UsageError("say what to write: --c for C code, or --ros2-control position")
    scenario = find_scenario(args.scenario, args)
    if args.ros2_control:
        _write_controllers(scenario, args.ros2_control, args.name or scenario.name, args.output)
    if not args.c:
        return 0
    with usage_errors(scenario.file):
        model = scenario.model(args.integrator, args.step)
        tracker = None
        if model.nu and not args.no_tracker:
            tracker = scenario.tracker(model, scenario.reference(model, args.reference))
        code = export_c(model, tracker, name=args.name)
    with writing(args.output):
        files = code.write(args.output)
    print("wrote " + ", ".join(map(str, files)))
    return 0
