"""Files of the nodes' parameters, from their declarations."""

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
    """A file, as text, with all parameters of plant, tracker and display, their meanings, and
    their values in launch files of the scenario.

    Its section is for every node, so that a launch argument, or `-p NAME:=VALUE`, wins.
    """
    entries = {e.name: e for e in (*PLANT, *TRACKER, *DISPLAY) if e.name not in BY_LAUNCH}
    for prefix, owner in (
        (PLANT_PARAMETERS, scenario.parameters),
        (PERTURBATION, scenario.no_perturbation),
    ):
        fields = [e.prefixed(prefix, type(owner).__name__) for e in declarations(owner)]
        entries |= {entry.name: entry for entry in fields}
    values = {**scenario.origin, **scenario.nodes}
    lines = ["/**:", "  ros__parameters:", *_lines(entries.values(), values)]
    return "\n".join(lines) + "\n"


def _lines(entries: Iterable[Declaration], values: Mapping[str, Any], group: str = "") -> list:
    """Lines of a group's parameters, then those of the groups inside of it."""
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
    for name, own in inner.items():
        out += [f"{indent}{name}:", *_lines(own, values, f"{group}{name}.")]
    return out


def _value(value: Any) -> str:
    """The value in YAML; [""] of no texts, because an empty list has no type."""
    plain = list(value) or [""] if isinstance(value, list | tuple) else value
    return yaml.safe_dump(plain, default_flow_style=True, width=1000).splitlines()[0]
