"""A paper's results in a folder: figures as PNG, numbers.json, and table.md with what the paper
says and what comes out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from nh_control.figures.style import save
from nh_control.papers.paper import Experiment, Outcome, Paper, Statement

COLUMNS = ("where", "the paper says", "here", "agrees", "corrected or chosen")


def row(statement: Statement) -> tuple[str, str, str, str, str]:
    """A statement's cells under COLUMNS."""
    agrees = "yes" if statement.holds else "NO"
    return statement.where, statement.paper, statement.ours, agrees, statement.corrected


def table(statements: Sequence[Statement]) -> str:
    """The statements as a table in Markdown."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *map(row, statements)]
    return "\n".join(f"| {' | '.join(_cell(c) for c in cells)} |" for cells in lines) + "\n"


def write(paper: Paper, outcomes: Mapping[Experiment, Outcome], folder: Path) -> list[str]:
    """Write everything into a folder; returns the names of the files."""
    files = []
    for experiment, outcome in outcomes.items():
        files.append(f"{experiment.file}.png")
        save(outcome.draw, folder / files[-1])
    numbers = {experiment.file: outcome.numbers for experiment, outcome in outcomes.items()}
    (folder / "numbers.json").write_text(json.dumps(numbers, indent=2, allow_nan=False) + "\n")
    statements = [s for outcome in outcomes.values() for s in outcome.statements]
    (folder / "table.md").write_text(f"# {paper.key}: {paper.title}\n\n{table(statements)}")
    return [*files, "numbers.json", "table.md"]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
