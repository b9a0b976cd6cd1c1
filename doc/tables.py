"""Pages of the reference that follow from the package's registries."""

from __future__ import annotations

import os
import subprocess
import sys

from scenario_pages import table

from nh_control.benchmarks import BENCHMARKS, report
from nh_control.integrators import INTEGRATORS
from nh_control.mechanics.parameters import NODES, PROCESS
from nh_control.runs.settings import OPTIONS, SETTINGS, short_name

COMMANDS = (
    "list", "new", "simulate", "run", "replay", "identify", "compare", "integrators", "paper",
    "benchmark", "study", "view", "film", "plot", "doctor",
)  # fmt: skip
OTHERWISE = ("scenario", "perturb")
"""Settings that have no option of their own name."""
RUN = "import sys; from nh_control.cli import main; sys.exit(main())"


def pages() -> dict[str, str]:
    """Text by file name."""
    return {
        "integrators.md": _integrators(),
        "command.md": _command(),
        "settings.md": _settings(),
        "benchmarks.md": _benchmarks(),
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


def _benchmarks() -> str:
    results = [one.run() for one in BENCHMARKS.values()]
    text = [
        "# Benchmarks\n\n"
        "`nh_control benchmark` computes these numbers; this page has those of its build. A row "
        "shows the number of a benchmark that agrees least. *Printed* numbers are those of the "
        "source; *closed form* is a formula, evaluated in double precision; an *invariant* is "
        "kept by the exact motion. Times include making the model, but not the first compilation. "
        "Below are all numbers, with the sources and the reasons for digits that do not agree. "
        "Each file of `nh_control/benchmarks/` is a short example of the interface.\n\n",
        table(report.SUMMARY, map(report.summary, results)),
    ]
    for result in results:
        one = result.benchmark
        note = f" {one.note}" if one.note else ""
        text.append(
            f"\n## {one.name}\n\n{one.title[0].upper()}{one.title[1:]}.\n\n"
            f"Reference, {one.reference}: {one.source}. Here: {one.method}.{note}\n\n"
            + table(report.VALUES, report.values(result))
        )
    return "".join(text)


def _settings() -> str:
    rows = (
        (
            f"`{entry.name}`",
            {PROCESS: "simulate, study", NODES: "run"}.get(entry.only, "all"),
            "" if entry.name in OTHERWISE else f"`--{short_name(entry).replace('_', '-')}`",
            f"`{short_name(entry)}`" if short_name(entry) in OPTIONS else "",
            f"`{entry.value!r}`",
            ", ".join(entry.choices) or entry.bound,
            entry.sentence,
        )
        for entry in SETTINGS.values()
    )
    head = ("setting, parameter", "of", "option", "study", "default", "range", "meaning")
    return (
        "# Settings of a run\n\n"
        "`nh_control.runs.settings.RunSettings` declares them. The options of `nh_control "
        "simulate` and `run`, the parameters of [nodes](nodes.md), launch arguments, studies and "
        "the files of a run follow. [Studies](../tutorials/study.md) have those without a name "
        "there in forms of their own. Initial errors are the options `--perturb-NAME`.\n\n"
        + table(head, rows)
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
