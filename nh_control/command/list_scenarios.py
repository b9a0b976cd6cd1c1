"""`nh_control list` lists all scenarios, or explains one."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from nh_control.command import scenario_overview
from nh_control.command.options import add_robot
from nh_control.command.usage import FAILED, PROGRAM, UsageError, find_scenario, usage_errors

if TYPE_CHECKING:
    from rich.table import Table

    from nh_control.mechanics.external_forces import ForceTarget
    from nh_control.mechanics.parameters import Declaration
    from nh_control.mechanics.system import System
    from nh_control.scenarios import Scenario


def add_to(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser = commands.add_parser("list")
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
        help="print a commented parameter file for the scenario's nodes, for params_file",
    )
    parser.set_defaults(command=run)


def run(args: Namespace) -> int:
    """List all scenarios, or explain one. Returns the exit code."""
    if args.yaml and not args.scenario:
        raise UsageError("--yaml prints the parameters of the nodes of one scenario; add its name")
    if args.scenario:
        scenario = find_scenario(args.scenario, args)
        if args.yaml:
            from nh_control.ros.runtime.parameter_file import parameter_file

            print(parameter_file(scenario), end="")
            return 0
        with usage_errors(scenario.file):
            values = explained(scenario)
        _show(values, args.json, _explain)
        return 0
    entries, failed = _all()
    _show(entries, args.json, _overview)
    for error in failed:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
    return FAILED if failed else 0


def _all() -> tuple[dict[str, dict], list[UsageError]]:
    """Return the entries of all scenarios by name, and the errors of scenarios that cannot be
    loaded.
    """
    from nh_control import scenarios
    from nh_control.scenarios import discovery

    overviews, installed = scenario_overview.stored(), discovery.installed()
    cached = [name for name in scenarios.built_in() if name not in installed]
    entries, failed = {}, list[UsageError]()
    for name in dict.fromkeys((*scenarios.built_in(), *installed)):
        # only scenarios of this package are cached, because other files may change at any time
        if name in cached and name in overviews:
            entries[name] = overviews[name]
            continue
        try:
            scenario = find_scenario(name)
            with usage_errors(scenario.file):
                entries[name] = scenario_overview.overview(scenario)
        except UsageError as error:
            failed.append(error)
    # store the entries only when all are known, so that the file is complete
    if all(name in entries for name in cached) and not all(name in overviews for name in cached):
        scenario_overview.keep({name: entries[name] for name in cached})
    return entries, failed


def _show(values: dict, as_json: bool, print_: Callable[[dict], None]) -> None:
    if as_json:
        print(json.dumps(values, indent=2))
    else:
        print_(values)


# All scenarios -----------------------------------------------------------------------------------


def _overview(entries: dict[str, dict]) -> None:
    for name, entry in entries.items():
        out = _table(f"{name}: {entry['title']}")
        for label in ("references", "integrators"):
            # the first one is the default
            first, *others = entry[label]
            out.add_row(label, ", ".join([f"{first} (default)", *others]))
        out.add_row("step", f"{entry['step_s']:g} s")
        values = (f"{name} = {_number(value)}" for name, value in entry["parameters"].items())
        out.add_row("parameters", ", ".join(values))
        for actuator, (lower, upper, unit) in entry["actuators"].items():
            out.add_row("actuator", f"{actuator}, {lower:g} ... {upper:g} {unit}".rstrip())
        _print(out)


# One scenario ------------------------------------------------------------------------------------


def explained(scenario: Scenario) -> dict:
    """Return all choices that a scenario offers, as plain values."""
    from nh_control.mechanics.parameters import declarations
    from nh_control.runs import topics
    from nh_control.scenarios import disturbance
    from nh_control.scenarios.perturbation import default_perturbation

    system = scenario.system
    targets = list(scenario.targets(system).values())
    return {
        "scenario": scenario.origin["scenario"],
        "title": scenario.title,
        "file": scenario.file or None,
        "references": {
            name: _capitalized(scenario.meanings.get(name) or _meaning(make))
            for name, make in scenario.references.items()
        },
        "integrators": list(scenario.integrators),
        "step_s": scenario.step_s,
        "parameters": [_declared(d) for d in declarations(scenario.parameters)],
        "inputs": [
            {"name": name, "lower": lower, "upper": upper, "unit": unit}
            for name, (lower, upper, unit) in scenario_overview.actuators(scenario, system).items()
        ],
        "messages": topics.contents(scenario),
        "initial_error": [
            _declared(d) for d in declarations(default_perturbation(scenario.perturbation, system))
        ],
        "disturbances": {
            "syntax": disturbance.SYNTAX,
            "example": example(targets),
            "targets": [
                {
                    "name": target.name,
                    "values": dict(zip(target.components, target.units)),
                    "description": target.description,
                }
                for target in targets
            ],
            "kinds": {
                kind: {
                    "description": _first_sentence(cls.__doc__),
                    "values": [_declared(d) for d in declarations(cls())[1:]],
                }
                for kind, cls in disturbance.KINDS.items()
            },
        },
        "faults": _faults(system),
    }


def _faults(system: System) -> dict:
    from nh_control.mechanics.parameters import declarations
    from nh_control.scenarios import fault

    groups = (fault.MEASUREMENTS, fault.POSITIONS, fault.VELOCITIES, fault.COMMANDS)
    space = system.space
    coordinates = (*space.tangent_names, *space.velocity_names)
    return {
        "syntax": fault.SYNTAX,
        "example": fault.EXAMPLE,
        "targets": [*groups, *coordinates, *system.inputs, *system.prescribed],
        "kinds": {
            kind: {
                "description": _first_sentence(cls.__doc__),
                "default_target": cls.default,
                "values": [_declared(d) for d in declarations(cls())],
            }
            for kind, cls in fault.KINDS.items()
        },
    }


def example(targets: Sequence[ForceTarget]) -> str:
    """Return an example of a disturbance, a gust on the last target."""
    if not targets:
        return "TARGET:gust:1.0,start=2,duration=0.5"
    target = targets[-1]
    # a unit force along the first component
    values = ["1"] + ["0"] * (target.n_forces - 1)
    return f"{target.name}:gust:{','.join(values)},start=2,duration=0.5"


def _declared(entry: Declaration) -> dict:
    return {
        "name": entry.name,
        "value": entry.value,
        "unit": entry.unit,
        "bound": entry.bound,
        "description": entry.description,
    }


def _meaning(make: Any) -> str:
    """Return the first sentence of a reference's docstring."""
    # the docstring of a partial or a bound method does not describe the reference
    plain = not isinstance(make, partial) and not hasattr(make, "__self__")
    return _first_sentence(make.__doc__) if plain else ""


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").split()).split(". ")[0].rstrip(".")


def _explain(e: dict) -> None:
    from nh_control.scenarios.free_motion import SYNTAX

    print(f"{e['scenario']}: {e['title']}" + (f", declared in {e['file']}" if e["file"] else ""))
    table = _table("references, the default first")
    for name, meaning in e["references"].items():
        table.add_row(name, meaning)
    table.add_row(SYNTAX, "without forces, from these coordinates and velocities")
    _print(table)
    print(f"integrators: {', '.join(e['integrators'])}; step {e['step_s']:g} s")
    print(f"`{PROGRAM} integrators {e['scenario']}` lists all other integrators\n")
    _declarations("parameters, --plant-parameter NAME=VALUE", e["parameters"])
    table = _table("inputs")
    for entry in e["inputs"]:
        limits = f"{entry['lower']:g} ... {entry['upper']:g} {entry['unit']}"
        free = entry["lower"] == -float("inf") and entry["upper"] == float("inf")
        table.add_row(entry["name"], f"no limit {entry['unit']}" if free else limits)
    _print(table)
    table = _table("ROS messages for states and commands")
    for topic, names in e["messages"].items():
        table.add_row(topic, ", ".join(names))
    _print(table)
    _declarations("initial error, --perturb-NAME VALUE", e["initial_error"])
    forces = e["disturbances"]
    table = _table(f"disturbances, --disturb TARGET:KIND:VALUES, e.g. {forces['example']}")
    for target in forces["targets"]:
        values = ", ".join(f"{name} ({unit})" for name, unit in target["values"].items())
        table.add_row(target["name"], values, target["description"])
    _print(table)
    _kinds("kinds of disturbances, with additional values NAME=VALUE", forces["kinds"])
    faults = e["faults"]
    table = _table(f"faults, --fault {faults['syntax']}, e.g. {faults['example']}")
    table.add_row("targets", ", ".join(faults["targets"]))
    _print(table)
    _kinds("kinds of faults; NUMBER sets the size", faults["kinds"])


def _kinds(title: str, kinds: dict) -> None:
    table = _table(title)
    for kind, entry in kinds.items():
        table.add_row(kind, "", "", "", entry["description"])
        for value in entry["values"]:
            table.add_row("", *_row(value))
    _print(table)


def _declarations(title: str, entries: list[dict]) -> None:
    table = _table(title)
    for entry in entries:
        table.add_row(*_row(entry))
    _print(table)


def _row(entry: dict) -> tuple[str, str, str, str]:
    value = f"{_number(entry['value'])} {entry['unit']}".strip()
    return entry["name"], value, entry["bound"], entry["description"]


def _number(value: float | Sequence[float]) -> str:
    numbers = value if isinstance(value, tuple | list) else (value,)
    return ",".join(f"{number:g}" for number in numbers)


def _table(title: str) -> Table:
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0)
    )
    table.add_column(no_wrap=True, overflow="ignore")
    return table


def _print(table: Table) -> None:
    from rich.console import Console

    for column in table.columns[1:]:
        # names stay on one line, but texts are folded
        column.overflow = "fold"
    Console().print(table)
