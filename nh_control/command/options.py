"""Command options, derived from the declared settings of a run."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from nh_control.command.values import assignment, reader, text_of
from nh_control.mechanics.parameters import Declaration, declarations
from nh_control.runs.settings import ORIGIN, SETTINGS, RunSettings, option_words, short_name

if TYPE_CHECKING:
    from nh_control.scenarios import Scenario

SHOWN = {"disturb": "TARGET:KIND:NUMBER", "fault": "[TARGET:]KIND[=NUMBER]"}
"""Placeholders that the help shows for one value of a list."""


def add_settings(add: Callable, without: str) -> None:
    """Add an option for every setting. Settings that apply only to `without` and settings that
    determine the scenario are left out.
    """
    for entry in SETTINGS.values():
        if entry.name not in (*ORIGIN, "perturb") and entry.only != without:
            add_option(add, entry)


def add_robot(add: Callable) -> None:
    """Add the options that determine the scenario: its robot or its autopilot."""
    for name in ORIGIN[1:]:
        add_option(add, SETTINGS[name], "KIND" if name == "autopilot" else "FILE")


def add_option(add: Callable, entry: Declaration, shown: str = "NAME") -> None:
    """Add the option for a setting. In the help, `shown` stands for its value."""
    name = short_name(entry)
    option, value = f"--{name.replace('_', '-')}", entry.value
    # True by default: --name and --no-name; False by default: --name alone
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
    """Return a reader for one value of the list with the given name."""

    def read(text: str) -> Any:
        from nh_control.scenarios import disturbance, fault

        # parsed here, so that argparse reports an error with the option
        return {"disturb": disturbance.parse, "fault": fault.parse}.get(name, str)(text)

    return text_of(read)


def default_of(entry: Declaration) -> str:
    """Return the default as the help shows it, or "" for false, 0 and empty values."""
    # a choice already shows its values
    text = entry.by_default or (str(entry.value) if entry.value and not entry.choices else "")
    return f" (default: {text})" if text and entry.value != -1 else ""


def metavar(entry: Declaration, text: str = "NAME") -> str:
    """Return the placeholder of a value in the help: its unit, or `text`."""
    if isinstance(entry.value, str):
        return text
    return (entry.unit or ("N" if entry.is_integer else "X")).upper().replace(" ", "")


def settings(args: Namespace) -> RunSettings:
    """Return the settings in the arguments of `simulate` and `run`. Raises ValueError."""
    values: dict[str, Any] = {}
    for entry in SETTINGS.values():
        value = getattr(args, short_name(entry), entry.value)
        if isinstance(entry.value, Mapping):
            values[entry.name] = dict(value)
        elif value or not entry.is_list:  # without the option, the default applies
            values[entry.name] = value
    scenario, errors = args.scenario, vars(args)
    values["perturb"] = {
        entry.name: errors[f"perturb_{entry.name}"] for entry in initial_errors(scenario)
    }
    return RunSettings.of({**values, **scenario.origin})


def words_of(settings: RunSettings, scenario: Scenario) -> list[str]:
    """Return the arguments of `simulate` or `run` that correspond to the given settings of a
    scenario. This is the inverse of `settings`. Options with default values are omitted.
    """
    values = {**{name: settings[name] for name in SETTINGS}, **scenario.origin}
    words, defaults = [str(values["scenario"])], RunSettings()
    # first the options that determine the scenario
    for name in (*ORIGIN[1:], *(name for name in SETTINGS if name not in (*ORIGIN, "perturb"))):
        if name in values and values[name] != defaults[name]:
            words += option_words(SETTINGS[name], values[name])
    usual = {entry.name: entry.value for entry in initial_errors(scenario)}
    for name, value in settings.perturb.items():
        if value != usual[name]:
            words.append(f"--perturb-{name.replace('_', '-')}={value!r}")
    return words


def initial_errors(scenario: Scenario) -> tuple[Declaration, ...]:
    """Return the initial errors of a scenario with their defaults."""
    from nh_control.scenarios.perturbation import default_perturbation

    system = scenario.system
    return declarations(default_perturbation(scenario.perturbation, system))
