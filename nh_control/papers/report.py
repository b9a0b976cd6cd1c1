"""Files with the results for a paper: figures as PNG, numbers.json, and table.md with published
and computed results.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nh_control.figures.style import save
from nh_control.papers.paper import Experiment, Outcome, Paper, Statement

COLUMNS = ("where", "the paper says", "here", "agrees", "corrected or chosen")
NUMBERS, TABLE = "numbers.json", "table.md"


class Report:
    """The results for a paper in a folder. Each experiment is written completely before the next
    one starts, so an interruption leaves complete files.
    """

    def __init__(self, paper: Paper, folder: Path):
        self._paper, self._folder = paper, folder
        self._pictures: list[str] = []
        self._numbers: dict[str, Any] = {}
        self.statements: list[Statement] = []
        self.failed: list[str] = []

    @property
    def files(self) -> list[str]:
        """The names of the written files."""
        return [*self._pictures, NUMBERS, TABLE]

    def add(self, experiment: Experiment, outcome: Outcome) -> None:
        """Write the figure, numbers and rows of an experiment.

        Raises errors that occur while drawing, and ValueError for numbers that are not finite. In
        these cases, nothing is written.
        """
        # Check the numbers before any file changes.
        json.dumps(outcome.numbers, allow_nan=False)
        picture = f"{experiment.file}.png"
        self._write(picture, lambda file: save(outcome.draw, file))
        self._pictures.append(picture)
        self._add(experiment, outcome.numbers, outcome.statements)

    def add_failure(self, experiment: Experiment, error: Exception) -> None:
        """Write a row with the reason why an experiment failed."""
        reason = f"{type(error).__name__}: {error}"
        self.failed.append(experiment.file)
        where = Statement(experiment.file, experiment.title, f"failed, {reason}", False)
        self._add(experiment, {"failed": reason}, (where,))

    def _add(
        self, experiment: Experiment, numbers: dict[str, Any], statements: Sequence[Statement]
    ) -> None:
        self._numbers[experiment.file] = numbers
        self.statements += statements
        text = json.dumps(self._numbers, indent=2, allow_nan=False) + "\n"
        self._write(NUMBERS, lambda file: file.write_text(text))
        page = f"# {self._paper.key}: {self._paper.title}\n\n{table(self.statements)}"
        self._write(TABLE, lambda file: file.write_text(page))

    def _write(self, name: str, write: Callable[[Path], object]) -> None:
        """Write a file completely or not at all."""
        # Replacing a file is atomic, so readers never see a partial file.
        part = self._folder / f".{name}"
        try:
            write(part)
            part.replace(self._folder / name)
        finally:
            part.unlink(missing_ok=True)


def row(statement: Statement) -> tuple[str, str, str, str, str]:
    """Return a statement's cells for the columns COLUMNS."""
    agrees = {True: "yes", False: "NO", None: "-"}[statement.holds]
    return statement.where, statement.paper, statement.ours, agrees, statement.corrected


def table(statements: Sequence[Statement]) -> str:
    """Return the statements as a Markdown table."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *map(row, statements)]
    return "\n".join(f"| {' | '.join(_cell(c) for c in cells)} |" for cells in lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
