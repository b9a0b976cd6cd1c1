"""Options of the command from the declared settings of a run."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from nh_control.command.values import assignment, reader, text_of
from nh_control.mechanics.parameters import Declaration, declarations
from nh_control.runs.settings import ORIGIN, SETTINGS, RunSettings, short_name

if TYPE_CHECKING:
    from nh_control.scenarios import Scenario

SHOWN = {"disturb": "TARGET:KIND:NUMBER", "fault": "[TARGET:]KIND[=NUMBER]"}
"""How one value of a list stands in the help."""


def add_settings(add: Callable, without: str) -> None:
    """Add an option for every setting, but not for those of the place `without`, and those of the
    scenario itself.
    """
    for entry in SETTINGS.values():
        if entry.name not in (*ORIGIN, "perturb") and entry.only != without:
            add_option(add, entry)


def add_robot(add: Callable) -> None:
    """Add the options that say what the robot of the scenario urdf is."""
    for name in ORIGIN[1:]:
        add_option(add, SETTINGS[name], "FILE")


def add_option(add: Callable, entry: Declaration, shown: str = "NAME") -> None:
    """Add the option of a setting; in the help, `shown` stands for its text."""
    name = short_name(entry)
    option, value = f"--{name.replace('_', '-')}", entry.value
    if isinstance(value, bool):
        action = argparse.BooleanOptionalAction if value else "store_true"
        add(option, action=action, default=value, help=entry.text)
    elif isinstance(value, Mapping):
        add(option, action="append", type=assignment, default=[], metavar="NAME=VALUE",
            help=f"{entry.text}; repeatable")  # fmt: skip
    elif entry.is_list:
        add(option, action="append", type=_read_one(name), default=[],
            metavar=SHOWN.get(name, shown), help=f"{entry.text}; repeatable")  # fmt: skip
    elif entry.choices:
        add(option, choices=entry.choices, default=value, help=entry.text)
    else:
        add(option, type=reader(entry), default=value, metavar=metavar(entry, shown),
            help=entry.text + default_of(entry))  # fmt: skip


def _read_one(name: str) -> Callable[[str], str]:
    """Return a reader of one value of the list of this name."""

    def read(text: str) -> Any:
        from nh_control.scenarios import disturbance, fault

        return {"disturb": disturbance.parse, "fault": fault.parse}.get(name, str)(text)

    return text_of(read)


def default_of(entry: Declaration) -> str:
    """Return the default as the help shows it, "" of false, 0 and nothing."""
    text = entry.by_default or (str(entry.value) if entry.value and not entry.choices else "")
    return f" (default: {text})" if text and entry.value != -1 else ""


def metavar(entry: Declaration, text: str = "NAME") -> str:
    """Return what stands for a value in the help: its unit, or `text`."""
    if isinstance(entry.value, str):
        return text
    return (entry.unit or ("N" if entry.is_integer else "X")).upper().replace(" ", "")


def settings(args: Namespace) -> RunSettings:
    """The settings that the arguments of `simulate` and `run` ask for; raises ValueError."""
    values: dict[str, Any] = {}
    for entry in SETTINGS.values():
        value = getattr(args, short_name(entry), entry.value)
        if isinstance(entry.value, Mapping):
            values[entry.name] = dict(value)
        elif value or not entry.is_list:  # without the option the default
            values[entry.name] = value
    scenario, errors = args.scenario, vars(args)
    values["perturb"] = {
        entry.name: errors[f"perturb_{entry.name}"] for entry in initial_errors(scenario)
    }
    return RunSettings.of({**values, **scenario.origin})


def initial_errors(scenario: Scenario) -> tuple[Declaration, ...]:
    """The initial errors of a scenario, with their defaults."""
    from nh_control.scenarios.perturbation import default_perturbation

    system = scenario.make_system(scenario.parameters)
    return declarations(default_perturbation(scenario.perturbation, system))
