"""Arguments of the command; the scenario determines the arguments of `simulate` and `run`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TypeAlias

from nh_control.command import (
    compare_integrators,
    doctor,
    export_scenario,
    identify_parameters,
    list_scenarios,
    new_scenario,
    replay_run,
    run_paper,
    run_scenario,
    run_study,
    view_run,
)
from nh_control.command.options import add_robot, add_settings, default_of, initial_errors, metavar
from nh_control.command.usage import PROGRAM, UsageError, find_scenario, usage_errors
from nh_control.command.values import reader
from nh_control.mechanics.parameters import NODES, PROCESS, Declaration, declarations
from nh_control.scenarios import Scenario, UnknownName

ON_SCENARIO = {
    "simulate": "run a scenario in this process, without ROS",
    "run": "run a scenario as ROS 2 nodes in processes of their own",
}
PERTURB = "--perturb-"

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments with `command`, the function that executes them; `scenario` is the
    Scenario object for commands that run one.

    Raises UsageError for a scenario that cannot be found or loaded, and SystemExit as argparse
    does.
    """
    scenario = None
    if argv and argv[0] in ON_SCENARIO:
        options = _shared(argv[0], usage=_usage(argv[0]))
        chosen, _ = options.parse_known_args(_without_errors(argv[1:]))
        if chosen.scenario:
            scenario = find_scenario(
                chosen.scenario, chosen.urdf, chosen.base, chosen.accept_any_inertia
            )
    with usage_errors(scenario.file if scenario else ""):
        parser = _parser(scenario)
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


def _parser(scenario: Scenario | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Simulate and control mechanical systems with structure-preserving "
        "integrators, in one process or as ROS 2 nodes.",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {_version()}")
    commands = parser.add_subparsers(metavar="COMMAND")
    _add_list(commands)
    _add_new(commands)
    export_scenario.add_to(commands)
    compare_integrators.add_to(commands)
    run_paper.add_to(commands)
    run_study.add_to(commands)
    replay_run.add_to(commands)
    identify_parameters.add_to(commands)
    view_run.add_to(commands)
    doctor.add_to(commands)
    for name, text in ON_SCENARIO.items():
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


def _version() -> str:
    try:
        return version(PROGRAM)
    except PackageNotFoundError:
        return "of a source tree that is not installed"


def _add_list(commands: _Commands) -> None:
    parser = commands.add_parser(
        "list",
        help="list scenarios with their integrators, references, parameters and actuators, or "
        "explain one scenario",
    )
    parser.add_argument(
        "scenario",
        nargs="?",
        metavar="SCENARIO",
        help="scenario to explain (default: list all)",
    )
    add_robot(parser.add_argument)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object instead of tables"
    )
    parser.add_argument(
        "--yaml",
        action="store_true",
        help="print a file of the parameters of its nodes, with their meanings, for params_file",
    )
    parser.set_defaults(command=list_scenarios.run)


def _add_new(commands: _Commands) -> None:
    parser = commands.add_parser(
        "new", help="write a short scenario that runs at once, to change and extend"
    )
    parser.add_argument("name", metavar="NAME", help="name of the scenario; the file is NAME.py")
    parser.set_defaults(command=new_scenario.run)


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
        f"e.g. --disturb {list_scenarios.example(list(targets.values()))}. "
        f"`{PROGRAM} list SCENARIO` explains them."
    ).replace("%", "%%")
