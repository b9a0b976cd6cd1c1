"""Pages of the reference that follow from the package's registries."""

from __future__ import annotations

import os
import subprocess
import sys

from scenario_pages import table

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
        "command.md": _command(),
    }


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
        "`order` holds for q and rho, the configuration and the momenta.\n\n" + table(head, rows)
    )


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
