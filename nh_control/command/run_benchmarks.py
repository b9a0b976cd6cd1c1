"""`nh_control benchmark` runs classical benchmarks of multibody dynamics and compares their
results with published numbers.
"""

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
    parser = commands.add_parser("benchmark")
    add = parser.add_argument
    names = "benchmarks whose numbers are all printed (default: a row for each benchmark)"
    add("names", nargs="*", metavar="NAME", help=names)
    where = "write all numbers as one JSON object to FILE; - prints them instead of the table"
    add("--json", default=None, metavar="FILE", help=where)
    parser.set_defaults(command=run)


def run(args: Namespace) -> int:
    """Print a row for each benchmark, or all numbers for the chosen ones. Returns the exit
    code.
    """
    from nh_control.benchmarks import BENCHMARKS, report

    if unknown := [name for name in args.names if name not in BENCHMARKS]:
        raise UsageError(f"unknown benchmark {unknown[0]!r}, choose from: {', '.join(BENCHMARKS)}")
    # each benchmark once, in the order of the arguments
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
        for result in results:
            name, reference, number, published, here, digits, seconds = report.summary(result)
            print(f"{name:20} {digits:>8} digits  {reference:12} {seconds:>5} s")
            print(f"    {number}: {here} here, {published} expected")
        return 0
    for result in results:
        benchmark = result.benchmark
        print(f"{benchmark.name}: {benchmark.title}")
        _print(report.VALUES, report.values(result))
        print(f"{benchmark.reference}: {benchmark.source}")
        print(f"{benchmark.method}; {result.seconds:.1f} s")
        print(f"{benchmark.note}\n" if benchmark.note else "")
    return 0


def _run(benchmarks: Sequence[Benchmark]) -> Iterable[Result]:
    for k, benchmark in enumerate(benchmarks):
        # \r overwrites the previous line on the terminal
        print(f"\r{k + 1} of {len(benchmarks)} {benchmark.name:40}", end="", file=sys.stderr)
        yield benchmark.run()
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr)


def _print(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for cells in rows:
        table.add_row(*cells)
    Console().print(table, markup=False)
