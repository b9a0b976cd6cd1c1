"""Parameter files of the nodes, written from the declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Any

import yaml

from nh_control.mechanics.parameters import Declaration, declarations
from nh_control.ros.runtime.declared import (
    DISPLAY,
    PERTURBATION,
    PLANT,
    PLANT_PARAMETERS,
    TRACKER,
)
from nh_control.scenarios import Scenario

WIDTH = 95
BY_LAUNCH = ("wait_for", "heard_by")
"""Parameters that launch files set."""


def parameter_file(scenario: Scenario) -> str:
    """The text of a file with all parameters of the plant, the tracker and the display, their
    descriptions, and their values in the scenario's launch files.

    The file's only section applies to every node, so that launch arguments and `-p NAME:=VALUE`
    override it.
    """
    # a parameter that several nodes share appears once
    entries = {e.name: e for e in (*PLANT, *TRACKER, *DISPLAY) if e.name not in BY_LAUNCH}
    for prefix, owner in (
        (PLANT_PARAMETERS, scenario.parameters),
        (PERTURBATION, scenario.no_perturbation),
    ):
        fields = [e.prefixed(prefix, type(owner).__name__) for e in declarations(owner)]
        entries |= {entry.name: entry for entry in fields}
    # values in launch files: the scenario's values replace the defaults
    values = {**scenario.origin, **scenario.nodes}
    lines = ["/**:", "  ros__parameters:", *_lines(entries.values(), values)]
    return "\n".join(lines) + "\n"


def _lines(entries: Iterable[Declaration], values: Mapping[str, Any], group: str = "") -> list:
    """Lines for a group's parameters, followed by the lines for its subgroups."""
    entries, inner = list(entries), dict[str, list[Declaration]]()
    indent, out = " " * (4 + 2 * group.count(".")), []
    for entry in entries:
        first, dot, _ = entry.name.removeprefix(group).partition(".")
        if dot:
            inner.setdefault(first, []).append(entry)
            continue
        choices = f" One of: {', '.join(entry.choices)}." if entry.choices else ""
        bound = f" Values {entry.bound}." if entry.bound else ""
        text = entry.sentence + choices + bound
        out += [f"{indent}# {line}" for line in wrap(text, WIDTH - len(indent))]
        out.append(f"{indent}{first}: {_value(values.get(entry.name, entry.value))}")
    # subgroups follow all parameters of their group, as in YAML's nested mappings
    for name, members in inner.items():
        out += [f"{indent}{name}:", *_lines(members, values, f"{group}{name}.")]
    return out


def _value(value: Any) -> str:
    """A value in YAML. An empty list is written as [""], because [] would have no type."""
    plain = list(value) or [""] if isinstance(value, list | tuple) else value
    return yaml.safe_dump(plain, default_flow_style=True, width=1000).splitlines()[0]
