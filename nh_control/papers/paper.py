"""What a paper here is: experiments by the numbers of its figures, each with its numbers, and what
the paper says beside what comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure

from nh_control.numerics.progress import Progress


@dataclass(frozen=True)
class Statement:
    """One line of a paper's table: where it says what, what comes out, whether that agrees (None
    for times of another machine, which need not), and what was corrected or had to be chosen.
    """

    where: str
    paper: str
    ours: str
    holds: bool | None
    corrected: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one experiment gives: its figure, its numbers as plain values, its lines of the
    table.
    """

    draw: Callable[[], Figure]
    numbers: dict[str, Any]
    statements: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One figure of a paper by its number, or an experiment on one of its statements by a name;
    `compute(progress)` makes it.
    """

    number: str
    title: str
    compute: Callable[[Progress], Outcome]

    @property
    def file(self) -> str:
        """Name of its picture and of its numbers."""
        return f"figure_{self.number}" if self.number.isdigit() else self.number


@dataclass(frozen=True)
class Paper:
    """A paper with its key, and its experiments in the paper's order."""

    key: str
    title: str
    experiments: tuple[Experiment, ...] = field(repr=False)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Numbers and names of the experiments."""
        return tuple(experiment.number for experiment in self.experiments)

    def experiment(self, number: str) -> Experiment:
        """One experiment; raises KeyError, naming all, for an unknown number."""
        for experiment in self.experiments:
            if experiment.number == number:
                return experiment
        raise KeyError(
            f"{self.key} has no figure {number!r} here, choose of: {', '.join(self.numbers)}"
        )
