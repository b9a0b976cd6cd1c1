"""`nh_control paper` lists the papers, or runs the experiments of one paper."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from nh_control.command.usage import FAILED, PROGRAM, UsageError

if TYPE_CHECKING:
    from nh_control.command.interruption import Interruption
    from nh_control.papers.paper import Experiment, Paper


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the arguments of the command."""
    parser = commands.add_parser("paper")
    add = parser.add_argument
    add("paper", nargs="?", metavar="KEY", help="one of the papers (default: list them)")
    number = "the figure with this number, or the experiment with this name; repeatable"
    add("--figure", action="append", metavar="N", help=f"only {number} (default: all)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--short", action="store_true", help="take few steps in experiments that take minutes"
    )
    form.add_argument(
        "--long", action="store_true", help="use the paper's length even if it takes half an hour"
    )
    where = "folder of the results (default: a new nh_control_output/KEY)"
    add("--output", default=None, metavar="DIR", help=where)
    add("--overwrite", action="store_true", help="replace the results in --output")
    parser.set_defaults(command=run)


def run(args: Namespace) -> int:
    """List the papers, or write the figures, numbers and table of one paper. Returns the exit
    code.
    """
    from nh_control.papers import PAPERS

    if not args.paper:
        _list(list(PAPERS.values()))
        return 0
    if args.paper not in PAPERS:
        raise UsageError(f"unknown paper {args.paper!r}, choose one of: {', '.join(PAPERS)}")
    paper = PAPERS[args.paper]
    try:
        # each experiment once, in the order of the arguments
        numbers = dict.fromkeys(args.figure or paper.numbers)
        chosen = [paper.experiment(number) for number in numbers]
    except KeyError as error:
        raise UsageError(error.args[0]) from None
    # an experiment without a short or long form is computed as usual
    for form in ("short", "long"):
        if getattr(args, form):
            chosen = [
                replace(experiment, compute=getattr(experiment, form) or experiment.compute)
                for experiment in chosen
            ]
            paper = replace(paper, title=f"{paper.title} ({form} form)")
    return _write(paper, chosen, _folder(args), args.interruption)


def _write(
    paper: Paper, experiments: Sequence[Experiment], folder: Path, interruption: Interruption
) -> int:
    """Write the results of each experiment when it ends. A failed experiment becomes a row in the
    table, and the next one starts.
    """
    from nh_control.numerics.progress import Progress
    from nh_control.papers.report import COLUMNS, Report, row

    report = Report(paper, folder)
    with Progress() as progress:
        for experiment in experiments:
            progress.phase(f"{experiment.file}: {experiment.title}")
            try:
                report.add(experiment, experiment.compute(progress))
            except Exception as error:
                if interruption.requested:  # CasADi turns Ctrl-C into a failure
                    raise
                report.add_failure(experiment, error)
    _print(f"{paper.key}: {paper.title}", COLUMNS, [row(s) for s in report.statements])
    print(f"{folder}: {', '.join(report.files)}")
    if report.failed:
        print(f"{PROGRAM}: error: failed: {', '.join(report.failed)}", file=sys.stderr)
    return FAILED if report.failed else 0


def _folder(args: Namespace) -> Path:
    from nh_control.runs import output

    try:
        return output.folder(args.paper, args.output, args.overwrite)
    except OSError as error:
        raise UsageError(str(error)) from error


def _list(papers: Sequence[Paper]) -> None:
    for paper in papers:
        rows = [(experiment.number, experiment.title) for experiment in paper.experiments]
        _print(f"{paper.key}: {paper.title}", ("figure", "shows"), rows)


def _print(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for cells in rows:
        table.add_row(*cells)
    Console().print(table, markup=False)
