"""Arguments of the command. The scenario determines the arguments of `simulate` and `run`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from nh_control.command.usage import PROGRAM, UsageError, find_scenario, usage_errors

if TYPE_CHECKING:
    from nh_control.mechanics.parameters import Declaration
    from nh_control.scenarios import Scenario

COMMANDS = {
    "list": (
        "list_scenarios",
        "list scenarios with their integrators, references, parameters and actuators, or explain "
        "one scenario",
    ),
    "new": (
        "new_scenario",
        "write a short scenario that runs at once, for you to change and extend",
    ),
    "export": (
        "export_scenario",
        "write a scenario's step, exact derivatives, LQR tracker and Kalman filter as C code "
        "without dependencies, for microcontrollers and C++ controllers; its tracker as a C++ "
        "package of ROS 2; or URDF and parameters for ros2_control",
    ),
    "integrators": (
        "compare_integrators",
        "show all integrators: order, what they preserve and, for a scenario, the cost of a step",
    ),
    "compare": (
        "compare_integrators",
        "compare integrators and SciPy's solvers on a scenario's motion: error against processor "
        "time, energy, constraints",
    ),
    "paper": (
        "run_paper",
        "compute the figures and numbers of the papers behind this package, and compare them with "
        "the published ones",
    ),
    "benchmark": (
        "run_benchmarks",
        "compute classical benchmarks of multibody dynamics (bicycle, Andrews' squeezer, Bricard, "
        "rattleback, ...) and count the digits that agree with published numbers",
    ),
    "study": (
        "run_study",
        "run many variations of a scenario: grids, Monte Carlo, Latin hypercubes; statistics, "
        "basins, sensitivities; on all cores or a Dask cluster",
    ),
    "replay": (
        "replay_run",
        "apply a recorded run's commands to the plant and show the difference, which is 0 for a "
        "run in lock-step; or give a recorded robot's states to the tracker",
    ),
    "identify": (
        "identify_parameters",
        "estimate physical parameters from a table of measurements, a recording or a run, with "
        "standard deviations, and name those that the data do not determine",
    ),
    "view": ("view_run", "write a run as one page with scene, plots and timeline, and open it"),
    "film": ("view_run", "write a run as a film, without a display"),
    "plot": ("view_run", "draw the figures of a run again"),
    "node": (
        "call_nodes",
        "arm, pause, step or reset running nodes, and show their messages, without ros2",
    ),
    "doctor": (
        "doctor",
        "check the installation (packages, ROS 2, middleware, discovery, clock, compiler, cache) "
        "and name remedies; exit code 1 if something does not work",
    ),
    "simulate": ("run_scenario", "run a scenario in this process, without ROS"),
    "run": ("run_scenario", "run a scenario as ROS 2 nodes, each in its own process"),
}
"""The modules of the commands and their summaries. Only the chosen command's module is
imported.
"""
ON_SCENARIO = ("simulate", "run")
"""Commands whose options depend on the scenario."""
EXAMPLES = {
    "list": "show the scenarios",
    "simulate snakeboard": "run one in this process",
    "run snakeboard --view": "run it as ROS 2 nodes, and watch it in a browser",
    "new my_robot": "write a short scenario of your own",
    "study cart_pole --seeds 20": "repeat a run with other initial errors",
}
"""Text that the program shows if it has no arguments."""
PERTURB = "--perturb-"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments, including `command`, which is the function that executes them. For
    commands that run a scenario, `scenario` is the Scenario object.

    Raises UsageError for a scenario that cannot be found or loaded, and SystemExit as argparse
    does.
    """
    scenario = None
    _refuse_unknown_command(argv)
    if argv and argv[0] in ON_SCENARIO:
        # 1. only the options of all scenarios, to find the scenario
        options = _shared(argv[0], usage=_usage(argv[0]))
        shared, _ = options.parse_known_args(_without_errors(argv[1:]))
        if shared.scenario:
            scenario = find_scenario(shared.scenario, shared)
    # 2. all options, which depend on the scenario
    chosen = argv[0] if argv else ""
    if scenario is None:
        parser = _parser(chosen, scenario)
    else:
        with usage_errors(scenario.file):
            parser = _parser(chosen, scenario)
    if scenario is not None:
        _refuse_unknown_errors(argv, scenario)
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        _refuse_unknown_options(parser, argv, unknown)
    if "command" not in args:
        args.command = partial(_help, parser) if argv else _print_examples
    if scenario is not None:
        args.scenario = scenario
    return args


def _refuse_unknown_command(argv: Sequence[str]) -> None:
    """Raise UsageError for a command that does not exist, and name the closest one."""
    if argv and not argv[0].startswith("-") and argv[0] not in COMMANDS:
        from nh_control.scenarios.names import UnknownName

        raise UsageError(str(UnknownName("command", argv[0], COMMANDS)))


def _refuse_unknown_options(
    parser: argparse.ArgumentParser, argv: Sequence[str], unknown: Sequence[str]
) -> None:
    """Raise UsageError for options that the chosen command or its verb does not have, and name the
    closest one.
    """
    import difflib

    names = []
    # descend to the parser of the command, and of its verb
    for word in argv:
        choices = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        if not choices or word not in choices[0].choices:
            break
        parser = choices[0].choices[word]
        names.append(word)
    valid = parser._option_string_actions
    # the value in --option=VALUE is not compared
    close = difflib.get_close_matches(unknown[0].partition("=")[0], valid, n=1, cutoff=0.8)
    meant = f"did you mean {close[0]}? " if close else ""
    raise UsageError(
        f"`{' '.join([PROGRAM, *names])}` does not accept {' '.join(unknown)}; {meant}"
        f"`{' '.join([PROGRAM, *names])} --help` shows its options"
    )


def _help(parser: argparse.ArgumentParser, _: argparse.Namespace) -> int:
    parser.print_help()
    return 0


def _print_examples(_: argparse.Namespace) -> int:
    width = max(map(len, EXAMPLES))
    print(f"{PROGRAM} simulates and controls mechanical systems. Commands to start with:\n")
    for example, text in EXAMPLES.items():
        print(f"  {PROGRAM} {example:{width}}  {text}")
    print(f"\n`{PROGRAM} --help` lists all commands, `{PROGRAM} COMMAND --help` explains one.")
    return 0


def _without_errors(argv: Sequence[str]) -> list[str]:
    """Return the arguments without the options for initial errors, which depend on the
    scenario.
    """
    out, value = [], False
    for argument in argv:
        if not value and not argument.startswith(PERTURB):
            out.append(argument)
        # the value of `--perturb-NAME VALUE` is the next argument
        value = not value and argument.startswith(PERTURB) and "=" not in argument
    return out


def _refuse_unknown_errors(argv: Sequence[str], scenario: Scenario) -> None:
    """Raise UsageError for an initial error that this scenario does not have."""
    from nh_control.mechanics.parameters import declarations
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
    """Return the parser of the chosen command or, without a command, a parser with the summaries
    of all commands.
    """
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Simulate and control mechanical systems with structure-preserving "
        "integrators, in one process or as ROS 2 nodes.",
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="show program's version number and exit"
    )
    commands = parser.add_subparsers(metavar="COMMAND")
    if chosen not in COMMANDS:
        for name, (_, summary) in COMMANDS.items():
            commands.add_parser(name, help=summary)
    elif chosen in ON_SCENARIO:
        _add_run(commands, chosen, scenario)
    # importing every command would take a second, so only the chosen module is imported
    else:
        import_module(f"nh_control.command.{COMMANDS[chosen][0]}").add_to(commands)
    return parser


def _add_run(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    scenario: Scenario | None,
) -> None:
    """Add `simulate` or `run` with the options of the scenario."""
    module, text = COMMANDS[name]
    command = commands.add_parser(
        name,
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
    command.set_defaults(command=getattr(import_module(f"nh_control.command.{module}"), name))


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
    """Return the options of `simulate` or `run` that all scenarios have."""
    from nh_control.command.options import add_robot, add_settings
    from nh_control.mechanics.parameters import NODES, PROCESS

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
    add("--overwrite", action="store_true", help="replace the results in --output")
    add("--no-plots", action="store_true", help="draw no figures")
    add("--json", action="store_true", help="print one JSON object instead of the table")
    return parser


def _add_scenario(parser: argparse.ArgumentParser, scenario: Scenario) -> None:
    """Add the scenario's initial errors as options, and its parameters and targets to the help."""
    from nh_control.command.list_scenarios import example
    from nh_control.command.options import default_of, initial_errors, metavar
    from nh_control.command.values import reader
    from nh_control.mechanics.parameters import declarations

    errors = parser.add_argument_group(f"initial error of {scenario.name}")
    # the default of an initial error may depend on the system
    system = scenario.system
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
        # argparse formats the epilog with %
    ).replace("%", "%%")
