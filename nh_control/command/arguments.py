"""Arguments of the command; the scenario determines the arguments of `simulate` and `run`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
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
from nh_control.command.usage import PROGRAM, UsageError, add_robot, find_scenario, usage_errors
from nh_control.command.values import (
    assignment,
    bounded_integer,
    bounded_number,
    declared,
    parsed,
)
from nh_control.mechanics.parameters import Declaration, declarations
from nh_control.scenarios import Scenario, UnknownName, disturbance, fault, free_motion
from nh_control.scenarios.perturbation import default_perturbation
from nh_control.scenarios.sensor import ESTIMATES

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
        options = _shared(usage=_usage(argv[0]))
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
            formatter_class=_Help,
            parents=[_shared(required=True)],
            epilog=None
            if scenario
            else f"`{PROGRAM} {name} SCENARIO --help` shows the "
            "initial errors, parameters and disturbances of this scenario.",
        )
        if scenario is not None:
            _add_scenario(command, scenario)
        {"simulate": _add_simulate, "run": _add_run}[name](command)
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
    add_robot(parser)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object instead of tables"
    )
    parser.set_defaults(command=list_scenarios.run)


def _add_new(commands: _Commands) -> None:
    parser = commands.add_parser(
        "new", help="write a short scenario that runs at once, to change and extend"
    )
    parser.add_argument("name", metavar="NAME", help="name of the scenario; the file is NAME.py")
    parser.set_defaults(command=new_scenario.run)


def _shared(required: bool = False, usage: str | None = None) -> argparse.ArgumentParser:
    """Return the options that `simulate` and `run` share for all scenarios."""
    parser = argparse.ArgumentParser(prog=PROGRAM, add_help=False, usage=usage)
    add = parser.add_argument
    where = f"a name that `{PROGRAM} list` shows, path/to/file.py:NAME, or module:NAME"
    add("scenario", metavar="SCENARIO", help=where, nargs=None if required else "?")
    add_robot(parser)
    _add_model(add)
    _add_plant(add)
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


def _add_model(add: Callable) -> None:
    def text(option: str, meaning: str) -> None:
        add(option, default="", metavar="NAME", help=meaning)

    def seconds(option: str, meaning: str) -> None:
        add(option, type=bounded_number(0, open_=True), default=0.0, metavar="S", help=meaning)

    motion = "motion that the tracker follows, or a joint trajectory, FILE.csv or FILE.yaml"
    free = f"{free_motion.SYNTAX}, without forces from these coordinates and velocities"
    text("--reference", f"{motion}, or {free} (default: the scenario's first)")
    text("--integrator", "integrator of the tracker's model (default: the scenario's first)")
    seconds("--step", "step of model and commands in s (default: the scenario's)")
    seconds("--duration", "simulated time in s (default: the reference's length)")
    integral = "let the tracker estimate a constant disturbance and compensate it"
    add("--integral", action="store_true", help=integral)
    _add_controller(add, seconds)
    estimate = "states that the tracker gets: the plant's, or a filter's of the scenario's sensors"
    add("--estimate", choices=ESTIMATES, default=ESTIMATES[0], help=f"{estimate} alone")


def _add_controller(add: Callable, seconds: Callable[[str, str], None]) -> None:
    which = "lqr, or mpc, which plans ahead within limits and constraints in every step"
    add("--controller", choices=("lqr", "mpc"), default="lqr", help=which)
    seconds("--mpc-horizon", "how far it plans in s (default: the scenario's)")
    iterations = "interior-point iterations in a step (default: 3)"
    add("--mpc-iterations", type=bounded_integer(1), default=0, metavar="N", help=iterations)
    constraint = (
        "a constraint of the scenario that it keeps, auto for those of the reference (default); "
        "repeatable"
    )
    add("--mpc-constraint", action="append", default=[], metavar="NAME", help=constraint)
    late = "share of its plans that are late, to see what becomes of the motion"
    add("--mpc-late", type=bounded_number(0), default=0.0, metavar="P", help=late)
    seed = "seed with which these are drawn"
    add("--mpc-seed", type=bounded_integer(0), default=0, metavar="N", help=seed)


def _add_plant(add: Callable) -> None:
    integrator = "integrator of the plant (default: the model's)"
    add("--plant-integrator", default="", metavar="NAME", help=integrator)
    substeps = "steps of the plant in one step of the model"
    add("--plant-substeps", type=bounded_integer(1), default=1, metavar="N", help=substeps)
    add(
        "--plant-parameter",
        type=assignment,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="physical parameter of the plant; commas separate several numbers; repeatable",
    )
    external = "external force on a body or coordinate, constant in each step of the model"
    for option, kind, meaning in (
        ("--disturb", disturbance, external),
        ("--fault", fault, f"fault of sensors or actuators, e.g. {fault.EXAMPLE}"),
    ):
        add(
            option,
            type=parsed(kind.parse),
            action="append",
            default=[],
            metavar=kind.SYNTAX.partition("[,")[0],
            help=f"{meaning}; written {kind.SYNTAX} with a KIND of {', '.join(kind.KINDS)}; "
            "repeatable",
        )


def _add_simulate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--open-loop", action="store_true", help="apply the reference's inputs without feedback"
    )
    parser.set_defaults(command=run_scenario.simulate)


def _add_run(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--speed-factor",
        type=bounded_number(0),
        default=1.0,
        metavar="X",
        help="ratio of simulated time to real time, 0 = as fast as possible",
    )
    add(
        "--lockstep",
        action="store_true",
        help="in each step, let the plant wait for the command that answers its state",
    )
    add(
        "--display",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also run the display node: markers for rviz and Foxglove",
    )
    add(
        "--view",
        action="store_true",
        help="also serve a page with scene and plots for browsers, and print its address",
    )
    add(
        "--no-record",
        action="store_true",
        help="run the nodes only: without a recording there are no figures and no table",
    )
    parser.set_defaults(command=run_scenario.run)


def _add_scenario(parser: argparse.ArgumentParser, scenario: Scenario) -> None:
    """Add the scenario's initial errors as options, and its parameters and targets to the help."""
    errors = parser.add_argument_group(f"initial error of {scenario.name}")
    system = scenario.make_system(scenario.parameters)
    for entry in declarations(default_perturbation(scenario.perturbation, system)):
        errors.add_argument(
            _option(entry),
            dest=f"perturb_{entry.name}",
            type=declared(entry, type(scenario.perturbation).__name__),
            default=entry.value,
            metavar=(entry.unit or ("N" if entry.is_integer else "X")).upper().replace(" ", ""),
            help=_text(entry).replace("%", "%%"),
        )
    targets = scenario.targets(system)
    names = [f"{d.name} ({d.unit})".replace(" ()", "") for d in declarations(scenario.parameters)]
    parser.epilog = (
        f"Parameters of {scenario.name}: {', '.join(names) or 'none'}. "
        f"Disturbances may act on: {', '.join(targets)}; "
        f"e.g. --disturb {list_scenarios.example(list(targets.values()))}. "
        f"`{PROGRAM} list SCENARIO` explains them."
    ).replace("%", "%%")


def _text(entry: Declaration) -> str:
    text = entry.description or entry.name
    return f"{text} in {entry.unit}" if entry.unit else text


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Show the defaults of numbers; help texts mention other defaults where needed."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return (
            super()._get_help_string(action)
            if isinstance(action.default, float) and action.default
            else action.help
        )
