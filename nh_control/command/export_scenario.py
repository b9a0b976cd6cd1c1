"""`nh_control export`: a scenario's model, tracker and filter as C code."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from nh_control.command.usage import UsageError, find_scenario, usage_errors, writing
from nh_control.command.values import bounded_number


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser = commands.add_parser(
        "export",
        help="write a scenario's step, exact derivatives, LQR tracker and Kalman filter as C code "
        "that depends on nothing, for microcontrollers and C++ controllers",
    )
    add = parser.add_argument
    add("scenario", metavar="SCENARIO", help="name, path/to/file.py:NAME, or module:NAME")
    add("--c", action="store_true", help="write C code (C99): NAME.h, NAME.c, NAME_example.c")
    add("--urdf", default="", metavar="FILE", help="robot of the scenario urdf")
    root = "whether the root link of that robot is fixed or floating"
    add("--base", choices=("fixed", "floating"), default="fixed", help=root)
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


def run(args: Namespace) -> int:
    """Write the files; returns the exit code."""
    from nh_control.interop.c_code import export_c

    if not args.c:
        raise UsageError("say what to write: --c for C code")
    scenario = find_scenario(args.scenario, args.urdf, args.base)
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
