"""Tables of a study's statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from nh_control.studies import Study

INTERVAL = "95 %"


def show(study: Study, numbers: dict[str, Any]) -> None:
    """Print the study's statistics; metrics that are 0 in all runs are omitted."""
    _shares(study, numbers)
    shown = {n: m for n, m in numbers["metrics"].items() if m["min"] or m["max"]}
    _metrics(shown)
    for name, levels in numbers["by_value"].items():
        rows = [
            (value, *_share(one)[:2], str(one["runs"]), _number(one["median_error"]))
            for value, one in levels.items()
        ]
        _table(name, ("", "success", INTERVAL, "runs", "median error"), rows)
    _correlations({name: numbers["sensitivity"][name] for name in shown})
    if numbers["sobol_indices"]:
        _sobol_indices(numbers["sobol_indices"])


def _shares(study: Study, numbers: dict[str, Any]) -> None:
    rows = [
        (f"final error <= {study.success:g} m, rad", *_share(numbers["success"])),
        ("failed", *_share(numbers["failed"])),
    ]
    for failure in numbers["failures"]:
        rows.append((failure["reason"], "", f"first run {failure['first_run']}", failure["runs"]))
    title = f"{study.settings.scenario.name}: {numbers['runs']} of {numbers['planned']} runs"
    _table(title, ("", "share", INTERVAL, "runs"), rows)


def _metrics(metrics: dict[str, Any]) -> None:
    rows = []
    for name, m in metrics.items():
        label = f"{_words(name)} ({m['unit']})".replace(" ()", "")
        half = None if m["high"] is None else m["high"] - m["mean"]
        others = (_number(number, 2) for number in (half, m["std"], m["q05"], m["q50"], m["q95"]))
        rows.append((label, _number(m["mean"]), *others, m["worst_run"]))
    columns = ("metric", "mean", f"+- {INTERVAL}", "std", "5 %", "median", "95 %", "worst run")
    _table("", columns, rows)


def _correlations(sensitivity: dict[str, Any]) -> None:
    known = {name: rows for name, rows in sensitivity.items() if any(rows.values())}
    rows = [
        (_words(name), *(_number(one and one["correlation"]) for one in correlations.values()))
        for name, correlations in known.items()
    ]
    if rows:
        _table("", ("rank correlation with", *next(iter(known.values()))), rows)


def _sobol_indices(indices_by_name: dict[str, Any]) -> None:
    rows = []
    for name, one in indices_by_name.items():
        first, total = one["first"], one["total"]
        indices = (_number(first["index"]), _interval(first), _number(total["index"]))
        rows.append((name, *indices, _interval(total)))
    columns = ("Sobol' index of the final error", "alone", INTERVAL, "with others", INTERVAL)
    _table("", columns, rows)


def _share(one: dict[str, Any]) -> tuple[str, str, str]:
    """Return the share, its interval and the number of runs as texts."""
    if one["share"] is None:
        return "-", "-", "0"
    low, high = 100 * one["low"], 100 * one["high"]
    return f"{100 * one['share']:.3g} %", f"{low:.3g} ... {high:.3g} %", str(one["count"])


def _interval(one: dict[str, Any]) -> str:
    return f"{_number(one['low'])} ... {_number(one['high'])}"


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
    Console().print(out, markup=False)
    print()
