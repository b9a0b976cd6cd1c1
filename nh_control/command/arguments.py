"""Arguments of the command; the scenario determines the arguments of `simulate` and `run`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from nh_control.command import run_scenario
from nh_control.command.options import add_robot, add_settings, default_of, initial_errors, metavar
from nh_control.command.usage import PROGRAM, UsageError, find_scenario, usage_errors
from nh_control.command.values import reader
from nh_control.mechanics.parameters import NODES, PROCESS, Declaration, declarations

if TYPE_CHECKING:
    from nh_control.scenarios import Scenario

ON_SCENARIO = {
    "simulate": "run a scenario in this process, without ROS",
    "run": "run a scenario as ROS 2 nodes in processes of their own",
}
MODULES = {
    "list_scenarios": ("list",),
    "new_scenario": ("new",),
    "export_scenario": ("export",),
    "compare_integrators": ("integrators", "compare"),
    "run_paper": ("paper",),
    "run_benchmarks": ("benchmark",),
    "run_study": ("study",),
    "replay_run": ("replay",),
    "identify_parameters": ("identify",),
    "view_run": ("view", "film", "plot"),
    "doctor": ("doctor",),
}
"""Modules of the other commands."""
PERTURB = "--perturb-"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments with `command`, the function that executes them; `scenario` is the
    Scenario object for commands that run one.

    Raises UsageError for a scenario that cannot be found or loaded, and SystemExit as argparse
    does.
    """
    scenario = None
    if argv and argv[0] in ON_SCENARIO:
        options = _shared(argv[0], usage=_usage(argv[0]))
        given, _ = options.parse_known_args(_without_errors(argv[1:]))
        if given.scenario:
            scenario = find_scenario(given.scenario, given)
    chosen = argv[0] if argv else ""
    if scenario is None:
        parser = _parser(chosen, scenario)
    else:
        with usage_errors(scenario.file):
            parser = _parser(chosen, scenario)
    if scenario is not None:
        _refuse_unknown_errors(argv, scenario)
    args = parser.parse_args(argv)
    if "command" not in args:
        args.command = partial(_help, parser)
    if scenario is not None:
        args.scenario = scenario
    return args


def _help(parser: argparse.ArgumentParser, _: argparse.Namespace) -> int:
    parser.print_help()
    return 0


def _without_errors(argv: Sequence[str]) -> list[str]:
    """Return the arguments without the options for initial errors, which depend on the
    scenario.
    """
    out, value = [], False
    for argument in argv:
        if not value and not argument.startswith(PERTURB):
            out.append(argument)
        value = not value and argument.startswith(PERTURB) and "=" not in argument
    return out


def _refuse_unknown_errors(argv: Sequence[str], scenario: Scenario) -> None:
    """Raise UsageError for an initial error that this scenario does not have."""
    from nh_control.scenarios import UnknownName

    valid = [_option(entry) for entry in declarations(scenario.perturbation)]
    for argument in argv:
        name = argument.partition("=")[0]
        if name.startswith(PERTURB) and not any(option.startswith(name) for option in valid):
            names = [option.removeprefix(PERTURB) for option in valid]
            unknown = UnknownName(
                f"initial error of {scenario.name},", name.removeprefix(PERTURB), names
            )
            raise UsageError(str(unknown))


def _option(entry: Declaration) -> str:
    return PERTURB + entry.name.replace("_", "-")


def _usage(command: str) -> str:
    return f"{PROGRAM} {command} SCENARIO [options]"


def _parser(chosen: str, scenario: Scenario | None) -> argparse.ArgumentParser:
    """Return the parser of the chosen command, or of all where none of them is chosen. Modules of
    other commands are not imported, which would take longer than many commands do.
    """
    known = chosen in (*ON_SCENARIO, *(name for names in MODULES.values() for name in names))
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Simulate and control mechanical systems with structure-preserving "
        "integrators, in one process or as ROS 2 nodes.",
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="show program's version number and exit"
    )
    commands = parser.add_subparsers(metavar="COMMAND")
    for module, names in MODULES.items():
        if chosen in names or not known:
            import_module(f"nh_control.command.{module}").add_to(commands)
    for name, text in ON_SCENARIO.items():
        if chosen != name and known:
            continue
        command = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            usage=_usage(name),
            parents=[_shared(name, required=True)],
            epilog=None
            if scenario
            else f"`{PROGRAM} {name} SCENARIO --help` shows the "
            "initial errors, parameters and disturbances of this scenario.",
        )
        if scenario is not None:
            _add_scenario(command, scenario)
        command.set_defaults(command=getattr(run_scenario, name))
    return parser


class _Version(argparse.Action):
    """Prints the version and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        print(f"{PROGRAM} {_version()}")
        parser.exit()


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(PROGRAM)
    except PackageNotFoundError:
        return "of a source tree that is not installed"


def _shared(
    command: str, required: bool = False, usage: str | None = None
) -> argparse.ArgumentParser:
    """Return the options of `simulate` or `run` for all scenarios."""
    parser = argparse.ArgumentParser(prog=PROGRAM, add_help=False, usage=usage)
    add = parser.add_argument
    where = f"a name that `{PROGRAM} list` shows, path/to/file.py:NAME, or module:NAME"
    add("scenario", metavar="SCENARIO", help=where, nargs=None if required else "?")
    add_robot(add)
    add_settings(add, without=NODES if command == "simulate" else PROCESS)
    add(
        "--output",
        default=None,
        metavar="DIR",
        help="folder of the results (default: a new nh_control_output/<scenario>-<reference>)",
    )
    add("--overwrite", action="store_true", help="replace results in a given --output")
    add("--no-plots", action="store_true", help="draw no figures")
    add("--json", action="store_true", help="print one JSON object instead of the table")
    return parser


def _add_scenario(parser: argparse.ArgumentParser, scenario: Scenario) -> None:
    """Add the scenario's initial errors as options, and its parameters and targets to the help."""
    from nh_control.command.list_scenarios import example

    errors = parser.add_argument_group(f"initial error of {scenario.name}")
    system = scenario.make_system(scenario.parameters)
    for entry in initial_errors(scenario):
        errors.add_argument(
            _option(entry),
            dest=f"perturb_{entry.name}",
            type=reader(entry),
            default=entry.value,
            metavar=metavar(entry),
            help=entry.text.replace("%", "%%") + default_of(entry),
        )
    targets = scenario.targets(system)
    names = [f"{d.name} ({d.unit})".replace(" ()", "") for d in declarations(scenario.parameters)]
    parser.epilog = (
        f"Parameters of {scenario.name}: {', '.join(names) or 'none'}. "
        f"Disturbances may act on: {', '.join(targets)}; "
        f"e.g. --disturb {example(list(targets.values()))}. "
        f"`{PROGRAM} list SCENARIO` explains them."
    ).replace("%", "%%")
