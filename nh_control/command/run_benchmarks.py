"""`nh_control benchmark`: classical benchmarks of multibody dynamics beside published numbers."""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from nh_control.command.usage import UsageError, writing

if TYPE_CHECKING:
    from nh_control.benchmarks import Benchmark, Result


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the arguments of the command."""
    parser = commands.add_parser(
        "benchmark",
        help="compute classical benchmarks of multibody dynamics (bicycle, Andrews' squeezer, "
        "Bricard, rattleback, ...) and count the digits that agree with published numbers",
    )
    add = parser.add_argument
    names = "a benchmark whose numbers are all printed; several are possible (default: a row each)"
    add("names", nargs="*", metavar="NAME", help=names)
    where = "write all numbers as one JSON object to FILE; - prints them instead of the table"
    add("--json", default=None, metavar="FILE", help=where)
    parser.set_defaults(command=run)


def run(args: Namespace) -> int:
    """Print a row for each benchmark, or all numbers of the chosen ones; returns the exit code."""
    from nh_control.benchmarks import BENCHMARKS, report

    if unknown := [name for name in args.names if name not in BENCHMARKS]:
        raise UsageError(f"unknown benchmark {unknown[0]!r}, choose of: {', '.join(BENCHMARKS)}")
    chosen = [BENCHMARKS[name] for name in dict.fromkeys(args.names)] or [*BENCHMARKS.values()]
    results = list(_run(chosen))
    if args.json is not None:
        text = json.dumps(report.plain(results), indent=2)
        if args.json == "-":
            print(text)
            return 0
        with writing(Path(args.json).parent):
            Path(args.json).write_text(text + "\n", encoding="utf-8")
    if not args.names:
        _print(report.SUMMARY, [report.summary(result) for result in results])
        return 0
    for result in results:
        one = result.benchmark
        print(f"{one.name}: {one.title}")
        _print(report.VALUES, report.values(result))
        print(f"{one.reference}: {one.source}\n{one.method}; {result.seconds:.1f} s")
        print(f"{one.note}\n" if one.note else "")
    return 0


def _run(benchmarks: Sequence[Benchmark]) -> Iterable[Result]:
    for k, one in enumerate(benchmarks):
        print(f"\r{k + 1} of {len(benchmarks)} {one.name:40}", end="", file=sys.stderr)
        yield one.run()
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)


def _print(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for cells in rows:
        table.add_row(*cells)
    Console().print(table, markup=False)
