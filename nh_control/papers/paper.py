"""The experiments for a paper: figures with their numbers, and comparisons of published and
computed results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure

from nh_control.numerics.progress import Progress


@dataclass(frozen=True)
class Statement:
    """One row in a paper's table: where the paper makes a claim, the claim itself, the computed
    result, whether both agree, and corrections or assumptions. `holds` is None for processor
    times, which depend on the machine, and for claims that a short run cannot decide.
    """

    where: str
    paper: str
    ours: str
    holds: bool | None
    corrected: str = ""


@dataclass(frozen=True)
class Outcome:
    """The result of an experiment: its figure, its numbers as plain values, and its rows in the
    table.
    """

    draw: Callable[[], Figure]
    numbers: dict[str, Any]
    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """A figure in a paper, identified by its number, or a named experiment about one of the
    paper's claims. `compute(progress)` runs the experiment. If this takes minutes,
    `short(progress)` takes fewer steps. If the paper's duration needs more than half an hour, only
    `long(progress)` uses it.
    """

    number: str
    title: str
    compute: Callable[[Progress], Outcome]
    short: Callable[[Progress], Outcome] | None = None
    long: Callable[[Progress], Outcome] | None = None

    @property
    def file(self) -> str:
        """The name, without suffix, under which its figure and its numbers are stored."""
        return f"figure_{self.number}" if self.number.isdigit() else self.number


@dataclass(frozen=True)
class Paper:
    """A paper with its key and its experiments in the paper's order."""

    key: str
    title: str
    experiments: tuple[Experiment, ...] = field(repr=False)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Numbers and names of the experiments."""
        return tuple(experiment.number for experiment in self.experiments)

    def experiment(self, number: str) -> Experiment:
        """Return an experiment. Raises KeyError, which lists all numbers, for an unknown
        number.
        """
        for experiment in self.experiments:
            if experiment.number == number:
                return experiment
        raise KeyError(
            f"{self.key} has no figure {number!r}, choose from: {', '.join(self.numbers)}"
        )
