"""Pages of the reference that follow from the package's registries."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence

from nh_control import scenarios
from nh_control.integrators import INTEGRATORS

COMMANDS = (
    "list", "new", "simulate", "run", "replay", "identify", "compare", "integrators", "paper",
    "study", "view", "film", "plot", "doctor",
)  # fmt: skip
RUN = "import sys; from nh_control.cli import main; sys.exit(main())"


def pages() -> dict[str, str]:
    """Text by file name."""
    return {
        "integrators.md": _integrators(),
        "scenarios.md": _scenarios(),
        "command.md": _command(),
    }


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell or '-' for cell in line)} |\n" for line in lines)


def _integrators() -> str:
    rows = (
        (
            f"`{one.name}`",
            str(one.order),
            "explicit" if one.explicit else "implicit",
            "yes" if one.symmetric else "no",
            ", ".join(one.preserves),
            one.source,
        )
        for one in INTEGRATORS.values()
    )
    head = ("name", "order", "kind", "symmetric", "conserves", "source")
    return (
        "# Integrators\n\n"
        "`nh_control.integrators.INTEGRATORS[name].make(system, h)` makes the discrete system. "
        "`order` holds for q and rho, the configuration and the momenta.\n\n" + _table(head, rows)
    )


def _scenarios() -> str:
    text = [
        "# Scenarios\n\n"
        "`nh_control simulate NAME`, `nh_control run NAME` and "
        "`ros2 launch nh_control NAME.launch.py` take these names.\n"
    ]
    for name in scenarios.names():
        scenario = scenarios.get(name)
        model = scenario.model()
        system = model.system
        parameters = (
            (f"`{key}`", f"{value:g}")
            for key, value in zip(system.parameter_names, system.parameter_values)
        )
        limits = (
            (f"`{key}`", unit, f"{low:g}", f"{high:g}")
            for key, unit, (low, high) in zip(
                model.inputs, system.input_units, system.input_bounds
            )
        )
        text += [
            f"\n## {name}\n\n{scenario.title}.\n\n",
            f"- references: {', '.join(f'`{one}`' for one in scenario.references)}\n",
            f"- integrators: {', '.join(f'`{one}`' for one in scenario.integrators)}\n",
            f"- step: {scenario.step_s:g} s\n\n",
            _table(("actuator", "unit", "lower", "upper"), limits),
            "\n",
            _table(("parameter", "value"), parameters),
        ]
    return "".join(text)


def _command() -> str:
    text = ["# The command\n"]
    for command in COMMANDS:
        done = subprocess.run(
            [sys.executable, "-c", RUN, command, "--help"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "COLUMNS": "90", "NO_COLOR": "1"},
        )
        text.append(f"\n## nh_control {command}\n\n```text\n{done.stdout.strip()}\n```\n")
    return "".join(text)
