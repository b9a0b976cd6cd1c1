"""Tables of a study's statistics."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from nh_control.studies import Study

INTERVAL = "95 %"
PIPED = 1000
"""Width of output that does not go to a terminal. It is large enough that no column is cut."""


def show(study: Study, numbers: dict[str, Any]) -> None:
    """Print the study's statistics, except metrics that are 0 in all runs."""
    _shares(study, numbers)
    _requirements(numbers)
    shown = {n: m for n, m in numbers["metrics"].items() if m["min"] or m["max"]}
    _metrics(shown)
    for name, levels in numbers["by_value"].items():
        rows = [
            (value, *_share(level)[:2], str(level["runs"]), _number(level["median_error"]))
            for value, level in levels.items()
        ]
        _table(name, ("", "success", INTERVAL, "runs", "median error"), rows)
    _correlations({name: numbers["sensitivity"][name] for name in shown})
    if numbers["sobol_indices"]:
        _sobol_indices(numbers["sobol_indices"])


def _shares(study: Study, numbers: dict[str, Any]) -> None:
    rows = [
        (_success(study), *_share(numbers["success"])),
        ("failed", *_share(numbers["failed"])),
    ]
    for failure in numbers["failures"]:
        rows.append((failure["reason"], "", f"first run {failure['first_run']}", failure["runs"]))
    title = f"{study.settings.scenario.name}: {numbers['runs']} of {numbers['planned']} runs"
    _table(title, ("", "share", INTERVAL, "runs"), rows)


def _success(study: Study) -> str:
    """Return the definition of a success."""
    if study.run_requirements:
        return " and ".join(requirement.text for requirement in study.run_requirements)
    return f"final error <= {study.success:g} m, rad"


def _requirements(numbers: dict[str, Any]) -> None:
    rows = [
        (requirement["text"], requirement["reason"], "met" if requirement["met"] else "not met")
        for requirement in numbers["requirements"]
    ]
    if rows:
        _table("", ("requirement", "", ""), rows)


def _metrics(metrics: dict[str, Any]) -> None:
    rows = []
    for name, m in metrics.items():
        label = f"{_words(name)} ({m['unit']})".replace(" ()", "")
        # half the width of the mean's confidence interval
        half = None if m["high"] is None else m["high"] - m["mean"]
        others = (_number(number, 2) for number in (half, m["std"], m["q05"], m["q50"], m["q95"]))
        rows.append((label, _number(m["mean"]), *others, m["worst_run"]))
    columns = ("metric", "mean", f"+- {INTERVAL}", "std", "5 %", "median", "95 %", "worst run")
    _table("", columns, rows)


def _correlations(sensitivity: dict[str, Any]) -> None:
    known = {name: rows for name, rows in sensitivity.items() if any(rows.values())}
    rows = [
        (
            _words(name),
            *(_number(entry and entry["correlation"]) for entry in correlations.values()),
        )
        for name, correlations in known.items()
    ]
    if rows:
        _table("", ("rank correlation with", *next(iter(known.values()))), rows)


def _sobol_indices(indices_by_name: dict[str, Any]) -> None:
    rows = []
    for name, indices in indices_by_name.items():
        # first-order index: the parameter alone; total index: also its interactions
        first, total = indices["first"], indices["total"]
        alone = (_number(first["index"]), _interval(first))
        rows.append((name, *alone, _number(total["index"]), _interval(total)))
    columns = ("Sobol' index of the final error", "alone", INTERVAL, "with others", INTERVAL)
    _table("", columns, rows)


def _share(share: dict[str, Any]) -> tuple[str, str, str]:
    """Return the share, its interval and the number of runs as text."""
    if share["share"] is None:
        return "-", "-", "0"
    low, high = 100 * share["low"], 100 * share["high"]
    return f"{100 * share['share']:.3g} %", f"{low:.3g} ... {high:.3g} %", str(share["count"])


def _interval(estimate: dict[str, Any]) -> str:
    return f"{_number(estimate['low'])} ... {_number(estimate['high'])}"


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}g}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    out = Table(title=title or None, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for k, column in enumerate(columns):
        out.add_column(column, overflow="fold", no_wrap=k == 0)
    for row in rows:
        out.add_row(*map(str, row))
    Console(width=None if sys.stdout.isatty() else PIPED).print(out, markup=False)
    print()
